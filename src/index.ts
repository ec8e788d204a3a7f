/**
 * askonce: a deduplicating job queue on pluggable storages. Each distinct request runs once; everyone who asked gets the
 * answer.
 *
 * @module
 */

export { BaseQueue, type QueuePhase } from './base-queue.ts'
export type { Clock, Timer } from './clock.ts'
export { systemClock } from './clock.ts'
export type { Counters } from './counters.ts'
export type { EffectOutcome, Effects } from './effects.ts'
export {
  AskonceError,
  type AskonceErrorCode,
  AttemptsExhaustedError,
  HandlerTimeoutError,
  InvalidArgumentError,
  JobCancelledError,
  JobFailedError,
  LeaseLostError,
  PayloadMismatchError,
  RateLimitedError,
  ResultGoneError,
  SerializationError,
  StateError,
  StoppedError,
  StorageClosedError,
  StorageError,
  StorageFullError,
  TimeoutError,
  TooLargeError,
  UnrecoverableError,
} from './errors.ts'
export type { Listener, QueueEvents } from './events.ts'
export { canonicalJson, contentId } from './key.ts'
export { limits } from './limits.ts'
export type {
  AfterExecution,
  AfterExecutionContext,
  BatchHandler,
  BatchOutcome,
  CallbackHandler,
  EnqueueOptions,
  EnqueueRequest,
  Handler,
  Job,
  Logger,
  PromiseHandler,
  QueueOptions,
  RunOptions,
  Serde,
  WaitOptions,
} from './options.ts'
export { defaults } from './options.ts'
export type { EnqueueManyResult, EnqueueResult, JobStatus } from './producer.ts'
export { Queue } from './queue.ts'
export type { JobState } from './record.ts'
export type { Deliver, OutboxMessage, Relay, RelayOptions } from './relay.ts'
export { exponential, fixed, type RetryPolicy } from './retry.ts'
export type { Storage, StorageHandle, StorageStats, StorageTraits } from './storage.ts'
export type { Meter, ObservableCallback, ObservableCounter } from './telemetry.ts'
