/**
 * Failures as records keep them: a response too, so that everybody gets the same one.
 *
 * @module
 */

import type { JobFailedError } from '../errors.ts'
import { jsonBytes } from './bytes.ts'
import { type Answer, answerOfProblem, type StoredResponse } from './stored-response.ts'

/** Bytes of a failure that the queue keeps: below `limits.errorBytesMax`, with room for names and message. */
const failureBytesMax = 60 * 1024

/** What a failed record says of the exchange; plain JSON, so that it outlives the process that saw it. */
export interface FailureDetails {
  readonly http: StoredResponse
  /** Whether nothing left, so that there is nothing to remember. */
  readonly local: boolean
}

/** Upstream failed, or was not asked. Thrown by the job. */
export class UpstreamFailure extends Error {
  /** The first tells the queue not to try again. */
  readonly code: 'ASKONCE_UNRECOVERABLE' | 'ASKONCE_HTTP_UPSTREAM'
  readonly details: FailureDetails
  readonly #live: Response

  constructor({ stored, live }: Answer, options: { local?: boolean; retry?: boolean; cause?: unknown } = {}) {
    const { local = false, retry = false, cause } = options
    super(local ? 'nothing was sent' : `upstream failed with status ${stored.status}`, { cause })
    this.code = retry ? 'ASKONCE_HTTP_UPSTREAM' : 'ASKONCE_UNRECOVERABLE'
    const kept = jsonBytes(stored) <= failureBytesMax ? stored : { ...stored, body: null }
    this.details = { http: kept, local }
    this.#live = live
  }

  /** For who asked: never stored, to be used once. */
  get live(): Response {
    return this.#live
  }

  static {
    Object.defineProperty(UpstreamFailure.prototype, 'name', {
      value: 'UpstreamFailure',
      writable: true,
      configurable: true,
    })
  }
}

/** A failure, and whether it is one of keeping only: upstream's answer was good, but the queue could not store it. */
export interface Failure extends FailureDetails {
  readonly unkept: boolean
}

/** What a failed record answers: the response that was stored, or a problem for what ended without one. */
export function failureIn(error: JobFailedError, base: string): Failure {
  const { code, details } = (error.cause ?? {}) as { code?: unknown; details?: Partial<FailureDetails> }
  if (details?.http !== undefined) return { http: details.http, local: details.local === true, unkept: false }
  const { stored: http } = answerOfProblem({ ...problemOf(code), base }, 0, '')
  return { http, local: false, unkept: code === 'ASKONCE_TOO_LARGE' || code === 'ASKONCE_SERIALIZATION' }
}

function problemOf(code: unknown) {
  switch (code) {
    case 'ASKONCE_HANDLER_TIMEOUT':
      return { status: 504, code: 'upstream-timeout', title: 'The upstream service took too long' } as const
    case 'ASKONCE_ATTEMPTS_EXHAUSTED':
      return {
        status: 500,
        code: 'outcome-unknown',
        title: 'The outcome is unknown',
        detail: 'The server ended while it asked: whether the request was carried out is not known.',
      } as const
    case 'ASKONCE_TOO_LARGE':
    case 'ASKONCE_SERIALIZATION':
      return {
        status: 502,
        code: 'response-too-large',
        title: 'The response was too large to be kept',
        detail: 'The request was carried out once. Its response is not kept.',
      } as const
    default:
      return { status: 502, code: 'upstream-failed', title: 'The upstream service failed' } as const
  }
}
