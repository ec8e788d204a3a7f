/**
 * How many partitions of the index a namespace has. The number only grows: whoever is told a larger one writes it down, and all
 * others learn of it within a minute, so that nobody's jobs lie where nobody looks.
 *
 * @module
 */

import type { Clock } from '../../src/clock.ts'
import type { Calls } from './calls.ts'
import { ConditionFalse } from './calls.ts'
import { FEWER } from './conditions.ts'
import type { Layout } from './layout.ts'
import type { Requests } from './requests.ts'

/** How long what was read is believed, ms. */
const believedMs = 60_000

/** The shards of one namespace. */
export class Shards {
  readonly #calls: Calls
  readonly #requests: Requests
  readonly #layout: Layout
  readonly #clock: Clock
  readonly #own: number
  #known: number
  #readAt = Number.NEGATIVE_INFINITY

  constructor(options: { calls: Calls; requests: Requests; layout: Layout; clock: Clock; shards: number }) {
    this.#calls = options.calls
    this.#requests = options.requests
    this.#layout = options.layout
    this.#clock = options.clock
    this.#own = options.shards
    this.#known = options.shards
  }

  /** The shards to write to: all that are known of. */
  get count(): number {
    return this.#known
  }

  /** Reads the number, and raises it if this process was given a larger one. Finds out, too, if the table is there. */
  async open(): Promise<void> {
    await this.#look()
  }

  /** The shards to look into. */
  async read(): Promise<number> {
    if (this.#clock.monotonic() - this.#readAt >= believedMs) await this.#look()
    return this.#known
  }

  async #look(): Promise<void> {
    const key = this.#layout.shards
    const answer = (await this.#calls.send('read the number of shards', () => this.#requests.get(key))) as {
      Item?: { h?: { N?: string } }
    }
    const stored = Number(answer.Item?.h?.N ?? 1)
    this.#readAt = this.#clock.monotonic()
    this.#known = Math.max(this.#own, stored)
    if (stored >= this.#own) return
    const raised = await this.#calls.send('raise the number of shards', () =>
      this.#requests.update(this.#requests.entities.shards, key, { h: this.#own }, FEWER(this.#own)),
    )
    // Another process was told of still more.
    if (raised instanceof ConditionFalse) this.#readAt = Number.NEGATIVE_INFINITY
  }
}
