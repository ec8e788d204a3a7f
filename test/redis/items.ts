/**
 * Short ways to items and handles for the Redis tests.
 *
 * @module
 */

import type { EnqueueItem, Hint, StorageHandle } from '../../src/storage.ts'

let tokens = 0

/** A token never used before in this process. */
export function token(): string {
  return `token-${process.pid}-${tokens++}`
}

/** An item to enqueue: due at once, three attempts, kept for an hour. */
export function item(
  id: string,
  options: Partial<Omit<EnqueueItem, 'spec'>> & { maxAttempts?: number; resultTTL?: number; failureTTL?: number } = {},
): EnqueueItem {
  const { maxAttempts = 3, resultTTL = 3_600_000, failureTTL = 3_600_000, ...rest } = options
  return {
    spec: { id, incarnation: token(), fingerprint: '', maxAttempts, resultTTL, failureTTL },
    payload: `payload of ${id}`,
    delayMs: 0,
    rejectMismatch: false,
    lease: null,
    wait: false,
    ...rest,
  }
}

/** A claim of up to `limit`. */
export function wish(limit = 1, leaseMs = 60_000) {
  return { generation: token(), leaseMs, limit }
}

/** The hints of a handle from now on. */
export class Hints {
  readonly all: Hint[] = []
  #onHint: (() => void)[] = []

  constructor(handle: StorageHandle) {
    handle.watch((hint) => {
      this.all.push(hint)
      const waiting = this.#onHint
      this.#onHint = []
      for (const resolve of waiting) resolve()
    })
  }

  /** The first hint, from the `from`-th on, that passes. */
  async first(test: (hint: Hint) => boolean, from = 0): Promise<Hint> {
    for (;;) {
      const hint = this.all.slice(from).find(test)
      if (hint !== undefined) return hint
      await new Promise<void>((resolve) => this.#onHint.push(resolve))
    }
  }
}
