/**
 * One request and the whole of its answer, within a time.
 *
 * @module
 */

import type { Attempt, AttemptHeaders } from './attempt.ts'
import { headersFor } from './attempt.ts'
import { AttemptError } from './errors.ts'
import { following, type Sleep } from './waiting.ts'

/**
 * Sends one request: `fetch` with what it is given, most likely. It gets the attempt's headers, which must be sent along, and
 * a signal that aborts when nobody wants the answer any more.
 */
export type Send = (headers: AttemptHeaders, attempt: Attempt, signal: AbortSignal) => Response | PromiseLike<Response>

/** What a request runs in. */
export interface TryOptions {
  readonly timeoutMs: number
  readonly signal: AbortSignal
  readonly sleep: Sleep
}

/** Whether the server still works on it. What it has stored, it says by `Idempotent-Replay`: that is the answer, whatever its status. */
export function isPending(response: Response): boolean {
  const { status, headers } = response
  return (status === 409 || status === 202) && headers.get('idempotent-replay') !== 'true'
}

/**
 * Sends one request and reads its answer to the end, so that a connection that breaks within the body is found here, where it
 * can be tried again, and not by the caller. The answer's body can still be read.
 *
 * @throws whatever `send` throws; the signal's reason; {@link AttemptError} for silence
 */
export async function tryOnce(attempt: Attempt, send: Send, options: TryOptions): Promise<Response> {
  const { timeoutMs, signal, sleep } = options
  const own = following(signal)
  const timer = new AbortController()
  const cutShort = new Promise<never>((_resolve, reject) => {
    own.signal.addEventListener('abort', () => reject(own.signal.reason))
  })
  const silence = () => own.abort(new AttemptError('ASKONCE_NETWORK', `no answer within ${timeoutMs} ms`))
  sleep(timeoutMs, timer.signal).then(silence, () => {})
  const answered = answerOf(attempt, send, own.signal)
  // Raced, because `send` may not heed its signal; whichever loses ends unheard.
  answered.catch(() => {})
  cutShort.catch(() => {})
  try {
    return await Promise.race([answered, cutShort])
  } finally {
    timer.abort()
    // Not aborted: that would take the answer's body away, though it is all there.
    own.release()
  }
}

async function answerOf(attempt: Attempt, send: Send, signal: AbortSignal): Promise<Response> {
  const response = await send(headersFor(attempt), attempt, signal)
  // A clone, so that the caller gets the very answer, with its address, unread. A body that was read already was whole.
  if (isPending(response)) response.body?.cancel().catch(() => {})
  else if (!response.bodyUsed) await response.clone().arrayBuffer()
  return response
}
