/**
 * Short ways to what nearly every case begins with: an item to enqueue, jobs under lease, jobs that have ended.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { quoteId } from '../../src/errors.ts'
import type { Encoded, JobRecord, ProcessingRecord, Verdict } from '../../src/record.ts'
import { complete } from '../../src/record.ts'
import type { EnqueueItem, LeaseTerms, Settlement, StorageHandle } from '../../src/storage.ts'
import type { Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** What may differ from an ordinary item. */
export interface ItemOptions {
  readonly incarnation?: string
  readonly payload?: Encoded
  readonly fingerprint?: string
  readonly maxAttempts?: number
  readonly resultTTL?: number
  readonly failureTTL?: number
  readonly delayMs?: number
  readonly rejectMismatch?: boolean
  readonly lease?: LeaseTerms | null
  readonly wait?: boolean
  readonly refresh?: boolean
}

/** The payload that {@link item} gives to an id. */
export function payloadOf(id: string): string {
  return `payload of ${id}`
}

/** An item to enqueue: due at once, three attempts, kept long (a failure longer, to tell the two TTLs apart). */
export function item(rig: Rig, id: string, options: ItemOptions = {}): EnqueueItem {
  return {
    spec: {
      id,
      incarnation: options.incarnation ?? rig.token('incarnation'),
      fingerprint: options.fingerprint ?? 'one payload',
      maxAttempts: options.maxAttempts ?? 3,
      resultTTL: options.resultTTL ?? longMs,
      failureTTL: options.failureTTL ?? 3 * longMs,
    },
    payload: options.payload ?? payloadOf(id),
    delayMs: options.delayMs ?? 0,
    rejectMismatch: options.rejectMismatch ?? false,
    lease: options.lease ?? null,
    wait: options.wait ?? false,
    ...(options.refresh === true ? { refresh: true } : {}),
  }
}

/** A lease asked for, with a new token. */
export function lease(rig: Rig, leaseMs = longMs): LeaseTerms {
  return { generation: rig.token('generation'), leaseMs }
}

/** Enqueues each id, and expects that all are new. */
export async function enqueueNew(
  rig: Rig,
  handle: StorageHandle,
  ids: readonly string[],
  options: ItemOptions = {},
): Promise<JobRecord[]> {
  const { answers } = await handle.enqueue(ids.map((id) => item(rig, id, options)))
  assert.equal(answers.length, ids.length, 'one answer per item')
  return answers.map((answer, index) => {
    assert.equal(answer.outcome, 'created', `enqueue of the new id ${quoteId(ids[index]!)}`)
    return answer.record
  })
}

/** Claims these very ids, and expects to get all of them; answers in the ids' order. */
export async function claimIds(
  rig: Rig,
  handle: StorageHandle,
  ids: readonly string[],
  leaseMs = longMs,
): Promise<ProcessingRecord[]> {
  const { jobs } = await handle.claim({ ...lease(rig, leaseMs), limit: ids.length, ids })
  const byId = new Map(jobs.map((job) => [job.spec.id, job]))
  return ids.map((id) => {
    const job = byId.get(id)
    assert.ok(job, `a claim that names the due id ${quoteId(id)} must lease it`)
    return job
  })
}

/** Claims one id and answers its lease. */
export async function claimId(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  leaseMs = longMs,
): Promise<ProcessingRecord> {
  const [job] = await claimIds(rig, handle, [id], leaseMs)
  return job!
}

/** Enqueues an id and claims it. */
export async function begin(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  leaseMs = longMs,
  options: ItemOptions = {},
): Promise<ProcessingRecord> {
  await enqueueNew(rig, handle, [id], options)
  return claimId(rig, handle, id, leaseMs)
}

/** The end of a lease that a claim brought. */
export function settlement(job: ProcessingRecord, verdict: Verdict): Settlement {
  return { id: job.spec.id, generation: job.generation, verdict }
}

/** Settles one lease and answers how that went. */
export async function settleOne(handle: StorageHandle, job: ProcessingRecord, verdict: Verdict): Promise<string> {
  const { answers } = await handle.settle([settlement(job, verdict)], null)
  assert.equal(answers.length, 1, 'one answer per settlement')
  return answers[0]!
}

/** Enqueues, claims and completes an id. */
export async function finish(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  result: Encoded,
  ttlMs = longMs,
  options: ItemOptions = {},
): Promise<void> {
  const job = await begin(rig, handle, id, longMs, options)
  assert.equal(await settleOne(handle, job, complete(result, ttlMs)), 'settled')
}

/** Reads one record. */
export async function read(handle: StorageHandle, id: string): Promise<JobRecord | null> {
  const { records } = await handle.get([id])
  assert.equal(records.length, 1, 'one record (or null) per id')
  return records[0]!
}

/** Reads one record that must be there, in the state named. */
export async function expectState<S extends JobRecord['state']>(
  handle: StorageHandle,
  id: string,
  state: S,
): Promise<Extract<JobRecord, { state: S }>> {
  const record = await read(handle, id)
  assert.equal(record?.state ?? 'absent', state, `state of ${quoteId(id)}`)
  return record as Extract<JobRecord, { state: S }>
}

/** Expects that nothing is known of an id, by every operation that tells. */
export async function expectAbsent(rig: Rig, handle: StorageHandle, id: string): Promise<void> {
  const quoted = quoteId(id)
  assert.equal(await read(handle, id), null, `get of ${quoted}: absent`)
  assert.deepEqual(await handle.cancel([id]), ['not_found'], `cancel of ${quoted}: absent`)
  assert.deepEqual(await handle.touch([{ id, ttlMs: longMs }]), ['not_found'], `touch of ${quoted}: absent`)
  const claim = await handle.claim({ ...lease(rig), limit: 1, ids: [id] })
  assert.equal(claim.jobs.length + claim.exhausted.length, 0, `claim of ${quoted}: absent`)
}

/** Whether two payloads, results or errors are the same, kind included. */
export function sameEncoded(a: Encoded | null, b: Encoded | null): boolean {
  if (typeof a === 'string' || typeof b === 'string' || a === null || b === null) return a === b
  return Buffer.compare(a, b) === 0
}

/** Shows the kind and size of a payload for a message, and its beginning. */
export function showEncoded(value: Encoded | null): string {
  if (value === null) return 'null'
  return typeof value === 'string'
    ? `text of ${value.length} units ${JSON.stringify(value.slice(0, 40))}`
    : `${value.length} bytes ${Buffer.from(value.subarray(0, 20)).toString('hex')}`
}

/** Expects the same content of the same kind. */
export function assertEncoded(actual: Encoded | null | undefined, expected: Encoded | null, what: string): void {
  const ok =
    actual === null || typeof actual === 'string' || actual instanceof Uint8Array
      ? sameEncoded(actual, expected)
      : false
  assert.ok(
    ok,
    `${what}: expected ${showEncoded(expected)}, got ${actual === undefined ? 'undefined' : showEncoded(actual)}`,
  )
}

/** Expects a time to be so long after a moment between two readings. */
export function assertAfter(rig: Rig, at: number, [before, after]: [number, number], ms: number, what: string): void {
  const tolerance = rig.traits.ttlResolutionMs - 1
  assert.ok(
    at >= before + ms - tolerance && at <= after + ms + tolerance,
    `${what}: ${at} is not ${ms} ms after ${before}`,
  )
}
