/**
 * The relay: delivers the rows of outboxes, at least once, with back-off.
 *
 * @module
 */

import type { Clock } from './clock.ts'
import { decode, jsonSerde, toError } from './codec.ts'
import type { Counters } from './counters.ts'
import type { OutboxRow } from './effects.ts'
import { rowsFromText, rowsToText } from './effects.ts'
import { LeaseLostError, StoppedError } from './errors.ts'
import type { SafeEmitter } from './events.ts'
import { limits } from './limits.ts'
import { PollTimer } from './poll-timer.ts'
import type { CompletedRecord } from './record.ts'
import type { RetryPolicy } from './retry.ts'
import type { Delivery, StorageHandle, StorageTraits } from './storage.ts'
import type { TokenSource } from './tokens.ts'

/** One row to be delivered. */
export interface OutboxMessage {
  /** Of the job that posted it. */
  readonly id: string
  readonly name: string
  /** `id/name`: what a consumer can deduplicate by. Names have no `/`, so no two rows share it. */
  readonly key: string
  readonly payload: unknown
  /** The lease whose completion posted it: tells the rows of a refreshed or later job of the same id from these. */
  readonly generation: string
  /** This delivery's number, from 1. */
  readonly attempts: number
  /** Aborts when the time for this delivery is up: another relay may begin it then. */
  readonly signal: AbortSignal
}

/** Takes a row out of the process. Throwing has it delivered again later. */
export type Deliver = (message: OutboxMessage) => unknown

/** What can be set on a relay. */
export interface RelayOptions {
  /** Records whose rows are delivered at the same time; default 10. */
  concurrency?: number
  /**
   * ms that the rows of one record may take together; default 30,000. After it another relay may deliver them; what hangs is cut
   * off a fifth before, and then waits behind the other rows.
   */
  leaseMs?: number
  /** Default: exponential from 1 s to 5 min, with full jitter. Answering null waits as long as it ever does. */
  retry?: RetryPolicy
}

/** A relay that delivers until it is stopped. */
export interface Relay {
  /** Begins no further delivery; resolves when those under way have ended. */
  stop(): Promise<void>
}

/** What a relay is made of. */
export interface RelayParts<TResult> {
  readonly clock: Clock
  readonly random: () => number
  readonly traits: StorageTraits
  readonly tokens: TokenSource
  readonly counters: Counters
  readonly emitter: SafeEmitter<TResult>
  readonly handle: () => Promise<StorageHandle>
  readonly onError: (error: unknown) => void
  readonly deliver: Deliver
  readonly concurrency: number
  readonly leaseMs: number
  readonly retry: RetryPolicy
}

/** Share of the lease after which deliveries are cut off, so that what is left is told before the lease ends. */
const deliverShare = 0.8
/** The wait of a policy that gives up: an outbox is only given up when its time has ended. */
const longestDelayMs = 300_000

/** Delivers until it is stopped. */
export class OutboxRelay<TResult> implements Relay {
  readonly #parts: RelayParts<TResult>
  /** Ends of deliveries that the storage is still to be told. */
  #ended: Delivery[] = []
  #running = 0
  #calling = false
  /** Nothing was due; until a hint or a timer says else. */
  #idle = false
  #hinted = false
  #stopped = false
  readonly #timer: PollTimer
  #onQuiet: (() => void)[] = []
  /** Of the deliveries under way. */
  readonly #controllers = new Set<AbortController>()

  constructor(parts: RelayParts<TResult>) {
    this.#parts = parts
    this.#timer = new PollTimer(parts, () => this.#onWake())
    this.#timer.wakeAtLast()
    this.#turn()
  }

  /** An outbox may be due in `inMs`. */
  hint(inMs: number): void {
    if (this.#stopped) return
    if (inMs > 0) {
      this.#timer.wakeIn(inMs)
      return
    }
    this.#hinted = true
    this.#idle = false
    this.#turn()
  }

  stop(): Promise<void> {
    this.#stopped = true
    this.#timer.clear()
    return new Promise((resolve) => {
      this.#onQuiet.push(resolve)
      this.#turn()
    })
  }

  /** Cuts off the deliveries under way: their rows are delivered again by whoever comes next. */
  abandon(): void {
    for (const controller of this.#controllers) controller.abort(new StoppedError('the delivery'))
  }

  /** One call at a time: what has ended since the last travels with the wish for more. */
  #turn(): void {
    if (this.#calling) return
    const room = this.#stopped || this.#idle ? 0 : this.#parts.concurrency - this.#running
    if (room < 1 && this.#ended.length === 0) {
      if (!this.#stopped || this.#running > 0) return
      for (const resolve of this.#onQuiet.splice(0)) resolve()
      return
    }
    this.#calling = true
    void this.#call(Math.min(room, limits.callItemsMax)).finally(() => {
      this.#calling = false
      this.#turn()
    })
  }

  async #call(limit: number): Promise<void> {
    const { clock, tokens, leaseMs, handle, onError } = this.#parts
    const ended = this.#ended
    this.#ended = []
    this.#hinted = false
    const generation = tokens.next()
    const request = limit < 1 ? null : { generation, leaseMs, limit }
    const sentAt = clock.monotonic()
    try {
      const { collected } = await (await handle()).deliver(ended, request)
      if (collected === null) return
      for (const record of collected.records) void this.#deliver(record, generation, sentAt)
      if (collected.records.length > 0) this.#timer.found()
      if (collected.records.length >= limit || this.#hinted) return
      this.#idle = true
      if (!this.#stopped) this.#timer.poll(collected.nextInMs)
    } catch (error) {
      // What was delivered will be delivered again, unless the storage heard it: at least once is the promise.
      if (this.#stopped) return
      onError(error)
      this.#idle = true
      this.#timer.poll(null)
    }
  }

  async #deliver(record: CompletedRecord, generation: string, sentAt: number): Promise<void> {
    this.#running++
    const { id } = record.spec
    try {
      const { rows, delayMs } = await this.#deliverRows(record, sentAt)
      this.#ended.push({ id, generation, rows, delayMs })
    } catch (error) {
      // Rows that can't be read: they are kept, and told of, until their time ends.
      this.#parts.onError(error)
    } finally {
      this.#running--
      this.#turn()
    }
  }

  async #deliverRows(record: CompletedRecord, sentAt: number): Promise<{ rows: string | null; delayMs: number }> {
    const { clock, leaseMs, retry, random, counters, emitter } = this.#parts
    const { attempts, rows: text } = record.outbox!
    const { id } = record.spec
    const failed: OutboxRow[] = []
    const untried: OutboxRow[] = []
    let last: unknown = null
    const controller = new AbortController()
    this.#controllers.add(controller)
    const late = () => controller.abort(new LeaseLostError(id))
    const timer = clock.timer(late, Math.max(0, sentAt + leaseMs * deliverShare - clock.monotonic()), true)
    try {
      for (const row of rowsFromText(text)) {
        const { name } = row
        if (controller.signal.aborted) {
          untried.push(row)
          continue
        }
        try {
          await this.#inTime(record, row, controller.signal)
          counters.delivered++
          if (emitter.has('delivered')) emitter.emit('delivered', { id, name, attempts })
        } catch (thrown) {
          const error = toError(thrown)
          last = error
          failed.push(row)
          counters.undelivered++
          emitter.emit('undelivered', { id, name, attempts, error })
        }
      }
    } finally {
      timer.clear()
      this.#controllers.delete(controller)
    }
    // A row that hangs or fails must not keep those behind it from their turn.
    const left = [...untried, ...failed]
    if (left.length === 0) return { rows: null, delayMs: 0 }
    return { rows: rowsToText(left), delayMs: this.#delayMs(retry, attempts, last, random()) }
  }

  /** A deliver that never answers must not keep the others waiting for longer than its lease. */
  #inTime(record: CompletedRecord, { name, payload }: OutboxRow, signal: AbortSignal): Promise<unknown> {
    const { id } = record.spec
    const message: OutboxMessage = {
      id,
      name,
      key: `${id}/${name}`,
      payload: decode(jsonSerde, payload, 'outbox payload'),
      generation: record.generation ?? '',
      attempts: record.outbox!.attempts,
      signal,
    }
    return new Promise((resolve, reject) => {
      const onAbort = () => reject(signal.reason)
      signal.addEventListener('abort', onAbort, { once: true })
      new Promise((answer) => answer(this.#parts.deliver(message)))
        .finally(() => signal.removeEventListener('abort', onAbort))
        .then(resolve, reject)
    })
  }

  #delayMs(retry: RetryPolicy, attempts: number, error: unknown, random: number): number {
    try {
      const delayMs = retry(attempts, error, random) ?? longestDelayMs
      if (delayMs >= 0 && delayMs <= limits.durationMsMax) return Math.ceil(delayMs)
    } catch (trouble) {
      this.#parts.onError(trouble)
    }
    return longestDelayMs
  }

  #onWake(): void {
    this.#idle = false
    // Whatever becomes of this turn, another follows.
    this.#timer.wakeAtLast()
    this.#turn()
  }
}
