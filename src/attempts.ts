/**
 * One attempt at a job: call the handler, turn what it did into a verdict, store that, tell of it.
 *
 * @module
 */

import { decode, decodeError, encode, encodeError, read, thrownIn, toError } from './codec.ts'
import type { Counters } from './counters.ts'
import type { Effects } from './effects.ts'
import {
  AttemptsExhaustedError,
  guardDuration,
  HandlerTimeoutError,
  InvalidArgumentError,
  LeaseLostError,
  RateLimitedError,
  StoppedError,
  TimeoutError,
  UnrecoverableError,
} from './errors.ts'
import type { SafeEmitter } from './events.ts'
import type { Exchange } from './exchange.ts'
import type { Ending, Lease } from './lease.ts'
import { LeasedJob } from './lease.ts'
import type { LeaseKeeper } from './leases.ts'
import { limits } from './limits.ts'
import type { SettleOutcome } from './machine.ts'
import type { AfterExecutionContext, Handler, Job } from './options.ts'
import type { Encoded, JobRecord, Verdict } from './record.ts'
import { complete, fail, release, retry } from './record.ts'
import type { Settings } from './settings.ts'
import type { StorageHandle } from './storage.ts'

/** Makes attempts. */
export class Attempts<TPayload, TResult> {
  readonly #settings: Settings<TPayload, TResult>
  readonly #workerId: string
  readonly #counters: Counters
  readonly #emitter: SafeEmitter<TResult>
  readonly #keeper: LeaseKeeper<TPayload>
  readonly #exchange: Exchange
  readonly #handle: () => Promise<StorageHandle>
  readonly #effects: Effects
  /** The hold that is being sent. */
  #holding: { readonly ms: number; readonly held: Promise<void> } | null = null

  constructor(
    settings: Settings<TPayload, TResult>,
    workerId: string,
    counters: Counters,
    emitter: SafeEmitter<TResult>,
    keeper: LeaseKeeper<TPayload>,
    exchange: Exchange,
    handle: () => Promise<StorageHandle>,
    effects: Effects,
  ) {
    this.#effects = effects
    this.#settings = settings
    this.#workerId = workerId
    this.#counters = counters
    this.#emitter = emitter
    this.#keeper = keeper
    this.#exchange = exchange
    this.#handle = handle
  }

  /**
   * Makes the job that the handler will see.
   *
   * @returns false if its payload can't be decoded: the job has been failed
   */
  prepare(lease: Lease<TPayload>): boolean {
    try {
      const payload = decode(this.#settings.payloadSerde, lease.record.payload, 'payload')
      lease.job = new LeasedJob(lease.record, payload, this.#effects)
      return true
    } catch (error) {
      // No attempt can succeed, and there is no payload to show a hook.
      lease.decide()
      this.#storeFailure(lease, toError(error), this.#failureTTL(lease))
      return false
    }
  }

  /** Calls the handler and sees to everything that follows. */
  begin(lease: Lease<TPayload>, handler: Handler<TPayload, TResult>): void {
    const job = lease.job as LeasedJob<TPayload>
    this.countStart(lease)
    try {
      const answer = handler.length >= 2 ? callBack(handler, job) : (handler as (job: Job<TPayload>) => unknown)(job)
      if (isThenable(answer)) {
        answer.then(
          (result) => this.succeed(lease, result as TResult),
          (error: unknown) => this.failWith(lease, error),
        )
      } else {
        this.succeed(lease, answer as TResult)
      }
    } catch (error) {
      this.failWith(lease, error)
    }
  }

  countStart(lease: Lease<TPayload>): void {
    this.#counters.executed++
    if (this.#emitter.has('started')) {
      this.#emitter.emit('started', { id: lease.record.spec.id, attempts: lease.record.attempts })
    }
  }

  /** The handler answered. */
  succeed(lease: Lease<TPayload>, result: TResult): void {
    if (!lease.decide()) return
    const ttl = lease.record.spec.resultTTL
    if (this.#settings.afterExecution === undefined) this.#storeResult(lease, result, ttl)
    else void this.#afterExecution(lease, { status: 'completed', result, ttl })
  }

  /** The handler threw. */
  failWith(lease: Lease<TPayload>, thrown: unknown): void {
    if (!lease.decide()) return
    const error = toError(thrown)
    const retryAfterMs = rateLimitOf(error)
    if (retryAfterMs !== null) {
      void this.#holdQueue(lease, retryAfterMs)
      return
    }
    const delayMs = this.#delayBeforeNext(lease, thrown, error)
    if (delayMs !== null) {
      this.#store(lease, retry(encodeError(thrownIn(error)), delayMs), undefined, error)
    } else if (this.#settings.afterExecution === undefined) {
      this.#storeFailure(lease, error, this.#failureTTL(lease))
    } else {
      void this.#afterExecution(lease, { status: 'failed', error, ttl: this.#failureTTL(lease) })
    }
  }

  /** The handler's time is up. */
  timeOut(lease: Lease<TPayload>): void {
    if (lease.decided) return
    const error = new HandlerTimeoutError(this.#settings.handlerTimeoutMs)
    lease.job?.abort(error)
    this.failWith(lease, error)
  }

  /** Gives an attempt back that was cut off by a stop, or is not wanted any more. */
  giveBack(lease: Lease<TPayload>): void {
    if (!lease.decide()) return
    lease.job?.abort(new StoppedError('the handler'))
    this.#store(lease, release(0))
  }

  /** Tells of a record whose attempts were used up: it has just been settled by a claim. */
  tellExhausted(record: JobRecord): void {
    this.#counters.failed++
    const error = new AttemptsExhaustedError(record.attempts)
    this.#emitter.emit('failed', { id: record.spec.id, error, attempts: record.attempts })
  }

  #failureTTL(lease: Lease<TPayload>): number {
    return lease.record.spec.failureTTL
  }

  /** ms, or null if the job has failed for good. */
  #delayBeforeNext(lease: Lease<TPayload>, thrown: unknown, error: Error): number | null {
    const { attempts, spec } = lease.record
    if (attempts >= spec.maxAttempts || isUnrecoverable(error)) return null
    try {
      const delayMs = this.#settings.retry(attempts, thrown, this.#settings.random())
      if (delayMs === null) return null
      if (!(delayMs >= 0 && delayMs <= limits.durationMsMax)) {
        throw new InvalidArgumentError('the retry policy’s answer', 'a number of milliseconds from 0, or null', delayMs)
      }
      return Math.ceil(delayMs)
    } catch (trouble) {
      // The policy is at fault, not the job: it gets its further attempts.
      this.#emitter.emit('error', toError(trouble))
      return 1_000
    }
  }

  async #holdQueue(lease: Lease<TPayload>, retryAfterMs: number): Promise<void> {
    // Before the attempt is given back: no other worker may find the job unheld.
    await this.#hold(lease.record.spec.id, retryAfterMs)
    this.#store(lease, release(retryAfterMs))
  }

  /** A whole batch may be throttled at once: that is one hold, and one event. */
  #hold(id: string, retryAfterMs: number): Promise<void> {
    if (this.#holding !== null && this.#holding.ms >= retryAfterMs) return this.#holding.held
    const holding = { ms: retryAfterMs, held: this.#sendHold(id, retryAfterMs) }
    this.#holding = holding
    return holding.held.then(() => {
      if (this.#holding === holding) this.#holding = null
    })
  }

  async #sendHold(id: string, retryAfterMs: number): Promise<void> {
    this.#counters.held++
    try {
      await (await this.#handle()).hold(retryAfterMs)
      this.#emitter.emit('held', { id, retryAfterMs })
    } catch (error) {
      this.#emitter.emit('error', toError(error))
    }
  }

  async #afterExecution(
    lease: Lease<TPayload>,
    outcome: { status: 'completed'; result: TResult; ttl: number } | { status: 'failed'; error: Error; ttl: number },
  ): Promise<void> {
    const { record, job } = lease
    const { clock } = this.#settings
    const finishedAt = clock.now()
    const durationMs = clock.monotonic() - lease.claimedAt
    const context: AfterExecutionContext<TPayload, TResult> = {
      id: record.spec.id,
      payload: (job as LeasedJob<TPayload>).payload,
      attempts: record.attempts,
      maxAttempts: record.spec.maxAttempts,
      createdAt: record.spec.createdAt,
      workerId: this.#workerId,
      startedAt: finishedAt - Math.round(durationMs),
      finishedAt,
      durationMs,
      ...outcome,
    }
    let ttl = outcome.ttl
    let replaced: { result?: TResult; error?: Error } = context
    try {
      await this.#inTime(this.#settings.afterExecution?.(context))
      guardDuration('context.ttl of afterExecution', context.ttl)
      if (context.status === 'failed' && !(context.error instanceof Error)) {
        throw new InvalidArgumentError('context.error of afterExecution', 'an Error', context.error)
      }
      ttl = context.ttl
    } catch (error) {
      // The hook is at fault, not the job: its outcome stands as it was.
      this.#emitter.emit('error', toError(error))
      replaced = outcome
    }
    if (outcome.status === 'completed') this.#storeResult(lease, replaced.result as TResult, ttl)
    else this.#storeFailure(lease, replaced.error as Error, ttl)
  }

  /** The hook may take as long as a handler: its job must end, whatever it does. */
  #inTime(hook: unknown): unknown {
    const { clock, handlerTimeoutMs } = this.#settings
    if (!isThenable(hook) || handlerTimeoutMs === Number.POSITIVE_INFINITY) return hook
    return new Promise((resolve, reject) => {
      const late = () => reject(new TimeoutError('afterExecution', handlerTimeoutMs))
      const timer = clock.timer(late, handlerTimeoutMs, false)
      Promise.resolve(hook)
        .finally(() => timer.clear())
        .then(resolve, reject)
    })
  }

  #storeResult(lease: Lease<TPayload>, result: TResult, ttl: number): void {
    const { resultSerde, payloadBytesMax, outboxTTL } = this.#settings
    let encoded: Encoded
    try {
      encoded = encode(resultSerde, result, 'result', payloadBytesMax)
    } catch (error) {
      // Running the handler again would answer the same: the job fails.
      this.#storeFailure(lease, toError(error), this.#failureTTL(lease))
      return
    }
    const rows = lease.job === null ? null : lease.job.takeRows()
    const verdict = rows === null ? complete(encoded, ttl) : complete(encoded, ttl, { rows, ttlMs: outboxTTL })
    this.#store(lease, verdict, result)
  }

  #storeFailure(lease: Lease<TPayload>, error: Error, ttl: number): void {
    this.#store(lease, fail(encodeError(thrownIn(error)), ttl), undefined, error)
  }

  #store(lease: Lease<TPayload>, verdict: Verdict, result?: TResult, error?: Error): void {
    const { onFree } = lease
    lease.onFree = null
    onFree?.()
    lease.conclude(verdict, result, error, this.#concluded)
    this.#exchange.settle(lease)
  }

  /** The storage answered a verdict; null: it never will. */
  readonly #concluded = (lease: Lease<TPayload>, outcome: SettleOutcome | null): void => {
    this.#keeper.remove(lease)
    if (outcome === 'settled') {
      this.#tell(lease)
      if (lease.onEnd !== null) lease.onEnd(endingOf(lease.verdict))
      return
    }
    if (outcome === 'stale') {
      this.#counters.stale_ignored++
      lease.job?.abort(new LeaseLostError(lease.id))
      this.#emitter.emit('stale', { id: lease.id, attempts: lease.record.attempts })
    }
    lease.onEnd?.({ kind: 'lost' })
  }

  #tell(lease: Lease<TPayload>): void {
    const { id, verdict } = lease
    const { attempts } = lease.record
    switch (verdict.kind) {
      case 'complete': {
        this.#counters.completed++
        if (!this.#emitter.has('completed')) return
        const durationMs = this.#settings.clock.monotonic() - lease.claimedAt
        this.#emitter.emit('completed', { id, result: lease.result as TResult, attempts, durationMs })
        return
      }
      case 'fail':
        this.#counters.failed++
        this.#emitter.emit('failed', { id, error: lease.error as Error, attempts })
        return
      case 'retry':
        this.#counters.retried++
        this.#emitter.emit('retrying', { id, error: lease.error as Error, attempts, delayMs: verdict.delayMs })
        return
      case 'release':
    }
  }
}

const again: Ending = Object.freeze({ kind: 'again' })

function endingOf(verdict: Verdict): Ending {
  switch (verdict.kind) {
    case 'complete':
      return { kind: 'completed', result: verdict.result }
    case 'fail':
      return { kind: 'failed', error: verdict.error }
    default:
      return again
  }
}

/** The error of a record: the handler's as it was, or that its attempts ran out. */
export function errorOf(record: JobRecord): Error {
  if (record.state === 'completed' && record.missed !== undefined) {
    return record.missed.reason === 'error'
      ? decodeError(record.missed.error)
      : new AttemptsExhaustedError(record.attempts)
  }
  if (record.state === 'failed' && record.reason === 'exhausted') return new AttemptsExhaustedError(record.attempts)
  return decodeError(record.state === 'failed' || record.state === 'failing' ? record.error : null)
}

/** By its code too: the handler may have another copy of this package. */
function isUnrecoverable(error: Error): boolean {
  return error instanceof UnrecoverableError || read(error, 'code') === 'ASKONCE_UNRECOVERABLE'
}

/** For how long the queue is to be held, ms; null if the error is no rate limit. */
function rateLimitOf(error: Error): number | null {
  if (!(error instanceof RateLimitedError) && read(error, 'code') !== 'ASKONCE_RATE_LIMITED') return null
  const ms = read(error, 'retryAfterMs')
  return Number.isSafeInteger(ms) && (ms as number) > 0 && (ms as number) <= limits.durationMsMax
    ? (ms as number)
    : null
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function'
}

function callBack<TPayload, TResult>(handler: Handler<TPayload, TResult>, job: Job<TPayload>): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const done = (error: unknown, result?: TResult) => {
      if (error === null || error === undefined) resolve(result)
      else reject(error)
    }
    const answer: unknown = (handler as (job: Job<TPayload>, done: unknown) => unknown)(job, done)
    // An async function with a `done` parameter: its rejection must not get lost.
    if (isThenable(answer)) answer.then(undefined, reject)
  })
}
