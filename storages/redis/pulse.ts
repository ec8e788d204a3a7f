/**
 * Finds out whether a subscriber still hears: a connection that died without a word looks open for hours. The question travels
 * with calls that are made anyway, and its answer is a message on the channel.
 *
 * @module
 */

/** The pulse of one channel. */
export class Pulse {
  readonly #quietMs: number
  readonly #timeoutMs: number
  readonly #onDead: () => void
  #heardAt = performance.now()
  #askedAt: number | null = null

  /**
   * @param quietMs - how long nothing must have been heard before it is asked
   * @param timeoutMs - how long an answer may take
   * @param onDead - called when there was none
   */
  constructor(quietMs: number, timeoutMs: number, onDead: () => void) {
    this.#quietMs = quietMs
    this.#timeoutMs = timeoutMs
    this.#onDead = onDead
  }

  /** Something was heard, or hearing begins anew. */
  heard(): void {
    this.#heardAt = performance.now()
    this.#askedAt = null
  }

  /** Whether the call about to be made should ask. */
  ask(): boolean {
    const now = performance.now()
    if (this.#askedAt === null) {
      if (now - this.#heardAt < this.#quietMs) return false
      this.#askedAt = now
      return true
    }
    if (now - this.#askedAt >= this.#timeoutMs) {
      this.heard()
      this.#onDead()
    }
    return false
  }
}
