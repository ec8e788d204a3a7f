/**
 * Judges a claim by the machine: nothing leased that was not due, nothing due left out, in the right order.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { quoteId } from '../../src/errors.ts'
import type { ClaimOutcome } from '../../src/machine.ts'
import { living, step } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type { ClaimAnswer, ClaimRequest } from '../../src/storage.ts'
import type { Checked, Span } from './checked.ts'
import { isLeaseOf } from './compare.ts'

/**
 * Expects that the answer fits.
 *
 * @returns the ids that the claim changed
 */
export function assertClaim(checked: Checked, request: ClaimRequest, answer: ClaimAnswer, span: Span): string[] {
  const { jobs, exhausted } = answer
  const candidates =
    request.ids === undefined ? checked.ids.filter((id) => isForWorkers(checked.record(id))) : request.ids
  const surelyDue = duringHold(checked, request, answer, span) ? [] : due(checked, candidates, request, span)
  const before = new Map(checked.ids.map((id) => [id, checked.record(id)?.at ?? 0]))
  assert.ok(jobs.length <= request.limit, `claim: ${jobs.length} jobs for a limit of ${request.limit}`)

  const changed = new Set<string>()
  for (const [kind, records] of [
    ['leased', jobs],
    ['exhausted', exhausted],
  ] as const) {
    for (const record of records) {
      const { id } = record.spec
      const what = `claim: ${quoteId(id)} ${kind}`
      assert.ok(!changed.has(id), `${what}, twice in one answer`)
      assert.ok(request.ids === undefined || request.ids.includes(id), `${what}, which it did not name`)
      assert.ok(
        candidates.includes(id),
        `${what}, which is not for a claim without ids: ${stateOf(checked.record(id))}`,
      )
      changed.add(id)
      checked.apply(id, span, () => terms(checked, request), kind satisfies ClaimOutcome, what)
      const values = kind === 'leased' ? 'for workers' : 'for readers'
      checked.assertEntry(id, record, values, answer.now, `${what}: answer's record`)
    }
  }

  const left = surelyDue.filter((id) => !changed.has(id))
  const complete = request.ids !== undefined || checked.rig.traits.ordering === 'fifo'
  if (jobs.length < request.limit && complete) {
    assert.deepEqual(left.map(quoteId), [], 'claim: due, below the limit, and left out')
  }
  if (request.ids === undefined && complete) {
    const order = jobs.map(({ spec }) => before.get(spec.id)!)
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
      'claim: jobs come by `at`',
    )
    for (const id of left) {
      assert.ok(before.get(id)! >= order.at(-1)!, `claim: ${quoteId(id)} was due earlier than one that was taken`)
    }
  }
  assertNextInMs(checked, answer, span)
  return [...changed]
}

function terms(checked: Checked, { generation, leaseMs }: ClaimRequest) {
  return { type: 'claim', generation, leaseMs, graceMs: checked.rig.graceMs } as const
}

function isForWorkers(record: JobRecord | null): boolean {
  return record !== null && !isTerminal(record) && !record.inline
}

function stateOf(record: JobRecord | null): string {
  if (record === null) return 'absent'
  return isTerminal(record) ? record.state : `${record.state}, inline ${record.inline}`
}

/** Those that the machine would lease (or fail as exhausted), whenever in the span the claim happened. */
function due(checked: Checked, candidates: readonly string[], request: ClaimRequest, span: Span): string[] {
  return candidates.filter((id) => {
    const { lo, hi } = checked.entry(id)
    const early = step(lo, terms(checked, request), span.lo).answer
    const late = step(hi, terms(checked, request), span.hi).answer
    return early !== 'refused' && late !== 'refused' && checked.slackMs(id) === 0
  })
}

/** Whether the queue was held, or may have been; checks what the answer says of it. */
function duringHold(checked: Checked, request: ClaimRequest, answer: ClaimAnswer, span: Span): boolean {
  const { lo, hi } = checked.heldMs(span)
  checked.assertHeld(answer.heldForMs, span, 'claim')
  // A lease got before the hold may be answered as it was: that is the same call once more, its reply lost.
  const leased = answer.jobs.filter(({ spec }) => !isLeaseOf(checked.record(spec.id), request))
  if (lo > 0) assert.equal(leased.length, 0, 'claim: a held queue leases nothing')
  return hi > 0
}

function assertNextInMs(checked: Checked, answer: ClaimAnswer, span: Span): void {
  const { nextInMs, jobs, exhausted, heldForMs } = answer
  if (nextInMs === null) return
  assert.ok(nextInMs >= 0, `claim: nextInMs is ${nextInMs}`)
  let soonest = Number.POSITIVE_INFINITY
  for (const id of checked.ids) {
    const record = living(checked.entry(id).hi, span.hi)
    if (record === null || isTerminal(record) || record.inline) continue
    const graceMs = record.state === 'processing' ? checked.rig.graceMs : 0
    soonest = Math.min(soonest, Math.max(0, record.at + graceMs - span.lo))
  }
  const tolerance = checked.rig.traits.ttlResolutionMs - 1
  assert.ok(
    nextInMs <= soonest + tolerance,
    `claim: nextInMs is ${nextInMs}, but the next record is due in ${soonest} ms`,
  )
  if (jobs.length === 0 && exhausted.length === 0 && heldForMs === 0 && soonest > 0) {
    assert.ok(nextInMs > 0, 'claim: nothing was there, but nextInMs is 0: a worker that trusts it would spin')
  }
}
