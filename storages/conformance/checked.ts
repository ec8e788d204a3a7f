/**
 * A namespace whose every answer is compared with the machine: the oracle of the crossed and the random cases.
 *
 * Each call is bracketed by two readings of the storage's time, and the machine run at both: what the storage answers
 * must be what one of them says. Where time stands still the two are one.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { quoteId } from '../../src/errors.ts'
import type {
  Answers,
  CancelOutcome,
  Command,
  EnqueueCommand,
  ExtendOutcome,
  MarkOutcome,
  TouchOutcome,
} from '../../src/machine.ts'
import { living, step } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CollectRequest,
  DeliverAnswers,
  Delivery,
  EnqueueAnswers,
  EnqueueItem,
  LeaseTerms,
  Mark,
  SettleAnswers,
  Settlement,
  StorageHandle,
} from '../../src/storage.ts'
import { assertClaim } from './checked-claim.ts'
import { assertCollected } from './checked-collect.ts'
import type { Expected, Values } from './compare.ts'
import { assertRecord, isLeaseOf } from './compare.ts'
import type { Rig } from './rig.ts'

const absent: Expected = { lo: null, hi: null }

/** When a call may have happened: not before `lo`, not after `hi`. */
export interface Span {
  readonly lo: number
  readonly hi: number
}

/** Handles on one namespace, and what the machine says is in it. */
export class Checked {
  readonly rig: Rig
  readonly #handles: readonly StorageHandle[]
  readonly #entries = new Map<string, Expected>()
  /** How much later than expected the `at` of an id may be: for inline runs made while the queue is held. */
  readonly #slackMs = new Map<string, number>()
  #turn = 0
  /** When the hold ends: not before `lo`, not after `hi`. */
  #holdEnds: Span = { lo: 0, hi: 0 }

  /** @param handles - used in turn */
  constructor(rig: Rig, ...handles: readonly StorageHandle[]) {
    this.rig = rig
    this.#handles = handles
  }

  /** The next handle. */
  get handle(): StorageHandle {
    return this.#handles[this.#turn++ % this.#handles.length]!
  }

  /** Every id that was ever named. */
  get ids(): string[] {
    return [...this.#entries.keys()]
  }

  /** What should be there of an id, past its end or not. */
  record(id: string): JobRecord | null {
    return this.entry(id).lo
  }

  entry(id: string): Expected {
    return this.#entries.get(id) ?? absent
  }

  slackMs(id: string): number {
    return this.#slackMs.get(id) ?? 0
  }

  /** Until the hold ends, for a call within the span, ms: `lo` at least, `hi` at most. */
  heldMs(span: Span): Span {
    return { lo: Math.max(0, this.#holdEnds.lo - span.hi), hi: Math.max(0, this.#holdEnds.hi - span.lo) }
  }

  async enqueue(items: readonly EnqueueItem[]): Promise<EnqueueAnswers> {
    const { span, answer } = await this.#call((handle) => handle.enqueue(items))
    this.#assertNow(answer.now, span)
    assert.equal(answer.answers.length, items.length, 'enqueue: one answer per item')
    const ids = items.map(({ spec }) => spec.id)
    for (const [index, item] of items.entries()) {
      const { id } = item.spec
      const what = `enqueue of ${quoteId(id)}`
      const { outcome, leased, mismatch, record } = answer.answers[index]!
      const held = this.heldMs(span)
      const met = living(this.record(id), span.lo)
      const isNew = met === null || (outcome === 'created' && met.spec.incarnation !== item.spec.incarnation)
      // A lease got before the hold may be answered as it was: that is the same call once more, its reply lost.
      const again = leased && isLeaseOf(this.record(id), item.lease)
      // A call at the span's beginning meets the hold with the most of it left.
      const command = (now: number) => this.#enqueueCommand(item, !again && (now === span.lo ? held.hi : held.lo) > 0)
      this.apply(id, span, command, { outcome, leased, mismatch }, what)
      if (isNew || leased) this.#slackMs.set(id, item.lease === null ? 0 : Math.max(item.delayMs, held.hi))
      // Of an id that one call names twice, either record will do: the one then, or the one after the call.
      if (ids.indexOf(id) !== ids.lastIndexOf(id)) assert.equal(record.spec.id, id, `${what}: whose record`)
      else this.assertEntry(id, record, leased ? 'for workers' : 'for readers', answer.now, `${what}: answer's record`)
    }
    await this.check(ids, 'after enqueue')
    return answer
  }

  #enqueueCommand(item: EnqueueItem, held: boolean): EnqueueCommand {
    const { spec, payload, delayMs, rejectMismatch, refresh = false } = item
    const inline = item.lease !== null
    const lease = item.lease === null || held ? null : { ...item.lease, graceMs: this.rig.graceMs }
    // An inline run that the hold keeps from running may be due at any time until the hold ends: see slackMs.
    return { type: 'enqueue', spec, payload, delayMs: inline ? 0 : delayMs, rejectMismatch, lease, inline, refresh }
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { span, answer } = await this.#call((handle) => handle.claim(request))
    this.#assertNow(answer.now, span)
    const touched = assertClaim(this, request, answer, span)
    await this.check(touched, 'after claim')
    return answer
  }

  async extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]> {
    const { span, answer } = await this.#call((handle) => handle.extend(items))
    assert.equal(answer.length, items.length, 'extend: one answer per item')
    for (const [index, { id, generation, leaseMs }] of items.entries()) {
      this.apply(id, span, () => ({ type: 'extend', generation, leaseMs }), answer[index], `extend of ${quoteId(id)}`)
      this.#slackMs.delete(id)
    }
    const ids = items.map(({ id }) => id)
    await this.check(ids, 'after extend')
    return answer
  }

  async settle(items: readonly Settlement[], claim: ClaimRequest | null = null): Promise<SettleAnswers> {
    const { span, answer } = await this.#call((handle) => handle.settle(items, claim))
    assert.equal(answer.answers.length, items.length, 'settle: one answer per item')
    for (const [index, { id, generation, verdict }] of items.entries()) {
      const what = `settle of ${quoteId(id)} (${verdict.kind})`
      this.apply(id, span, () => ({ type: 'settle', generation, verdict }), answer.answers[index], what)
    }
    const touched = items.map(({ id }) => id)
    if (claim === null) {
      assert.equal(answer.claim, null, 'settle without a claim answers none')
    } else {
      assert.ok(answer.claim, 'settle with a claim answers it')
      this.#assertNow(answer.claim.now, span)
      touched.push(...assertClaim(this, claim, answer.claim, span))
    }
    await this.check(touched, 'after settle')
    return answer
  }

  async cancel(ids: readonly string[]): Promise<readonly CancelOutcome[]> {
    const { span, answer } = await this.#call((handle) => handle.cancel(ids))
    assert.equal(answer.length, ids.length, 'cancel: one answer per id')
    for (const [index, id] of ids.entries()) {
      this.apply(id, span, () => ({ type: 'cancel' }), answer[index], `cancel of ${quoteId(id)}`)
    }
    await this.check(ids, 'after cancel')
    return answer
  }

  async touch(items: readonly { readonly id: string; readonly ttlMs: number }[]): Promise<readonly TouchOutcome[]> {
    const { span, answer } = await this.#call((handle) => handle.touch(items))
    assert.equal(answer.length, items.length, 'touch: one answer per item')
    for (const [index, { id, ttlMs }] of items.entries()) {
      this.apply(id, span, () => ({ type: 'touch', ttlMs }), answer[index], `touch of ${quoteId(id)}`)
    }
    const ids = items.map(({ id }) => id)
    await this.check(ids, 'after touch')
    return answer
  }

  async mark(items: readonly Mark[]): Promise<readonly MarkOutcome[]> {
    const { span, answer } = await this.#call((handle) => handle.mark(items))
    assert.equal(answer.length, items.length, 'mark: one answer per item')
    for (const [index, { id, name, token }] of items.entries()) {
      this.apply(id, span, () => ({ type: 'mark', name, token }), answer[index], `mark of ${quoteId(id)}`)
    }
    const ids = items.map(({ id }) => id)
    await this.check(ids, 'after mark')
    return answer
  }

  async deliver(items: readonly Delivery[], request: CollectRequest | null = null): Promise<DeliverAnswers> {
    const { span, answer } = await this.#call((handle) => handle.deliver(items, request))
    assert.equal(answer.answers.length, items.length, 'deliver: one answer per item')
    for (const [index, { id, generation, rows, delayMs }] of items.entries()) {
      const command = { type: 'deliver', generation, rows, delayMs } as const
      this.apply(id, span, () => command, answer.answers[index], `deliver of ${quoteId(id)}`)
    }
    const touched = items.map(({ id }) => id)
    if (request === null) {
      assert.equal(answer.collected, null, 'deliver without a request answers no records')
    } else {
      assert.ok(answer.collected, 'deliver with a request answers records')
      this.#assertNow(answer.collected.now, span)
      touched.push(...assertCollected(this, request, answer.collected, span))
    }
    await this.check(touched, 'after deliver')
    return answer
  }

  async sweep(limit: number): Promise<number> {
    const swept = await this.handle.sweep(limit)
    assert.ok(Number.isInteger(swept) && swept >= 0 && swept <= limit, `sweep(${limit}) answered ${swept}`)
    await this.check(this.ids, 'after sweep')
    return swept
  }

  async hold(ms: number): Promise<void> {
    const { span } = await this.#call((handle) => handle.hold(ms))
    const { lo, hi } = this.#holdEnds
    this.#holdEnds = ms === 0 ? { lo: 0, hi: 0 } : { lo: Math.max(lo, span.lo + ms), hi: Math.max(hi, span.hi + ms) }
    const { span: after, answer } = await this.#call((handle) => handle.stats())
    this.assertHeld(answer.heldForMs, after, `stats after hold(${ms})`)
  }

  /** Expects what an answer says of the hold. */
  assertHeld(heldForMs: number, span: Span, what: string): void {
    const { lo, hi } = this.heldMs(span)
    const tolerance = this.rig.traits.ttlResolutionMs - 1
    const ok = heldForMs >= lo - tolerance && heldForMs <= hi + tolerance
    assert.ok(ok, `${what}: heldForMs should be ${lo === hi ? lo : `from ${lo} to ${hi}`}, is ${heldForMs}`)
  }

  /** Compares all that is there with all that should be: records and counts. */
  async audit(): Promise<void> {
    await this.check(this.ids, 'audit')
    const { span, answer: stats } = await this.#call((handle) => handle.stats())
    const counts = { queued: 0, processing: 0, failing: 0, completed: 0, failed: 0 }
    for (const { lo } of this.#entries.values()) {
      const record = living(lo, span.hi)
      if (record !== null) counts[record.state]++
    }
    for (const state of Object.keys(counts) as (keyof typeof counts)[]) {
      const told = stats[state]
      // Records past their end may be counted until a sweeper has come by.
      assert.ok(
        told === null || told >= counts[state],
        `stats: ${state} should be ${counts[state]} or more, is ${told}`,
      )
    }
  }

  /** Reads records, expects what the machine says, and takes their times over. */
  async check(ids: Iterable<string>, when: string): Promise<void> {
    const unique = [...new Set(ids)]
    if (unique.length === 0) return
    const { span, answer } = await this.#call((handle) => handle.get(unique))
    this.#assertNow(answer.now, span)
    assert.equal(answer.records.length, unique.length, 'get: one record (or null) per id')
    for (const [index, id] of unique.entries()) {
      const { lo, hi } = this.entry(id)
      const alive = { lo: living(lo, answer.now), hi: living(hi, answer.now) }
      const record = answer.records[index]!
      // It may have ended by one end of the span only: one that is there still has its times from between the two.
      const expected = record !== null && (alive.lo === null) !== (alive.hi === null) ? { lo, hi } : alive
      const which = this.#assert(id, record, expected, 'for readers', answer.now, `get of ${quoteId(id)} ${when}`)
      this.#slackMs.delete(id)
      if (record === null) {
        this.#entries.set(id, absent)
        continue
      }
      const wanted = expected[which]!
      const seen = isTerminal(record) || isTerminal(wanted) ? record : { ...record, payload: wanted.payload }
      this.#entries.set(id, { lo: seen, hi: seen })
    }
  }

  /** One transition by the machine, at both ends of the span; expects that one of them gives the storage's answer. */
  apply<C extends Command>(
    id: string,
    span: Span,
    command: (now: number) => C,
    answer: Answers[C['type']] | undefined,
    what: string,
  ): void {
    const entry = this.entry(id)
    const lo = step(entry.lo, command(span.lo), span.lo)
    const hi = step(entry.hi, command(span.hi), span.hi)
    const loFits = isDeepStrictEqual(answer, lo.answer)
    const hiFits = isDeepStrictEqual(answer, hi.answer)
    if (!loFits && !hiFits) assert.deepEqual(answer, lo.answer, `${what}: the machine answers otherwise`)
    this.#entries.set(id, { lo: (loFits ? lo : hi).record, hi: (hiFits ? hi : lo).record })
  }

  /** Expects an answered record to be what the machine says. */
  assertEntry(id: string, record: JobRecord, values: Values, now: number, what: string): void {
    this.#assert(id, record, this.entry(id), values, now, what)
  }

  #assert(
    id: string,
    record: JobRecord | null,
    expected: Expected,
    values: Values,
    now: number,
    what: string,
  ): 'lo' | 'hi' {
    const resolutionMs = this.rig.traits.ttlResolutionMs
    const slackMs = record?.state === 'queued' ? this.slackMs(id) : 0
    return assertRecord(record, expected, { values, resolutionMs, slackMs, now }, what)
  }

  #assertNow(now: number, { lo, hi }: Span): void {
    assert.ok(now >= lo && now <= hi, `an answer's \`now\` should be from ${lo} to ${hi}, is ${now}`)
  }

  async #call<A>(call: (handle: StorageHandle) => Promise<A>): Promise<{ span: Span; answer: A }> {
    const { handle, rig } = this
    const lo = await rig.now(handle)
    const answer = await call(handle)
    return { span: { lo, hi: rig.virtual ? lo : await rig.now(handle) }, answer }
  }
}
