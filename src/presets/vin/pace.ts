/**
 * A least time between calls, so that a run of single calls does not become the burst that gets an address banned.
 *
 * @module
 */

import type { Clock } from '../../clock.ts'

/** Hands out turns, one each `intervalMs`; callers get them in the order they came. */
export class Pacer {
  readonly #clock: Clock
  readonly #intervalMs: number
  #nextAt = Number.NEGATIVE_INFINITY

  /** @param intervalMs - 0 for no pacing */
  constructor(clock: Clock, intervalMs: number) {
    this.#clock = clock
    this.#intervalMs = intervalMs
  }

  /** Resolves when the caller may send; rejects with the signal's reason, its turn then passing unused. */
  turn(signal: AbortSignal): Promise<void> {
    const now = this.#clock.monotonic()
    const at = Math.max(now, this.#nextAt)
    this.#nextAt = at + this.#intervalMs
    if (at === now || signal.aborted) return signal.aborted ? Promise.reject(signal.reason) : Promise.resolve()
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        timer.clear()
        reject(signal.reason)
      }
      const timer = this.#clock.timer(
        () => {
          signal.removeEventListener('abort', onAbort)
          resolve()
        },
        at - now,
        true,
      )
      signal.addEventListener('abort', onAbort, { once: true })
    })
  }
}
