/**
 * What a worker exchanges with its storage: verdicts out, jobs in, in one call at a time. While a call is under way the
 * verdicts of that time gather for the next, so that the batches grow with the load by themselves.
 *
 * @module
 */

import type { Clock, Timer } from './clock.ts'
import { type AskonceError, isItemError, StoppedError } from './errors.ts'
import { limits } from './limits.ts'
import type { SettleOutcome } from './machine.ts'
import type { ClaimAnswer, ClaimRequest, SettleAnswers, Settlement, StorageHandle } from './storage.ts'

/** A verdict to be stored. */
export interface Pending extends Settlement {
  /** Gets the answer; null if there will be none: the storage closed, or refused even the error. */
  settled(outcome: SettleOutcome | null): void
  /** The storage will never take this verdict: it is replaced by one that tells so. False to give up. */
  refused(error: AskonceError): boolean
}

/** Who wants jobs. */
export interface Claimer {
  /** What to ask for now; null for nothing. */
  request(): ClaimRequest | null
  /** Gets what came, and when it was asked for by the monotonic clock. */
  receive(answer: ClaimAnswer, request: ClaimRequest, sentAt: number): void
}

/** Pause after the first failed call, ms; doubled up to the longest. */
const pauseMsMin = 50
const pauseMsMax = 2_000

/** Exchanges verdicts for jobs. */
export class Exchange {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #handle: () => Promise<StorageHandle>
  readonly #onError: (error: unknown) => void
  #pending: Pending[] = []
  #claimer: Claimer | null = null
  #scheduled = false
  #running = false
  /** Nothing was sent in the last turn of the event loop. */
  #rested = true
  #pause: Timer | null = null
  #failures = 0
  #onFlushed: (() => void)[] = []

  constructor(
    clock: Clock,
    random: () => number,
    handle: () => Promise<StorageHandle>,
    onError: (error: unknown) => void,
  ) {
    this.#clock = clock
    this.#random = random
    this.#handle = handle
    this.#onError = onError
  }

  /** From now on jobs are claimed for it; null for nobody. */
  set claimer(claimer: Claimer | null) {
    this.#claimer = claimer
  }

  settle(pending: Pending): void {
    this.#pending.push(pending)
    this.poke()
  }

  /** Has a call made soon, if there is anything to send or to ask for. */
  poke(): void {
    if (this.#scheduled || this.#running || this.#pause !== null) return
    this.#scheduled = true
    // After a rest, at once. Between two calls, a turn of the event loop: it gathers the verdicts of all handlers that end
    // in it, and lets timers and I/O have theirs.
    if (this.#rested) queueMicrotask(this.#run)
    else setImmediate(this.#run)
  }

  /** Whether a call is under way or verdicts wait. */
  get busy(): boolean {
    return this.#running || this.#pending.length > 0
  }

  /** Resolves when every verdict that was given is answered, and no call is under way. */
  flushed(): Promise<void> {
    if (!this.busy) return Promise.resolve()
    return new Promise((resolve) => this.#onFlushed.push(resolve))
  }

  /**
   * Gives up: what is not stored will not be; the leases will run out. With nothing left to store, it ends the pause after a
   * claim that failed, which would keep the process.
   */
  abandon(): void {
    this.#pause?.clear()
    this.#pause = null
    const pending = this.#pending
    this.#pending = []
    for (const item of pending) item.settled(null)
    this.#tellFlushed()
  }

  readonly #run = async (): Promise<void> => {
    this.#scheduled = false
    this.#running = true
    this.#rested = false
    const pending = this.#take()
    const claimer = this.#claimer
    // A verdict that is repeated goes alone: a claim beside it could take its job before the reply tells of either.
    const request = this.#failures > 0 && pending.length > 0 ? null : (claimer?.request() ?? null)
    if (pending.length > 0 || request !== null) {
      try {
        await this.#exchange(pending, request, claimer)
        this.#failures = 0
      } catch (error) {
        this.#failed(pending, error)
      }
    }
    this.#running = false
    if (this.#pending.length > 0 || (pending.length > 0 && this.#claimer !== null) || request !== null) this.poke()
    if (this.#pending.length === 0) this.#tellFlushed()
    if (!this.#scheduled) setImmediate(this.#rest)
  }

  readonly #rest = (): void => {
    if (!this.#scheduled && !this.#running) this.#rested = true
  }

  #take(): Pending[] {
    const pending = this.#pending
    if (pending.length <= limits.callItemsMax) {
      this.#pending = []
      return pending
    }
    this.#pending = pending.slice(limits.callItemsMax)
    return pending.slice(0, limits.callItemsMax)
  }

  async #exchange(pending: readonly Pending[], request: ClaimRequest | null, claimer: Claimer | null): Promise<void> {
    const handle = await this.#handle()
    const sentAt = this.#clock.monotonic()
    let claim: ClaimAnswer | null
    if (pending.length === 0) {
      claim = request === null ? null : await handle.claim(request)
    } else {
      let answers: SettleAnswers
      try {
        answers = await handle.settle(pending, request)
      } catch (error) {
        if (!isItemError(error)) throw error
        // Some verdict can never be stored: it alone must give way. The claim, if any, is asked for again later.
        await this.#settleApart(handle, pending, error)
        return
      }
      for (let index = 0; index < pending.length; index++) {
        ;(pending[index] as Pending).settled(answers.answers[index] as SettleOutcome)
      }
      claim = answers.claim
    }
    // Even if it has stopped since: it must give back what it asked for.
    if (claim !== null && request !== null) claimer?.receive(claim, request, sentAt)
  }

  async #settleApart(handle: StorageHandle, pending: readonly Pending[], error: AskonceError): Promise<void> {
    for (const item of pending) {
      if (pending.length > 1) {
        try {
          item.settled((await handle.settle([item], null)).answers[0] as SettleOutcome)
          continue
        } catch (own) {
          if (!isItemError(own)) {
            this.#failed([item], own)
            continue
          }
          error = own
        }
      }
      this.#onError(error)
      if (item.refused(error)) this.#pending.push(item)
      else item.settled(null)
    }
  }

  #failed(pending: readonly Pending[], error: unknown): void {
    // Only our own stop ends it. A storage that closes by itself is told of, and asked again later.
    if (error instanceof StoppedError) {
      for (const item of pending) item.settled(null)
      return
    }
    this.#onError(error)
    this.#pending = [...pending, ...this.#pending]
    if (this.#pause !== null) return
    const ceiling = Math.min(pauseMsMax, pauseMsMin * 2 ** Math.min(this.#failures++, 10))
    const ms = ceiling * (0.5 + this.#random() / 2)
    this.#pause = this.#clock.timer(
      () => {
        this.#pause = null
        this.poke()
      },
      ms,
      true,
    )
  }

  #tellFlushed(): void {
    const waiting = this.#onFlushed
    this.#onFlushed = []
    for (const resolve of waiting) resolve()
  }
}
