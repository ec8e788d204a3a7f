/**
 * What is thrown on a request's way, as a response.
 *
 * @module
 */

import {
  PayloadMismatchError,
  StoppedError,
  StorageClosedError,
  StorageError,
  StorageFullError,
  TooLargeError,
} from '../errors.ts'
import type { HttpCounters } from './counters.ts'
import { NotJsonError } from './incoming.ts'
import type { Refusals } from './refusals.ts'

/** A response that ends the way of a request. */
export class Refused extends Error {
  readonly response: Response

  constructor(response: Response) {
    super('refused')
    this.response = response
  }
}

const notBegun = 'The server can not keep outcomes at the moment. Nothing was sent for this request.'

/** Turns what was thrown into a response, and counts it. */
export class Trouble {
  readonly #refusals: Refusals
  readonly #counters: HttpCounters
  readonly #onError: (error: unknown) => void

  constructor(refusals: Refusals, counters: HttpCounters, onError: (error: unknown) => void) {
    this.#refusals = refusals
    this.#counters = counters
    this.#onError = onError
  }

  /** @param progress - how far the request had come: whether its work may have begun, or an outcome was only to be read */
  responseTo(error: unknown, progress: 'before' | 'begun' | 'reading'): Response {
    const counters = this.#counters
    if (error instanceof PayloadMismatchError) {
      counters.mismatched++
      return this.#refusals.mismatch()
    }
    const refusal = this.#refusal(error)
    if (refusal !== null) {
      counters.refused++
      return refusal
    }
    this.#onError(error)
    if (!isAway(error)) return this.#refusals.internal()
    counters.unavailable++
    if (progress === 'reading') return this.#refusals.unavailable('The server can not read outcomes at the moment.')
    return progress === 'begun' ? this.#refusals.outcomeUnknown() : this.#refusals.unavailable(notBegun)
  }

  #refusal(error: unknown): Response | null {
    if (error instanceof Refused) return error.response
    // Functions of the user's may throw one, as they do elsewhere.
    if (error instanceof Response) return error
    if (error instanceof NotJsonError) return this.#refusals.notJson()
    // A worker could not be given the request.
    if (error instanceof TooLargeError && error.field === 'payload') return this.#refusals.tooLarge(error.allowedBytes)
    return null
  }
}

/** Whether the records can't be reached. */
function isAway(error: unknown): boolean {
  const kinds = [StorageError, StorageFullError, StorageClosedError, StoppedError]
  return kinds.some((kind) => error instanceof kind)
}
