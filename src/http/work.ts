/**
 * What is done behind a key: ask the cached result of the subject, if there is one, or upstream.
 *
 * @module
 */

import type { Job } from '../options.ts'
import type { CacheLayer } from './cache.ts'
import { UpstreamFailure } from './failure.ts'
import { type Incoming, renewed } from './incoming.ts'
import { retryAfter } from './problem.ts'
import type { Work } from './record.ts'
import type { StoredRequest } from './stored-request.ts'
import { type Answer, answerOfProblem, restoredResponse } from './stored-response.ts'
import type { TtlTable } from './ttl.ts'
import type { UpstreamLayer } from './upstream.ts'

/** A request that can be sent. */
export type Sendable = Pick<Incoming, 'method' | 'url' | 'headers' | 'body'>

/** What the work is made of. */
export interface WorkParts {
  readonly upstream: UpstreamLayer
  readonly cache: CacheLayer | null
  readonly resultTtlMs: TtlTable
  readonly failureTtlMs: TtlTable
  readonly problemBase: string
  readonly retryAfterMs: number
}

/**
 * Asks upstream.
 *
 * @param ownId - given if the record is shared: who alone may see a response that must not be
 */
export function direct({ upstream }: Pick<WorkParts, 'upstream'>, request: Sendable, ownId?: string): Work {
  return (job: Job<StoredRequest>) => {
    const { id, attempts, generation, signal } = job
    return upstream.call((inTime) => renewed(request, inTime), { id, attempts, generation, signal, job }, ownId)
  }
}

/** Which cached result answers. */
export interface CacheIds {
  readonly cacheId: string
  /** If that is shared: the actor's own; else null. */
  readonly ownId: string | null
}

/** Asks the cached result, which asks upstream if it must. */
export function cached(parts: WorkParts, request: Sendable, ids: CacheIds, refresh: boolean): Work {
  const { cache } = parts
  if (cache === null) return direct(parts, request)
  return async ({ generation: by, signal }) => {
    const asked = await cache.ask({ ...cacheAsk(parts, request, ids), refresh, signal })
    if (asked.kind === 'busy') throw gone(parts, by)
    const stored = { ...asked.stored, by }
    const live = asked.live ?? restoredResponse(stored, parts.problemBase)
    if (asked.ageMs !== undefined) live.headers.set('age', age(asked.ageMs))
    const answer: Answer = { stored, live }
    if (asked.failed) throw new UpstreamFailure(answer, { local: asked.local })
    return answer
  }
}

/** The question to the cached result. */
export function cacheAsk(parts: WorkParts, request: Sendable, { cacheId, ownId }: CacheIds) {
  const { resultTtlMs, failureTtlMs } = parts
  return {
    id: cacheId,
    payload: { fingerprint: cacheId },
    work: direct(parts, request, ownId ?? undefined),
    ...(ownId !== null && { ownId }),
    resultTtlMs,
    failureTtlMs,
    // Its id is its subject: two requests of one subject are one question, however they were written.
    rejectMismatch: false,
    waitMs: Number.POSITIVE_INFINITY,
    ownWaitMs: Number.POSITIVE_INFINITY,
  }
}

/** `Age`, whole seconds (RFC 9111, 5.1). */
export function age(ms: number): string {
  return String(Math.floor(ms / 1_000))
}

/** The cached result ended before it could be read. */
function gone({ problemBase: base, retryAfterMs }: WorkParts, by: string): UpstreamFailure {
  const headers = retryAfter(retryAfterMs)
  const problem = { status: 503, code: 'unavailable', title: 'Temporarily unavailable', base, headers } as const
  return new UpstreamFailure(answerOfProblem(problem, 0, by), { local: true })
}
