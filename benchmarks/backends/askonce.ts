/**
 * A session of askonce on any storage.
 *
 * @module
 */

import { Queue } from '../../src/index.ts'
import type { Storage } from '../../src/storage.ts'
import { type Session, smallPayload, smallResult } from './backend.ts'

const batch = 1_000

/**
 * Producer and worker are two queues. Where `storage` makes a new one each time they have connections of their own, as two
 * processes would.
 */
export async function askonceSession(storage: () => Storage, name: string): Promise<Session> {
  const make = (concurrency: number) => new Queue<unknown, unknown>({ storage: storage(), name, concurrency })
  const producer = make(1)
  await producer.start()
  let worker: Queue<unknown, unknown> | null = null
  return {
    enqueue: (id, payload = smallPayload) => producer.enqueue(id, payload),
    duplicate: (id, payload = smallPayload) => producer.enqueue(id, payload),
    wait: (id, payload = smallPayload) => producer.enqueueAndWait(id, payload),
    async fill(ids) {
      for (let from = 0; from < ids.length; from += batch) {
        await producer.enqueueMany(ids.slice(from, from + batch).map((id) => ({ id, payload: smallPayload })))
      }
    },
    async work(concurrency, onRun) {
      worker = make(concurrency)
      worker.execute(() => {
        const running = onRun()
        return running instanceof Promise ? running.then(() => smallResult) : smallResult
      })
      await worker.start()
    },
    completed: () => worker?.counters.completed ?? 0,
    async close() {
      await worker?.stop()
      await producer.stop()
    },
  }
}
