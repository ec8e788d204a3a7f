/**
 * The leases that this queue object holds: renewed by one heartbeat for all of them, measured on a clock that never jumps,
 * given up when they can't be renewed in time; and the time handlers may take.
 *
 * @module
 */

import type { Clock, Timer } from './clock.ts'
import type { EffectOutcome, Effects } from './effects.ts'
import { OutboxDraft } from './effects.ts'
import { LeaseLostError, StateError } from './errors.ts'
import type { Job } from './options.ts'
import type { Encoded, ProcessingRecord } from './record.ts'
import type { StorageHandle } from './storage.ts'

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

/** One lease held here, from its claim until its verdict is stored. One object a job: this is the hot path. */
export class Lease<TPayload> {
  readonly record: ProcessingRecord
  /** When it ends, by the monotonic clock, unless renewed. Counted from before the claim was sent: never too late. */
  endsAt: number
  /** When the handler's time is up, by the monotonic clock. */
  readonly handlerEndsAt: number
  job: LeasedJob<TPayload> | null = null
  /** The verdict is decided: whatever the handler answers from now on comes too late. Set by {@link decide}. */
  decided = false
  lost = false
  /** When the handler was called, by the monotonic clock. */
  startedMonotonic = 0
  /** Called when the verdict goes to the storage: the slot is free, though the lease is held until it is stored. */
  onFree: (() => void) | null = null
  /** Called when the verdict is stored, refused or given up. */
  onEnd: ((ending: Ending) => void) | null = null

  constructor(record: ProcessingRecord, endsAt: number, handlerEndsAt: number) {
    this.record = record
    this.endsAt = endsAt
    this.handlerEndsAt = handlerEndsAt
  }

  /** Decides the verdict; false if it was decided before. */
  decide(): boolean {
    if (this.decided) return false
    this.decided = true
    return true
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

/** What the keeper tells. */
export interface LeaseKeeperEvents<TPayload> {
  /** The lease is someone else's, or could not be renewed in time; its job is aborted already. */
  lost(lease: Lease<TPayload>): void
  /** The handler's time is up. */
  overdue(lease: Lease<TPayload>): void
  /** The event loop did not turn for so long. */
  blocked(blockedMs: number): void
  error(error: unknown): void
}

/** Holds and renews leases. */
export class LeaseKeeper<TPayload> {
  readonly #clock: Clock
  readonly #leaseMs: number
  readonly #handlerTimeoutMs: number
  readonly #handle: () => Promise<StorageHandle>
  readonly #events: LeaseKeeperEvents<TPayload>
  readonly #held = new Set<Lease<TPayload>>()
  #beat: Timer | null = null
  #beatDueAt = 0
  #beating = false
  /** Stops so far: a renewal that a stop left hanging is no business of the leases that come after. */
  #stops = 0
  /** While a renewal is under way: when the next lease ends. */
  #ending: Timer | null = null
  #overdue: Timer | null = null
  #onEmpty: (() => void)[] = []

  constructor(
    clock: Clock,
    leaseMs: number,
    handlerTimeoutMs: number,
    handle: () => Promise<StorageHandle>,
    events: LeaseKeeperEvents<TPayload>,
  ) {
    this.#clock = clock
    this.#leaseMs = leaseMs
    this.#handlerTimeoutMs = handlerTimeoutMs
    this.#handle = handle
    this.#events = events
  }

  get size(): number {
    return this.#held.size
  }

  [Symbol.iterator](): Iterator<Lease<TPayload>> {
    return this.#held[Symbol.iterator]()
  }

  /** Starts to keep the lease of a claim that was sent at `sentAt` and answered `now`, by the monotonic clock. */
  add(record: ProcessingRecord, sentAt: number, now: number): Lease<TPayload> {
    const lease = new Lease<TPayload>(record, sentAt + this.#leaseMs, now + this.#handlerTimeoutMs)
    this.#held.add(lease)
    if (this.#beat === null && !this.#beating) this.#scheduleBeat(this.#leaseMs / 3)
    if (this.#overdue === null && lease.handlerEndsAt !== Number.POSITIVE_INFINITY) this.#scheduleOverdue(lease)
    return lease
  }

  /** Ends the keeping: the verdict is stored, or the lease is gone. */
  remove(lease: Lease<TPayload>): void {
    if (!this.#held.delete(lease) || this.#held.size > 0 || this.#onEmpty.length === 0) return
    const waiting = this.#onEmpty
    this.#onEmpty = []
    for (const resolve of waiting) resolve()
  }

  /** Ends the timers. They are unref'ed and cost little, so that only a stop does this, not each last lease. */
  stop(): void {
    this.#stops++
    this.#beating = false
    this.#beat?.clear()
    this.#beat = null
    this.#ending?.clear()
    this.#ending = null
    this.#overdue?.clear()
    this.#overdue = null
  }

  /** Resolves when no lease is held. */
  empty(): Promise<void> {
    if (this.#held.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.#onEmpty.push(resolve))
  }

  #scheduleBeat(ms: number): void {
    this.#beatDueAt = this.#clock.monotonic() + ms
    this.#beat = this.#clock.timer(() => void this.#onBeat(), ms, false)
  }

  async #onBeat(): Promise<void> {
    this.#beat = null
    this.#beating = true
    const stops = this.#stops
    const now = this.#clock.monotonic()
    const lateMs = now - this.#beatDueAt
    if (lateMs > this.#leaseMs / 3) this.#events.blocked(lateMs)
    // What was claimed or renewed a moment ago can wait for the next beat.
    // And what was given up is not taken back: its handler was told, others may have it.
    const due = [...this.#held].filter((lease) => !lease.lost && lease.endsAt - now <= this.#leaseMs * 0.75)
    let failed = false
    if (due.length > 0) {
      this.#watchEnds()
      try {
        await this.#renew(due, now)
      } catch (error) {
        failed = true
        this.#events.error(error)
      }
      if (stops !== this.#stops) return
      this.#ending?.clear()
      this.#ending = null
    }
    this.#giveUpEnded()
    this.#beating = false
    // A beat that failed is repeated soon: there are few chances before the lease ends.
    if (this.#held.size > 0 && this.#beat === null) this.#scheduleBeat(this.#leaseMs / (failed ? 12 : 3))
  }

  async #renew(leases: readonly Lease<TPayload>[], sentAt: number): Promise<void> {
    const handle = await this.#handle()
    const leaseMs = this.#leaseMs
    const answers = await handle.extend(
      leases.map(({ record }) => ({ id: record.spec.id, generation: record.generation, leaseMs })),
    )
    for (let index = 0; index < leases.length; index++) {
      const lease = leases[index] as Lease<TPayload>
      if (!this.#held.has(lease)) continue
      if (answers[index] === 'extended') lease.endsAt = sentAt + leaseMs
      // A verdict on its way ends the lease, too: the settlement's answer will tell.
      else if (!lease.decided) this.#lose(lease)
    }
  }

  /** A renewal may hang for longer than the leases last: they are given up at their end all the same. */
  #watchEnds(): void {
    const now = this.#clock.monotonic()
    // More may be claimed meanwhile: looked for at least as often as by the beats that don't come now.
    let endsAt = now + this.#leaseMs / 3
    for (const lease of this.#held) {
      if (!lease.decided && !lease.lost && lease.endsAt < endsAt) endsAt = lease.endsAt
    }
    const giveUp = () => {
      this.#giveUpEnded()
      this.#watchEnds()
    }
    this.#ending = this.#clock.timer(giveUp, endsAt - now, false)
  }

  #giveUpEnded(): void {
    const now = this.#clock.monotonic()
    for (const lease of this.#held) if (lease.endsAt <= now && !lease.decided) this.#lose(lease)
  }

  #lose(lease: Lease<TPayload>): void {
    if (lease.lost) return
    lease.lost = true
    lease.job?.abort(new LeaseLostError(lease.record.spec.id))
    this.#events.lost(lease)
  }

  #scheduleOverdue(first: Lease<TPayload>): void {
    const ms = first.handlerEndsAt - this.#clock.monotonic()
    this.#overdue = this.#clock.timer(() => this.#onOverdue(), ms, false)
  }

  #onOverdue(): void {
    this.#overdue = null
    const now = this.#clock.monotonic()
    // All have the same time, so they are overdue in the order in which they came.
    for (const lease of this.#held) {
      if (lease.decided) continue
      if (lease.handlerEndsAt > now) {
        this.#scheduleOverdue(lease)
        return
      }
      this.#events.overdue(lease)
    }
  }
}
