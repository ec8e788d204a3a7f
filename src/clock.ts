/**
 * Time, as everything in askonce reads it. The system clock is the default; tests bring a virtual one.
 *
 * @module
 */

import { limits } from './limits.ts'

/** A timer that can be ended. */
export interface Timer {
  /** Ends the timer; harmless when it has fired or was ended before. */
  clear(): void
}

/** Where the time comes from. */
export interface Clock {
  /** Wall-clock milliseconds since 1970, as stored in records. May jump. */
  now(): number
  /** Milliseconds that never jump; only differences mean anything. Leases are measured by it. */
  monotonic(): number
  /**
   * Calls `callback` once after `ms`, however long that is.
   *
   * @param ref - whether the timer alone keeps the process alive
   */
  timer(callback: () => void, ms: number, ref: boolean): Timer
}

class SystemTimer implements Timer {
  #handle: NodeJS.Timeout

  constructor(callback: () => void, ms: number, ref: boolean) {
    const wait = (left: number): NodeJS.Timeout => {
      // Node fires a timer beyond 2^31 - 1 ms at once: long ones are slept in pieces.
      const piece = Math.min(left, limits.timerMsMax)
      const handle = setTimeout(() => {
        if (left > piece) this.#handle = wait(left - piece)
        else callback()
      }, piece)
      return ref ? handle : handle.unref()
    }
    this.#handle = wait(Math.max(0, Math.ceil(ms)))
  }

  clear(): void {
    clearTimeout(this.#handle)
  }
}

/** The machine's own clock. */
export const systemClock: Clock = Object.freeze({
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer: (callback: () => void, ms: number, ref: boolean) => new SystemTimer(callback, ms, ref),
})
