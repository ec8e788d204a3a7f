/**
 * The main job: five producers upload the same file of VINs, at the same time.
 *
 * @module
 */

import { MemoryStorage } from '../../storages/memory/index.ts'
import type { BackendName } from '../backends/backend.ts'
import { type Producer, producerElsewhere } from '../vin/producer.ts'
import { upload } from '../vin/rows.ts'
import { latencyMs, startStandIn } from '../vin/stand-in.ts'
import { type UploaderName, uploaders } from '../vin/uploaders.ts'
import type { Scenario, Trial } from './scenario.ts'

const producers = 5
const perVin = 10

/** What is measured where: askonce on the storages, the others where they live. */
const systems: Record<BackendName, readonly UploaderName[]> = {
  memory: ['askonce', 'single-flight'],
  'file-fsync': ['askonce', 'askonce, single calls'],
  'file-os': ['askonce'],
  redis: ['askonce', 'askonce, single calls', 'BullMQ, deduplication', 'BullMQ, job ids kept'],
  dynamodb: [],
}

/** Left out of quick runs. */
const slower: readonly string[] = ['BullMQ, job ids kept', 'askonce, single calls'] satisfies UploaderName[]

async function producersOf(trial: Trial, baseUrl: string): Promise<Producer[]> {
  const system = trial.system as UploaderName
  const { address } = trial.site
  if (address.kind !== 'memory' || system === 'single-flight') {
    return Promise.all(Array.from({ length: producers }, () => producerElsewhere({ system, address, baseUrl })))
  }
  const storage = new MemoryStorage()
  return Promise.all(
    Array.from({ length: producers }, async () => {
      const uploader = await uploaders[system]({ baseUrl, storage: () => storage, redisUrl: null })
      return { upload: (file) => uploader.upload(upload(file.rows, file.distinct)), close: uploader.close }
    }),
  )
}

export const vinScenario: Scenario = {
  name: 'vin',
  title: 'VINs: one file, uploaded by five producers at once',
  about: `Five processes (Memory: five decoders in one) decode the same rows at the same time, each VIN standing in the file ten times; a stand-in of vPIC takes ${latencyMs} ms a call. askonce asks in batches of 50, the preset's default; everything else asks singly, 16 calls at once in each process. 500 rows are under way in each.`,
  systems: (backend, quick) => systems[backend].filter((system) => !quick || !slower.includes(system)),
  leftOut: ({ name }) => (name === 'dynamodb' ? 'dynalite takes minutes over 50,000 enqueues' : null),
  cases: (quick) => {
    const distinct = quick ? 100 : 1_000
    const rows = distinct * perVin
    return [
      {
        name: `${rows.toLocaleString('en-US')} rows, ${distinct.toLocaleString('en-US')} VINs, 5 producers`,
        size: 'own',
        rounds: quick ? 1 : 2,
        async measure(trial) {
          // A place that is empty, whoever uses it.
          await (await trial.site.open('askonce')).close()
          const standIn = await startStandIn()
          let all: Producer[] = []
          try {
            all = await producersOf(trial, standIn.baseUrl)
            const begun = performance.now()
            const decoded = await Promise.all(all.map((producer) => producer.upload({ rows, distinct })))
            const seconds = (performance.now() - begun) / 1_000
            const asked = await standIn.asked()
            const uploaded = rows * producers
            if (decoded.some((count) => count !== rows)) throw new Error(`decoded ${decoded} of ${rows} rows each`)
            return {
              rows: uploaded / seconds,
              upstreamCalls: asked.calls,
              upstreamVins: asked.vins,
              callsSaved: (1 - asked.calls / uploaded) * 100,
            }
          } finally {
            await Promise.all(all.map((producer) => producer.close()))
            await standIn.stop()
          }
        },
      },
    ]
  },
}
