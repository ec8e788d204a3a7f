/**
 * Short ways to what cases about refreshes begin with and expect.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { quoteId } from '../../src/errors.ts'
import type { CompletedRecord, Encoded, Missed, OpenRecord, ProcessingRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type { EnqueueAnswer, StorageHandle } from '../../src/storage.ts'
import type { ItemOptions } from './items.ts'
import { assertEncoded, claimId, expectState, finish, item, read } from './items.ts'
import type { Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** One enqueue. */
export async function ask(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  options: ItemOptions = {},
): Promise<EnqueueAnswer> {
  const { answers } = await handle.enqueue([item(rig, id, options)])
  assert.equal(answers.length, 1, 'one answer per item')
  return answers[0]!
}

/** Completes a new job, and has it run anew; answers the record that its result was in. */
export async function refresh(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  options: ItemOptions = {},
  result: Encoded = `old result of ${id}`,
): Promise<CompletedRecord> {
  // Not for as long as what is enqueued is kept: the two must not be taken for each other.
  await finish(rig, handle, id, result, 2 * longMs)
  const before = await expectState(handle, id, 'completed')
  const answer = await ask(rig, handle, id, { ...options, refresh: true })
  assert.equal(answer.outcome, 'created', `the refresh of ${quoteId(id)} begins`)
  return before
}

/** The same, and leases it. */
export async function refreshing(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  options: ItemOptions = {},
  leaseMs = longMs,
): Promise<{ before: CompletedRecord; job: ProcessingRecord }> {
  const before = await refresh(rig, handle, id, options)
  return { before, job: await claimId(rig, handle, id, leaseMs) }
}

/** Expects an open record to answer with the result of a run before. */
export function assertKept(record: EnqueueAnswer['record'] | null, before: CompletedRecord, when: string): void {
  assert.ok(record !== null && !isTerminal(record), `${when}: the run is not over`)
  assert.ok(record.kept, `${when}: the old result is there`)
  assertEncoded(record.kept.result, before.result, `${when}: the old result`)
  assert.equal(record.kept.settledAt, before.settledAt, `${when}: when it was settled`)
  assert.equal(record.kept.until, before.at, `${when}: its own TTL`)
}

/** Reads a record that is being refreshed. */
export async function readKept(handle: StorageHandle, before: CompletedRecord, when: string): Promise<OpenRecord> {
  const record = await read(handle, before.spec.id)
  assertKept(record, before, when)
  return record as OpenRecord
}

/** Expects the result of the run before to be back, and to say why. */
export async function expectRestored(
  handle: StorageHandle,
  before: CompletedRecord,
  missed: Missed,
): Promise<CompletedRecord> {
  const { id } = before.spec
  const record = await expectState(handle, id, 'completed')
  const what = `${quoteId(id)}, refreshed in vain`
  assertEncoded(record.result, before.result, `${what}: its result`)
  assert.equal(record.settledAt, before.settledAt, `${what}: when that was settled`)
  assert.equal(record.at, before.at, `${what}: its own TTL`)
  assert.deepEqual(record.missed, missed, `${what}: why`)
  return record
}
