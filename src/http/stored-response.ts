/**
 * A response as a record keeps it, and back.
 *
 * @module
 */

import { restored, type StoredBytes, stored } from './bytes.ts'
import { answeredHeaders, idempotentReplay, isShareable, replayedHeaders, type StoredHeaders } from './headers.ts'
import { type ProblemCode, problemBody, problemHeaders } from './problem.ts'

/** The result of a record: plain JSON, so that any queue can keep it. */
export interface StoredResponse {
  readonly status: number
  /** Those that are replayed; names in lower case. */
  readonly headers: StoredHeaders
  /** The body's bytes; null if they were too many to be kept. */
  readonly body: StoredBytes | null
  /** When the answer was there: ms since 1970 by the clock of the process that asked. */
  readonly at: number
  /** The lease whose holder asked: tells whose answer it is. */
  readonly by: string
  /** If it must not be shared: the id of the cached result of the one actor who may see it. */
  readonly only?: string
}

/** Room for the queue's own serde to write a response a little longer than JSON does. */
const slackBytes = 1_024

/** An upstream's answer: the response for who asked, and what is kept for everybody else. */
export interface Answer {
  readonly live: Response
  readonly stored: StoredResponse
}

/** Where a response may not have a body (Fetch: null body status). */
function isBodyless(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}

/**
 * Splits an upstream's response.
 *
 * @param bytes - its body
 * @param bytesMax - what a record can keep; a longer response is kept without its body
 * @param ownId - given if the record is shared: who alone may see a response that must not be
 */
export function answerOf(
  response: Response,
  bytes: Uint8Array<ArrayBuffer>,
  { bytesMax, at, by, ownId }: { bytesMax: number; at: number; by: string; ownId?: string | undefined },
): Answer {
  const { status } = response
  const headers = replayedHeaders(response)
  const only = ownId === undefined || isShareable(response.headers) ? {} : { only: ownId }
  const whole = { status, headers, body: stored(bytes), at, by, ...only }
  return {
    live: responseOf(status, answeredHeaders(response), bytes),
    stored: fits(whole, bytes.byteLength, bytesMax) ? whole : { ...whole, body: null },
  }
}

function fits(whole: StoredResponse, bodyBytes: number, bytesMax: number): boolean {
  // JSON writes a byte as six at most: most responses need no count.
  if (bodyBytes * 6 + slackBytes * 16 < bytesMax) return true
  return new TextEncoder().encode(JSON.stringify(whole)).byteLength + slackBytes <= bytesMax
}

/** A problem of our own as an answer, the same for everybody. */
export function answerOfProblem(
  { status, code, title, detail, base, headers = {} }: StoredProblem,
  at: number,
  by: string,
): Answer {
  const stored: StoredResponse = {
    status,
    headers: Object.entries({ 'cache-control': 'no-store', ...headers, ...problemHeaders }),
    body: problemBody(status, code, title, detail, { base }),
    at,
    by,
  }
  return { stored, live: restoredResponse(stored, base) }
}

/** A problem that a record keeps. */
export interface StoredProblem {
  readonly status: number
  readonly code: ProblemCode
  readonly title: string
  readonly detail?: string
  readonly base: string
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * The stored outcome once more: the same status, headers and bytes, marked as a replay. If the body could not be kept, a
 * problem of the same status says so.
 *
 * @param base - of problem types
 */
export function replay(kept: StoredResponse, base: string): Response {
  const response = restoredResponse(kept, base)
  response.headers.set(idempotentReplay, 'true')
  return response
}

/** The stored outcome as a response. */
export function restoredResponse(kept: StoredResponse, base: string): Response {
  const headers = new Headers(kept.headers.map(([name, value]): [string, string] => [name, value]))
  if (kept.body !== null) return responseOf(kept.status, headers, restored(kept.body))
  for (const [name, value] of Object.entries(problemHeaders)) headers.set(name, value)
  // They describe the body that is missing.
  for (const name of ['content-encoding', 'etag', 'content-range', 'last-modified']) headers.delete(name)
  const body = problemBody(kept.status, 'response-too-large', tooLargeTitle, tooLargeDetail, { base })
  return responseOf(kept.status, headers, new TextEncoder().encode(body))
}

const tooLargeTitle = 'The response was too large to be kept'
const tooLargeDetail = 'The request was carried out once, with this status. The body of its response is not kept.'

/**
 * A worker's answer as it is to be told. If its body could not be kept, nobody ever gets it: a success without its body would be
 * taken for one.
 *
 * @param base - of problem types
 */
export function toldByWorker(kept: StoredResponse, base: string): StoredResponse {
  if (kept.body !== null || kept.status >= 400 || isBodyless(kept.status)) return kept
  const detail = `The request was carried out once, with status ${kept.status}. The body of its response was lost.`
  const location = kept.headers.filter(([name]) => name === 'location')
  const headers = [...location, ['cache-control', 'no-store'] as const, ...Object.entries(problemHeaders)]
  const body = problemBody(502, 'response-too-large', tooLargeTitle, detail, { base })
  return { ...kept, status: 502, headers, body }
}

/** A response of known length. */
function responseOf(status: number, headers: Headers, bytes: Uint8Array<ArrayBuffer>): Response {
  if (isBodyless(status)) return new Response(null, { status, headers })
  headers.set('content-length', String(bytes.byteLength))
  return new Response(bytes, { status, headers })
}
