/**
 * Calls of one tick become one storage call.
 *
 * @module
 */

import { AskonceError, StorageError } from './errors.ts'
import { limits } from './limits.ts'

/** When gathered calls are sent; see `StorageTraits.gather`. */
export type Gather = 'microtask' | 'macrotask'

/** Runs `callback` when the present microtask, or the present turn of the event loop, has gathered all it will. */
export function later(gather: Gather, callback: () => void): void {
  if (gather === 'microtask') queueMicrotask(callback)
  else setImmediate(callback)
}

interface Call<Item, Answer> {
  readonly item: Item
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: unknown) => void
}

/** Gathers items and sends them together; each caller gets the answer to its own. */
export class Batcher<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly (Answer | AskonceError)[]>
  readonly #gather: () => Gather
  #calls: Call<Item, Answer>[] = []

  /**
   * @param send - answers in the items' order; an AskonceError in place of an answer rejects that caller alone
   * @param gather - asked at each first item
   */
  constructor(
    send: (items: readonly Item[]) => Promise<readonly (Answer | AskonceError)[]>,
    gather: () => Gather = () => 'microtask',
  ) {
    this.#send = send
    this.#gather = gather
  }

  add(item: Item): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.#calls.push({ item, resolve, reject }) === 1) later(this.#gather(), this.#flush)
    })
  }

  readonly #flush = (): void => {
    const calls = this.#calls
    this.#calls = []
    for (let from = 0; from < calls.length; from += limits.callItemsMax) {
      void this.#exchange(calls.length <= limits.callItemsMax ? calls : calls.slice(from, from + limits.callItemsMax))
    }
  }

  async #exchange(calls: readonly Call<Item, Answer>[]): Promise<void> {
    try {
      const answers = await this.#send(calls.map((call) => call.item))
      for (let index = 0; index < calls.length; index++) {
        const call = calls[index] as Call<Item, Answer>
        const answer = answers[index] as Answer | AskonceError
        if (answer instanceof AskonceError) call.reject(answer)
        else call.resolve(answer)
      }
    } catch (error) {
      // An error that repeating won't mend may be one item's alone: the others must not suffer for it.
      if (calls.length > 1 && error instanceof AskonceError && !(error instanceof StorageError && error.retryable)) {
        const half = calls.length >> 1
        await this.#exchange(calls.slice(0, half))
        await this.#exchange(calls.slice(half))
      } else {
        for (const call of calls) call.reject(error)
      }
    }
  }
}
