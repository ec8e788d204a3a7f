/**
 * The layers behind the key, put together.
 *
 * @module
 */

import { CacheLayer } from './cache.ts'
import type { HttpCounters } from './counters.ts'
import type { UpstreamSettings } from './options.ts'
import { type HttpQueue, InlineRecords, type RecordLayer } from './record.ts'
import { type Upstream, UpstreamLayer } from './upstream.ts'
import type { WorkParts } from './work.ts'
import { WorkerRecords } from './worker-records.ts'

/** All of them. */
export interface Layers {
  /** Where requests are asked for. */
  readonly records: RecordLayer
  /** The cached results, for requests without a key; null if none are kept. */
  readonly cache: CacheLayer | null
  readonly upstream: UpstreamLayer
  /** What runs behind a key. */
  readonly work: WorkParts
}

/** Makes the layers. */
export function layersOf(
  queue: HttpQueue,
  settings: UpstreamSettings,
  upstream: Upstream,
  mode: 'inline' | 'workers',
  counters: HttpCounters,
): Layers {
  const { cache: times, maxAttempts, problemBase, retryAfterMs, resultTtlMs, failureTtlMs, clock, onError } = settings
  const parts = { queue, maxAttempts, problemBase, clock, onError }
  const inline = new InlineRecords(parts)
  const records = mode === 'workers' ? new WorkerRecords(parts) : inline
  const cacheOver = (layer: RecordLayer) =>
    times === null ? null : new CacheLayer({ ...times, records: layer, clock, counters, onError })
  const calls = new UpstreamLayer({ ...settings, upstream, storedBytesMax: queue.payloadBytesMax, counters })
  return {
    records,
    cache: cacheOver(records),
    upstream: calls,
    work: { upstream: calls, cache: cacheOver(inline), resultTtlMs, failureTtlMs, problemBase, retryAfterMs },
  }
}
