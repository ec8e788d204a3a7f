/**
 * What a queue object holds of one job that it runs: the lease with its verdict, and the job as its handler sees it.
 *
 * @module
 */

import { encodeError } from './codec.ts'
import type { EffectOutcome, Effects } from './effects.ts'
import { OutboxDraft } from './effects.ts'
import { type AskonceError, StateError } from './errors.ts'
import type { Pending } from './exchange.ts'
import type { SettleOutcome } from './machine.ts'
import type { Job } from './options.ts'
import type { Encoded, ProcessingRecord, Verdict } from './record.ts'
import { fail, release } from './record.ts'

/** The job that a handler sees. Its signal is made when first read: most handlers never do, and it costs most of all. */
export class LeasedJob<TPayload> implements Job<TPayload> {
  readonly id: string
  readonly payload: TPayload
  readonly attempts: number
  readonly maxAttempts: number
  readonly createdAt: number
  readonly generation: string
  readonly #effects: Effects
  #draft: OutboxDraft | null = null
  #decided = false
  #controller: AbortController | null = null
  #reason: unknown = null

  constructor(record: ProcessingRecord, payload: TPayload, effects: Effects) {
    this.#effects = effects
    this.id = record.spec.id
    this.payload = payload
    this.attempts = record.attempts
    this.maxAttempts = record.spec.maxAttempts
    this.createdAt = record.spec.createdAt
    this.generation = record.generation
  }

  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController()
      if (this.#reason !== null) this.#controller.abort(this.#reason)
    }
    return this.#controller.signal
  }

  once<T>(name: string, effect: () => T | PromiseLike<T>): Promise<EffectOutcome<T>> {
    return this.#effects.once(this.id, name, effect)
  }

  outbox(name: string, payload: unknown): void {
    if (this.#decided) throw new StateError('the job’s outcome is decided; post rows before the handler answers')
    this.#draft ??= new OutboxDraft()
    this.#draft.add(name, payload)
  }

  /** @internal The rows that were posted, or null; no more can be. */
  takeRows(): string | null {
    this.#decided = true
    return this.#draft === null ? null : this.#draft.toText()
  }

  /** @internal */
  abort(reason: Error): void {
    if (this.#reason !== null) return
    this.#reason = reason
    this.#controller?.abort(reason)
  }
}

/** How an attempt ended, for who began it. */
export type Ending =
  | { readonly kind: 'completed'; readonly result: Encoded }
  | { readonly kind: 'failed'; readonly error: Encoded }
  /** Another attempt follows, after a failure or a release. */
  | { readonly kind: 'again' }
  /** The verdict was refused or could not be stored. */
  | { readonly kind: 'lost' }

/** Told what became of a verdict; null: it was never stored. */
export type Conclude<TPayload> = (lease: Lease<TPayload>, outcome: SettleOutcome | null) => void

const undecided = release(0)

/**
 * One lease held here, from its claim until its verdict is stored. One object for all of that, kept in a list by links of its own: this
 * is the hot path.
 */
export class Lease<TPayload> implements Pending {
  readonly record: ProcessingRecord
  /** When it ends, by the monotonic clock, unless renewed. Counted from before the claim was sent: never too late. */
  endsAt: number
  /** When its claim was answered, by the monotonic clock: what handlers take counts from then. */
  readonly claimedAt: number
  job: LeasedJob<TPayload> | null = null
  /** The verdict is decided: whatever the handler answers from now on comes too late. Set by {@link decide}. */
  decided = false
  lost = false
  /** Called when the verdict goes to the storage: the slot is free, though the lease is held until it is stored. */
  onFree: (() => void) | null = null
  /** Called when the verdict is stored, refused or given up. */
  onEnd: ((ending: Ending) => void) | null = null
  verdict: Verdict = undecided
  /** What the handler answered, for those who listen. */
  result: unknown
  /** What it failed with. */
  error: Error | undefined
  #conclude: Conclude<TPayload> | null = null
  /** @internal Its keeper's list. */
  held = false
  prev: Lease<TPayload> | null = null
  next: Lease<TPayload> | null = null

  constructor(record: ProcessingRecord, endsAt: number, claimedAt: number) {
    this.record = record
    this.endsAt = endsAt
    this.claimedAt = claimedAt
  }

  get id(): string {
    return this.record.spec.id
  }

  get generation(): string {
    return this.record.generation
  }

  /** Decides the verdict; false if it was decided before. */
  decide(): boolean {
    if (this.decided) return false
    this.decided = true
    return true
  }

  /** Makes it what is to be stored, and says who is told of it. */
  conclude(verdict: Verdict, result: unknown, error: Error | undefined, conclude: Conclude<TPayload>): void {
    this.verdict = verdict
    this.result = result
    this.error = error
    this.#conclude = conclude
  }

  settled(outcome: SettleOutcome | null): void {
    this.#conclude?.(this, outcome)
  }

  refused(error: AskonceError): boolean {
    if (this.verdict.kind === 'fail') return false
    // Running the handler again would answer the same: the job fails.
    this.error = error
    this.verdict = fail(encodeError(error), this.record.spec.failureTTL)
    return true
  }
}
