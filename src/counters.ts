/**
 * Counters that make waste visible.
 *
 * @module
 */

/** What a queue object has counted since it was made. */
export interface Counters {
  /** Records that its enqueues and runs created. */
  claimed: number
  /** Enqueues and runs that met a living record. */
  deduped: number
  /** Handler calls, each attempt counted. */
  executed: number
  /** Answers given from a stored outcome without a handler call. */
  replayed: number
  /** Enqueues whose payload was not the living record's. */
  mismatched: number
  /** Jobs completed by its handlers. */
  completed: number
  /** Attempts that failed and will be repeated. */
  retried: number
  /** Jobs that failed for good. */
  failed: number
  /** Answers of its handlers that were refused since another lease was given. */
  stale_ignored: number
  /** Times it was rate-limited and held the queue. */
  held: number
  /** Outbox rows that its relays delivered. */
  delivered: number
  /** Deliveries of its relays that failed and will be repeated. */
  undelivered: number
}

/** All zero. */
export function newCounters(): Counters {
  return {
    claimed: 0,
    deduped: 0,
    executed: 0,
    replayed: 0,
    mismatched: 0,
    completed: 0,
    retried: 0,
    failed: 0,
    stale_ignored: 0,
    held: 0,
    delivered: 0,
    undelivered: 0,
  }
}
