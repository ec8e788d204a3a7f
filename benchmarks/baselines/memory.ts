/**
 * The least that a queue in memory does: a Map of records, an array of what waits, one await a step. No leases, no TTLs, no
 * copies of what it is given.
 *
 * @module
 */

import { type Session, smallPayload, smallResult } from '../backends/backend.ts'

interface Entry {
  state: 'queued' | 'processing' | 'completed'
  payload?: unknown
  result?: unknown
}

/** What is done when a step is to be stored; at once where nothing is stored. */
export type Store = (step: 'enqueue' | 'claim' | 'settle', id: string, entry: Entry) => Promise<void> | undefined

/** @param store - awaited for each step before it counts */
export function mapAndArray(store: Store = () => undefined, close: () => Promise<void> = async () => {}): Session {
  const records = new Map<string, Entry>()
  const waiting: string[] = []
  let head = 0
  const waiters = new Map<string, (result: unknown) => void>()
  let idle: (() => void)[] = []
  const loops: Promise<void>[] = []
  let stopped = false
  let completed = 0

  const enqueue = async (id: string, payload: unknown = smallPayload): Promise<unknown> => {
    const known = records.get(id)
    if (known !== undefined) return known.result
    const entry: Entry = { state: 'queued', payload }
    records.set(id, entry)
    await store('enqueue', id, entry)
    waiting.push(id)
    idle.pop()?.()
    return undefined
  }
  const next = (): string | undefined => {
    if (head === waiting.length) return undefined
    const id = waiting[head++]
    // What was taken is let go now and then.
    if (head === 65_536) {
      waiting.splice(0, head)
      head = 0
    }
    return id
  }
  const loop = async (onRun: () => unknown): Promise<void> => {
    while (!stopped) {
      const id = next()
      if (id === undefined) {
        await new Promise<void>((resolve) => idle.push(resolve))
        continue
      }
      const entry = records.get(id) as Entry
      entry.state = 'processing'
      await store('claim', id, entry)
      await onRun()
      const done: Entry = { state: 'completed', result: smallResult }
      records.set(id, done)
      await store('settle', id, done)
      completed++
      const waiter = waiters.get(id)
      if (waiter === undefined) continue
      waiters.delete(id)
      waiter(done.result)
    }
  }
  return {
    enqueue,
    duplicate: enqueue,
    wait(id, payload) {
      return new Promise((resolve, reject) => {
        waiters.set(id, resolve)
        enqueue(id, payload).catch(reject)
      })
    },
    async work(concurrency, onRun) {
      for (let count = 0; count < concurrency; count++) loops.push(loop(onRun))
    },
    completed: () => completed,
    async close() {
      stopped = true
      for (const wake of idle) wake()
      idle = []
      // What is under way is stored before the file, if there is one, is closed.
      await Promise.all(loops)
      await close()
    },
  }
}
