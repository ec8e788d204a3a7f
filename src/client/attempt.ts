/**
 * An attempt: one intent of one person ("decode this, now"), with the key that all its requests carry. Made only by
 * `mintAttempt` and `attemptStore`; nothing here can make a new key.
 *
 * @module
 */

declare const attemptBrand: unique symbol

/** One intent and its key. Frozen. */
export interface Attempt {
  /** What is asked for, as the caller normalised it. Not sent. */
  readonly subject: string
  /** What the header carries: a UUID. */
  readonly key: string
  /** ms since 1970, by this device's clock. */
  readonly createdAt: number
  /** How long the key may be sent, ms from `createdAt`. */
  readonly ttlMs: number
  /** Only in the type: a plain object is no attempt. */
  readonly [attemptBrand]: true
}

/** The header by which the server knows the attempt. */
export interface AttemptHeaders extends Record<string, string> {
  /** A structured-field string (RFC 9651): the key in quotes. */
  readonly 'Idempotency-Key': string
}

/** UTF-16 units in a subject, at most: it becomes part of an item in the session's storage. */
export const subjectLengthMax = 1_024

/** The longest life of an attempt, ms: a day. A page that is open longer must not repeat yesterday's question. */
export const ttlMsMax = 86_400_000

/**
 * Whether the attempt may still be sent: less than `ttlMs` lie between its making and `now`. Before its making counts like
 * after it, so that a clock that was set back does not lengthen its life.
 *
 * @param now - ms since 1970
 */
export function isAttemptFresh(attempt: Attempt, now: number = Date.now()): boolean {
  return Math.abs(now - attempt.createdAt) < attempt.ttlMs
}

/** The headers of every request of the attempt, as draft-ietf-httpapi-idempotency-key-header writes them. */
export function headersFor(attempt: Attempt): AttemptHeaders {
  return { 'Idempotency-Key': `"${attempt.key}"` }
}

/** The attempt in a value that may be anything, frozen; null if there is none in it. */
export function attemptIn(value: unknown): Attempt | null {
  const { subject, key, createdAt, ttlMs } = (value ?? {}) as { readonly [name: string]: unknown }
  const isSubject = typeof subject === 'string' && subject !== '' && subject.length <= subjectLengthMax
  // Only what needs no escaping between the quotes of the header.
  const isKey = typeof key === 'string' && /^[\w-]{8,128}$/.test(key)
  const isLife = isCount(ttlMs) && ttlMs >= 1 && ttlMs <= ttlMsMax
  if (!isSubject || !isKey || !isLife || !isCount(createdAt)) return null
  return Object.freeze({ subject, key, createdAt, ttlMs }) as Attempt
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}
