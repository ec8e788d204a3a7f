/**
 * Tokens that are never used twice: incarnations, generations, worker ids.
 *
 * @module
 */

import { randomBytes } from 'node:crypto'

/** Makes tokens: 96 random bits that no other process has, and a counter. */
export class TokenSource {
  /** The random part: names this process's queue object, too. */
  readonly prefix = randomBytes(12).toString('base64url')
  /** Joined once: each join of three parts would keep a further string alive with every token. */
  readonly #stem = `${this.prefix}.`
  #count = 0

  next(): string {
    return this.#stem + this.#count++
  }
}
