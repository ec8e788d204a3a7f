/**
 * Makes attempts, and with them keys. The only file that does; the retry loop has no way to it.
 *
 * @module
 */

import { type Attempt, attemptIn, subjectLengthMax, ttlMsMax } from './attempt.ts'
import { guardOptionalFunction, guardWhole, refused } from './errors.ts'
import { uuidV4, uuidV7 } from './uuid.ts'

/** What can be set on a new attempt. */
export interface MintOptions {
  /**
   * How long the key may be sent, ms; 1 to a day. Default: 60,000. At most what the server keeps its answers: a key that the
   * server has forgotten is a new question to it.
   */
  readonly ttlMs?: number
  /** 4: all random. 7: begins with the time, which sorts well in a server's logs. Default: 4. */
  readonly uuid?: 4 | 7
  /** ms since 1970. Default: Date.now. */
  readonly now?: () => number
}

/**
 * Makes a new attempt with a key of its own. Call it once for each press of the button, never for a retry;
 * `attemptStore` does so.
 *
 * @param subject - what is asked for, normalised: 1 to 1,024 UTF-16 units. Only tells attempts apart on this side
 * @throws {@link AttemptError} with code ASKONCE_INVALID_ARGUMENT
 */
export function mintAttempt(subject: string, options: MintOptions = {}): Attempt {
  guardSubject(subject)
  guardMintOptions(options)
  const { ttlMs = 60_000, uuid = 4, now = Date.now } = options
  const createdAt = Math.floor(now())
  const key = uuid === 7 ? uuidV7(createdAt) : uuidV4()
  const attempt = attemptIn({ subject, key, createdAt, ttlMs })
  if (attempt === null) throw refused('options.now', 'a function that answers ms since 1970')
  return attempt
}

/** @throws {@link AttemptError} */
export function guardSubject(subject: unknown): asserts subject is string {
  if (typeof subject !== 'string' || subject === '' || subject.length > subjectLengthMax) {
    throw refused('subject', `text of 1 to ${subjectLengthMax} characters`)
  }
}

/** @throws {@link AttemptError} */
export function guardMintOptions({ ttlMs, uuid, now }: MintOptions): void {
  if (ttlMs !== undefined) guardWhole('options.ttlMs', ttlMs, 1, ttlMsMax)
  if (uuid !== undefined && uuid !== 4 && uuid !== 7) throw refused('options.uuid', '4 or 7')
  guardOptionalFunction('options.now', now)
}
