/**
 * Works on the items of an iterable ahead of its consumer, a bounded number of them, and answers in their order.
 *
 * @module
 */

/** How to work. */
export interface InOrderOptions {
  /** Items begun whose answers have not been taken yet, at most. */
  readonly inFlightMax: number
  /** Ends it: what waits rejects with the signal's reason. */
  readonly signal: AbortSignal
}

/**
 * Answers in order. Nothing is read before the first answer is asked for; the source is read one item at a time, and closed
 * when the consumer leaves early. An error of the source is thrown after the answers to what came before it.
 *
 * @param work - must not reject
 */
export async function* inOrder<T, R>(
  source: Iterable<T> | AsyncIterable<T>,
  work: (item: T) => Promise<R>,
  { inFlightMax, signal }: InOrderOptions,
): AsyncGenerator<R, void, undefined> {
  signal.throwIfAborted()
  const begun: Promise<R>[] = []
  const changed = new Bell()
  const iterator = Symbol.asyncIterator in source ? source[Symbol.asyncIterator]() : source[Symbol.iterator]()
  let end: { failed: boolean; error: unknown } | null = null
  let left = false

  async function read(): Promise<void> {
    try {
      while (!left) {
        if (begun.length >= inFlightMax) {
          await changed.rung()
          continue
        }
        const next = await iterator.next()
        if (next.done === true) break
        if (left) return
        begun.push(work(next.value))
        changed.ring()
      }
      end = { failed: false, error: undefined }
    } catch (error) {
      end = { failed: true, error }
    }
    changed.ring()
  }

  const onAbort = () => changed.ring()
  signal.addEventListener('abort', onAbort)
  try {
    void read()
    for (;;) {
      signal.throwIfAborted()
      const first = begun[0]
      if (first !== undefined) {
        const answer = await first
        signal.throwIfAborted()
        begun.shift()
        changed.ring()
        yield answer
      } else if (end !== null) {
        const { failed, error } = end as { failed: boolean; error: unknown }
        if (failed) throw error
        return
      } else {
        await changed.rung()
      }
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    left = true
    changed.ring()
    // Not awaited: a source that is stuck must not keep its consumer from leaving.
    if (end === null) void closed(iterator)
  }
}

async function closed(iterator: Iterator<unknown> | AsyncIterator<unknown>): Promise<void> {
  try {
    await iterator.return?.()
  } catch {
    // Nobody is left to be told.
  }
}

/** Wakes everyone who waits for a change. */
class Bell {
  #sleepers: (() => void)[] = []

  ring(): void {
    const woken = this.#sleepers
    this.#sleepers = []
    for (const wake of woken) wake()
  }

  rung(): Promise<void> {
    return new Promise((resolve) => this.#sleepers.push(resolve))
  }
}
