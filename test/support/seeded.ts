/**
 * Random numbers that can be had again: a failing random test names its seed, and `ASKONCE_SEED=… npx tap …` replays it.
 *
 * @module
 */

/** A source of random numbers from one seed (mulberry32). */
export class Seeded {
  readonly seed: number
  #state: number

  constructor(seed: number = seedOfRun()) {
    this.seed = seed
    this.#state = seed >>> 0
  }

  /** From 0 to below 1. */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.next() * end)
  }

  /** One of these. */
  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!
  }

  /** True with this chance. */
  chance(chance: number): boolean {
    return this.next() < chance
  }
}

function seedOfRun(): number {
  const given = process.env['ASKONCE_SEED']
  return given === undefined ? Date.now() % 2 ** 31 : Number(given)
}
