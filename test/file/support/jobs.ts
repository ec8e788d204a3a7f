/** Short ways to jobs on a raw handle. */

import assert from 'node:assert/strict'
import { complete } from '../../../src/record.ts'
import type { EnqueueItem, Hint, StorageHandle } from '../../../src/storage.ts'

export const hour = 3_600_000

let tokens = 0

/** A token never used before in this process. */
export function token(): string {
  return `${process.pid}-${tokens++}`
}

export function item(id: string, payload = `payload of ${id}`, ttlMs = hour): EnqueueItem {
  return {
    spec: { id, incarnation: token(), fingerprint: '', maxAttempts: 3, resultTTL: ttlMs, failureTTL: ttlMs },
    payload,
    delayMs: 0,
    rejectMismatch: false,
    lease: null,
    wait: false,
  }
}

/** Enqueues ids, one call each, all in one turn. */
export async function enqueue(handle: StorageHandle, ids: readonly string[], payload?: string): Promise<string[]> {
  const answers = await Promise.all(ids.map((id) => handle.enqueue([item(id, payload)])))
  return answers.map(({ answers: [answer] }) => answer?.outcome ?? '')
}

/** Claims and completes up to `limit` jobs; answers their ids. */
export async function work(handle: StorageHandle, limit: number, ttlMs = hour): Promise<string[]> {
  const { jobs } = await handle.claim({ generation: token(), leaseMs: 30_000, limit })
  const settlements = jobs.map((job) => ({
    id: job.spec.id,
    generation: job.generation,
    verdict: complete(`result of ${job.spec.id}`, ttlMs),
  }))
  const { answers } = await handle.settle(settlements, null)
  for (const answer of answers) assert.equal(answer, 'settled')
  return jobs.map((job) => job.spec.id)
}

/** The states of ids, or `absent`. */
export async function states(handle: StorageHandle, ids: readonly string[]): Promise<string[]> {
  return (await handle.get(ids)).records.map((record) => record?.state ?? 'absent')
}

/** Names with a number. */
export function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
}

/** Collects the warnings of a handle. */
export function warningsOf(handle: StorageHandle): Extract<Hint, { type: 'warning' }>[] {
  const warnings: Extract<Hint, { type: 'warning' }>[] = []
  handle.watch((hint) => {
    if (hint.type === 'warning') warnings.push(hint)
  })
  return warnings
}

/** Lets what is on its way arrive. */
export async function turns(count = 5): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** Waits, in real time and bounded, for what must come. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 20_000; !(await condition()); ) {
    if (Date.now() > deadline) throw new Error(`waited 20 s in vain until ${what}`)
    await new Promise<void>((resolve) => setTimeout(resolve, 2))
  }
}
