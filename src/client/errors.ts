/**
 * The client's one class of error. Apart from the queue's own, so that nothing of the queue comes along into a page.
 *
 * @module
 */

/** The codes that {@link AttemptError} can carry. They are stable: a change of one is a major version. */
export type AttemptErrorCode =
  /** An argument or option was refused; nothing was sent. `field` names it. */
  | 'ASKONCE_INVALID_ARGUMENT'
  /** The attempt's `ttlMs` are over: nothing is sent with its key any more. Mint another, which is another question. */
  | 'ASKONCE_ATTEMPT_EXPIRED'
  /** The server still works on it, and the attempt ends before it would be worth asking again. `status` is 409 or 202. */
  | 'ASKONCE_ATTEMPT_PENDING'
  /** No answer came: no connection, one that broke, or silence for `timeoutMs`. `cause` is the last failure. */
  | 'ASKONCE_NETWORK'
  /** The storage outlives the tab: a key kept there would answer next week's question with today's answer. */
  | 'ASKONCE_LOCAL_STORAGE'

/** Everything that the client throws, but for the reason of an aborted signal. Carries no key, subject, address or body. */
export class AttemptError extends Error {
  /** Made for `switch`; messages may change in any release. */
  readonly code: AttemptErrorCode
  /** The argument or option that was refused, else null. */
  readonly field: string | null
  /** The HTTP status of the last answer, null if there was none. */
  readonly status: number | null

  /** @internal */
  constructor(
    code: AttemptErrorCode,
    message: string,
    options: { field?: string; status?: number | null; cause?: unknown } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined)
    this.code = code
    this.field = options.field ?? null
    this.status = options.status ?? null
  }

  static {
    // On the prototype, so that no instance carries an own enumerable `name`; a literal, which survives minifying.
    Object.defineProperty(AttemptError.prototype, 'name', { value: 'AttemptError', writable: true, configurable: true })
  }
}

/** Says what was expected, never what was received. */
export function refused(field: string, expected: string): AttemptError {
  return new AttemptError('ASKONCE_INVALID_ARGUMENT', `${field} must be ${expected}`, { field })
}

/** Refuses what is not a whole number within the bounds. */
export function guardWhole(field: string, value: unknown, min: number, max: number): asserts value is number {
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
    throw refused(field, `a whole number from ${min} to ${max}`)
  }
}

/** Refuses what is neither absent nor a function. */
export function guardOptionalFunction(field: string, value: unknown): void {
  if (value !== undefined && typeof value !== 'function') throw refused(field, 'a function')
}
