/**
 * A clock that gross errors of the machine's own are taken out of.
 *
 * What is due, and until when, is decided by clients' clocks. The SDK measures the server's with every answer, to the second
 * that the `Date` header has; so small differences can't be told from that rounding and are left alone (the grace covers
 * them), large ones are corrected.
 *
 * @module
 */

import type { Clock, Timer } from '../../src/clock.ts'

/** A difference up to this, ms, may be the rounding of `Date` and the time under way. */
const toleranceMs = 1_500

/** The clock, corrected. */
export class ServerClock implements Clock {
  readonly #base: Clock
  #offsetMs = 0

  constructor(base: Clock) {
    this.#base = base
  }

  /** What is added to the machine's clock, ms; 0 unless that is grossly wrong. */
  get offsetMs(): number {
    return this.#offsetMs
  }

  now(): number {
    return this.#base.now() + this.#offsetMs
  }

  monotonic(): number {
    return this.#base.monotonic()
  }

  timer(callback: () => void, ms: number, ref: boolean): Timer {
    return this.#base.timer(callback, ms, ref)
  }

  /**
   * Takes in what the SDK measured.
   *
   * @param systemClockOffset - server time minus the system's, ms, as the client's configuration has it after an answer; up to
   *   a second less than it should be, as `Date` leaves out the fraction
   */
  measured(systemClockOffset: number): void {
    const serverNow = Date.now() + systemClockOffset + (systemClockOffset === 0 ? 0 : 500)
    const offsetMs = Math.round(serverNow - this.#base.now())
    // Only what can't be rounding moves the clock: it must not jitter with every answer.
    if (Math.abs(offsetMs - this.#offsetMs) <= toleranceMs) return
    this.#offsetMs = Math.abs(offsetMs) <= toleranceMs ? 0 : offsetMs
  }
}
