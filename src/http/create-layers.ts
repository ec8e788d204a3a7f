/**
 * The layers behind the key, each alone: for routes that need one of them and not the others.
 *
 * @module
 */

import { StateError } from '../errors.ts'
import type { Job } from '../options.ts'
import { guardFunction, guardObject } from '../settings.ts'
import type { Cached } from './cache.ts'
import { type HttpCounters, newHttpCounters } from './counters.ts'
import { layersOf } from './layers.ts'
import { readUpstreamOptions, type UpstreamOptions } from './options.ts'
import type { Ask, Asked, ExchangeQueue, HttpQueue, Work } from './record.ts'
import type { StoredRequest } from './stored-request.ts'
import type { Answer } from './stored-response.ts'

/** One question to a layer. */
export interface LayerAsk {
  /** The record's id: what `buildKey` makes, or another. */
  readonly id: string
  /** Tells a retry from another request under the same id; `contentFingerprint` makes one. */
  readonly fingerprint: string
  /** What makes the answer: usually `(job) => layers.call(request, job)`. */
  readonly work: Work
  /** Run anew, though there is an answer. Default: false. */
  readonly refresh?: boolean
  /** How long to wait for somebody else's run, ms; 0: not at all. Default: Infinity. */
  readonly waitMs?: number
  /** Ends the wait for somebody else's run. */
  readonly signal?: AbortSignal
}

/** The layers. */
export interface ExchangeLayers {
  /**
   * The record: one run an id, one outcome for everybody.
   *
   * @throws PayloadMismatchError for another fingerprint; StorageError and what else the queue throws of itself
   */
  record(ask: LayerAsk): Promise<Asked>
  /**
   * The cached result: a record that is kept as long as `options.cache` says, and refreshed in the background when it is stale.
   * Fingerprints are not compared.
   *
   * @throws as `record`; StateError without `options.cache`
   */
  cached(ask: LayerAsk): Promise<Cached>
  /**
   * Breaker and upstream: one call, counted.
   *
   * @param job - of the record that the call is for; none for a call without one
   * @throws UpstreamFailure, with the answer in its `details`
   */
  call(request: Request, job?: Job<StoredRequest>): Promise<Answer>
  readonly counters: Readonly<HttpCounters>
}

/**
 * Makes the layers that `idempotent` puts together.
 *
 * @throws InvalidArgumentError for an option out of its bounds
 */
export function createLayers(queue: ExchangeQueue, options: UpstreamOptions): ExchangeLayers {
  guardObject('options', options)
  guardFunction('options.upstream', options.upstream)
  const settings = readUpstreamOptions(options)
  const counters = newHttpCounters()
  const { records, cache, upstream } = layersOf(queue as HttpQueue, settings, options.upstream, 'inline', counters)
  const { resultTtlMs, failureTtlMs } = settings
  const forever = Number.POSITIVE_INFINITY
  const complete = ({ fingerprint, ...ask }: LayerAsk, rejectMismatch: boolean): Ask => ({
    refresh: false,
    waitMs: forever,
    ...ask,
    payload: { fingerprint },
    resultTtlMs,
    failureTtlMs,
    rejectMismatch,
    ownWaitMs: forever,
  })
  return {
    counters,
    record: (ask) => records.ask(complete(ask, true)),
    async cached(ask) {
      if (cache === null) throw new StateError('there is no cached result without options.cache')
      return cache.ask(complete(ask, false))
    },
    call(request, job) {
      const { id = '', attempts = 1, generation = '', signal = request.signal } = job ?? {}
      const withSignal = (inTime: AbortSignal) => new Request(request, { signal: inTime })
      return upstream.call(withSignal, { id, attempts, generation, signal, job: job ?? null })
    },
  }
}
