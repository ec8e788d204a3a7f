/**
 * Judges what a wish for outboxes brought by the machine: nothing leased that was not due, nothing due left out, in the right
 * order.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { quoteId } from '../../src/errors.ts'
import { collectableFrom, living, step } from '../../src/machine.ts'
import type { JobRecord, Outbox } from '../../src/record.ts'
import type { CollectAnswer, CollectRequest } from '../../src/storage.ts'
import type { Checked, Span } from './checked.ts'

/**
 * Expects that the answer fits.
 *
 * @returns the ids whose outboxes were leased
 */
export function assertCollected(
  checked: Checked,
  request: CollectRequest,
  answer: CollectAnswer,
  span: Span,
): string[] {
  const { records } = answer
  const { limit, generation } = request
  const surelyDue = due(checked, request, span)
  const before = new Map(checked.ids.map((id) => [id, outboxOf(checked.record(id))?.at ?? 0]))
  assert.ok(records.length <= limit, `deliver: ${records.length} records for a limit of ${limit}`)
  const collected = new Set<string>()
  for (const record of records) {
    const { id } = record.spec
    const what = `deliver: ${quoteId(id)} collected`
    assert.ok(!collected.has(id), `${what}, twice in one answer`)
    collected.add(id)
    assert.ok(outboxOf(checked.record(id)), `${what}, which has nothing to deliver`)
    checked.apply(id, span, () => terms(checked, request), 'collected', what)
    checked.assertEntry(id, record, 'for relays', answer.now, `${what}: answer's record`)
    assert.equal(record.outbox?.generation, generation, `${what}: under the caller's lease`)
  }

  const left = surelyDue.filter((id) => !collected.has(id))
  if (checked.rig.traits.ordering === 'fifo') {
    if (records.length < limit) assert.deepEqual(left.map(quoteId), [], 'deliver: due, below the limit, and left out')
    const order = records.map(({ spec }) => before.get(spec.id)!)
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
      'deliver: the earliest first',
    )
    for (const id of left) {
      assert.ok(before.get(id)! >= order.at(-1)!, `deliver: ${quoteId(id)} was due earlier than one that was taken`)
    }
  }
  assertNextInMs(checked, answer, span)
  return [...collected]
}

function terms(checked: Checked, { generation, leaseMs }: CollectRequest) {
  return { type: 'collect', generation, leaseMs, graceMs: checked.rig.graceMs } as const
}

function outboxOf(record: JobRecord | null): Outbox | null {
  return record?.state === 'completed' ? (record.outbox ?? null) : null
}

/** Those that the machine would lease, whenever in the span it happened. Who repeats a lease need not be told of it again. */
function due(checked: Checked, request: CollectRequest, span: Span): string[] {
  return checked.ids.filter((id) => {
    const { lo, hi } = checked.entry(id)
    if (outboxOf(lo)?.generation === request.generation) return false
    const early = step(lo, terms(checked, request), span.lo).answer
    const late = step(hi, terms(checked, request), span.hi).answer
    return early === 'collected' && late === 'collected'
  })
}

function assertNextInMs(checked: Checked, { nextInMs, records }: CollectAnswer, span: Span): void {
  if (nextInMs === null) return
  assert.ok(nextInMs >= 0, `deliver: nextInMs is ${nextInMs}`)
  let soonest = Number.POSITIVE_INFINITY
  for (const id of checked.ids) {
    const outbox = outboxOf(living(checked.entry(id).hi, span.hi))
    if (outbox === null) continue
    soonest = Math.min(soonest, Math.max(0, collectableFrom(outbox, checked.rig.graceMs) - span.lo))
  }
  const tolerance = checked.rig.traits.ttlResolutionMs - 1
  assert.ok(
    nextInMs <= soonest + tolerance,
    `deliver: nextInMs is ${nextInMs}, but the next outbox is due in ${soonest} ms`,
  )
  if (records.length === 0 && soonest > 0) {
    assert.ok(nextInMs > 0, 'deliver: nothing was there, but nextInMs is 0: a relay that trusts it would spin')
  }
}
