/**
 * Idempotent HTTP: the `Idempotency-Key` header on any storage, in Fetch API terms. Double clicks, dropped connections and
 * redelivered webhooks cost one upstream call, and everybody gets the same answer.
 *
 * @module
 */

export { type ReadBody, readBody } from './body.ts'
export { type Breaker, isBreakerOpen } from './breaker.ts'
export { belongsTo, buildKey, type KeyParts } from './build-key.ts'
export type { StoredBytes } from './bytes.ts'
export type { Cached, CacheOptions } from './cache.ts'
export type { HttpCounters } from './counters.ts'
export { createLayers, type ExchangeLayers, type LayerAsk } from './create-layers.ts'
export { type ExecuteUpstreamOptions, executeUpstream, type UpstreamWorkers } from './execute-upstream.ts'
export { type ExpressRequest, toExpressHandler } from './express.ts'
export { type FailureDetails, UpstreamFailure } from './failure.ts'
export { type FastifyRoute, toFastifyPlugin } from './fastify.ts'
export { contentFingerprint } from './fingerprint.ts'
export { idempotentReplay, type StoredHeaders } from './headers.ts'
export { type HonoContext, toHonoHandler } from './hono.ts'
export { idempotencyKeyHeader, keyLengthMax, type ParsedKey, parseIdempotencyKey } from './idempotency-key.ts'
export { type IdempotentHandler, idempotent } from './idempotent.ts'
export { type Incoming, NotJsonError } from './incoming.ts'
export { type FetchHandler, type NodeListener, toNodeHandler } from './node.ts'
export { type ActorOf, httpDefaults, type IdempotentOptions, type UpstreamOptions } from './options.ts'
export {
  invalidInput,
  type ProblemCode,
  type ProblemExtras,
  problem,
  problemBase,
  problemType,
} from './problem.ts'
export type { Asked, ExchangeQueue, Work } from './record.ts'
export { type StatusOptions, statusOf } from './status.ts'
export type { SentRequest, StoredRequest } from './stored-request.ts'
export type { Answer, StoredResponse } from './stored-response.ts'
export type { TtlTable } from './ttl.ts'
export type { Upstream, UpstreamContext } from './upstream.ts'
