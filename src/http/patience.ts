/**
 * How long one caller waits: for somebody else's run, or for its own.
 *
 * @module
 */

import type { Clock, Timer } from '../clock.ts'
import type { JobState } from '../record.ts'

/** One caller's patience. Without a word from the caller it is endless. */
export class Patience {
  /** Aborts, with a {@link GivenUp}, when the wait is over. A run that has begun here is not cut off. */
  readonly signal: AbortSignal
  /** Resolves when a run that began here was waited for long enough. */
  readonly over: Promise<void>
  readonly #clock: Clock
  readonly #controller = new AbortController()
  readonly #client: AbortSignal | undefined
  readonly #onGone = () => this.#giveUp()
  #begun = false
  #ended = false
  #timer: Timer | null = null
  #resolve!: () => void

  /** @param client - aborts when nobody will read the answer */
  constructor(clock: Clock, client: AbortSignal | undefined) {
    this.#clock = clock
    this.#client = client
    this.signal = this.#controller.signal
    this.over = new Promise((resolve) => {
      this.#resolve = resolve
    })
    if (client?.aborted) this.#giveUp()
    else client?.addEventListener('abort', this.#onGone, { once: true })
  }

  /** Whether a run has begun here. */
  get begun(): boolean {
    return this.#begun
  }

  /** Waits that long from now, ms; 0: no more; may be Infinity. */
  wait(ms: number): void {
    if (ms === 0) this.#giveUp()
    else this.#after(ms, () => this.#giveUp())
  }

  /** The same, if somebody else's record was met and is not done. */
  met(state: JobState, ms: number): void {
    if (state !== 'completed' && state !== 'failed') this.wait(ms)
  }

  /** A run begins here, and is waited for that long, ms; a further attempt of it changes nothing. */
  begin(ms: number): void {
    if (this.#begun || this.#ended) return
    this.#begun = true
    this.#after(ms, this.#resolve)
  }

  /** Lets go of everything. */
  end(): void {
    this.#ended = true
    this.#timer?.clear()
    this.#client?.removeEventListener('abort', this.#onGone)
  }

  #giveUp(): void {
    if (!this.#begun) this.#controller.abort(new GivenUp())
  }

  #after(ms: number, callback: () => void): void {
    this.#timer?.clear()
    this.#timer = ms === Number.POSITIVE_INFINITY ? null : this.#clock.timer(callback, ms, true)
  }
}

/** Why a wait ended. */
export class GivenUp extends Error {
  constructor() {
    super('waited long enough')
  }
}
