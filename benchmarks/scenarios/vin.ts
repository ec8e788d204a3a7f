/**
 * The main job: five producers upload the same file of VINs, at the same time.
 *
 * @module
 */

import { MemoryStorage } from '../../storages/memory/index.ts'
import type { BackendName } from '../backends/backend.ts'
import { type Producer, producerElsewhere } from '../vin/producer.ts'
import { type Upload, upload } from '../vin/rows.ts'
import { latencyMs, startStandIn } from '../vin/stand-in.ts'
import { type Place, type Uploader, type UploaderName, uploaders } from '../vin/uploaders.ts'
import type { Scenario, Trial } from './scenario.ts'

const producers = 5
const perVin = 10
/** Uploaded before, by each: other VINs. */
const warmUp: Upload = { rows: 500, distinct: 50, first: 500_000 }

/** Said of what shares nothing between processes: whether it is given but one. */
const alone = ', one process'
const each = ', a process each'

/** What is measured where: askonce on the storages, the others where they live. */
const systems: Record<BackendName, readonly (UploaderName | `${UploaderName}${typeof alone | typeof each}`)[]> = {
  memory: ['askonce', `single-flight${alone}`, `answers kept in a Map${alone}`, `single-flight${each}`],
  'file-fsync': ['askonce', 'askonce, single calls'],
  'file-os': ['askonce'],
  redis: ['askonce', 'askonce, single calls', 'BullMQ, deduplication', 'BullMQ, job ids kept'],
  dynamodb: [],
}

/** Left out of quick runs. */
const slower: readonly string[] = [
  'BullMQ, job ids kept',
  'askonce, single calls',
  `answers kept in a Map${alone}`,
] satisfies (typeof systems)[BackendName]

/** Five decoders on one storage, or five callers of one Map. */
async function producersHere(name: UploaderName, place: Place): Promise<Producer[]> {
  const make = uploaders[name]
  const shared = name === 'askonce' ? null : await make(place)
  const produce = async (): Promise<Producer> => {
    const uploader: Uploader = shared ?? (await make(place))
    return { upload: (file) => uploader.upload(upload(file)), close: uploader.close }
  }
  return Promise.all(Array.from({ length: producers }, produce))
}

async function producersOf(trial: Trial, baseUrl: string): Promise<Producer[]> {
  const { address } = trial.site
  const name = trial.system.replace(alone, '').replace(each, '') as UploaderName
  if (trial.system.endsWith(alone) || (name === 'askonce' && address.kind === 'memory')) {
    const storage = new MemoryStorage()
    return producersHere(name, { baseUrl, storage: () => storage, redisUrl: null })
  }
  const open = { system: name, address, baseUrl }
  return Promise.all(Array.from({ length: producers }, () => producerElsewhere(open)))
}

export const vinScenario: Scenario = {
  name: 'vin',
  title: 'VINs: one file, uploaded by five producers at once',
  about: `Five processes (askonce on Memory: five decoders in one, and whatever else is said to be in one process) decode the same rows at the same time, each VIN standing in the file ten times; a stand-in of vPIC takes ${latencyMs} ms a call. askonce asks in batches of 50, the preset's default, which is a saving of its own: look at the VINs asked for what deduplication saves. Everything else asks singly, 16 calls at once in each process. 500 rows are under way in each. Each producer has uploaded another, small file before.`,
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
            await Promise.all(all.map((producer) => producer.upload(warmUp)))
            await standIn.asked()
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
