/**
 * Options checked and completed with their defaults, once, before anything is done with them.
 *
 * @module
 */

import { type Clock, systemClock } from './clock.ts'
import { jsonSerde } from './codec.ts'
import { guardDuration, guardInteger, InvalidArgumentError, TooLargeError } from './errors.ts'
import { limits } from './limits.ts'
import type { AfterExecution, EnqueueOptions, Logger, QueueOptions, Serde } from './options.ts'
import { defaults } from './options.ts'
import { exponential, type RetryPolicy } from './retry.ts'
import type { Storage } from './storage.ts'
import type { Meter } from './telemetry.ts'

/** A queue's options, complete. */
export interface Settings<TPayload, TResult> {
  readonly storage: Storage
  readonly name: string
  readonly resultTTL: number
  readonly failureTTL: number
  readonly maxAttempts: number
  readonly concurrency: number
  readonly leaseMs: number
  readonly handlerTimeoutMs: number
  readonly timeout: number
  readonly stopTimeout: number
  readonly rejectMismatch: boolean
  readonly payloadBytesMax: number
  readonly retry: RetryPolicy
  readonly afterExecution: AfterExecution<TPayload, TResult> | undefined
  readonly payloadSerde: Serde<TPayload>
  readonly resultSerde: Serde<TResult>
  readonly logger: Logger | undefined
  readonly outboxTTL: number
  readonly meter: Meter | undefined
  readonly sweepIntervalMs: number
  readonly clock: Clock
  readonly random: () => number
}

/** What of a queue's settings an enqueue falls back on. */
export type EnqueueDefaults = Pick<
  Settings<unknown, unknown>,
  'resultTTL' | 'failureTTL' | 'maxAttempts' | 'rejectMismatch'
>

/** What one enqueue fixes, complete. */
export interface EnqueueSettings {
  readonly resultTTL: number
  readonly failureTTL: number
  readonly maxAttempts: number
  readonly delayMs: number
  readonly rejectMismatch: boolean
  readonly fingerprint: string | undefined
  readonly refresh: boolean
}

const defaultRetry = exponential({ baseMs: defaults.retryBaseMs, maxMs: defaults.retryMaxMs })

/** @throws {@link InvalidArgumentError} */
export function readSettings<TPayload, TResult>(
  options: QueueOptions<TPayload, TResult>,
  defaultStorage: () => Storage,
): Settings<TPayload, TResult> {
  guardObject('options', options)
  const { name = defaults.name, resultTTL = defaults.resultTTL, payloadMismatch = defaults.payloadMismatch } = options
  guardName(name)
  guardDuration('options.resultTTL', resultTTL)
  const { failureTTL = resultTTL, maxAttempts = defaults.maxAttempts, concurrency = defaults.concurrency } = options
  guardDuration('options.failureTTL', failureTTL)
  guardInteger('options.maxAttempts', maxAttempts, 1, limits.maxAttemptsMax)
  guardInteger('options.concurrency', concurrency, 1, limits.concurrencyMax)
  const { leaseMs = defaults.leaseMs, handlerTimeoutMs = defaults.handlerTimeoutMs } = options
  guardInteger('options.leaseMs', leaseMs, limits.leaseMsMin, limits.durationMsMax)
  guardWait('options.handlerTimeoutMs', handlerTimeoutMs)
  const { timeout = defaults.timeout, stopTimeout = defaults.stopTimeout } = options
  guardWait('options.timeout', timeout)
  if (stopTimeout !== 0) guardWait('options.stopTimeout', stopTimeout)
  guardMismatch(payloadMismatch)
  // Not `??`: a null where a storage should be must not quietly become a queue that forgets everything at exit.
  const storage = options.storage === undefined ? defaultStorage() : options.storage
  guardStorage(storage)
  const { payloadBytesMax = storage.traits.payloadBytesMax } = options
  guardInteger('options.payloadBytesMax', payloadBytesMax, 1, storage.traits.payloadBytesMax)
  const { retry = defaultRetry, afterExecution, random = Math.random, sweepIntervalMs, logger } = options
  const { clock = systemClock } = options
  guardMethods('options.clock', clock, ['now', 'monotonic', 'timer'])
  if (logger !== undefined) guardMethods('options.logger', logger, ['debug', 'info', 'warn', 'error'])
  guardFunction('options.retry', retry)
  guardFunction('options.random', random)
  const { outboxTTL = defaults.outboxTTL } = options
  guardDuration('options.outboxTTL', outboxTTL)
  if (afterExecution !== undefined) guardFunction('options.afterExecution', afterExecution)
  if (sweepIntervalMs !== undefined) guardDuration('options.sweepIntervalMs', sweepIntervalMs)
  const { payloadSerde = jsonSerde as Serde<TPayload>, resultSerde = jsonSerde as Serde<TResult> } = options
  guardMethods('options.payloadSerde', payloadSerde, ['serialize', 'deserialize'])
  guardMethods('options.resultSerde', resultSerde, ['serialize', 'deserialize'])
  return {
    storage,
    name,
    resultTTL,
    failureTTL,
    maxAttempts,
    concurrency,
    leaseMs,
    handlerTimeoutMs,
    timeout,
    stopTimeout,
    rejectMismatch: payloadMismatch === 'reject',
    payloadBytesMax,
    retry,
    afterExecution,
    outboxTTL,
    payloadSerde,
    resultSerde,
    logger,
    meter: options.meter,
    sweepIntervalMs: sweepIntervalMs ?? defaults.sweepIntervalMs,
    clock,
    random,
  }
}

/** @throws {@link InvalidArgumentError} */
export function readEnqueueOptions(
  options: EnqueueOptions | undefined,
  settings: EnqueueDefaults,
  field: string,
): EnqueueSettings {
  if (options === undefined) return plainEnqueue(settings)
  guardObject(field, options)
  const { resultTTL, failureTTL, maxAttempts, delay, payloadMismatch, fingerprint, refresh = false } = options
  if (resultTTL !== undefined) guardDuration(`${field}.resultTTL`, resultTTL)
  if (failureTTL !== undefined) guardDuration(`${field}.failureTTL`, failureTTL)
  if (maxAttempts !== undefined) guardInteger(`${field}.maxAttempts`, maxAttempts, 1, limits.maxAttemptsMax)
  if (delay !== undefined) guardDuration(`${field}.delay`, delay)
  if (typeof refresh !== 'boolean') throw new InvalidArgumentError(`${field}.refresh`, 'a boolean', refresh)
  if (payloadMismatch !== undefined) guardMismatch(payloadMismatch, `${field}.payloadMismatch`)
  if (fingerprint !== undefined) guardFingerprint(fingerprint, `${field}.fingerprint`)
  return {
    resultTTL: resultTTL ?? settings.resultTTL,
    failureTTL: failureTTL ?? resultTTL ?? settings.failureTTL,
    maxAttempts: maxAttempts ?? settings.maxAttempts,
    delayMs: delay ?? 0,
    rejectMismatch: payloadMismatch === undefined ? settings.rejectMismatch : payloadMismatch === 'reject',
    fingerprint,
    refresh,
  }
}

function guardFingerprint(value: unknown, field: string): void {
  if (typeof value === 'string' && value !== '' && value.isWellFormed()) return
  throw new InvalidArgumentError(field, 'non-empty, well-formed text', value)
}

const plain = new WeakMap<object, EnqueueSettings>()

/** Most enqueues set nothing: they share one object. */
function plainEnqueue(settings: EnqueueDefaults): EnqueueSettings {
  let shared = plain.get(settings)
  if (shared === undefined) {
    const { resultTTL, failureTTL, maxAttempts, rejectMismatch } = settings
    shared = { resultTTL, failureTTL, maxAttempts, delayMs: 0, rejectMismatch, fingerprint: undefined, refresh: false }
    plain.set(settings, shared)
  }
  return shared
}

/** A duration that may be Infinity. */
export function guardWait(field: string, value: unknown): asserts value is number {
  if (value !== Number.POSITIVE_INFINITY) guardDuration(field, value)
}

/** A signal that ends a wait; none is fine. */
export function guardSignal(field: string, value: unknown): void {
  if (value === undefined) return
  const { aborted, addEventListener, throwIfAborted } = (value ?? {}) as Partial<AbortSignal>
  if (typeof aborted !== 'boolean' || typeof addEventListener !== 'function' || typeof throwIfAborted !== 'function') {
    throw new InvalidArgumentError(field, 'an AbortSignal', value)
  }
}

export function guardFunction(field: string, value: unknown): void {
  if (typeof value !== 'function') throw new InvalidArgumentError(field, 'a function', value)
}

export function guardObject(field: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) throw new InvalidArgumentError(field, 'an object', value)
}

function guardName(name: unknown): void {
  if (typeof name !== 'string' || name === '') {
    throw new InvalidArgumentError('options.name', 'a non-empty string', name)
  }
  const bytes = Buffer.byteLength(name)
  if (bytes > limits.nameBytesMax) throw new TooLargeError('options.name', bytes, limits.nameBytesMax)
  if (!name.isWellFormed()) throw new InvalidArgumentError('options.name', 'well-formed Unicode', name)
}

function guardMismatch(value: unknown, field = 'options.payloadMismatch'): void {
  if (value !== 'ignore' && value !== 'reject') throw new InvalidArgumentError(field, `'ignore' or 'reject'`, value)
}

function guardStorage(value: unknown): void {
  const { open, traits } = (value ?? {}) as Partial<Storage>
  if (typeof open !== 'function' || typeof traits !== 'object' || traits === null) {
    throw new InvalidArgumentError('options.storage', 'a Storage (see askonce/memory and its siblings)', value)
  }
}

function guardMethods(field: string, value: unknown, methods: readonly string[]): void {
  const object = value as Record<string, unknown> | null
  if (methods.some((method) => typeof object?.[method] !== 'function')) {
    throw new InvalidArgumentError(field, `an object with ${methods.join(', ')}`, value)
  }
}
