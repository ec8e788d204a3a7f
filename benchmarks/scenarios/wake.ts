/**
 * How long an idle worker sleeps on after somebody in another process has asked.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { Queue } from '../../src/index.ts'
import type { Address } from '../backends/backend.ts'
import { storageAt } from '../backends/storage-at.ts'
import { appendTo, watchingWorker } from '../baselines/file-watch.ts'
import { floor } from '../redis/floor.ts'
import { isChild, serve, spawned } from '../run/child.ts'
import { latencies } from './measure.ts'
import type { Scenario, Trial } from './scenario.ts'

/** Lets the worker be idle again. */
const pauseMs = 10

interface Asker {
  /** Enqueues; answers when it began, by the machine's monotonic clock, ns. */
  enqueue(id: string): Promise<bigint>
  close(): Promise<void>
}

interface Asked {
  readonly open?: { readonly address: Address; readonly system: string }
  readonly enqueue?: string
}

async function askerElsewhere(trial: Trial): Promise<Asker> {
  const child = spawned(import.meta.url)
  await child.ask({ open: { address: trial.site.address, system: trial.system } } satisfies Asked)
  return {
    enqueue: async (id) => BigInt((await child.ask({ enqueue: id } satisfies Asked)) as string),
    close: () => child.end(),
  }
}

/** Starts the worker, idle; then the asker. */
async function parties(trial: Trial, onRun: () => void): Promise<Asker> {
  const session = await trial.open()
  const { address } = trial.site
  if (address.kind === 'file' && trial.system === 'bare') {
    await session.close()
    const worker = watchingWorker(address.basePath, address.durability === 'fsync', onRun)
    const asker = await askerElsewhere(trial)
    return { enqueue: asker.enqueue, close: () => asker.close().finally(worker.close) }
  }
  await session.work(1, onRun)
  const here: Asker = {
    async enqueue(id) {
      const begun = process.hrtime.bigint()
      await session.enqueue(id)
      return begun
    },
    close: async () => {},
  }
  const asker = address.kind === 'memory' ? here : await askerElsewhere(trial)
  return { enqueue: asker.enqueue, close: () => asker.close().finally(() => session.close()) }
}

export const wakeScenario: Scenario = {
  name: 'wake',
  title: 'Wake-up of an idle worker',
  about:
    'From before the enqueue in another process to the start of the handler (Memory: in the same process). Everything that is to be on disk is there by then.',
  cases: (quick) => [
    {
      name: 'one job at a time',
      size: 'own',
      rounds: quick ? 2 : 3,
      measure: async (trial) => {
        const polls = trial.site.address.kind === 'dynamodb'
        const count = (quick ? 20 : 200) / (polls ? 4 : 1)
        let ran: (at: bigint) => void = () => {}
        const asker = await parties(trial, () => ran(process.hrtime.bigint()))
        try {
          const times = new Float64Array(count)
          for (let index = -3; index < count; index++) {
            await sleep(pauseMs)
            const woken = new Promise<bigint>((resolve) => {
              ran = resolve
            })
            const begun = await asker.enqueue(`job-${index}`)
            // The first few warm up.
            if (index < 0) await woken
            else times[index] = Number((await woken) - begun) / 1e6
          }
          return latencies(times)
        } finally {
          await asker.close()
        }
      },
    },
  ],
  systems: (backend) => (backend === 'dynamodb' ? ['askonce'] : ['askonce', 'bare']),
}

async function openHere({ address, system }: NonNullable<Asked['open']>): Promise<(id: string) => Promise<unknown>> {
  if (system === 'askonce') {
    const queue = new Queue<unknown, unknown>({ storage: await storageAt(address), name: 'bench' })
    await queue.start()
    return (id) => queue.enqueue(id, { vin: id })
  }
  if (address.kind === 'redis') {
    const session = await floor.open(address.url, 'bench')
    return (id) => session.enqueue(id)
  }
  if (address.kind === 'file') return appendTo(address.basePath, address.durability === 'fsync')
  throw new Error(`nothing bare to ask by on ${address.kind}`)
}

if (isChild(import.meta.url)) {
  let enqueue: (id: string) => Promise<unknown>
  serve(async (question) => {
    const { open, enqueue: id = '' } = question as Asked
    if (open !== undefined) {
      enqueue = await openHere(open)
      return null
    }
    const begun = process.hrtime.bigint()
    await enqueue(id)
    return String(begun)
  })
}
