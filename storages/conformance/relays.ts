/**
 * Short ways to what cases about outboxes begin with: jobs completed with rows, and relays that lease them.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { quoteId } from '../../src/errors.ts'
import type { CompletedRecord, Encoded, Outbox } from '../../src/record.ts'
import { complete } from '../../src/record.ts'
import type { CollectAnswer, StorageHandle } from '../../src/storage.ts'
import { begin, expectState, lease, settleOne } from './items.ts'
import type { Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** How long an outbox's record and its rows are kept. */
export interface PostOptions {
  readonly ttlMs?: number
  readonly outboxMs?: number
}

/** Completes a new job with rows to deliver. */
export async function post(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  rows: Encoded = `rows of ${id}`,
  { ttlMs = longMs, outboxMs = longMs }: PostOptions = {},
): Promise<void> {
  const job = await begin(rig, handle, id)
  const verdict = complete(`result of ${id}`, ttlMs, { rows, ttlMs: outboxMs })
  assert.equal(await settleOne(handle, job, verdict), 'settled')
}

/** One look for outboxes, with a new lease. */
export async function collect(rig: Rig, handle: StorageHandle, limit = 10, leaseMs = longMs): Promise<CollectAnswer> {
  const { answers, collected } = await handle.deliver([], { ...lease(rig, leaseMs), limit })
  assert.deepEqual(answers, [])
  assert.ok(collected, 'a request is answered')
  return collected
}

/** Looks until these very outboxes, and no others, are leased: where the order is approximate, a look may miss some. */
export async function collectIds(
  rig: Rig,
  handle: StorageHandle,
  ids: readonly string[],
  leaseMs = longMs,
): Promise<CompletedRecord[]> {
  const found = new Map<string, CompletedRecord>()
  await rig.until(`the outboxes of ${ids.map(quoteId).join(', ')} are leased`, async () => {
    for (const record of (await collect(rig, handle, ids.length - found.size, leaseMs)).records) {
      assert.ok(!found.has(record.spec.id), `${quoteId(record.spec.id)} is leased twice`)
      found.set(record.spec.id, record)
    }
    return found.size >= ids.length
  })
  assert.deepEqual([...found.keys()].toSorted(), ids.toSorted())
  return ids.map((id) => found.get(id)!)
}

/** The same for one. */
export async function collectId(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  leaseMs = longMs,
): Promise<CompletedRecord> {
  return (await collectIds(rig, handle, [id], leaseMs))[0]!
}

/** Expects that there is nothing for relays. */
export async function expectNoRows(rig: Rig, handle: StorageHandle, what: string): Promise<void> {
  const { records } = await collect(rig, handle)
  assert.deepEqual(
    records.map(({ spec }) => spec.id),
    [],
    `${what}: nothing for a relay`,
  )
}

/** Ends the lease of an outbox; answers how that went. */
export async function deliver(
  handle: StorageHandle,
  { spec, outbox }: CompletedRecord,
  rows: Encoded | null = null,
  delayMs = 0,
): Promise<string> {
  assert.ok(outbox?.generation, 'it is leased')
  const { answers } = await handle.deliver([{ id: spec.id, generation: outbox.generation, rows, delayMs }], null)
  assert.equal(answers.length, 1, 'one answer per delivery')
  return answers[0]!
}

/** The outbox that a completed record must have. */
export async function readOutbox(handle: StorageHandle, id: string): Promise<Outbox> {
  const { outbox } = await expectState(handle, id, 'completed')
  assert.ok(outbox, `${quoteId(id)} has rows to deliver`)
  return outbox
}
