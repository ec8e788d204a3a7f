/**
 * What can be set on a queue and on single calls, with every default in one place: code and docs read
 * {@link defaults}.
 *
 * @module
 */

import type { Clock } from './clock.ts'
import type { EffectOutcome } from './effects.ts'
import type { Encoded, JobState } from './record.ts'
import type { RetryPolicy } from './retry.ts'
import type { Storage } from './storage.ts'
import type { Meter } from './telemetry.ts'

/** Every default of a queue. Durations in ms. */
export const defaults = Object.freeze({
  /** The namespace of a queue that was given no name. */
  name: 'default',
  /** How long a completed record, and unless `failureTTL` says else a failed one, is kept: an hour. */
  resultTTL: 3_600_000,
  /** Claims that may be made of a job before it fails. */
  maxAttempts: 3,
  /** Jobs one worker runs at once. */
  concurrency: 1,
  /** Length of a lease; renewed every third of it. A crashed worker's job starts again after at most this. */
  leaseMs: 30_000,
  /** How long a handler may take; Infinity for as long as it likes. */
  handlerTimeoutMs: 900_000,
  /** How long `enqueueAndWait` and `run` wait; Infinity for as long as it takes. */
  timeout: 60_000,
  /** How long `stop()` lets running jobs go on before it aborts and releases them. */
  stopTimeout: 30_000,
  /** What an `enqueue` of a known id with another payload gets. */
  payloadMismatch: 'ignore',
  /** How often a worker has the storage freed of what is past its end. */
  sweepIntervalMs: 60_000,
  /** First and longest back-off of the default retry policy; full jitter between 0 and the doubled value. */
  retryBaseMs: 1_000,
  retryMaxMs: 300_000,
  /** Jobs in one call of a batch handler, and how long the first waits for company. */
  batchSize: 50,
  batchWaitMs: 10,
  /** How long the delivery of outbox rows is tried, and their record kept for it: a week. */
  outboxTTL: 604_800_000,
  /** Records whose rows a relay delivers at once, and how long those of one record may take. */
  relayConcurrency: 10,
  relayLeaseMs: 30_000,
} as const)

/** Turns values into text or bytes and back. What it writes is what every storage keeps. */
export interface Serde<T> {
  /** Text must be well-formed Unicode. Throwing is fine: it becomes a typed error of that job alone. */
  serialize(value: T): Encoded
  /** Gets what `serialize` gave: text as text, bytes as bytes. */
  deserialize(encoded: Encoded): T
  /**
   * Text that is equal exactly for equal values; digested for payload-mismatch detection. Without it what `serialize`
   * gave is digested.
   */
  fingerprint?(value: T): string
}

/** A logger of pino's shape. */
export interface Logger {
  debug(fields: object, message: string): void
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** What a handler gets. */
export interface Job<TPayload> {
  readonly id: string
  readonly payload: TPayload
  /** This attempt's number, from 1. */
  readonly attempts: number
  readonly maxAttempts: number
  /** When the record was created: ms since 1970 by the storage's clock. */
  readonly createdAt: number
  /** The fencing token of this lease: hand it on to systems that can refuse stale writers. */
  readonly generation: string
  /**
   * Aborts when the lease is lost, the handler's time is up, or `stop()` has waited long enough. Made when first read: take
   * it from the job itself, not from a copy of it.
   */
  readonly signal: AbortSignal
  /**
   * Runs an effect at most once per record, whichever attempt or process asks: see {@link Effects.once}.
   *
   * @param name - 1 to 64 letters, digits and `_.:-`
   */
  once<T>(name: string, effect: () => T | PromiseLike<T>): Promise<EffectOutcome<T>>
  /**
   * Adds a row to be delivered by a relay: written with this job's result, in the same atomic step, or not at all if it
   * fails. The same name again replaces the row.
   *
   * @param name - 1 to 64 letters, digits and `_.:-`; unique within the job
   * @param payload - anything that JSON takes; 64 KiB for all rows of a job together
   * @throws {@link InvalidArgumentError}, {@link SerializationError}, {@link TooLargeError}; {@link StateError} once the
   * outcome is decided
   */
  outbox(name: string, payload: unknown): void
}

/** Answers by its return value or promise. */
export type PromiseHandler<TPayload, TResult> = (job: Job<TPayload>) => TResult | PromiseLike<TResult>

/** Answers by calling `done` once; told apart by its two parameters. */
export type CallbackHandler<TPayload, TResult> = (
  job: Job<TPayload>,
  done: (error: unknown, result?: TResult) => void,
) => void

/** Either kind of handler. */
export type Handler<TPayload, TResult> = PromiseHandler<TPayload, TResult> | CallbackHandler<TPayload, TResult>

/** One job's end in a batch. */
export type BatchOutcome<TResult> = { readonly result: TResult } | { readonly error: unknown }

/**
 * Handles several jobs in one call. Answers one outcome a job, in the jobs' order. Throwing fails (or retries) every job
 * of the call.
 */
export type BatchHandler<TPayload, TResult> = (
  jobs: readonly Job<TPayload>[],
) => readonly BatchOutcome<TResult>[] | PromiseLike<readonly BatchOutcome<TResult>[]>

/** What `afterExecution` gets; `ttl`, `result` and `error` can be replaced. */
export interface AfterExecutionContext<TPayload, TResult> {
  readonly id: string
  readonly payload: TPayload
  readonly attempts: number
  readonly maxAttempts: number
  /** ms since 1970, by the storage's clock. */
  readonly createdAt: number
  readonly status: 'completed' | 'failed'
  /** The handler's result; may be replaced. */
  result?: TResult
  /** The handler's error; may be replaced. */
  error?: Error
  /** How long the outcome will be kept, ms; may be replaced. */
  ttl: number
  readonly workerId: string
  /** ms since 1970, by this process's clock. */
  readonly startedAt: number
  readonly finishedAt: number
  readonly durationMs: number
}

/** Runs after a job's last attempt and before its outcome is stored. Throwing or a bad TTL leaves the outcome as it was. */
export type AfterExecution<TPayload, TResult> = (
  context: AfterExecutionContext<TPayload, TResult>,
) => void | PromiseLike<void>

/** What can be set on a queue. */
export interface QueueOptions<TPayload, TResult> {
  /** Where the records live. Default: a MemoryStorage of its own. */
  storage?: Storage
  /** Namespace within the storage: 1 to 128 bytes, any characters. Queues of one name share their jobs. */
  name?: string
  /** Default `defaults.resultTTL`; 1 ms to 100 years. */
  resultTTL?: number
  /** How long failures are kept, ms. Default: `resultTTL`. */
  failureTTL?: number
  /** Default `defaults.maxAttempts`; 1 to 1,000,000. */
  maxAttempts?: number
  /** Default `defaults.concurrency`. */
  concurrency?: number
  /** Default `defaults.leaseMs`; 30 ms and up. */
  leaseMs?: number
  /** Default `defaults.handlerTimeoutMs`; may be Infinity. */
  handlerTimeoutMs?: number
  /** Default `defaults.timeout`; may be Infinity. */
  timeout?: number
  /** Default `defaults.stopTimeout`. 0 aborts at once. */
  stopTimeout?: number
  /** Default `defaults.payloadMismatch`: count and tell; `reject` throws PayloadMismatchError. */
  payloadMismatch?: 'ignore' | 'reject'
  /** Encoded bytes of a payload or result; at most the storage's `payloadBytesMax`, which is the default. */
  payloadBytesMax?: number
  /** Default: exponential back-off with full jitter. */
  retry?: RetryPolicy
  afterExecution?: AfterExecution<TPayload, TResult>
  /** How long the delivery of outbox rows is tried, ms. Default `defaults.outboxTTL`. */
  outboxTTL?: number
  /** Default: JSON. */
  payloadSerde?: Serde<TPayload>
  /** Default: JSON. */
  resultSerde?: Serde<TResult>
  /** pino's shape; silent by default. Never gets payloads, results or credentials. */
  logger?: Logger
  /** An OpenTelemetry meter: gets each counter as `askonce.jobs.<counter>`, until the queue is stopped. */
  meter?: Meter
  /** Default `defaults.sweepIntervalMs`. */
  sweepIntervalMs?: number
  /** Default: the system's. */
  clock?: Clock
  /** Numbers from 0 to below 1, for jitter. Default: Math.random. */
  random?: () => number
}

/** What can be set on one `enqueue`; the first accepted one of an id fixes it. */
export interface EnqueueOptions {
  /** ms the result is kept; default: the queue's. */
  resultTTL?: number
  /** ms an error is kept; default: `resultTTL` if given here, else the queue's. */
  failureTTL?: number
  maxAttempts?: number
  /** ms until the first attempt; default: none. */
  delay?: number
  /** Default: the queue's. */
  payloadMismatch?: 'ignore' | 'reject'
  /**
   * What tells this payload from another under the same id, in place of the payload's own digest: non-empty, well-formed text
   * of any length. Payloads of one fingerprint count as equal, whatever they hold. Give it for every call of an id or for
   * none. Default: digested from the payload.
   */
  fingerprint?: string
  /**
   * Run a job anew that has ended, with this payload: deliberately, at the cost of another run. Its result stays readable
   * meanwhile, and is back if the new run fails; the record's payload and effects are then the new run's. A job that has not
   * ended is joined. One whose outbox rows are not delivered yet is left as it is: `enqueue` answers `duplicate`, and calls that
   * wait throw StateError. Default: false.
   */
  refresh?: boolean
}

/** What can be set on `enqueueAndWait`. */
export interface WaitOptions extends EnqueueOptions {
  /** ms to wait; default: the queue's; Infinity waits as long as it takes. */
  timeout?: number
  /** Ends the wait, not the job. */
  signal?: AbortSignal
  /**
   * Called once, as soon as the storage has answered, if somebody else's record was met: with `completed` if a result
   * answers this call, else its state. Must not throw.
   */
  onDuplicate?: (existingState: JobState) => void
}

/** What can be set on `run`. */
export type RunOptions = Omit<WaitOptions, 'delay'>

/** One item of `enqueueMany`. */
export interface EnqueueRequest<TPayload> extends EnqueueOptions {
  id: string
  payload: TPayload
}
