/**
 * When to look again if nobody tells: the earliest of what was asked for, and polls that grow apart while nothing happens.
 *
 * @module
 */

import type { Clock, Timer } from './clock.ts'
import type { StorageTraits } from './storage.ts'

/** How much longer each fruitless poll waits than the one before. */
const pollGrowth = 1.5

/** What a timer is made of. */
export interface PollTimerParts {
  readonly clock: Clock
  readonly random: () => number
  readonly traits: StorageTraits
}

/** One timer. It is ref'ed: who waits for work keeps its process alive, as a listening server does. */
export class PollTimer {
  readonly #parts: PollTimerParts
  readonly #onWake: () => void
  #timer: Timer | null = null
  #at = Number.POSITIVE_INFINITY
  #pollMs: number

  constructor(parts: PollTimerParts, onWake: () => void) {
    this.#parts = parts
    this.#onWake = onWake
    this.#pollMs = parts.traits.pollMs.min
  }

  /** Whether it will wake. */
  get armed(): boolean {
    return this.#timer !== null
  }

  /** Wakes in `ms`, unless it does so before. */
  wakeIn(ms: number): void {
    const { clock } = this.#parts
    const at = clock.monotonic() + ms
    if (at >= this.#at) return
    this.#timer?.clear()
    this.#at = at
    this.#timer = clock.timer(() => this.#wake(), ms, true)
  }

  /** Wakes at the longest interval between polls at the latest. */
  wakeAtLast(): void {
    this.wakeIn(this.#parts.traits.pollMs.max)
  }

  /** Wakes for the next poll, or in `ms` if that is sooner. Each poll is later than the one before. */
  poll(ms: number | null): void {
    const { traits, random } = this.#parts
    const pollMs = this.#pollMs
    this.#pollMs = Math.min(traits.pollMs.max, pollMs * pollGrowth)
    // Those that went idle together must not poll together for ever.
    this.wakeIn(Math.min(ms ?? Number.POSITIVE_INFINITY, pollMs * (0.5 + random())))
  }

  /** Something was found: polls begin again at their shortest. */
  found(): void {
    this.#pollMs = this.#parts.traits.pollMs.min
  }

  /** Does not wake any more. */
  clear(): void {
    this.#timer?.clear()
    this.#timer = null
    this.#at = Number.POSITIVE_INFINITY
  }

  #wake(): void {
    this.#timer = null
    this.#at = Number.POSITIVE_INFINITY
    this.#onWake()
  }
}
