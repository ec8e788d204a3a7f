/**
 * The workers' side of `idempotent(queue, { mode: 'workers' })`.
 *
 * @module
 */

import { JobFailedError, UnrecoverableError } from '../errors.ts'
import type { Job } from '../options.ts'
import { guardFunction, guardObject } from '../settings.ts'
import { type HttpCounters, newHttpCounters } from './counters.ts'
import { failureIn } from './failure.ts'
import { layersOf } from './layers.ts'
import { readUpstreamOptions, type UpstreamOptions, type UpstreamSettings } from './options.ts'
import { adjustTtl, type ExchangeQueue, type HttpQueue, type Work } from './record.ts'
import { received, type StoredRequest } from './stored-request.ts'
import { toldByWorker } from './stored-response.ts'
import { cached, direct } from './work.ts'

/** What can be set on `executeUpstream`: as on `idempotent`, where the names are the same. */
export interface ExecuteUpstreamOptions extends UpstreamOptions {
  /** Calls at once. Default: the queue's. */
  readonly concurrency?: number
}

/** Workers of a queue of exchanges. */
export interface UpstreamWorkers {
  /** What was counted here: `upstream` and `failed`, `cached` and `stale`. */
  readonly counters: Readonly<HttpCounters>
}

/**
 * Gives a queue its handler: each job is one call of upstream. `queue.start()` begins the work, `stop()` ends it.
 *
 * @throws InvalidArgumentError for an option out of its bounds; StateError if the queue has a handler already
 */
export function executeUpstream(queue: ExchangeQueue, options: ExecuteUpstreamOptions): UpstreamWorkers {
  guardObject('options', options)
  guardFunction('options.upstream', options.upstream)
  const { concurrency, upstream } = options
  const settings = readUpstreamOptions(options)
  const counters = newHttpCounters()
  const exchanges = queue as HttpQueue
  const { work } = layersOf(exchanges, settings, upstream, 'inline', counters)
  const workFor = ({ id, payload: { sent } }: Job<StoredRequest>): Work => {
    if (sent === undefined) throw new UnrecoverableError('the job holds no request: it was asked for inline')
    const request = received(sent)
    const { cacheId, ownId, refresh } = sent
    const isRecordItself = cacheId === null || cacheId === id
    return isRecordItself
      ? direct(work, request, ownId ?? undefined)
      : cached(work, request, { cacheId, ownId }, refresh)
  }
  const begun: Begun = new Map()
  exchanges.execute(
    async (job) => {
      begun.set(job.id, job.payload.sent?.cacheId === job.id ? 'cached' : 'key')
      return toldByWorker((await workFor(job)(job)).stored, settings.problemBase)
    },
    concurrency === undefined ? {} : { concurrency },
  )
  adjustTtls(exchanges, settings, begun)
  return { counters }
}

/** The jobs that run here: whether each is a key's, or the cached result itself. */
type Begun = Map<string, 'key' | 'cached'>

/** Sets the times of statuses that have one of their own, once their records have ended. */
function adjustTtls(queue: HttpQueue, settings: UpstreamSettings, begun: Begun): void {
  const parts = { queue, onError: settings.onError }
  const take = (id: string) => {
    const kind = begun.get(id)
    begun.delete(id)
    return kind
  }
  queue.on('completed', async ({ id, result: stored }) => {
    // How long a cached result is kept is the cache's own business.
    if (take(id) !== 'key') return
    const how = { failed: false, local: false, unkept: false }
    await adjustTtl(parts, { id, ...settings, refresh: false }, { stored, ...how })
  })
  queue.on('failed', async ({ id, attempts, error }) => {
    if (take(id) === undefined) return
    // A refresh that failed has left the older result, whose time is its own.
    const status = await queue.getStatus(id).catch(settings.onError)
    if (status?.state !== 'failed') return
    const { http: stored, ...how } = failureIn(new JobFailedError(id, attempts, error), settings.problemBase)
    await adjustTtl(parts, { id, ...settings, refresh: false }, { stored, failed: true, ...how })
  })
  for (const end of ['stale', 'leaseLost'] as const) queue.on(end, ({ id }) => take(id))
}
