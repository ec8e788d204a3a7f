/**
 * The leases that this queue object holds: renewed by one heartbeat for all of them, measured on a clock that never jumps,
 * given up when they can't be renewed in time; and the time handlers may take.
 *
 * @module
 */

import type { Clock, Timer } from './clock.ts'
import { LeaseLostError } from './errors.ts'
import { Lease } from './lease.ts'
import type { ProcessingRecord } from './record.ts'
import type { StorageHandle } from './storage.ts'

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
  /** All that are held, in the order in which they came. */
  #first: Lease<TPayload> | null = null
  #last: Lease<TPayload> | null = null
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

  *[Symbol.iterator](): Generator<Lease<TPayload>, void> {
    const all: Lease<TPayload>[] = []
    for (let lease = this.#first; lease !== null; lease = lease.next) all.push(lease)
    for (const lease of all) if (lease.held) yield lease
  }

  /** Starts to keep the lease of a claim that was sent at `sentAt` and answered `now`, by the monotonic clock. */
  add(record: ProcessingRecord, sentAt: number, now: number): Lease<TPayload> {
    const lease = new Lease<TPayload>(record, sentAt + this.#leaseMs, now)
    this.#append(lease)
    if (this.#beat === null && !this.#beating) this.#scheduleBeat(this.#leaseMs / 3)
    if (this.#overdue === null && this.#handlerTimeoutMs !== Number.POSITIVE_INFINITY) this.#scheduleOverdue(lease)
    return lease
  }

  /** Ends the keeping: the verdict is stored, or the lease is gone. */
  remove(lease: Lease<TPayload>): void {
    if (!lease.held) return
    this.#unlink(lease)
    if (this.#first !== null || this.#onEmpty.length === 0) return
    const waiting = this.#onEmpty
    this.#onEmpty = []
    for (const resolve of waiting) resolve()
  }

  #append(lease: Lease<TPayload>): void {
    lease.held = true
    lease.prev = this.#last
    if (this.#last === null) this.#first = lease
    else this.#last.next = lease
    this.#last = lease
  }

  #unlink(lease: Lease<TPayload>): void {
    const { prev, next } = lease
    lease.held = false
    if (prev === null) this.#first = next
    else prev.next = next
    if (next === null) this.#last = prev
    else next.prev = prev
    // Links of what is dead and old would keep what is young alive.
    lease.prev = null
    lease.next = null
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
    if (this.#first === null) return Promise.resolve()
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
    const due = [...this].filter((lease) => !lease.lost && lease.endsAt - now <= this.#leaseMs * 0.75)
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
    if (this.#first !== null && this.#beat === null) this.#scheduleBeat(this.#leaseMs / (failed ? 12 : 3))
  }

  async #renew(leases: readonly Lease<TPayload>[], sentAt: number): Promise<void> {
    const handle = await this.#handle()
    const leaseMs = this.#leaseMs
    const answers = await handle.extend(
      leases.map(({ record }) => ({ id: record.spec.id, generation: record.generation, leaseMs })),
    )
    for (let index = 0; index < leases.length; index++) {
      const lease = leases[index] as Lease<TPayload>
      if (!lease.held) continue
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
    for (const lease of this) {
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
    for (const lease of this) if (lease.endsAt <= now && !lease.decided) this.#lose(lease)
  }

  #lose(lease: Lease<TPayload>): void {
    if (lease.lost) return
    lease.lost = true
    lease.job?.abort(new LeaseLostError(lease.record.spec.id))
    this.#events.lost(lease)
  }

  #scheduleOverdue(first: Lease<TPayload>): void {
    const ms = first.claimedAt + this.#handlerTimeoutMs - this.#clock.monotonic()
    this.#overdue = this.#clock.timer(() => this.#onOverdue(), ms, false)
  }

  #onOverdue(): void {
    this.#overdue = null
    const now = this.#clock.monotonic()
    // All have the same time, so they are overdue in the order in which they came.
    for (const lease of this) {
      if (lease.decided) continue
      if (lease.claimedAt + this.#handlerTimeoutMs > now) {
        this.#scheduleOverdue(lease)
        return
      }
      this.#events.overdue(lease)
    }
  }
}
