/**
 * Failures of a decode, one class of error with its class as `code`. They carry facts for the caller, never a response body,
 * an address or a header.
 *
 * @module
 */

import type { RefusedClass, ServiceClass } from './classes.ts'

/** What is known of a failure; plain JSON, so that it outlives the process that saw it. */
export interface VinErrorDetails {
  readonly class: RefusedClass | ServiceClass
  /** Which of the class's tests it was: `status`, `timeout`, `network`, `body`, `execution`, `empty`, `row`, `local`, … */
  readonly reason: string
  /** The HTTP status, if one came. */
  readonly status?: number
  /** What the service asked us to wait, ms. */
  readonly retryAfterMs?: number
  /** vPIC's codes, if a row came. */
  readonly codes?: readonly number[]
  /** The make, if a row had one. */
  readonly make?: string | null
  readonly modelYear?: number | null
  readonly suggestedVin?: string | null
}

/** A VIN was not decoded; `code` is the class. */
export class VinDecodeError extends Error {
  readonly code: RefusedClass | ServiceClass
  readonly details: VinErrorDetails

  constructor(message: string, details: VinErrorDetails, options?: { cause?: unknown }) {
    super(message, options)
    this.code = details.class
    this.details = details
  }

  static {
    Object.defineProperty(VinDecodeError.prototype, 'name', {
      value: 'VinDecodeError',
      writable: true,
      configurable: true,
    })
  }
}
