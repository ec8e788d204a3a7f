/**
 * The record: all that a storage keeps of one id, as a discriminated union in which each state carries only its own data;
 * and the verdicts, one constructor each, with which a lease ends.
 *
 * @module
 */

/**
 * A payload, result or error as stored. Text stays text (a storage must give back the kind it was given): strings cost
 * less than bytes in every storage, and the default serde writes only text.
 */
export type Encoded = string | Uint8Array

/** What the first accepted `enqueue` of an id fixes for the record's whole life. */
export interface JobSpec {
  /** The identity that callers deduplicate by: 1 to 1,024 bytes of UTF-8, any characters. */
  readonly id: string
  /** The token of the `enqueue` that created the record; never reused. Tells a record from a later one of the same id. */
  readonly incarnation: string
  /** A digest of the payload, kept when the payload itself is gone; '' if mismatches are not to be noticed. */
  readonly fingerprint: string
  /** When the record was created: ms since 1970 by the storage's clock. */
  readonly createdAt: number
  /** Claims that may be made before the job fails by itself: 1 and up. */
  readonly maxAttempts: number
  /** How long a completed record is kept, ms. */
  readonly resultTTL: number
  /** How long a failed record is kept, ms. */
  readonly failureTTL: number
  /**
   * The effects that were begun behind this record, each with the token of who began it: `name=token` and a line feed each;
   * left out if there are none. The only part that comes later.
   */
  readonly marks?: string
}

/** What creates a record says all but what the storage adds. */
export type NewSpec = Omit<JobSpec, 'createdAt' | 'marks'>

/** The result of an earlier run, kept readable while the record is refreshed. */
export interface Kept {
  /** The result; null if the storage lost it. */
  readonly result: Encoded | null
  /** When it was settled, ms since 1970. */
  readonly settledAt: number
  /** From when on it is forgotten, ms since 1970. */
  readonly until: number
}

/** Why a refresh brought no result. */
export interface Missed {
  /** `error`: a handler's; `exhausted`: every attempt ended without a verdict; `cancelled`: by a caller. */
  readonly reason: 'error' | 'exhausted' | 'cancelled'
  /** The handler's error; null with the other reasons, or if the storage lost it. */
  readonly error: Encoded | null
}

/** Rows that were written with a completion and are still to be delivered. */
export interface Outbox {
  /** The rows, in the queue's own encoding. */
  readonly rows: Encoded
  /** The next delivery may start from here, or the present one's lease ends here: ms since 1970. */
  readonly at: number
  /** Who delivers now: the fencing token of that lease; null if nobody does. */
  readonly generation: string | null
  /** Deliveries begun so far. */
  readonly attempts: number
  /** From when on they are given up and the record with them, if its TTL has ended: ms since 1970. */
  readonly until: number
}

interface RecordBase {
  readonly spec: JobSpec
  /** Claims counted so far. A claim is counted when it is made, so that a crash counts. */
  readonly attempts: number
  /**
   * The one timestamp, ms since 1970. queued, failing: claimable from; processing: the lease's end; completed, failed:
   * forgotten from.
   */
  readonly at: number
}

interface OpenBase extends RecordBase {
  readonly payload: Encoded
  /**
   * Whether the record was made by an inline run and no `enqueue` has asked for it since: workers do not look for it, a
   * claim that names its id may take it, and it is forgotten a `resultTTL` after `at`, or when what it keeps is.
   */
  readonly inline: boolean
  /** What the run before this one answered: there while the record is being refreshed. */
  readonly kept?: Kept
}

/** Waits for its first attempt, or gave an attempt back. */
export interface QueuedRecord extends OpenBase {
  readonly state: 'queued'
  /** The lease that was released, or null. */
  readonly generation: string | null
}

/** Leased to a worker until `at`. */
export interface ProcessingRecord extends OpenBase {
  readonly state: 'processing'
  /** The fencing token of the present lease. */
  readonly generation: string
}

/** Waits for its next attempt after one that failed. */
export interface FailingRecord extends OpenBase {
  readonly state: 'failing'
  /** The lease that failed. */
  readonly generation: string
  /** The last attempt's error. */
  readonly error: Encoded
}

/** Ended with a result; terminal. */
export interface CompletedRecord extends RecordBase {
  readonly state: 'completed'
  /** The lease that settled it; null if a refresh ended without one. */
  readonly generation: string | null
  /** The result; null if the storage lost it. */
  readonly result: Encoded | null
  /** When the result was settled, ms since 1970. */
  readonly settledAt: number
  /** There while rows are to be delivered: until then the record is not forgotten, but for `until`. */
  readonly outbox?: Outbox
  /** There if the record was refreshed in vain: `result` is that of the run before. */
  readonly missed?: Missed
}

/** Ended without a result; terminal. */
export interface FailedRecord extends RecordBase {
  readonly state: 'failed'
  /** The lease that settled it; null if its attempts ran out. */
  readonly generation: string | null
  /** `error`: a handler's; `exhausted`: every attempt ended without a verdict, and there is no error to keep. */
  readonly reason: 'error' | 'exhausted'
  /** The handler's error; null with `exhausted`, or if the storage lost it. */
  readonly error: Encoded | null
  /** When it was settled, ms since 1970. */
  readonly settledAt: number
}

/** The one entry for an id. */
export type JobRecord = QueuedRecord | ProcessingRecord | FailingRecord | CompletedRecord | FailedRecord

/** A record that has not ended. */
export type OpenRecord = QueuedRecord | ProcessingRecord | FailingRecord

/** The states of a record. */
export type JobState = JobRecord['state']

/** How a lease ends. Made by {@link complete}, {@link fail}, {@link retry} and {@link release}. */
export type Verdict =
  | {
      readonly kind: 'complete'
      readonly result: Encoded
      readonly ttlMs: number
      /** Rows to be delivered, and how long that is tried, ms. */
      readonly outbox?: { readonly rows: Encoded; readonly ttlMs: number }
    }
  | { readonly kind: 'fail'; readonly error: Encoded; readonly ttlMs: number }
  | { readonly kind: 'retry'; readonly error: Encoded; readonly delayMs: number }
  | { readonly kind: 'release'; readonly delayMs: number }

/** The job is done; its result is kept for `ttlMs`, and until its rows are delivered. */
export function complete(
  result: Encoded,
  ttlMs: number,
  outbox?: { readonly rows: Encoded; readonly ttlMs: number },
): Verdict {
  return outbox === undefined ? { kind: 'complete', result, ttlMs } : { kind: 'complete', result, ttlMs, outbox }
}

/** The job has failed for good; its error is kept for `ttlMs`. */
export function fail(error: Encoded, ttlMs: number): Verdict {
  return { kind: 'fail', error, ttlMs }
}

/** The attempt has failed; the next may be claimed after `delayMs`. With no attempt left, the job fails. */
export function retry(error: Encoded, delayMs: number): Verdict {
  return { kind: 'retry', error, delayMs }
}

/** The attempt is given back, as if it had not been made; claimable after `delayMs`. */
export function release(delayMs: number): Verdict {
  return { kind: 'release', delayMs }
}

/** Whether the record has ended. */
export function isTerminal(record: JobRecord): record is CompletedRecord | FailedRecord {
  return record.state === 'completed' || record.state === 'failed'
}

/**
 * From when on the record is as if never seen, ms since 1970: its `at` when it has ended, and not before its rows are
 * delivered or given up; for an inline record that nobody took over, its `resultTTL` after its `at`, and not before what it
 * keeps is forgotten; for other open records, never.
 */
export function forgottenFrom(record: JobRecord): number {
  if (record.state === 'completed') {
    return record.outbox === undefined ? record.at : Math.max(record.at, record.outbox.until)
  }
  if (record.state === 'failed') return record.at
  if (!record.inline) return Number.POSITIVE_INFINITY
  const from = record.at + record.spec.resultTTL
  return record.kept === undefined ? from : Math.max(from, record.kept.until)
}

/** The result that an open record still answers with, or null. */
export function keptAt(record: OpenRecord, now: number): Kept | null {
  return record.kept !== undefined && record.kept.until > now ? record.kept : null
}
