/**
 * Tells each waiting call whether its job was new, under way, or done: the queue says so by events.
 *
 * @module
 */

import type { BaseQueue } from '../../base-queue.ts'
import type { VinPayload } from './handler.ts'
import type { AnswerOrigin } from './outcome.ts'
import type { DecodedVin } from './row.ts'

/** One call's place. */
export interface OriginSlot {
  origin: AnswerOrigin
  told: boolean
}

/** Keeps the places of calls that wait, by id, in the order in which they asked. */
export class Origins {
  readonly #waiting = new Map<string, OriginSlot[]>()

  constructor(queue: BaseQueue<VinPayload, DecodedVin>) {
    queue.on('queued', ({ id }) => this.#tell(id, 'asked'))
    queue.on('duplicate', ({ id, existingState }) => {
      this.#tell(id, existingState === 'completed' || existingState === 'failed' ? 'cache' : 'shared')
    })
  }

  /** To be called just before the call that asks. */
  expect(id: string): OriginSlot {
    const slot: OriginSlot = { origin: 'shared', told: false }
    const slots = this.#waiting.get(id)
    if (slots === undefined) this.#waiting.set(id, [slot])
    else slots.push(slot)
    return slot
  }

  /** To be called when that call has ended, however it did. */
  forget(id: string, slot: OriginSlot): void {
    const slots = this.#waiting.get(id)
    if (slots === undefined) return
    const index = slots.indexOf(slot)
    if (index !== -1) slots.splice(index, 1)
    if (slots.length === 0) this.#waiting.delete(id)
  }

  #tell(id: string, origin: AnswerOrigin): void {
    const slot = this.#waiting.get(id)?.find(({ told }) => !told)
    if (slot === undefined) return
    slot.origin = origin
    slot.told = true
  }
}
