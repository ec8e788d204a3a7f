/**
 * One HTTP exchange with a time-out over all of it, a bound on the body, and nothing tried twice.
 *
 * @module
 */

import { VinDecodeError } from './errors.ts'

/** The part of `fetch` that is used. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** What every exchange of a client shares. */
export interface HttpSettings {
  readonly fetch: Fetch
  readonly timeoutMs: number
  readonly bodyBytesMax: number
  readonly headers: Readonly<Record<string, string>>
}

/** What came back. */
export interface HttpAnswer {
  readonly status: number
  /** Lower case, '' if there was none. */
  readonly contentType: string
  /** What `Retry-After` asks for, ms from now; null without a usable one. */
  readonly retryAfterMs: number | null
  readonly body: string
}

/** One request: a GET, or with a form a POST. */
export interface HttpRequest {
  readonly url: string
  readonly form?: URLSearchParams
}

/**
 * Sends one request and reads its whole answer.
 *
 * @throws {@link VinDecodeError} of class UPSTREAM: time-out, no connection, a connection that broke, a body too large
 * @throws the signal's reason, if it aborts
 */
export async function exchange(
  settings: HttpSettings,
  request: HttpRequest,
  signal: AbortSignal | undefined,
): Promise<HttpAnswer> {
  signal?.throwIfAborted()
  const controller = new AbortController()
  let onAbort = () => {}
  let timer: NodeJS.Timeout | undefined
  const cutShort = new Promise<never>((_resolve, reject) => {
    const end = (reason: unknown) => {
      reject(reason)
      controller.abort(reason)
    }
    onAbort = () => end(signal?.reason)
    timer = setTimeout(() => end(upstream(`no answer within ${settings.timeoutMs} ms`, 'timeout')), settings.timeoutMs)
  })
  signal?.addEventListener('abort', onAbort, { once: true })
  const sent = send(settings, request, controller.signal)
  try {
    // Raced, because a fetch of the caller's own may not heed its signal; whichever loses ends unheard.
    sent.catch(() => {})
    return await Promise.race([cutShort, sent])
  } catch (error) {
    if (signal?.aborted) throw signal.reason
    if (error instanceof VinDecodeError) throw error
    throw upstream(`the connection failed${codeIn(error)}`, 'network')
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', onAbort)
  }
}

async function send(settings: HttpSettings, request: HttpRequest, signal: AbortSignal): Promise<HttpAnswer> {
  const { url, form } = request
  // Redirects are not followed: a POST would turn into a GET on the way.
  const init: RequestInit = { method: 'GET', headers: settings.headers, redirect: 'manual', signal }
  if (form !== undefined) Object.assign(init, { method: 'POST', body: form })
  const response = await settings.fetch(url, init)
  return {
    status: response.status,
    contentType: (response.headers.get('content-type') ?? '').toLowerCase(),
    retryAfterMs: parseRetryAfter(response.headers.get('retry-after'), Date.now()),
    body: await readBody(response, settings.bodyBytesMax),
  }
}

async function readBody(response: Response, bytesMax: number): Promise<string> {
  if (response.body === null || response.body === undefined) return response.text()
  const decoder = new TextDecoder()
  let bytes = 0
  let text = ''
  // Leaving the loop by throwing cancels the stream.
  for await (const chunk of response.body) {
    bytes += chunk.byteLength
    if (bytes > bytesMax) throw upstream(`the answer is longer than bodyBytesMax = ${bytesMax}`, 'body')
    text += decoder.decode(chunk, { stream: true })
  }
  return text + decoder.decode()
}

/** Reads `Retry-After`: seconds, or a date (RFC 9110, 10.2.3). */
export function parseRetryAfter(header: string | null, now: number): number | null {
  if (header === null) return null
  const text = header.trim()
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000
  const date = /[A-Za-z]/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(date) ? null : Math.max(0, date - now)
}

/** The system's code of a network error, such as ECONNRESET: `fetch` hides it in the cause. Never its message. */
function codeIn(error: unknown): string {
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 4; at = at.cause, depth++) {
    const { code } = at as { code?: unknown }
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]{2,40}$/.test(code)) return ` (${code})`
  }
  return ''
}

/** A failure of the service. */
export function upstream(problem: string, reason: string, more: { status?: number; retryAfterMs?: number } = {}) {
  return new VinDecodeError(`vPIC: ${problem}`, { class: 'UPSTREAM', reason, ...more })
}
