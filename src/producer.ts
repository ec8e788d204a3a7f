/**
 * Asking: enqueue, cancel, read, keep longer. Calls of one tick travel together.
 *
 * @module
 */

import { errorOf } from './attempts.ts'
import { asIs, Batcher } from './batcher.ts'
import { decode, encodePayload } from './codec.ts'
import type { Counters } from './counters.ts'
import { guardDuration, guardId, InvalidArgumentError, PayloadMismatchError } from './errors.ts'
import type { SafeEmitter } from './events.ts'
import { limits } from './limits.ts'
import type { CancelOutcome, TouchOutcome } from './machine.ts'
import type { EnqueueOptions, EnqueueRequest } from './options.ts'
import type { CompletedRecord, Encoded, JobRecord, JobState, Kept } from './record.ts'
import { isTerminal } from './record.ts'
import type { Settings } from './settings.ts'
import { readEnqueueOptions } from './settings.ts'
import type { EnqueueAnswer, EnqueueAnswers, EnqueueItem, LeaseTerms, StorageHandle } from './storage.ts'
import type { TokenSource } from './tokens.ts'

/** The answer to `enqueue`. */
export type EnqueueResult<TResult> =
  /** The record was created by this call. */
  | { status: 'queued' }
  /** A record lives; a failed job's error is read with `getStatus`. */
  | { status: 'duplicate'; existingState: JobState }
  /** The job is done: its result, without another run. */
  | { status: 'completed'; result: TResult }

/** The answer to one item of `enqueueMany`: where `enqueue` would throw PayloadMismatchError, a status says so. */
export type EnqueueManyResult<TResult> =
  | EnqueueResult<TResult>
  | { status: 'payload_mismatch'; existingState: JobState }

/** What `getStatus` tells of a record. Times are ms since 1970 by the storage's clock. */
export interface JobStatus<TResult> {
  id: string
  state: JobState
  attempts: number
  maxAttempts: number
  createdAt: number
  /** completed: what the handler answered. */
  result?: TResult
  /** failed: why; failing: why the last attempt failed; completed: why a refresh failed, and `result` is the one before. */
  error?: Error
  /** queued, failing: when the next attempt may start. */
  availableAt?: number
  /** processing: when the lease ends, unless renewed. */
  leaseEndsAt?: number
  /** completed, failed: when it was settled. */
  settledAt?: number
  /** completed, failed: until when it is kept. */
  expiresAt?: number
  /** queued, processing, failing, while the job is being refreshed: the result that is still answered with. */
  previous?: { result: TResult; settledAt: number; expiresAt: number }
}

/** The read and write calls of a queue that run no handler. */
export class Producer<TPayload, TResult> {
  readonly #settings: Settings<TPayload, TResult>
  readonly #tokens: TokenSource
  readonly #counters: Counters
  readonly #emitter: SafeEmitter<TResult>
  readonly #handle: () => Promise<StorageHandle>
  readonly #enqueues: Batcher<EnqueueItem, EnqueueAnswer>
  readonly #cancels: Batcher<string, CancelOutcome>
  readonly #touches: Batcher<{ id: string; ttlMs: number }, TouchOutcome>
  readonly #gets: Batcher<string, JobRecord | null>
  readonly #claims: Batcher<{ id: string } & LeaseTerms, JobRecord | null>

  constructor(
    settings: Settings<TPayload, TResult>,
    tokens: TokenSource,
    counters: Counters,
    emitter: SafeEmitter<TResult>,
    handle: () => Promise<StorageHandle>,
  ) {
    this.#settings = settings
    this.#tokens = tokens
    this.#counters = counters
    this.#emitter = emitter
    this.#handle = handle
    const { gather } = settings.storage.traits
    this.#enqueues = new Batcher(async (items) => withoutEnded(await (await handle()).enqueue(items)), gather)
    this.#cancels = new Batcher(async (ids) => (await handle()).cancel(ids), gather)
    this.#touches = new Batcher(async (items) => (await handle()).touch(items), gather)
    this.#gets = new Batcher(async (ids) => {
      const { now, records } = await (await handle()).get(ids)
      return records.map((record) => withoutEndedKept(record, now))
    }, gather)
    this.#claims = new Batcher((items) => this.#claimByIds(items), gather)
  }

  enqueue(id: string, payload: TPayload, options?: EnqueueOptions): Promise<EnqueueResult<TResult>> {
    let item: EnqueueItem
    try {
      item = this.item(id, payload, options, null, false)
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#enqueues.add(item, this.#toResult)
  }

  readonly #toResult = (item: EnqueueItem, answer: EnqueueAnswer): EnqueueResult<TResult> => {
    this.#judge(item, answer)
    if (answer.outcome === 'created') return { status: 'queued' }
    const { record } = answer
    const answered = item.refresh === true ? null : answerOf(record)
    if (answered !== null) return { status: 'completed', result: this.resultOf(answered) }
    return { status: 'duplicate', existingState: record.state }
  }

  async enqueueMany(requests: Iterable<EnqueueRequest<TPayload>>): Promise<EnqueueManyResult<TResult>[]> {
    const items: EnqueueItem[] = []
    for (const request of guardIterable(requests)) {
      const field = `items[${items.length}]`
      if (typeof request !== 'object' || request === null) {
        throw new InvalidArgumentError(field, 'an object with id and payload', request)
      }
      items.push(this.item(request.id, request.payload, request, null, false, field))
    }
    const results: EnqueueManyResult<TResult>[] = []
    const handle = await this.#handle()
    for (let from = 0; from < items.length; from += limits.callItemsMax) {
      const slice = items.slice(from, from + limits.callItemsMax)
      const answers = withoutEnded(await handle.enqueue(slice))
      for (let index = 0; index < slice.length; index++) {
        results.push(this.#manyResult(slice[index] as EnqueueItem, answers[index] as EnqueueAnswer))
      }
    }
    return results
  }

  #manyResult(item: EnqueueItem, answer: EnqueueAnswer): EnqueueManyResult<TResult> {
    const { record } = answer
    this.#count(item, answer)
    if (answer.outcome === 'created') return { status: 'queued' }
    if (answer.mismatch && item.rejectMismatch) return { status: 'payload_mismatch', existingState: record.state }
    const answered = item.refresh === true ? null : answerOf(record)
    if (answered !== null) return { status: 'completed', result: this.resultOf(answered) }
    return { status: 'duplicate', existingState: record.state }
  }

  /**
   * An item out of a caller's arguments, all of them checked.
   *
   * @param lease - given by inline runs
   * @param wait - whether the outcome will be waited for
   */
  item(
    id: string,
    payload: TPayload,
    options: EnqueueOptions | undefined,
    lease: LeaseTerms | null,
    wait: boolean,
    field = '',
  ): EnqueueItem {
    guardId(id, field === '' ? 'id' : `${field}.id`)
    const settings = this.#settings
    const enqueue = readEnqueueOptions(options, settings, field === '' ? 'options' : field)
    const { payloadSerde, payloadBytesMax } = settings
    const { encoded, fingerprint } = encodePayload(payloadSerde, payload, payloadBytesMax, enqueue.fingerprint)
    const { maxAttempts, resultTTL, failureTTL, delayMs, rejectMismatch, refresh } = enqueue
    const incarnation = this.#tokens.next()
    const spec = { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL }
    return { spec, payload: encoded, delayMs, rejectMismatch, lease, wait, refresh }
  }

  /**
   * Sends one item.
   *
   * @throws {@link PayloadMismatchError} where that is to be rejected
   */
  ask(item: EnqueueItem): Promise<EnqueueAnswer> {
    return this.#enqueues.add(item, this.#judge)
  }

  readonly #judge = (item: EnqueueItem, answer: EnqueueAnswer): EnqueueAnswer => {
    this.#count(item, answer)
    if (answer.mismatch && item.rejectMismatch) throw new PayloadMismatchError(item.spec.id)
    return answer
  }

  #count(item: EnqueueItem, answer: EnqueueAnswer): void {
    const { id } = item.spec
    if (answer.outcome === 'created') {
      this.#counters.claimed++
      if (this.#emitter.has('queued')) this.#emitter.emit('queued', { id })
      return
    }
    const existingState = answer.record.state
    this.#counters.deduped++
    if (answer.mismatch) {
      this.#counters.mismatched++
      this.#emitter.emit('mismatch', { id, existingState })
    }
    const replayed = isTerminal(answer.record) || (item.refresh !== true && answerOf(answer.record) !== null)
    if (replayed && !(answer.mismatch && item.rejectMismatch)) this.#counters.replayed++
    if (this.#emitter.has('duplicate')) this.#emitter.emit('duplicate', { id, existingState })
  }

  /** Leases one record by its id, if it is due; answers the record leased, or null. */
  claim(id: string, lease: LeaseTerms): Promise<JobRecord | null> {
    return this.#claims.add({ id, ...lease }, asIs)
  }

  async #claimByIds(items: readonly ({ id: string } & LeaseTerms)[]): Promise<(JobRecord | null)[]> {
    const first = items[0] as LeaseTerms
    const ids = [...new Set(items.map((item) => item.id))]
    const request = { generation: first.generation, leaseMs: first.leaseMs, limit: ids.length, ids }
    const { jobs } = await (await this.#handle()).claim(request)
    const leased = new Map<string, JobRecord>(jobs.map((record) => [record.spec.id, record]))
    return items.map(({ id }) => {
      // Of several callers for one id only the first has the lease.
      const record = leased.get(id) ?? null
      leased.delete(id)
      return record
    })
  }

  async cancel(id: string): Promise<{ status: CancelOutcome }> {
    guardId(id)
    const status = await this.#cancels.add(id, asIs)
    if (status === 'cancelled') this.#emitter.emit('cancelled', { id })
    return { status }
  }

  async updateResultTTL(id: string, ttlMs: number): Promise<{ status: TouchOutcome }> {
    guardId(id)
    guardDuration('ttlMs', ttlMs)
    return { status: await this.#touches.add({ id, ttlMs }, asIs) }
  }

  async getResult(id: string): Promise<TResult | null> {
    guardId(id)
    const answered = answerOf(await this.#gets.add(id, asIs))
    return answered === null ? null : this.resultOf(answered)
  }

  async getStatus(id: string): Promise<JobStatus<TResult> | null> {
    guardId(id)
    const record = await this.#gets.add(id, asIs)
    if (record === null) return null
    const { state, spec, attempts, at } = record
    const status: JobStatus<TResult> = {
      id,
      state,
      attempts,
      maxAttempts: spec.maxAttempts,
      createdAt: spec.createdAt,
    }
    const kept = isTerminal(record) ? undefined : record.kept
    if (kept !== undefined) {
      status.previous = { result: this.resultOf(kept), settledAt: kept.settledAt, expiresAt: kept.until }
    }
    switch (record.state) {
      case 'queued':
        return { ...status, availableAt: at }
      case 'processing':
        return { ...status, leaseEndsAt: at }
      case 'failing':
        return { ...status, availableAt: at, error: errorOf(record) }
      case 'completed':
        if (record.missed !== undefined && record.missed.reason !== 'cancelled') status.error = errorOf(record)
        return { ...status, result: this.resultOf(record), settledAt: record.settledAt, expiresAt: at }
      case 'failed':
        return { ...status, error: errorOf(record), settledAt: record.settledAt, expiresAt: at }
    }
  }

  /** @throws {@link SerializationError} if what is stored can't be decoded */
  resultOf(record: { readonly result: Encoded | null }): TResult {
    return decode(this.#settings.resultSerde, record.result, 'result')
  }
}

/** What a record answers with: its result, or that of the run before while it is being refreshed; or null. */
export function answerOf(record: JobRecord | null): CompletedRecord | Kept | null {
  if (record === null || record.state === 'failed') return null
  return record.state === 'completed' ? record : (record.kept ?? null)
}

/** Answers as they are to be read: a result that was kept beside a record, and has ended by now, is none. */
function withoutEnded({ now, answers }: EnqueueAnswers): readonly EnqueueAnswer[] {
  // A loop: nearly always there is nothing to change, and every enqueue comes by here.
  for (let index = 0; index < answers.length; index++) {
    const { record } = answers[index] as EnqueueAnswer
    if (record.state !== 'completed' && withoutEndedKept(record, now) !== record) {
      return answers.map((answer) => ({ ...answer, record: withoutEndedKept(answer.record, now) }))
    }
  }
  return answers
}

/** The record; if what it keeps has ended, without that. */
function withoutEndedKept<R extends JobRecord | null>(record: R, now: number): R {
  if (record === null || isTerminal(record) || record.kept === undefined || record.kept.until > now) return record
  const { kept, ...rest } = record
  return rest as R
}

function guardIterable<T>(value: Iterable<T>): Iterable<T> {
  if (typeof (value as Partial<Iterable<T>> | null)?.[Symbol.iterator] === 'function' && typeof value !== 'string') {
    return value
  }
  throw new InvalidArgumentError('items', 'an iterable of { id, payload, … }', value)
}
