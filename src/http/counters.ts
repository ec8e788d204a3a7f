/**
 * What the HTTP layer counts. Only `upstream` is a charge.
 *
 * @module
 */

/** Counted since the handler was made, in this process. */
export interface HttpCounters {
  /** Requests of the methods that are protected. */
  requests: number
  /** Requests of other methods, or without a key where none is needed: handed on as they are. */
  passed: number
  /** Refused before any key was written: header, actor, size, `validate`. */
  refused: number
  /** The same key with another request. */
  mismatched: number
  /** Answered with "in progress". */
  busy: number
  /** Calls that left: each is a charge. */
  upstream: number
  /** Calls that left and failed. */
  failed: number
  /** Answered from a key's stored outcome. */
  replayed: number
  /** Answered from a cached result, fresh or stale. */
  cached: number
  /** Those of them that were stale. */
  stale: number
  /** Answered with "unavailable": the breaker was open, or the storage away. */
  unavailable: number
}

/** All zero. */
export function newHttpCounters(): HttpCounters {
  return {
    requests: 0,
    passed: 0,
    refused: 0,
    mismatched: 0,
    busy: 0,
    upstream: 0,
    failed: 0,
    replayed: 0,
    cached: 0,
    stale: 0,
    unavailable: 0,
  }
}
