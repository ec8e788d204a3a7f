/**
 * Calls of one tick become one storage call.
 *
 * @module
 */

import { isItemError } from './errors.ts'
import { limits } from './limits.ts'

/** When gathered calls are sent; see `StorageTraits.gather`. */
export type Gather = 'microtask' | 'macrotask'

interface Call<Item, Answer> {
  readonly item: Item
  readonly map: (item: Item, answer: Answer) => unknown
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** Gathers items and sends them together; each caller gets the answer to its own. */
export class Batcher<Item, Answer> {
  readonly #send: (items: readonly Item[]) => Promise<readonly Answer[]>
  readonly #gather: Gather
  #calls: Call<Item, Answer>[] = []
  #underWay = 0

  /** @param send - answers in the items' order */
  constructor(send: (items: readonly Item[]) => Promise<readonly Answer[]>, gather: Gather) {
    this.#send = send
    this.#gather = gather
  }

  /**
   * @param map - makes of the answer what the caller gets; throwing rejects that caller alone. Given here, it spares a
   * promise a call.
   */
  add<T>(item: Item, map: (item: Item, answer: Answer) => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#calls.push({ item, map, resolve, reject }) === 1) this.#schedule()
    })
  }

  #schedule(): void {
    // Where a call is a round trip, those that come while one is under way gather for a whole turn of the event loop; a lone
    // one need not wait for company.
    if (this.#gather === 'microtask' || this.#underWay === 0) queueMicrotask(this.#flush)
    else setImmediate(this.#flush)
  }

  readonly #flush = (): void => {
    const calls = this.#calls
    this.#calls = []
    for (let from = 0; from < calls.length; from += limits.callItemsMax) {
      this.#underWay++
      const slice = calls.length <= limits.callItemsMax ? calls : calls.slice(from, from + limits.callItemsMax)
      void this.#exchange(slice).finally(this.#done)
    }
  }

  readonly #done = (): void => {
    this.#underWay--
  }

  async #exchange(calls: readonly Call<Item, Answer>[]): Promise<void> {
    let answers: readonly Answer[]
    try {
      answers = await this.#send(calls.map((call) => call.item))
    } catch (error) {
      // The others must not suffer for one item.
      if (calls.length > 1 && isItemError(error)) {
        const half = calls.length >> 1
        await this.#exchange(calls.slice(0, half))
        await this.#exchange(calls.slice(half))
      } else {
        for (const call of calls) call.reject(error)
      }
      return
    }
    for (let index = 0; index < calls.length; index++) {
      const call = calls[index] as Call<Item, Answer>
      try {
        call.resolve(call.map(call.item, answers[index] as Answer) as never)
      } catch (error) {
        call.reject(error)
      }
    }
  }
}

/** Hands the answer on as it is. */
export function asIs<Answer>(_item: unknown, answer: Answer): Answer {
  return answer
}
