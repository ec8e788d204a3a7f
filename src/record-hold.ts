/**
 * The hold of a namespace: a row of its own, under the empty key that no job can have.
 *
 * @module
 */

import type { Clock } from './clock.ts'
import { limits } from './limits.ts'
import type { HoldRow, RecordStore, SwapAnswer } from './record-store.ts'
import { contended, isRetryable, newVersion, pause, typed } from './record-swapper.ts'
import type { Hint } from './storage.ts'

interface HoldKeeperOptions {
  readonly store: RecordStore
  readonly clock: Clock
  readonly random: () => number
  /** How long what was read may be believed, ms. */
  readonly cacheMs: number
  readonly emit: (hint: Hint) => void
}

/** Reads and writes the hold. */
export class HoldKeeper {
  readonly #options: HoldKeeperOptions
  #known: { readonly until: number; readonly readAt: number } | null = null

  constructor(options: HoldKeeperOptions) {
    this.#options = options
  }

  /** Whether what was read is believed for a while. */
  get cached(): boolean {
    return this.#options.cacheMs > 0
  }

  /** Until when the namespace is held, ms since 1970; 0 if it is not. */
  async until(): Promise<number> {
    return this.remembered() ?? this.#remember((await this.#load())?.heldUntil ?? 0)
  }

  /** The same, as far as it is known without asking; else null. */
  remembered(): number | null {
    const { clock, cacheMs } = this.#options
    if (this.#known === null || clock.monotonic() - this.#known.readAt >= cacheMs) return null
    return this.#known.until
  }

  /** Holds for `ms` from now, or until an earlier hold ends if that is later; 0 ends it. */
  async hold(ms: number): Promise<void> {
    const { store, clock, random, emit } = this.#options
    let from: HoldRow | null | undefined
    let failures = 0
    for (let round = 0; round < limits.swapRoundsMax; round++) {
      await pause(clock, random, round)
      from = from === undefined ? await this.#load() : from
      const now = clock.now()
      const until = ms === 0 ? 0 : Math.max(from?.heldUntil ?? 0, now + ms)
      if (until !== (from?.heldUntil ?? 0)) {
        const to: HoldRow | null =
          until === 0 ? null : { type: 'hold', key: '', version: newVersion(), heldUntil: until }
        let answer: SwapAnswer | undefined
        try {
          ;[answer] = await store.swap([{ key: '', from, to }])
        } catch (error) {
          answer = { ok: false, error }
        }
        if (answer?.ok !== true) {
          if (answer?.error !== undefined && (++failures === failuresMax || !isRetryable(answer.error))) {
            throw typed(answer.error)
          }
          // Asking again is harmless: a hold that was made after all is found, and only ever gets longer.
          from = answer?.error === undefined ? (answer?.row as HoldRow | null | undefined) : undefined
          continue
        }
      }
      this.#remember(until)
      emit({ type: 'due', inMs: Math.max(0, until - now) })
      return
    }
    throw contended()
  }

  async #load(): Promise<HoldRow | null> {
    try {
      const [row] = await this.#options.store.load([''])
      return row?.type === 'hold' ? row : null
    } catch (error) {
      throw typed(error)
    }
  }

  #remember(until: number): number {
    this.#known = { until, readAt: this.#options.clock.monotonic() }
    return until
  }
}

/** Failed writes after which a hold is given up. */
const failuresMax = 3
