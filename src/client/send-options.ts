/**
 * What can be set on a `sendAttempt`, and what holds if it is not.
 *
 * @module
 */

import { type Attempt, ttlMsMax } from './attempt.ts'
import { guardOptionalFunction, guardWhole, refused } from './errors.ts'
import { browserConnectivity, type Connectivity, type Sleep, sleep } from './waiting.ts'

/** Why the client waits before it sends again; for showing. */
export interface AttemptWait {
  /** `pending`: the server works on it. `failed`: a 5xx, 408, 425 or 429, or no answer. `offline`: the device is off line. */
  readonly kind: 'pending' | 'failed' | 'offline'
  /** The answer's status, null if there was none. */
  readonly status: number | null
  /** At most so long, ms; a device that comes on line again ends it sooner. */
  readonly waitMs: number
}

/** What can be set on {@link sendAttempt}. */
export interface SendAttemptOptions {
  /** How many failures in a row (5xx, 408, 425, 429, or no answer) are tried again; 0 to 100. Default: 4. */
  readonly retries?: number
  /** Gives up: the request under way is aborted, nothing further is sent. The server may still finish. */
  readonly signal?: AbortSignal
  /** How long one request may take until its answer is there, ms; 1 to a day. Default: 30,000. */
  readonly timeoutMs?: number
  /** First back-off after a failure, ms, doubled from one to the next; each wait is anything from 0 to it. Default: 500. */
  readonly retryBaseMs?: number
  /** Longest back-off, ms; also how often it is tried while off line. Default: 10,000. */
  readonly retryMaxMs?: number
  /** The longest `Retry-After` that is waited for, ms; what asks for more is not asked again. Default: 60,000. */
  readonly retryAfterMaxMs?: number
  /** Told when the attempt is over: answered, cancelled or expired. `attemptStore` makes one. */
  readonly store?: { remove(attempt: Attempt): void }
  /** Called before each wait. What it throws is ignored. */
  readonly onWait?: (wait: AttemptWait) => void
  /** ms since 1970. Default: Date.now. */
  readonly now?: () => number
  /** Numbers from 0 to below 1, for jitter. Default: Math.random. */
  readonly random?: () => number
  /** Default: the machine's timers. */
  readonly sleep?: Sleep
  /** Default: what the browser says. */
  readonly connectivity?: Connectivity
}

/** The options, complete but for the caller's own objects. */
export type SendSettings = Required<Omit<SendAttemptOptions, 'signal' | 'store' | 'onWait'>> &
  Pick<SendAttemptOptions, 'onWait'>

/** @throws {@link AttemptError} with code ASKONCE_INVALID_ARGUMENT */
export function settingsOf(options: SendAttemptOptions): SendSettings {
  const { retries = 4, timeoutMs = 30_000, retryBaseMs = 500, retryMaxMs = 10_000, retryAfterMaxMs = 60_000 } = options
  guardWhole('options.retries', retries, 0, 100)
  guardWhole('options.timeoutMs', timeoutMs, 1, ttlMsMax)
  guardWhole('options.retryBaseMs', retryBaseMs, 1, ttlMsMax)
  guardWhole('options.retryMaxMs', retryMaxMs, 1, ttlMsMax)
  guardWhole('options.retryAfterMaxMs', retryAfterMaxMs, 0, ttlMsMax)
  for (const name of ['onWait', 'now', 'random', 'sleep'] as const) {
    guardOptionalFunction(`options.${name}`, options[name])
  }
  if (options.signal !== undefined && typeof options.signal?.addEventListener !== 'function') {
    throw refused('options.signal', 'an AbortSignal')
  }
  const { now = Date.now, random = Math.random, connectivity = browserConnectivity, onWait } = options
  const times = { timeoutMs, retryBaseMs, retryMaxMs, retryAfterMaxMs }
  return { retries, ...times, now, random, connectivity, sleep: options.sleep ?? sleep, ...(onWait && { onWait }) }
}
