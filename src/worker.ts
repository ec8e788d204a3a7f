/**
 * The worker: decides when to ask the storage for jobs and how many, and hands them to its executor.
 *
 * @module
 */

import type { Clock, Timer } from './clock.ts'
import type { Claimer, Exchange } from './exchange.ts'
import type { Lease } from './lease.ts'
import type { LeaseKeeper } from './leases.ts'
import { limits } from './limits.ts'
import { PollTimer } from './poll-timer.ts'
import type { JobRecord } from './record.ts'
import type { ClaimAnswer, ClaimRequest, StorageHandle, StorageTraits } from './storage.ts'
import type { TokenSource } from './tokens.ts'

/** Runs jobs. */
export interface Executor<TPayload> {
  /** How many more it can take now. */
  capacity(): number
  take(lease: Lease<TPayload>): void
  /** No more jobs will come: begin what waits for company. */
  drain?(): void
}

/** What a worker is made of. */
export interface WorkerParts<TPayload> {
  readonly clock: Clock
  readonly random: () => number
  readonly traits: StorageTraits
  readonly tokens: TokenSource
  readonly leaseMs: number
  readonly sweepIntervalMs: number
  readonly exchange: Exchange
  readonly keeper: LeaseKeeper<TPayload>
  readonly executor: Executor<TPayload>
  readonly handle: () => Promise<StorageHandle>
  readonly onExhausted: (record: JobRecord) => void
  /** A lease that was claimed but can't be used. */
  readonly onUnwanted: (lease: Lease<TPayload>) => void
  readonly onIdle: () => void
  readonly onError: (error: unknown) => void
}

const sweepSlice = 1_000
const sweepSlicesMax = 100

/** Claims jobs while it is started and not paused. */
export class Worker<TPayload> implements Claimer {
  readonly #parts: WorkerParts<TPayload>
  #started = false
  #paused = false
  /** Nothing was to be had; until a hint, a timer, or a poll says else. */
  #idle = false
  /** A hint came while a claim was under way, which may not have seen what the hint told of. */
  #hinted = false
  readonly #timer: PollTimer
  #sweepTimer: Timer | null = null

  constructor(parts: WorkerParts<TPayload>) {
    this.#parts = parts
    this.#timer = new PollTimer(parts, () => this.#onWake())
  }

  start(): void {
    this.#started = true
    this.#idle = false
    this.#parts.exchange.claimer = this
    this.#scheduleSweep()
    // Even when nothing can be asked for yet, the process must not end.
    this.#timer.wakeAtLast()
    this.#parts.exchange.poke()
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    this.#idle = false
    this.#parts.exchange.poke()
  }

  /** Claims no more. */
  stop(): void {
    this.#started = false
    this.#parts.exchange.claimer = null
    this.#timer.clear()
    this.#sweepTimer?.clear()
    this.#sweepTimer = null
    this.#parts.executor.drain?.()
  }

  /** Something may be due in `inMs`. */
  hint(inMs: number): void {
    if (!this.#started) return
    if (inMs > 0) {
      this.#timer.wakeIn(inMs)
      return
    }
    this.#hinted = true
    if (!this.#idle) return
    this.#idle = false
    this.#parts.exchange.poke()
  }

  /** The executor can take more. */
  poke(): void {
    this.#parts.exchange.poke()
  }

  request(): ClaimRequest | null {
    if (!this.#started || this.#paused || this.#idle) return null
    const limit = Math.min(this.#parts.executor.capacity(), limits.callItemsMax)
    if (limit < 1) return null
    this.#hinted = false
    return { generation: this.#parts.tokens.next(), limit, leaseMs: this.#parts.leaseMs }
  }

  receive(answer: ClaimAnswer, request: ClaimRequest, sentAt: number): void {
    const { clock, executor, exchange, keeper } = this.#parts
    const now = clock.monotonic()
    for (const record of answer.exhausted) this.#parts.onExhausted(record)
    if (!this.#started) {
      // Stopped while the claim was under way: what it brought is given back at once, and costs no attempt.
      for (const record of answer.jobs) this.#parts.onUnwanted(keeper.add(record, sentAt, now))
      return
    }
    for (const record of answer.jobs) executor.take(keeper.add(record, sentAt, now))
    if (answer.jobs.length > 0 || answer.exhausted.length > 0) this.#timer.found()
    if (!this.#timer.armed) this.#timer.wakeAtLast()
    const full = answer.jobs.length >= request.limit
    if ((full || this.#hinted) && answer.heldForMs <= 0) {
      exchange.poke()
      return
    }
    this.#idle = true
    this.#parts.onIdle()
    if (answer.heldForMs > 0) this.#timer.wakeIn(answer.heldForMs)
    else this.#timer.poll(answer.nextInMs)
  }

  #onWake(): void {
    this.#idle = false
    // Busy or paused: nothing will be asked for, and so nothing would arm the timer again.
    if (this.#paused || this.#parts.executor.capacity() < 1) this.#timer.wakeAtLast()
    this.#parts.exchange.poke()
  }

  #scheduleSweep(): void {
    const { clock, random, sweepIntervalMs } = this.#parts
    const ms = sweepIntervalMs * (0.75 + random() / 2)
    this.#sweepTimer = clock.timer(() => void this.#sweep(), ms, false)
  }

  async #sweep(): Promise<void> {
    this.#sweepTimer = null
    try {
      const handle = await this.#parts.handle()
      for (let slice = 0; slice < sweepSlicesMax && this.#started; slice++) {
        if ((await handle.sweep(sweepSlice)) < sweepSlice) break
      }
    } catch (error) {
      if (this.#started) this.#parts.onError(error)
    }
    if (this.#started) this.#scheduleSweep()
  }
}
