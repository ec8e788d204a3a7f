/**
 * The decoder: a queue that asks vPIC once for each VIN, whoever asks it, from however many processes.
 *
 * @module
 */

import { type Clock, systemClock } from '../../clock.ts'
import { AskonceError, guardDuration, guardInteger, InvalidArgumentError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import { Queue } from '../../queue.ts'
import { checkVin } from './check.ts'
import { UpstreamMeter, type VinCounters } from './counters.ts'
import {
  clientOf,
  type DecodeManyOptions,
  type DecodeOptions,
  guardBatch,
  type VinDecoderOptions,
  type VinRequest,
} from './decoder-options.ts'
import { type VinPayload, vinHandler } from './handler.ts'
import { idOf, modelYearOf } from './id.ts'
import { inOrder } from './in-order.ts'
import { Origins } from './origins.ts'
import {
  type AskedVin,
  decodedOutcome,
  failedOutcome,
  refusedLocally,
  type UndecidedOutcome,
  undecided,
  type VinOutcome,
} from './outcome.ts'
import { Pacer } from './pace.ts'
import { policyOf, ttlOf, type VinPolicy } from './policy.ts'
import { retryPolicyOf, ttlSetter } from './queue-policy.ts'
import type { DecodedVin } from './row.ts'

/** The queue of a {@link VinDecoder}. */
export type VinQueue = Queue<VinPayload, DecodedVin>

/** Decodes VINs, each once. Made by {@link createVinDecoder}. */
export class VinDecoder {
  /** The queue beneath: events, `getStatus`, `cancel`. Its ids are those of `vinId`. */
  readonly queue: VinQueue
  /** The policy, complete. */
  readonly policy: VinPolicy
  readonly #meter = new UpstreamMeter()
  readonly #origins: Origins
  readonly #partial: boolean
  readonly #worker: boolean
  #starting: Promise<void> | null = null

  /** @internal */
  constructor(options: VinDecoderOptions) {
    const clock = options.clock ?? systemClock
    const batch = guardBatch(options.batch)
    const minIntervalMs = options.minIntervalMs ?? 200
    guardInteger('options.minIntervalMs', minIntervalMs, 0, limits.timerMsMax)
    this.policy = policyOf(options.policy)
    this.#partial = options.partial === true
    this.#worker = options.worker !== false
    this.queue = this.#makeQueue(options, clock)
    this.#origins = new Origins(this.queue)
    const pacer = new Pacer(clock, minIntervalMs)
    const handler = vinHandler({
      client: clientOf(options.client),
      policy: this.policy,
      size: batch.size,
      before: async (vins, signal) => {
        await pacer.turn(signal)
        this.#meter.count(vins)
      },
      alarm: ({ details }) => {
        this.#meter.requestBugs++
        options.logger?.error({ class: details.class, status: details.status }, 'vPIC refused the request itself')
      },
    })
    if (this.#worker) this.queue.executeBatch(handler, batch)
  }

  #makeQueue(options: VinDecoderOptions, clock: Clock): VinQueue {
    const { policy } = this
    const { storage, leaseMs, stopTimeout, logger, random } = options
    const facts = { codes: [], modelYear: null, now: clock.now() }
    return new Queue<VinPayload, DecodedVin>({
      name: options.name ?? 'vin-decode',
      clock,
      timeout: options.timeout ?? 1_800_000,
      maxAttempts: policy.maxAttempts,
      // One call of the handler can be a batch and a run of single calls, each within the client's own time-out.
      handlerTimeoutMs: 3_600_000,
      retry: retryPolicyOf(policy),
      afterExecution: ttlSetter(policy, () => clock.now(), options.afterExecution),
      // What ends without the hook: a job whose workers died.
      failureTTL: ttlOf(policy, 'UPSTREAM', facts) ?? 300_000,
      resultTTL: ttlOf(policy, 'WARN', facts) ?? 86_400_000,
      ...(storage !== undefined && { storage }),
      ...(leaseMs !== undefined && { leaseMs }),
      ...(stopTimeout !== undefined && { stopTimeout }),
      ...(logger !== undefined && { logger }),
      ...(random !== undefined && { random }),
    })
  }

  /**
   * Decodes one VIN: from the answers that are there, or by asking vPIC, together with others. What vPIC or the VIN itself
   * is to blame for is an outcome, not an exception. The first call starts the decoder.
   *
   * @param vin - as it comes: any case, blanks, hyphens, quotes
   * @throws InvalidArgumentError for an option out of its bounds
   * @throws TimeoutError, StoppedError, JobCancelledError, StorageError and their like, if the
   * end was not seen; the signal's reason
   */
  async decode(vin: unknown, options: DecodeOptions = {}): Promise<Exclude<VinOutcome, UndecidedOutcome>> {
    const outcome = await this.#outcomeOf(vin, modelYearOf(options.modelYear), options)
    if (outcome.class === 'UNDECIDED') throw outcome.error
    return outcome
  }

  /**
   * Decodes many, in batches, and answers in their order, each with an outcome of its own: no row's trouble is another's, and
   * none is thrown. Reads ahead by `inFlightMax` rows at most.
   *
   * @param rows - VINs, or objects with `vin` and `modelYear`
   * @throws InvalidArgumentError for an option out of its bounds; the signal's reason; what `rows` itself throws
   */
  decodeMany(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    options: DecodeManyOptions = {},
  ): AsyncGenerator<VinOutcome, void, undefined> {
    if (typeof rows !== 'object' || rows === null || !(Symbol.iterator in rows || Symbol.asyncIterator in rows)) {
      throw new InvalidArgumentError('rows', 'an iterable of VINs', rows)
    }
    const { inFlightMax = 500, timeout } = options
    guardInteger('options.inFlightMax', inFlightMax, 1, limits.concurrencyMax)
    if (timeout !== undefined && timeout !== Number.POSITIVE_INFINITY) guardDuration('options.timeout', timeout)
    return this.#decodeRows(rows, inFlightMax, timeout, options.signal)
  }

  async *#decodeRows(
    rows: Iterable<unknown> | AsyncIterable<unknown>,
    inFlightMax: number,
    timeout: number | undefined,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<VinOutcome, void, undefined> {
    // Leaving the loop early ends the waits it began; the jobs go on.
    const controller = new AbortController()
    const onAbort = () => controller.abort(signal?.reason)
    if (signal?.aborted) onAbort()
    else signal?.addEventListener('abort', onAbort, { once: true })
    const wait = { signal: controller.signal, ...(timeout !== undefined && { timeout }) }
    try {
      yield* inOrder(rows, (row) => this.#rowOutcome(row, wait), { inFlightMax, signal: controller.signal })
    } finally {
      signal?.removeEventListener('abort', onAbort)
      controller.abort()
    }
  }

  async #rowOutcome(row: unknown, wait: DecodeOptions): Promise<VinOutcome> {
    let vin = row
    try {
      let modelYear: number | null = null
      if (typeof row === 'object' && row !== null && 'vin' in row) {
        vin = row.vin
        modelYear = modelYearOf((row as VinRequest).modelYear, 'row.modelYear')
      }
      return await this.#outcomeOf(vin, modelYear, wait)
    } catch (thrown) {
      if (thrown instanceof AskonceError) return undecided(vin, {}, thrown)
      // The signal's reason, which ends the whole iteration; or a getter of the row.
      const problem = wait.signal?.aborted ? 'a row that was waited for' : 'a row that can be read'
      return undecided(vin, {}, new InvalidArgumentError('row', problem, row))
    }
  }

  async #outcomeOf(raw: unknown, modelYear: number | null, options: DecodeOptions): Promise<VinOutcome> {
    const check = checkVin(raw, { partial: this.#partial })
    if (!check.ok) return refusedLocally(raw, check)
    const asked: AskedVin = { raw, check, id: idOf(check.vin, modelYear, this.policy.version) }
    const { timeout, signal } = options
    const wait = { ...(timeout !== undefined && { timeout }), ...(signal !== undefined && { signal }) }
    signal?.throwIfAborted()
    await this.#started()
    const slot = this.#origins.expect(asked.id)
    try {
      const decoded = await this.queue.enqueueAndWait(asked.id, { vin: check.vin, modelYear }, wait)
      return decodedOutcome(asked, decoded, slot.origin)
    } catch (thrown) {
      const outcome = thrown instanceof InvalidArgumentError ? null : failedOutcome(asked, thrown, slot.origin)
      if (outcome === null) throw thrown
      return outcome
    } finally {
      this.#origins.forget(asked.id, slot)
    }
  }

  /** The first call of a decoder with a worker starts it; a stopped one stays stopped until told. */
  #started(): Promise<void> {
    if (!this.#worker || this.queue.phase !== 'new') return Promise.resolve()
    this.#starting ??= this.queue.start().finally(() => {
      this.#starting = null
    })
    return this.#starting
  }

  /** Opens the storage and begins to work; needed only after {@link stop}, or to work before anybody here asks. */
  start(): Promise<void> {
    return this.queue.start()
  }

  /** Takes no new work, lets the running calls finish, and lets go of the storage. Waits end with StoppedError. */
  stop(): Promise<void> {
    return this.queue.stop()
  }

  /** The same as {@link stop}. */
  close(): Promise<void> {
    return this.stop()
  }

  /** Stops: for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** What was counted since this decoder was made; a copy. */
  get counters(): VinCounters {
    const { claimed, deduped, stale_ignored } = this.queue.counters
    return {
      decode_jobs_claimed: claimed,
      decode_jobs_deduped: deduped,
      decode_jobs_upstream: this.#meter.vins,
      decode_jobs_stale_ignored: stale_ignored,
      vpic_calls: this.#meter.calls,
      request_bugs: this.#meter.requestBugs,
      upstream_per_unique: this.#meter.ratio,
    }
  }
}

/**
 * Makes a decoder.
 *
 * @throws InvalidArgumentError that names the option
 */
export function createVinDecoder(options: VinDecoderOptions = {}): VinDecoder {
  return new VinDecoder(options)
}
