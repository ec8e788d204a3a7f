/**
 * Errors. Each has a stable string `code`; messages name the field, what was received (its kind, never its content), the
 * bound, and what to do.
 *
 * @module
 */

import { limits } from './limits.ts'

const { durationMsMax, idBytesMax } = limits

/** The codes that {@link AskonceError} can carry. They are stable: a change of one is a major version. */
export type AskonceErrorCode =
  | 'ASKONCE_INVALID_ARGUMENT'
  | 'ASKONCE_TOO_LARGE'
  | 'ASKONCE_SERIALIZATION'
  | 'ASKONCE_PAYLOAD_MISMATCH'
  | 'ASKONCE_JOB_FAILED'
  | 'ASKONCE_JOB_CANCELLED'
  | 'ASKONCE_RESULT_GONE'
  | 'ASKONCE_ATTEMPTS_EXHAUSTED'
  | 'ASKONCE_HANDLER_TIMEOUT'
  | 'ASKONCE_TIMEOUT'
  | 'ASKONCE_LEASE_LOST'
  | 'ASKONCE_UNRECOVERABLE'
  | 'ASKONCE_RATE_LIMITED'
  | 'ASKONCE_STOPPED'
  | 'ASKONCE_STATE'
  | 'ASKONCE_STORAGE'
  | 'ASKONCE_STORAGE_FULL'
  | 'ASKONCE_STORAGE_CLOSED'

/** The base of every error that askonce throws. */
export class AskonceError extends Error {
  /** Stable and made for `switch`; messages may change in any release. */
  readonly code: AskonceErrorCode

  constructor(code: AskonceErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }

  static {
    // On the prototype, so that each subclass names itself and no instance carries an own enumerable `name`.
    AskonceError.prototype.name = 'AskonceError'
  }
}

function named(type: { prototype: Error }, name: string): void {
  Object.defineProperty(type.prototype, 'name', { value: name, writable: true, configurable: true })
}

/** An argument or option was refused; nothing was written. */
export class InvalidArgumentError extends AskonceError {
  /** The argument or option, as the caller wrote it: `options.resultTTL`. */
  readonly field: string

  constructor(field: string, expected: string, received: unknown, hint = '') {
    super(
      'ASKONCE_INVALID_ARGUMENT',
      `${field} must be ${expected}; received ${kindOf(received)}${hint && `. ${hint}`}`,
    )
    this.field = field
  }
}

/** A payload, result or id exceeds its bound in bytes; nothing was written. */
export class TooLargeError extends AskonceError {
  readonly field: string
  readonly actualBytes: number
  readonly allowedBytes: number

  constructor(field: string, actualBytes: number, allowedBytes: number) {
    super(
      'ASKONCE_TOO_LARGE',
      `${field} takes ${actualBytes} bytes, more than the ${allowedBytes} allowed. Store the data elsewhere and put its address here`,
    )
    this.field = field
    this.actualBytes = actualBytes
    this.allowedBytes = allowedBytes
  }
}

/** A value could not be turned into bytes, or stored bytes not back into a value. */
export class SerializationError extends AskonceError {
  readonly field: string

  constructor(field: string, problem: string, options?: { cause?: unknown }) {
    super('ASKONCE_SERIALIZATION', `${field} ${problem}`, options)
    this.field = field
  }
}

/** The id is known with another payload, and the queue was told to reject that. */
export class PayloadMismatchError extends AskonceError {
  readonly id: string

  constructor(id: string) {
    super(
      'ASKONCE_PAYLOAD_MISMATCH',
      `id ${quoteId(id)} was enqueued before with another payload. Use another id, or payloadMismatch: 'ignore' to share the first one's answer`,
    )
    this.id = id
  }
}

/** The job ended as failed. `cause` is the handler's error: its name, message, code and causes as they were. */
export class JobFailedError extends AskonceError {
  readonly id: string
  /** Attempts that were used. */
  readonly attempts: number

  constructor(id: string, attempts: number, cause: unknown) {
    const message = cause instanceof Error ? cause.message : String(cause)
    super('ASKONCE_JOB_FAILED', `job ${quoteId(id)} failed after ${attempts} attempt(s): ${message}`, { cause })
    this.id = id
    this.attempts = attempts
  }
}

/** The job that was waited for has been cancelled. */
export class JobCancelledError extends AskonceError {
  readonly id: string

  constructor(id: string) {
    super('ASKONCE_JOB_CANCELLED', `job ${quoteId(id)} was cancelled before it ran`)
    this.id = id
  }
}

/** The record that was waited for is gone: its TTL ended (or it was cancelled unnoticed) before the outcome was read. */
export class ResultGoneError extends AskonceError {
  readonly id: string

  constructor(id: string) {
    super(
      'ASKONCE_RESULT_GONE',
      `the record of job ${quoteId(id)} is gone: its TTL ended or it was cancelled before the outcome could be read. Give it a longer resultTTL`,
    )
    this.id = id
  }
}

/** Every attempt ended without a verdict: workers died or lost their leases. */
export class AttemptsExhaustedError extends AskonceError {
  constructor(attempts: number) {
    super(
      'ASKONCE_ATTEMPTS_EXHAUSTED',
      `all ${attempts} attempt(s) ended without a verdict: the worker died or its lease ran out each time. Look for crashes, or for a handler that blocks the event loop longer than leaseMs`,
    )
  }
}

/** A handler did not settle within `handlerTimeoutMs`; its `signal` was aborted and the attempt counts as failed. */
export class HandlerTimeoutError extends AskonceError {
  constructor(timeoutMs: number) {
    super('ASKONCE_HANDLER_TIMEOUT', `the handler did not settle within handlerTimeoutMs = ${timeoutMs}`)
  }
}

/** A wait ended before the job did; the job goes on. */
export class TimeoutError extends AskonceError {
  constructor(what: string, timeoutMs: number) {
    super('ASKONCE_TIMEOUT', `${what} took longer than ${timeoutMs} ms; the job goes on`)
  }
}

/** The reason of a handler's aborted `signal`: the lease ended or another worker has the job now. */
export class LeaseLostError extends AskonceError {
  readonly id: string

  constructor(id: string) {
    super('ASKONCE_LEASE_LOST', `the lease of job ${quoteId(id)} is lost; whatever this attempt answers is ignored`)
    this.id = id
  }
}

/** Thrown by a handler: the job fails at once, whatever attempts are left. */
export class UnrecoverableError extends AskonceError {
  constructor(message = 'the job cannot succeed', options?: { cause?: unknown }) {
    super('ASKONCE_UNRECOVERABLE', message, options)
  }
}

/** Thrown by a handler: gives the attempt back and holds the whole queue, in every process, for `retryAfterMs`. */
export class RateLimitedError extends AskonceError {
  readonly retryAfterMs: number

  constructor(retryAfterMs: number, options?: { cause?: unknown }) {
    guardDuration('retryAfterMs', retryAfterMs)
    super('ASKONCE_RATE_LIMITED', `rate-limited for ${retryAfterMs} ms`, options)
    this.retryAfterMs = retryAfterMs
  }
}

/** The queue was stopped while the call was waiting. */
export class StoppedError extends AskonceError {
  constructor(what: string) {
    super('ASKONCE_STOPPED', `${what} ended because the queue was stopped; the job itself is kept`)
  }
}

/** A call does not fit the queue's present state: `execute` twice, `start` without a handler. */
export class StateError extends AskonceError {
  constructor(message: string) {
    super('ASKONCE_STATE', message)
  }
}

/** The storage could not do what was asked. `retryable` tells whether the same call may succeed later. */
export class StorageError extends AskonceError {
  readonly retryable: boolean

  constructor(message: string, options: { cause?: unknown; retryable?: boolean } = {}) {
    super('ASKONCE_STORAGE', message, options)
    this.retryable = options.retryable ?? true
  }
}

/** The storage's own bound on records or bytes is reached; nothing was written. */
export class StorageFullError extends AskonceError {
  readonly field: string
  readonly bound: number

  constructor(field: string, bound: number) {
    super(
      'ASKONCE_STORAGE_FULL',
      `the storage is full: ${field} = ${bound} is reached. Raise the bound, shorten the TTLs, or slow the producers down`,
    )
    this.field = field
    this.bound = bound
  }
}

/** The storage, or the queue's handle on it, was closed. */
export class StorageClosedError extends AskonceError {
  constructor() {
    super('ASKONCE_STORAGE_CLOSED', 'the storage is closed; open it again (queue.start() does)')
  }
}

named(InvalidArgumentError, 'InvalidArgumentError')
named(TooLargeError, 'TooLargeError')
named(SerializationError, 'SerializationError')
named(PayloadMismatchError, 'PayloadMismatchError')
named(JobFailedError, 'JobFailedError')
named(JobCancelledError, 'JobCancelledError')
named(ResultGoneError, 'ResultGoneError')
named(AttemptsExhaustedError, 'AttemptsExhaustedError')
named(HandlerTimeoutError, 'HandlerTimeoutError')
named(TimeoutError, 'TimeoutError')
named(LeaseLostError, 'LeaseLostError')
named(UnrecoverableError, 'UnrecoverableError')
named(RateLimitedError, 'RateLimitedError')
named(StoppedError, 'StoppedError')
named(StateError, 'StateError')
named(StorageError, 'StorageError')
named(StorageFullError, 'StorageFullError')
named(StorageClosedError, 'StorageClosedError')

const itemCodes = new Set<AskonceErrorCode>([
  'ASKONCE_INVALID_ARGUMENT',
  'ASKONCE_TOO_LARGE',
  'ASKONCE_SERIALIZATION',
  'ASKONCE_STORAGE_FULL',
])

/** Whether a storage call failed for what single items are: the others of the call may well succeed without them. */
export function isItemError(error: unknown): error is AskonceError {
  return error instanceof AskonceError && itemCodes.has(error.code)
}

/** What a value is, without showing its content: errors must not carry payloads or secrets. Numbers are shown. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  switch (typeof value) {
    case 'number':
      return `the number ${value}`
    case 'string':
      return value === '' ? 'an empty string' : `a string of ${value.length} characters`
    case 'boolean':
    case 'undefined':
      return String(value)
    case 'object':
      return Array.isArray(value) ? `an array of ${value.length}` : 'an object'
    default:
      return `a ${typeof value}`
  }
}

/** An id in a message: shortened, control characters escaped, so that it cannot forge log lines. */
export function quoteId(id: string): string {
  const text = JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id)
  return text.replace(/[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, escapeUnit)
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/**
 * Refuses what is not a whole number of milliseconds from 1 to the bound.
 *
 * @throws {@link InvalidArgumentError}
 */
export function guardDuration(field: string, value: unknown, max: number = durationMsMax): asserts value is number {
  if (!Number.isSafeInteger(value) || (value as number) < 1 || (value as number) > max) {
    throw new InvalidArgumentError(field, `a whole number of milliseconds from 1 to ${max}`, value)
  }
}

/** Refuses what is not a whole number within the bounds. */
export function guardInteger(field: string, value: unknown, min: number, max: number): asserts value is number {
  if (!Number.isSafeInteger(value) || (value as number) < min || (value as number) > max) {
    throw new InvalidArgumentError(field, `a whole number from ${min} to ${max}`, value)
  }
}

/** Refuses what is not 1 to 1,024 bytes of well-formed Unicode. Any character is allowed. */
export function guardId(id: unknown, field = 'id'): asserts id is string {
  if (typeof id !== 'string' || id === '') throw new InvalidArgumentError(field, 'a non-empty string', id)
  // A UTF-16 unit is at most three bytes of UTF-8: most ids need no count.
  if (id.length * 3 > idBytesMax) {
    const bytes = Buffer.byteLength(id)
    if (bytes > idBytesMax) throw new TooLargeError(field, bytes, idBytesMax)
  }
  if (!id.isWellFormed()) {
    throw new InvalidArgumentError(
      field,
      'well-formed Unicode (no lone surrogates)',
      id,
      'Two such ids would share one UTF-8 form',
    )
  }
}
