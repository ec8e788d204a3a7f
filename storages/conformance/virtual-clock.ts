/**
 * A clock that stands still until told to move: tests of leases, delays and TTLs that take no time and no luck.
 *
 * @module
 */

import type { Clock, Timer } from '../../src/clock.ts'

interface Sleeper {
  readonly due: number
  readonly order: number
  readonly callback: () => void
  readonly ref: boolean
}

/** A {@link Clock} under the test's control. */
export class VirtualClock implements Clock {
  #now: number
  #order = 0
  readonly #start: number
  readonly #sleepers = new Set<Sleeper>()
  /** Added to `now()` alone: a wall clock that is wrong, or jumps. Timers and `monotonic()` do not feel it. */
  skewMs = 0

  constructor(startMs = 1_700_000_000_000) {
    this.#now = startMs
    this.#start = startMs
  }

  now(): number {
    return this.#now + this.skewMs
  }

  monotonic(): number {
    return this.#now - this.#start
  }

  timer(callback: () => void, ms: number, ref: boolean): Timer {
    const sleeper = { due: this.#now + Math.max(0, Math.ceil(ms)), order: this.#order++, callback, ref }
    this.#sleepers.add(sleeper)
    return { clear: () => void this.#sleepers.delete(sleeper) }
  }

  /** Timers that wait: all of them, and those that would keep a process alive. */
  get pending(): { all: number; ref: number } {
    let ref = 0
    for (const sleeper of this.#sleepers) if (sleeper.ref) ref++
    return { all: this.#sleepers.size, ref }
  }

  /** Until the next timer, ms; null if none waits. */
  get nextInMs(): number | null {
    const next = this.#next(Number.POSITIVE_INFINITY)
    return next === undefined ? null : next.due - this.#now
  }

  /**
   * Moves the time on, timer by timer in their order, letting everything that each one set off settle (promises, and
   * `setImmediate`) before the next.
   */
  async advance(ms: number): Promise<void> {
    const end = this.#now + ms
    await settle()
    for (;;) {
      const next = this.#next(end)
      if (next === undefined) break
      this.#now = Math.max(this.#now, next.due)
      this.#sleepers.delete(next)
      next.callback()
      await settle()
    }
    this.#now = end
    await settle()
  }

  #next(end: number): Sleeper | undefined {
    let next: Sleeper | undefined
    for (const sleeper of this.#sleepers) {
      if (sleeper.due > end) continue
      if (next === undefined || sleeper.due < next.due || (sleeper.due === next.due && sleeper.order < next.order)) {
        next = sleeper
      }
    }
    return next
  }
}

/** Lets promises and a few turns of `setImmediate` run. */
export async function settle(turns = 3): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
