/**
 * Random numbers that can be had again.
 *
 * @module
 */

/** A source of random numbers from one seed (mulberry32). */
export class Seeded {
  readonly seed: number
  #state: number

  /** @param seed - a whole number; its lowest 32 bits count */
  constructor(seed: number) {
    this.seed = seed
    // Neighbouring seeds must not begin alike.
    this.#state = Math.imul((seed >>> 0) ^ 0x9e3779b9, 0x85ebca6b) >>> 0
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

  /** A whole number from `min` to `max`, both of them possible. */
  between(min: number, max: number): number {
    return min + this.below(max - min + 1)
  }

  /** One of these. */
  pick<T>(choices: readonly T[]): T {
    return choices[this.below(choices.length)]!
  }

  /** True with this chance, 0 to 1. */
  chance(chance: number): boolean {
    return chance > 0 && this.next() < chance
  }
}
