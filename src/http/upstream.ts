/**
 * The last layer: the call that leaves, behind the breaker, counted when it does.
 *
 * @module
 */

import type { Clock } from '../clock.ts'
import { AskonceError, RateLimitedError } from '../errors.ts'
import type { Job } from '../options.ts'
import { readBody } from './body.ts'
import type { Breaker } from './breaker.ts'
import type { HttpCounters } from './counters.ts'
import { DeadlineError, within } from './deadline.ts'
import { UpstreamFailure } from './failure.ts'
import { retryAfter } from './problem.ts'
import type { StoredRequest } from './stored-request.ts'
import { type Answer, answerOf, answerOfProblem } from './stored-response.ts'

/** What an upstream function gets beside the request. */
export interface UpstreamContext {
  /** Aborts when the answer would be refused: the lease is lost, the handler's time is up, the queue stops. Not with the client. */
  readonly signal: AbortSignal
  /** The record's id; '' for requests that are handed on without one. */
  readonly id: string
  /** Which attempt this is, from 1. */
  readonly attempts: number
  /** The fencing token of the attempt; '' without a record. */
  readonly generation: string
  /** For effects that belong behind the key: `job.once`, `job.outbox`. Null without a record. */
  readonly job: Job<StoredRequest> | null
}

/** The work behind the key. */
export type Upstream = (request: Request, context: UpstreamContext) => Response | PromiseLike<Response>

/** What the layer is made of. */
export interface UpstreamParts {
  readonly upstream: Upstream
  readonly breaker: Breaker | undefined
  readonly isBreakerOpen: (error: unknown) => boolean
  /** Whether a response is a failure: kept for the failures' time, and counted by the breaker. */
  readonly isFailure: (status: number) => boolean
  readonly retryFailures: boolean
  /** From calling to the last byte of the answer, ms; may be Infinity. */
  readonly upstreamTimeoutMs: number
  readonly retryAfterMs: number
  readonly problemBase: string
  /** What a record can keep. */
  readonly storedBytesMax: number
  readonly counters: HttpCounters
  readonly clock: Clock
  readonly onError: (error: unknown) => void
}

/** A response that the breaker must count as a failure. */
class FailedAnswer extends Error {
  readonly answer: Answer

  constructor(answer: Answer) {
    super(`upstream answered ${answer.stored.status}`)
    this.answer = answer
  }
}

/** The same, unread. */
class FailedResponse extends Error {
  readonly response: Response

  constructor(response: Response) {
    super(`upstream answered ${response.status}`)
    this.response = response
  }
}

/** Makes the calls. */
export class UpstreamLayer {
  readonly #parts: UpstreamParts

  constructor(parts: UpstreamParts) {
    this.#parts = parts
  }

  /**
   * Calls upstream, unless the breaker is open.
   *
   * @param requestWith - makes the request; its signal aborts, too, when upstream takes too long
   * @param ownId - given if the record is shared: who alone may see a response that must not be
   * @throws {@link UpstreamFailure} with the answer that everybody is to get
   * @throws RateLimitedError as upstream threw it: the queue waits and tries again
   */
  async call(requestWith: (signal: AbortSignal) => Request, context: UpstreamContext, ownId?: string): Promise<Answer> {
    const { breaker, counters, retryFailures } = this.#parts
    try {
      return await (breaker === undefined
        ? this.#send(requestWith, context, ownId)
        : breaker.execute(() => this.#send(requestWith, context, ownId)))
    } catch (error) {
      if (breaker !== undefined && this.#parts.isBreakerOpen(error)) throw this.#open(context, error)
      if (isRateLimit(error)) throw error
      counters.failed++
      if (error instanceof FailedAnswer) throw new UpstreamFailure(error.answer, { retry: retryFailures })
      this.#parts.onError(error)
      const answer = error instanceof DeadlineError ? this.#tookTooLong(context) : this.#threw(context)
      throw new UpstreamFailure(answer, { retry: retryFailures && !isUnrecoverable(error) })
    }
  }

  /**
   * Calls upstream for a request that no key protects, and hands its response on as it comes, unread.
   *
   * @throws {@link UpstreamFailure} if there is none
   */
  async pass(request: Request): Promise<Response> {
    const { breaker, counters, upstream, isFailure } = this.#parts
    const context = { id: '', attempts: 1, generation: '', signal: request.signal, job: null }
    const send = async (): Promise<Response> => {
      counters.upstream++
      const response = await responseOf(() => upstream(request, context))
      if (isFailure(response.status)) throw new FailedResponse(response)
      return response
    }
    try {
      return await (breaker === undefined ? send() : breaker.execute(send))
    } catch (error) {
      if (breaker !== undefined && this.#parts.isBreakerOpen(error)) throw this.#open(context, error)
      counters.failed++
      if (error instanceof FailedResponse) return error.response
      this.#parts.onError(error)
      throw new UpstreamFailure(this.#threw(context))
    }
  }

  #send(
    requestWith: (signal: AbortSignal) => Request,
    context: UpstreamContext,
    ownId: string | undefined,
  ): Promise<Answer> {
    const { upstream, counters, clock, upstreamTimeoutMs: ms, isFailure } = this.#parts
    counters.upstream++
    return within({ clock, field: 'upstreamTimeoutMs', ms }, context.signal, async (signal) => {
      const response = await responseOf(() => upstream(requestWith(signal), { ...context, signal }))
      const answer = await this.#read(response, context.generation, ownId)
      if (isFailure(answer.stored.status)) throw new FailedAnswer(answer)
      return answer
    })
  }

  async #read(response: Response, by: string, ownId: string | undefined): Promise<Answer> {
    const { clock, storedBytesMax: bytesMax } = this.#parts
    const read = await readBody(response, Number.POSITIVE_INFINITY)
    if (!read.ok) throw new TypeError('the body of the upstream response could not be read')
    return answerOf(response, read.bytes, { bytesMax, at: clock.now(), by, ownId })
  }

  #open(context: UpstreamContext, cause: unknown): UpstreamFailure {
    const { retryAfterMs } = this.#parts
    // An attempt before this one may have sent it.
    const sent = context.attempts > 1 ? 'Whether it was sent before is not known.' : 'Nothing was sent.'
    const answer = this.#problem(context, {
      status: 503,
      code: 'unavailable',
      title: 'Temporarily unavailable',
      detail: `The upstream service has failed too often: it is not asked for a while. ${sent}`,
      headers: retryAfter(retryAfterMs),
    })
    return new UpstreamFailure(answer, { local: true, cause })
  }

  #tookTooLong(context: UpstreamContext): Answer {
    return this.#problem(context, {
      status: 504,
      code: 'upstream-timeout',
      title: 'The upstream service took too long',
    })
  }

  #threw(context: UpstreamContext): Answer {
    return this.#problem(context, {
      status: 502,
      code: 'upstream-failed',
      title: 'The upstream service failed',
      detail: 'It gave no answer.',
    })
  }

  #problem(context: UpstreamContext, parts: Omit<Parameters<typeof answerOfProblem>[0], 'base'>): Answer {
    const { clock, problemBase: base } = this.#parts
    return answerOfProblem({ ...parts, base }, clock.now(), context.generation)
  }
}

/** What upstream answers; or throws, as some do with a Response. */
async function responseOf(call: () => unknown): Promise<Response> {
  let answer: unknown
  try {
    answer = await call()
  } catch (error) {
    if (!isResponse(error)) throw error
    answer = error
  }
  if (!isResponse(answer)) throw new TypeError('upstream must answer a Response')
  return answer
}

/** Of any realm and any implementation of Fetch. Status 0 is `Response.error()`: no answer. */
function isResponse(value: unknown): value is Response {
  const { status, headers, arrayBuffer } = (value ?? {}) as Partial<Response>
  return typeof status === 'number' && status >= 200 && typeof headers === 'object' && typeof arrayBuffer === 'function'
}

function isRateLimit(error: unknown): boolean {
  return error instanceof RateLimitedError
}

function isUnrecoverable(error: unknown): boolean {
  return error instanceof AskonceError && error.code === 'ASKONCE_UNRECOVERABLE'
}
