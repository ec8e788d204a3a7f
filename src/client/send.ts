/**
 * The retry loop: sends one attempt, with one key, until there is an answer.
 *
 * @module
 */

import type { Attempt } from './attempt.ts'
import { attemptIn, isAttemptFresh } from './attempt.ts'
import { AttemptError, refused } from './errors.ts'
import type { Send } from './one-try.ts'
import { isPending, tryOnce } from './one-try.ts'
import { isPassingStatus } from './passing-status.ts'
import { retryAfterMs } from './retry-after.ts'
import { type AttemptWait, type SendAttemptOptions, settingsOf } from './send-options.ts'
import { following } from './waiting.ts'

/** First wait for an answer in progress that names no time, ms; doubled up to the second. Half of each is jitter. */
const pendingBaseMs = 250
const pendingMaxMs = 4_000

/**
 * Sends the attempt and stays for its answer: every request carries the same key, so that the server does the work once
 * however often it is sent.
 *
 * - 409 and 202 mean that the server works on it: the same request is sent again after `Retry-After`, or a while, until the
 *   attempt ends. With `Idempotent-Replay: true` they are the answer itself.
 * - 5xx, 408, 425, 429 and no answer are tried again `retries` times, after `Retry-After` or a back-off with full jitter. The
 *   last of these answers is the answer. While the device knows it is off line, nothing is counted; coming on line ends the wait.
 * - Everything else is the answer, other 4xx included.
 *
 * The body is read to its end before, so that it can be read without the network.
 *
 * @param attempt - made by `mintAttempt` or `attemptStore`; there is no way to another key from here
 * @throws {@link AttemptError} ASKONCE_ATTEMPT_EXPIRED before any request that would be sent after the attempt's end
 * @throws {@link AttemptError} ASKONCE_ATTEMPT_PENDING, ASKONCE_NETWORK; the signal's reason
 */
export async function sendAttempt(attempt: Attempt, send: Send, options: SendAttemptOptions = {}): Promise<Response> {
  const { store, signal } = options
  const sending = new Sending(attempt, send, options)
  try {
    const response = await sending.answer()
    if (!isPassingStatus(response.status)) store?.remove(attempt)
    return response
  } catch (error) {
    const isExpired = error instanceof AttemptError && error.code === 'ASKONCE_ATTEMPT_EXPIRED'
    if (isExpired || signal?.aborted) store?.remove(attempt)
    throw error
  }
}

/** What came of one request: an answer, or what was thrown. */
type Outcome = { readonly response: Response } | { readonly error: unknown }

class Sending {
  readonly #attempt: Attempt
  readonly #send: Send
  readonly #settings
  readonly #signal: AbortSignal
  /** In a row. */
  #failures = 0
  #pendings = 0
  #status: number | null = null

  constructor(attempt: Attempt, send: Send, options: SendAttemptOptions) {
    if (attemptIn(attempt) === null) throw refused('attempt', 'an attempt of mintAttempt or attemptStore')
    if (typeof send !== 'function') throw refused('send', 'a function')
    this.#attempt = attempt
    this.#send = send
    this.#settings = settingsOf(options)
    this.#signal = options.signal ?? new AbortController().signal
  }

  async answer(): Promise<Response> {
    const { now } = this.#settings
    // Bounded by `retries`, and for what is pending or off line by the attempt's end.
    for (;;) {
      this.#signal.throwIfAborted()
      if (!isAttemptFresh(this.#attempt, now())) throw this.#error('ASKONCE_ATTEMPT_EXPIRED', 'the attempt has expired')
      const outcome = await this.#try()
      this.#status = 'response' in outcome ? outcome.response.status : null
      if ('response' in outcome && isPending(outcome.response)) {
        await this.#waitForPending(outcome.response)
      } else if ('response' in outcome && !isPassingStatus(outcome.response.status)) {
        return outcome.response
      } else if (!(await this.#waitAfterFailure(outcome))) {
        if ('response' in outcome) return outcome.response
        throw this.#error('ASKONCE_NETWORK', 'no answer came', { cause: outcome.error })
      }
    }
  }

  async #try(): Promise<Outcome> {
    const { timeoutMs, sleep } = this.#settings
    try {
      return { response: await tryOnce(this.#attempt, this.#send, { timeoutMs, sleep, signal: this.#signal }) }
    } catch (error) {
      this.#signal.throwIfAborted()
      // Aborted by the caller's own means: that was meant.
      if ((error as Error | null)?.name === 'AbortError') throw error
      return { error }
    }
  }

  async #waitForPending(response: Response): Promise<void> {
    const { random } = this.#settings
    this.#failures = 0
    const ceilingMs = Math.min(pendingMaxMs, pendingBaseMs * 2 ** this.#pendings++)
    const waitMs = this.#waitMs(response, ceilingMs * (0.5 + random() / 2))
    if (waitMs === null) throw this.#error('ASKONCE_ATTEMPT_PENDING', 'the server still works on the attempt')
    await this.#wait('pending', waitMs)
  }

  /** Answers false where it is not worth trying again. */
  async #waitAfterFailure(outcome: Outcome): Promise<boolean> {
    const { retries, retryBaseMs, retryMaxMs, random, connectivity } = this.#settings
    if ('error' in outcome && !connectivity.isOnline()) {
      await this.#waitOffline()
      return true
    }
    if (this.#failures >= retries) return false
    const ceilingMs = Math.min(retryMaxMs, retryBaseMs * 2 ** this.#failures++)
    const waitMs = this.#waitMs('response' in outcome ? outcome.response : null, random() * ceilingMs)
    if (waitMs === null) return false
    await this.#wait('failed', waitMs)
    return true
  }

  /** Devices were seen to call themselves off line wrongly: now and then it is tried all the same. */
  async #waitOffline(): Promise<void> {
    const { retryMaxMs, now, connectivity } = this.#settings
    const { createdAt, ttlMs } = this.#attempt
    const over = following(this.#signal)
    try {
      const slept = this.#wait('offline', Math.max(1, Math.min(retryMaxMs, createdAt + ttlMs - now())), over.signal)
      await Promise.race([connectivity.online(over.signal), slept.catch(() => {})])
    } finally {
      over.release()
      over.abort()
    }
  }

  /** Never sooner than the server asks; null if that is too long, or past the attempt's end. */
  #waitMs(response: Response | null, backoffMs: number): number | null {
    const { now, retryAfterMaxMs } = this.#settings
    const askedMs = response === null ? 0 : (retryAfterMs(response.headers, now()) ?? 0)
    const waitMs = Math.ceil(Math.max(askedMs, backoffMs))
    const fits = askedMs <= retryAfterMaxMs && isAttemptFresh(this.#attempt, now() + waitMs)
    return fits ? waitMs : null
  }

  #wait(kind: AttemptWait['kind'], waitMs: number, signal: AbortSignal = this.#signal): Promise<void> {
    const { onWait, sleep } = this.#settings
    try {
      onWait?.({ kind, status: this.#status, waitMs })
    } catch {
      // What a page fails to show must not end its call.
    }
    return sleep(waitMs, signal)
  }

  #error(
    code: 'ASKONCE_ATTEMPT_EXPIRED' | 'ASKONCE_ATTEMPT_PENDING' | 'ASKONCE_NETWORK',
    message: string,
    cause: { cause?: unknown } = {},
  ): AttemptError {
    return new AttemptError(code, message, { status: this.#status, ...cause })
  }
}
