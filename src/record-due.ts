/**
 * Reads a store's hints at what is due, in bounded work: hints that were tried once are not tried again, and when a page
 * holds nothing new, a larger one is asked for, so that stale hints at the head can't hide good ones behind them for ever.
 *
 * @module
 */

import type { Clock } from './clock.ts'
import { limits } from './limits.ts'
import type { DueKind, JobRow, RecordStore } from './record-store.ts'

/** Pages read for one claim or sweep: with doubling, enough to get from one hint to limits.callItemsMax of them. */
const pagesMax = 11

/** One reading; not to be kept. */
export class DueReader {
  readonly #store: RecordStore
  readonly #clock: Clock
  readonly #kind: DueKind
  readonly #seen = new Set<string>()
  #fresh: (string | JobRow)[] = []
  #page = 0
  #asked = 0
  #ended = false
  /** When the next row becomes due, by the store's last answer; null if unknown. */
  nextAt: number | null = null

  constructor(store: RecordStore, clock: Clock, kind: DueKind) {
    this.#store = store
    this.#clock = clock
    this.#kind = kind
  }

  /** Whether there are hints that have not been handed out. */
  get left(): boolean {
    return this.#fresh.length > 0
  }

  /** At most `count` hints that have not been handed out before, in the store's order; none when there are no more. */
  async next(count: number): Promise<readonly (string | JobRow)[]> {
    while (this.#fresh.length === 0 && !this.#ended) await this.#read(count)
    return this.#fresh.splice(0, count)
  }

  async #read(count: number): Promise<void> {
    const limit = Math.min(limits.callItemsMax, Math.max(count + this.#seen.size, this.#asked * 2))
    const { items, nextAt } = await this.#store.due(limit, this.#clock.now(), this.#kind)
    this.#asked = limit
    this.#page++
    this.nextAt = nextAt
    for (const item of items) {
      const key = typeof item === 'string' ? item : item.key
      if (key === '' || this.#seen.has(key)) continue
      this.#seen.add(key)
      this.#fresh.push(item)
    }
    this.#ended = items.length < limit || limit === limits.callItemsMax || this.#page === pagesMax
  }
}
