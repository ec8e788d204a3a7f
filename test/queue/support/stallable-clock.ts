/** One process's view of the time: while it stalls, none of its timers fire, though time goes on for everybody else. */

import type { Clock, Timer } from '../../../src/clock.ts'

export class StallableClock implements Clock {
  readonly #clock: Clock
  #stalled = false
  #missed = new Set<() => void>()
  /** Added to `now()`: this process's wall clock is wrong. */
  skewMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  now(): number {
    return this.#clock.now() + this.skewMs
  }

  monotonic(): number {
    return this.#clock.monotonic()
  }

  timer(callback: () => void, ms: number, ref: boolean): Timer {
    const fire = () => {
      if (this.#stalled) this.#missed.add(callback)
      else callback()
    }
    const timer = this.#clock.timer(fire, ms, ref)
    return {
      clear: () => {
        timer.clear()
        this.#missed.delete(callback)
      },
    }
  }

  /** No timer fires from now on. */
  stall(): void {
    this.#stalled = true
  }

  /** Timers that came due in the meantime fire now. */
  resume(): void {
    this.#stalled = false
    const missed = this.#missed
    this.#missed = new Set()
    for (const callback of missed) callback()
  }
}
