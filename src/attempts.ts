/**
 * One attempt at a job: call the handler, turn what it did into a verdict, store that, tell of it.
 *
 * @module
 */

import { decode, decodeError, encode, encodeError, toError } from './codec.ts'
import type { Counters } from './counters.ts'
import {
  AttemptsExhaustedError,
  guardDuration,
  HandlerTimeoutError,
  InvalidArgumentError,
  RateLimitedError,
  StoppedError,
  UnrecoverableError,
} from './errors.ts'
import type { SafeEmitter } from './events.ts'
import type { Exchange } from './exchange.ts'
import type { Lease, LeaseKeeper } from './leases.ts'
import { LeasedJob } from './leases.ts'
import { limits } from './limits.ts'
import type { AfterExecutionContext, Handler, Job } from './options.ts'
import type { Encoded, JobRecord, Verdict } from './record.ts'
import { complete, fail, release, retry } from './record.ts'
import type { Settings } from './settings.ts'
import type { StorageHandle } from './storage.ts'

/** How an attempt ended, for who began it. */
export type Ending =
  | { readonly kind: 'completed'; readonly result: Encoded }
  | { readonly kind: 'failed'; readonly error: Encoded }
  /** Another attempt follows, after a failure or a release. */
  | { readonly kind: 'again' }
  /** The verdict was refused or could not be stored. */
  | { readonly kind: 'lost' }

type OnEnd = (ending: Ending) => void

/** Makes attempts. */
export class Attempts<TPayload, TResult> {
  readonly #settings: Settings<TPayload, TResult>
  readonly #workerId: string
  readonly #counters: Counters
  readonly #emitter: SafeEmitter<TResult>
  readonly #keeper: LeaseKeeper<TPayload>
  readonly #exchange: Exchange
  readonly #handle: () => Promise<StorageHandle>
  readonly #onEnd = new Map<Lease<TPayload>, OnEnd>()

  constructor(
    settings: Settings<TPayload, TResult>,
    workerId: string,
    counters: Counters,
    emitter: SafeEmitter<TResult>,
    keeper: LeaseKeeper<TPayload>,
    exchange: Exchange,
    handle: () => Promise<StorageHandle>,
  ) {
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
   * @returns null if its payload can't be decoded: the job has been failed
   */
  prepare(lease: Lease<TPayload>, onEnd?: OnEnd): LeasedJob<TPayload> | null {
    if (onEnd !== undefined) this.#onEnd.set(lease, onEnd)
    lease.startedAt = this.#settings.clock.now()
    lease.startedMonotonic = this.#settings.clock.monotonic()
    try {
      const payload = decode(this.#settings.payloadSerde, lease.record.payload, 'payload')
      lease.job = new LeasedJob(lease.record, payload)
      return lease.job
    } catch (error) {
      // No attempt can succeed, and there is no payload to show a hook.
      lease.decide()
      this.#storeFailure(lease, toError(error), this.#failureTTL(lease))
      return null
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
    if (isRateLimit(error)) {
      void this.#holdQueue(lease, error.retryAfterMs)
      return
    }
    const delayMs = this.#delayBeforeNext(lease, thrown, error)
    if (delayMs !== null) {
      this.#storeRetry(lease, error, delayMs)
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

  /** Gives an attempt back that was cut off by a stop. */
  giveBack(lease: Lease<TPayload>): void {
    if (!lease.decide()) return
    lease.job?.abort(new StoppedError('the handler'))
    this.#store(lease, release(0), () => this.#end(lease, { kind: 'again' }))
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
    const { id } = lease.record.spec
    this.#counters.held++
    try {
      // Before the attempt is given back: no other worker may find the job unheld.
      await (await this.#handle()).hold(retryAfterMs)
      this.#emitter.emit('held', { id, retryAfterMs })
    } catch (error) {
      this.#emitter.emit('error', toError(error))
    }
    this.#store(lease, release(retryAfterMs), () => this.#end(lease, { kind: 'again' }))
  }

  async #afterExecution(
    lease: Lease<TPayload>,
    outcome: { status: 'completed'; result: TResult; ttl: number } | { status: 'failed'; error: Error; ttl: number },
  ): Promise<void> {
    const { record, job, startedAt, startedMonotonic } = lease
    const { clock } = this.#settings
    const context: AfterExecutionContext<TPayload, TResult> = {
      id: record.spec.id,
      payload: (job as LeasedJob<TPayload>).payload,
      attempts: record.attempts,
      maxAttempts: record.spec.maxAttempts,
      createdAt: record.spec.createdAt,
      workerId: this.#workerId,
      startedAt,
      finishedAt: clock.now(),
      durationMs: clock.monotonic() - startedMonotonic,
      ...outcome,
    }
    let ttl = outcome.ttl
    let replaced: { result?: TResult; error?: Error } = context
    try {
      await this.#settings.afterExecution?.(context)
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

  #storeResult(lease: Lease<TPayload>, result: TResult, ttl: number): void {
    const { resultSerde, payloadBytesMax } = this.#settings
    let encoded: Encoded
    try {
      encoded = encode(resultSerde, result, 'result', payloadBytesMax)
    } catch (error) {
      // Running the handler again would answer the same: the job fails.
      this.#storeFailure(lease, toError(error), this.#failureTTL(lease))
      return
    }
    this.#store(lease, complete(encoded, ttl), () => {
      const { record } = lease
      this.#counters.completed++
      if (this.#emitter.has('completed')) {
        const durationMs = this.#settings.clock.monotonic() - lease.startedMonotonic
        this.#emitter.emit('completed', { id: record.spec.id, result, attempts: record.attempts, durationMs })
      }
      this.#end(lease, { kind: 'completed', result: encoded })
    })
  }

  #storeFailure(lease: Lease<TPayload>, error: Error, ttl: number): void {
    const encoded = encodeError(thrownIn(error))
    this.#store(lease, fail(encoded, ttl), () => {
      this.#counters.failed++
      const { attempts, spec } = lease.record
      this.#emitter.emit('failed', { id: spec.id, error, attempts })
      this.#end(lease, { kind: 'failed', error: encoded })
    })
  }

  #storeRetry(lease: Lease<TPayload>, error: Error, delayMs: number): void {
    this.#store(lease, retry(encodeError(thrownIn(error)), delayMs), () => {
      this.#counters.retried++
      const { attempts, spec } = lease.record
      this.#emitter.emit('retrying', { id: spec.id, error, attempts, delayMs })
      this.#end(lease, { kind: 'again' })
    })
  }

  #store(lease: Lease<TPayload>, verdict: Verdict, stored: () => void): void {
    const { spec, attempts, generation } = lease.record
    let told = stored
    this.#exchange.settle({
      id: spec.id,
      generation,
      verdict,
      settled: (outcome) => {
        this.#keeper.remove(lease)
        if (outcome === 'settled') {
          told()
          return
        }
        if (outcome === 'stale') {
          this.#counters.stale_ignored++
          this.#emitter.emit('stale', { id: spec.id, attempts })
        }
        this.#end(lease, { kind: 'lost' })
      },
      refused: (error) => {
        if (verdict.kind === 'fail') return null
        const encoded = encodeError(error)
        told = () => {
          this.#counters.failed++
          this.#emitter.emit('failed', { id: spec.id, error, attempts })
          this.#end(lease, { kind: 'failed', error: encoded })
        }
        return fail(encoded, this.#failureTTL(lease))
      },
    })
  }

  #end(lease: Lease<TPayload>, ending: Ending): void {
    const onEnd = this.#onEnd.get(lease)
    if (onEnd === undefined) return
    this.#onEnd.delete(lease)
    onEnd(ending)
  }
}

/** The terminal error of a record: the handler's as it was, or that its attempts ran out. */
export function errorOf(record: JobRecord): Error {
  if (record.state === 'failed' && record.reason === 'exhausted') return new AttemptsExhaustedError(record.attempts)
  return decodeError(record.state === 'failed' || record.state === 'failing' ? record.error : null)
}

/** By name and code too: the handler may have another copy of this package. */
function isUnrecoverable(error: Error): boolean {
  return error instanceof UnrecoverableError || (error as { code?: unknown }).code === 'ASKONCE_UNRECOVERABLE'
}

function isRateLimit(error: Error): error is RateLimitedError {
  if (error instanceof RateLimitedError) return true
  const { code, retryAfterMs } = error as { code?: unknown; retryAfterMs?: unknown }
  return code === 'ASKONCE_RATE_LIMITED' && Number.isSafeInteger(retryAfterMs) && (retryAfterMs as number) > 0
}

/** What was really thrown, where `toError` had to wrap it. */
function thrownIn(error: Error): unknown {
  return Object.hasOwn(error, 'thrown') ? (error as { thrown?: unknown }).thrown : error
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
