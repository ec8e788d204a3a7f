/**
 * Circuit breakers: any object that runs a call unless it is open.
 *
 * @module
 */

/** A circuit breaker, such as cockatiel's `circuitBreaker(...)` as it is, or opossum's behind `{ execute: (call) => it.fire(call) }`. */
export interface Breaker {
  /** Calls, or rejects without calling while it is open. A rejection of the call counts as a failure. */
  execute<T>(call: () => Promise<T>): Promise<T>
}

/** Whether an error says that the breaker is open: cockatiel's and opossum's are known. */
export function isBreakerOpen(error: unknown): boolean {
  const { isBrokenCircuitError, code } = (error ?? {}) as { isBrokenCircuitError?: unknown; code?: unknown }
  return isBrokenCircuitError === true || code === 'EOPENBREAKER'
}
