/**
 * `idempotent`: the layers in their order. Validate, before any key is written; the record of the key; the cached result of the
 * subject, whose record is single flight for all keys; the breaker; upstream.
 *
 * @module
 */

import type { HttpCounters } from './counters.ts'
import { type IdempotentOptions, readOptions } from './options.ts'
import { Pipeline } from './pipeline.ts'
import type { ExchangeQueue, HttpQueue } from './record.ts'

/** Answers requests. Never rejects: every trouble is a response. */
export interface IdempotentHandler {
  (request: Request): Promise<Response>
  /** What this handler has counted. */
  readonly counters: Readonly<HttpCounters>
}

/**
 * Makes a handler that answers each key once, and everybody who repeats it with the same outcome, from any process that shares the
 * queue's storage.
 *
 * @param queue - its storage keeps the outcomes; a plain `new Queue({ storage })` does
 * @throws InvalidArgumentError for an option out of its bounds
 */
export function idempotent(queue: ExchangeQueue, options: IdempotentOptions): IdempotentHandler {
  const pipeline = new Pipeline(queue as HttpQueue, readOptions(options))
  const handle = (request: Request): Promise<Response> => pipeline.answer(request)
  return Object.assign(handle, { counters: pipeline.counters })
}
