/**
 * The checker: what may happen to a record, said once more and otherwise than the machine says it. It is shown every change of
 * every record, whoever made it, and every call; it names the promise that a change breaks.
 *
 * @module
 */

import { quoteId } from '../../../src/errors.ts'
import type { JobRecord, OpenRecord, ProcessingRecord, Verdict } from '../../../src/record.ts'
import { forgottenFrom, isTerminal } from '../../../src/record.ts'
import { sameEncoded } from '../items.ts'
import type { Call } from './faulty-storage.ts'
import { Asked, leaseKey } from './tokens-sent.ts'

/** A promise that a change of a record can break. */
export type RecordOracle =
  /** A record that lives does not go away, but by its cancellation. */
  | 'conservation'
  /** A record that lives is not replaced by another of its id. */
  | 'no replacement'
  /** What is leased was due, and no lease is given while another is believed in. */
  | 'one lease'
  /** Only the present lease extends or settles, and only as its owner asked. */
  | 'fencing'
  /** A record ends once. */
  | 'one verdict'
  /** Claims count one attempt, releases give one back, nothing else counts, and the bound holds. */
  | 'attempts'
  /** Every end is where the TTL, delay or lease asked for puts it. */
  | 'expiry'
  /** What an enqueue fixes stays as it is. */
  | 'spec'

/** By the clock of whoever made the change: it was decided not before `lo` and not after `hi`. Equal where that is known. */
export interface DecidedIn {
  readonly lo: number
  readonly hi: number
}

/** What a {@link RecordChecker} is made of. */
export interface RecordCheckerOptions {
  /** What the storage adds to a lease's end before another may take it over, ms. Default 0. */
  readonly graceMs?: number
  /** Told of a broken promise. */
  readonly fail: (oracle: RecordOracle, message: string) => void
}

/** Checks the changes of one namespace's records. */
export class RecordChecker {
  readonly #asked = new Asked()
  readonly #graceMs: number
  readonly #fail: (oracle: RecordOracle, message: string) => void
  /** Until when each lease's owner believes in it, by the true time; by id and generation. */
  readonly #beliefs = new Map<string, number>()
  /** When each lease was taken over, by the true time. */
  readonly #takenOver = new Map<string, number>()

  constructor(options: RecordCheckerOptions) {
    this.#graceMs = options.graceMs ?? 0
    this.#fail = options.fail
  }

  /** A call was sent. */
  sent(call: Call): void {
    this.#asked.add(call)
  }

  /**
   * An owner has been told that it has a lease, or has renewed one.
   *
   * @param endsAt - until when it believes so, by the true time: counted from before it asked
   */
  believed(id: string, generation: string, endsAt: number): void {
    const key = leaseKey(id, generation)
    const takenOverAt = this.#takenOver.get(key)
    if (takenOverAt !== undefined && takenOverAt < endsAt) this.#failOf(id, 'one lease', 'taken over while believed in')
    this.#beliefs.set(key, Math.max(endsAt, this.#beliefs.get(key) ?? 0))
  }

  /**
   * A record changed.
   *
   * @param before - what was stored, past its end or not; null: nothing
   * @param after - null: it was removed
   * @param decided - when, by the changer's clock
   * @param trueNow - when, by the true time: the one that beliefs are told by
   */
  changed(id: string, before: JobRecord | null, after: JobRecord | null, decided: DecidedIn, trueNow: number): void {
    if (before === after) return
    const lived = before !== null && forgottenFrom(before) > decided.hi
    if (after === null) {
      if (before !== null && lived) this.#removed(id, before)
      return
    }
    // The same enqueue may arrive twice, and the second time after the record's end: that makes it anew.
    const anew = !lived && before !== null && before.spec.createdAt !== after.spec.createdAt
    if (before === null || anew || before.spec.incarnation !== after.spec.incarnation) {
      if (lived) this.#failOf(id, 'no replacement', `${before.state} was replaced by ${after.state}`)
      else this.#created(after, decided)
      return
    }
    const exact = decided.lo === decided.hi
    if (!lived && exact) this.#failOf(id, 'expiry', `${before.state} changed past its end`)
    if (before.spec !== after.spec && !sameSpec(before, after)) this.#failOf(id, 'spec', 'its spec changed')
    if (isTerminal(before)) this.#touched(before, after, decided)
    else this.#moved(before, after, decided, trueNow)
  }

  #removed(id: string, before: JobRecord): void {
    const open = before.state === 'queued' || before.state === 'failing'
    if (!open || !this.#asked.cancels.has(id)) this.#failOf(id, 'conservation', `${before.state} vanished`)
  }

  #created(after: JobRecord, { lo, hi }: DecidedIn): void {
    const { id } = after.spec
    const item = this.#asked.items.get(after.spec.incarnation)
    if (item === undefined || item.spec.id !== id) {
      this.#failOf(id, 'conservation', 'came from nowhere')
      return
    }
    const { maxAttempts, resultTTL, failureTTL, fingerprint } = item.spec
    const { spec } = after
    const same =
      spec.maxAttempts === maxAttempts &&
      spec.resultTTL === resultTTL &&
      spec.failureTTL === failureTTL &&
      spec.fingerprint === fingerprint
    if (!same || isTerminal(after) || !sameEncoded(after.payload, item.payload)) {
      this.#failOf(id, 'spec', 'was not created as it was asked for')
      return
    }
    if (spec.createdAt < lo || spec.createdAt > hi) this.#failOf(id, 'expiry', 'was not created when it says')
    if (after.state === 'queued' && after.attempts === 0) return
    if (after.state === 'processing' && after.attempts === 1) this.#leasedUntil(after, { lo, hi })
    else this.#failOf(id, 'attempts', `was created ${after.state} with ${after.attempts} attempts`)
  }

  /** A terminal record may only be kept longer or shorter. */
  #touched(before: JobRecord, after: JobRecord, { lo, hi }: DecidedIn): void {
    const { id } = before.spec
    const same =
      isTerminal(before) &&
      isTerminal(after) &&
      before.state === after.state &&
      before.settledAt === after.settledAt &&
      before.generation === after.generation &&
      before.attempts === after.attempts
    if (!same) {
      this.#failOf(id, 'one verdict', `${before.state} became ${after.state}`)
      return
    }
    if (before.at === after.at) return
    const ttls = [...(this.#asked.touches.get(id) ?? [])]
    if (!ttls.some((ttlMs) => after.at - ttlMs >= lo && after.at - ttlMs <= hi)) {
      this.#failOf(id, 'expiry', `its end was moved from ${before.at} to ${after.at}, which nobody asked for`)
    }
  }

  #moved(before: OpenRecord, after: JobRecord, decided: DecidedIn, trueNow: number): void {
    const { id } = before.spec
    if (!isTerminal(after) && after.inline && !before.inline) this.#failOf(id, 'spec', 'became inline')
    if (!isTerminal(after) && !sameEncoded(after.payload, before.payload))
      this.#failOf(id, 'spec', 'its payload changed')
    if (after.attempts > before.spec.maxAttempts) this.#failOf(id, 'attempts', `${after.attempts} were made`)
    if (after.state === 'processing') {
      if (before.state === 'processing' && before.generation === after.generation)
        this.#extended(before, after, decided)
      else this.#granted(before, after, decided, trueNow)
      return
    }
    if (after.state === 'failed' && after.reason === 'exhausted') {
      this.#exhausted(before, after, decided)
      return
    }
    if (before.state !== 'processing') {
      if (before.state === after.state && before.at === after.at && before.attempts === after.attempts) return
      this.#failOf(id, 'fencing', `${before.state} became ${after.state} without a lease`)
      return
    }
    if (after.generation !== before.generation) {
      this.#failOf(id, 'fencing', 'was settled by another than its present lease')
      return
    }
    this.#settled(before, after, decided)
  }

  #extended(before: ProcessingRecord, after: ProcessingRecord, decided: DecidedIn): void {
    const { id } = before.spec
    if (after.attempts !== before.attempts) this.#failOf(id, 'attempts', 'an extension counted')
    if (after.at !== before.at) this.#leasedUntil(after, decided)
  }

  #granted(before: OpenRecord, after: ProcessingRecord, decided: DecidedIn, trueNow: number): void {
    const { id } = before.spec
    this.#mustBeDue(before, decided, 'leased')
    if (after.attempts !== before.attempts + 1) {
      this.#failOf(id, 'attempts', `a claim made ${after.attempts} of ${before.attempts}`)
    }
    if (before.state === 'processing') {
      const key = leaseKey(id, before.generation)
      const endsAt = this.#beliefs.get(key)
      if (endsAt !== undefined && endsAt > trueNow) this.#failOf(id, 'one lease', 'taken over while believed in')
      this.#takenOver.set(key, trueNow)
    }
    this.#leasedUntil(after, decided)
  }

  #mustBeDue(before: OpenRecord, { hi }: DecidedIn, what: string): void {
    const dueAt = before.state === 'processing' ? before.at + this.#graceMs : before.at
    if (dueAt > hi)
      this.#failOf(before.spec.id, 'one lease', `${what} while ${before.state}, ${dueAt - hi} ms too early`)
  }

  /** A lease must end when it was asked to. */
  #leasedUntil(after: ProcessingRecord, { lo, hi }: DecidedIn): void {
    // A request that arrives twice may lease once more under its token: that lease is its asker's again.
    this.#takenOver.delete(leaseKey(after.spec.id, after.generation))
    const lengths = this.#asked.leases.get(after.generation)
    if (lengths === undefined)
      this.#failOf(after.spec.id, 'fencing', 'was leased to a generation that nobody asked for')
    else if (!lengths.some((leaseMs) => after.at - leaseMs >= lo && after.at - leaseMs <= hi)) {
      this.#failOf(after.spec.id, 'expiry', `its lease ends at ${after.at}, decided between ${lo} and ${hi}`)
    }
  }

  #exhausted(before: OpenRecord, after: JobRecord & { state: 'failed' }, decided: DecidedIn): void {
    const { id, maxAttempts, failureTTL } = before.spec
    this.#mustBeDue(before, decided, 'failed as exhausted')
    if (before.attempts < maxAttempts || after.attempts !== before.attempts) {
      this.#failOf(id, 'attempts', `failed as exhausted after ${before.attempts} of ${maxAttempts}`)
    }
    this.#endsAt(after, failureTTL, decided)
  }

  #settled(before: ProcessingRecord, after: JobRecord, decided: DecidedIn): void {
    const { id } = before.spec
    const verdicts = this.#asked.verdicts.get(leaseKey(id, before.generation)) ?? []
    const fitting = verdicts.filter((verdict) => leadsTo(verdict, before, after))
    if (fitting.length === 0) {
      this.#failOf(id, 'fencing', `became ${after.state}, which its lease did not ask for`)
      return
    }
    const attempts = after.state === 'queued' ? before.attempts - 1 : before.attempts
    if (after.attempts !== attempts) this.#failOf(id, 'attempts', `${after.attempts} are counted, not ${attempts}`)
    const lengths = fitting.map((verdict) => lengthOf(verdict, before))
    if (isTerminal(after)) {
      this.#endsAt(after, lengths, decided)
    } else if (!lengths.some((ms) => after.at - ms >= decided.lo && after.at - ms <= decided.hi)) {
      this.#failOf(id, 'expiry', `may be claimed from ${after.at}, decided between ${decided.lo} and ${decided.hi}`)
    }
  }

  #endsAt(after: JobRecord, ttlMs: number | readonly number[], { lo, hi }: DecidedIn): void {
    if (!isTerminal(after)) return
    const { settledAt, at } = after
    const ttls = typeof ttlMs === 'number' ? [ttlMs] : ttlMs
    if (settledAt < lo || settledAt > hi || !ttls.includes(at - settledAt)) {
      this.#failOf(after.spec.id, 'expiry', `settled at ${settledAt}, it ends at ${at}; asked for was ${ttls} ms`)
    }
  }

  #failOf(id: string, oracle: RecordOracle, message: string): void {
    this.#fail(oracle, `${quoteId(id)}: ${message}`)
  }
}

function leadsTo(verdict: Verdict, before: ProcessingRecord, after: JobRecord): boolean {
  const last = before.attempts >= before.spec.maxAttempts
  switch (verdict.kind) {
    case 'complete':
      return after.state === 'completed' && after.result !== null && sameEncoded(after.result, verdict.result)
    case 'fail':
      return after.state === 'failed' && after.error !== null && sameEncoded(after.error, verdict.error)
    case 'retry':
      if (after.state === 'failed') return last && after.error !== null && sameEncoded(after.error, verdict.error)
      return after.state === 'failing' && !last && sameEncoded(after.error, verdict.error)
    case 'release':
      return after.state === 'queued'
  }
}

/** How long after the verdict the record's `at` must be, ms. */
function lengthOf(verdict: Verdict, before: ProcessingRecord): number {
  if (verdict.kind === 'complete' || verdict.kind === 'fail') return verdict.ttlMs
  if (verdict.kind === 'release') return verdict.delayMs
  return before.attempts >= before.spec.maxAttempts ? before.spec.failureTTL : verdict.delayMs
}

function sameSpec(a: JobRecord, b: JobRecord): boolean {
  const { id, fingerprint, createdAt, maxAttempts, resultTTL, failureTTL } = a.spec
  return (
    b.spec.id === id &&
    b.spec.fingerprint === fingerprint &&
    b.spec.createdAt === createdAt &&
    b.spec.maxAttempts === maxAttempts &&
    b.spec.resultTTL === resultTTL &&
    b.spec.failureTTL === failureTTL
  )
}
