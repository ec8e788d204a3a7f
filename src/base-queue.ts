/**
 * The queue: the face of askonce. It composes the parts and keeps their life: start, stop, pause, resume. `queue.ts` adds the
 * default storage.
 *
 * @module
 */

import { Attempts } from './attempts.ts'
import type { Timer } from './clock.ts'
import { toError } from './codec.ts'
import { type Counters, newCounters } from './counters.ts'
import { Effects } from './effects.ts'
import { guardDuration, guardInteger, StateError, StoppedError, StorageClosedError } from './errors.ts'
import { type Listener, type QueueEvents, SafeEmitter } from './events.ts'
import { Exchange } from './exchange.ts'
import { BatchExecutor, SingleExecutor } from './executors.ts'
import { Asker } from './inline.ts'
import { LeaseKeeper } from './leases.ts'
import { limits } from './limits.ts'
import type { CancelOutcome, TouchOutcome } from './machine.ts'
import type {
  BatchHandler,
  CallbackHandler,
  EnqueueOptions,
  EnqueueRequest,
  Handler,
  PromiseHandler,
  QueueOptions,
  RunOptions,
  WaitOptions,
} from './options.ts'
import { defaults } from './options.ts'
import { type EnqueueManyResult, type EnqueueResult, type JobStatus, Producer } from './producer.ts'
import { type Deliver, OutboxRelay, type Relay, type RelayOptions } from './relay.ts'
import { exponential } from './retry.ts'
import { Session } from './session.ts'
import { guardFunction, guardObject, readSettings, type Settings } from './settings.ts'
import type { Hint, Storage, StorageStats } from './storage.ts'
import { observe } from './telemetry.ts'
import { TokenSource } from './tokens.ts'
import { Waiter } from './waiter.ts'
import { type Executor, Worker } from './worker.ts'

/** How many more calls a stop may need to store its last verdicts before it gives them up, ms. */
const flushMsMax = 5_000

/** What a queue object is doing. */
export type QueuePhase = 'new' | 'started' | 'stopping' | 'stopped'

/** All of {@link Queue} but its default storage. */
export class BaseQueue<TPayload = unknown, TResult = unknown> {
  /** What was counted since this object was made. */
  readonly counters: Readonly<Counters>
  /** Names this object in hooks and logs. */
  readonly workerId: string
  /** Effects that run once per record. */
  readonly effects: Effects
  readonly #settings: Settings<TPayload, TResult>
  readonly #counters: Counters
  readonly #tokens = new TokenSource()
  readonly #emitter: SafeEmitter<TResult>
  readonly #session: Session
  readonly #keeper: LeaseKeeper<TPayload>
  readonly #exchange: Exchange
  readonly #attempts: Attempts<TPayload, TResult>
  readonly #producer: Producer<TPayload, TResult>
  readonly #waiter: Waiter
  readonly #asker: Asker<TPayload, TResult>
  #unobserve: (() => void) | null = null
  #makeExecutor: (() => Executor<TPayload>) | null = null
  #worker: Worker<TPayload> | null = null
  readonly #relays = new Set<OutboxRelay<TResult>>()
  #phase: QueuePhase = 'new'
  #paused = false
  #changing: Promise<void> = Promise.resolve()

  /**
   * @param defaultStorage - makes the storage of a queue that is given none
   * @throws {@link InvalidArgumentError} for an option out of its bounds
   */
  constructor(options: QueueOptions<TPayload, TResult>, defaultStorage: () => Storage) {
    const settings = readSettings(options, defaultStorage)
    const { clock, random, storage, leaseMs } = settings
    const { traits } = storage
    this.#settings = settings
    this.#counters = newCounters()
    this.counters = this.#counters
    this.workerId = this.#tokens.prefix
    this.#emitter = new SafeEmitter(settings.logger)
    this.#session = new Session(storage, settings.name, (hint) => this.#onHint(hint))
    const handle = () => this.#session.handle()
    this.effects = new Effects(this.#tokens, handle, traits.gather)
    const onError = (error: unknown) => this.#onError(error)
    this.#keeper = new LeaseKeeper(clock, leaseMs, settings.handlerTimeoutMs, handle, {
      lost: ({ record }) => {
        this.#log('warn', { id: record.spec.id }, 'lease lost')
        this.#emitter.emit('leaseLost', { id: record.spec.id, attempts: record.attempts })
      },
      overdue: (lease) => this.#attempts.timeOut(lease),
      blocked: (blockedMs) => {
        this.#log('warn', { blockedMs, leaseMs }, 'the event loop was blocked for longer than a heartbeat')
        this.#emitter.emit('blocked', { blockedMs, leaseMs })
      },
      error: onError,
    })
    this.#exchange = new Exchange(clock, random, handle, onError)
    const { workerId } = this
    this.#attempts = new Attempts(
      settings,
      workerId,
      this.#counters,
      this.#emitter,
      this.#keeper,
      this.#exchange,
      handle,
      this.effects,
    )
    this.#producer = new Producer(settings, this.#tokens, this.#counters, this.#emitter, handle)
    this.#waiter = new Waiter(clock, random, traits, handle, onError)
    this.#asker = new Asker(
      settings,
      this.#tokens,
      this.#counters,
      this.#producer,
      this.#waiter,
      this.#keeper,
      this.#attempts,
    )
    this.#observe()
  }

  #observe(): void {
    const { meter, name } = this.#settings
    if (meter !== undefined) this.#unobserve ??= observe(meter, this.#counters, name)
  }

  /** The namespace. */
  get name(): string {
    return this.#settings.name
  }

  /** Encoded bytes that a payload or result may have. */
  get payloadBytesMax(): number {
    return this.#settings.payloadBytesMax
  }

  /** `new`, `started`, `stopping` or `stopped`. */
  get phase(): QueuePhase {
    return this.#phase
  }

  /**
   * Asks for a job. Safe to repeat: while the record lives, nothing runs twice.
   *
   * @param id - 1 to 1,024 bytes of well-formed Unicode: the identity to deduplicate by
   * @param payload - what the handler gets; anything that `payloadSerde` takes
   * @throws {@link InvalidArgumentError}, {@link TooLargeError}, {@link SerializationError} before anything is written
   * @throws {@link PayloadMismatchError} for another payload than the living record's, if mismatches are rejected
   * @throws {@link StorageError} if the storage could not; repeat the call
   */
  enqueue(id: string, payload: TPayload, options?: EnqueueOptions): Promise<EnqueueResult<TResult>> {
    return this.#producer.enqueue(id, payload, options)
  }

  /**
   * Asks for many jobs in as few storage calls as can be. All items are checked before the first is written; an id that
   * occurs twice makes one job.
   *
   * @returns one result an item, in their order
   */
  enqueueMany(items: Iterable<EnqueueRequest<TPayload>>): Promise<EnqueueManyResult<TResult>[]> {
    return this.#producer.enqueueMany(items)
  }

  /**
   * Asks for a job and waits for its result, whoever enqueued it and whenever it finishes. Never waits longer than
   * `timeout`.
   *
   * @throws {@link JobFailedError} if it failed; its `cause` is the handler's error
   * @throws {@link JobCancelledError}, {@link ResultGoneError}, {@link TimeoutError}, {@link StoppedError}, or the signal's
   * reason; and whatever {@link enqueue} throws
   */
  enqueueAndWait(id: string, payload: TPayload, options?: WaitOptions): Promise<TResult> {
    return this.#asker.enqueueAndWait(id, payload, options)
  }

  /**
   * Asks inline, without a worker: the first caller runs `handler` in this process, everyone else, in any process, gets its
   * answer. Should the runner die, a caller who waits takes over with its own handler when the lease ends.
   *
   * @throws as {@link enqueueAndWait}
   */
  run(id: string, payload: TPayload, handler: PromiseHandler<TPayload, TResult>, options?: RunOptions): Promise<TResult>
  run(
    id: string,
    payload: TPayload,
    handler: CallbackHandler<TPayload, TResult>,
    options?: RunOptions,
  ): Promise<TResult>
  run(id: string, payload: TPayload, handler: Handler<TPayload, TResult>, options?: RunOptions): Promise<TResult> {
    return this.#asker.run(id, payload, handler, options)
  }

  /**
   * Removes a job that no worker holds. `cancelled`: it was queued or failing; its id is free at once and its payload will
   * not run again. Otherwise its state, or `not_found`, and nothing has changed.
   */
  cancel(id: string): Promise<{ status: CancelOutcome }> {
    return this.#producer.cancel(id)
  }

  /** What is known of an id, or null. */
  getStatus(id: string): Promise<JobStatus<TResult> | null> {
    return this.#producer.getStatus(id)
  }

  /** A completed job's result; null for any other state (use {@link getStatus} if null is a result of yours). */
  getResult(id: string): Promise<TResult | null> {
    return this.#producer.getResult(id)
  }

  /**
   * Sets how long a finished job is kept, counted from now.
   *
   * @param ttlMs - a whole number of ms from 1 to 100 years
   */
  updateResultTTL(id: string, ttlMs: number): Promise<{ status: TouchOutcome }> {
    return this.#producer.updateResultTTL(id, ttlMs)
  }

  /** Counts of records by state, as far as the storage can tell. */
  async stats(): Promise<StorageStats> {
    return (await this.#session.handle()).stats()
  }

  /**
   * Says how jobs are run. Work begins with {@link start}, or at once if that was before.
   *
   * @param handler - answers by value or promise, or by a callback if it has a second parameter
   * @throws {@link StateError} if there is a handler already
   */
  execute(handler: PromiseHandler<TPayload, TResult>, options?: { concurrency?: number }): this
  execute(handler: CallbackHandler<TPayload, TResult>, options?: { concurrency?: number }): this
  execute(handler: Handler<TPayload, TResult>, options: { concurrency?: number } = {}): this {
    guardFunction('handler', handler)
    guardObject('options', options)
    const { concurrency = this.#settings.concurrency } = options
    guardInteger('options.concurrency', concurrency, 1, limits.concurrencyMax)
    return this.#setExecutor(() => new SingleExecutor(this.#attempts, handler, concurrency))
  }

  /**
   * Says how jobs are run, several in one call; each settles on its own.
   *
   * @param options.size - jobs in one call at most; default 50
   * @param options.waitMs - how long the first job of a call waits for company; default 10
   * @param options.concurrency - calls at once
   * @throws {@link StateError} if there is a handler already
   */
  executeBatch(
    handler: BatchHandler<TPayload, TResult>,
    options: { size?: number; waitMs?: number; concurrency?: number } = {},
  ): this {
    guardFunction('handler', handler)
    guardObject('options', options)
    const { size = defaults.batchSize, waitMs = defaults.batchWaitMs } = options
    const { concurrency = this.#settings.concurrency } = options
    guardInteger('options.size', size, 1, limits.batchSizeMax)
    guardDuration('options.waitMs', waitMs)
    guardInteger('options.concurrency', concurrency, 1, limits.concurrencyMax)
    const { clock } = this.#settings
    return this.#setExecutor(() => new BatchExecutor(this.#attempts, handler, clock, { size, waitMs, concurrency }))
  }

  /**
   * Delivers the rows that handlers post with `job.outbox`, at least once each, until it or the queue is stopped (a later
   * {@link start} begins no relay by itself). Any process can: the rows are in the storage. It needs neither {@link start}
   * nor a handler, and keeps its process alive. Don't await a stop inside `deliver`: it waits for that very delivery.
   *
   * @param deliver - called with one row at a time of a record; its throwing has the row delivered again, later
   * @throws {@link InvalidArgumentError}; {@link StoppedError} if the queue is stopping or stopped
   */
  relay(deliver: Deliver, options: RelayOptions = {}): Relay {
    guardFunction('deliver', deliver)
    guardObject('options', options)
    const { concurrency = defaults.relayConcurrency, leaseMs = defaults.relayLeaseMs } = options
    const { retry = exponential({ baseMs: defaults.retryBaseMs, maxMs: defaults.retryMaxMs }) } = options
    guardInteger('options.concurrency', concurrency, 1, limits.concurrencyMax)
    guardInteger('options.leaseMs', leaseMs, limits.leaseMsMin, limits.durationMsMax)
    guardFunction('options.retry', retry)
    if (this.#phase === 'stopping' || this.#phase === 'stopped') throw new StoppedError('relay')
    const { clock, random, storage } = this.#settings
    const relay = new OutboxRelay<TResult>({
      clock,
      random,
      traits: storage.traits,
      tokens: this.#tokens,
      counters: this.#counters,
      emitter: this.#emitter,
      handle: () => this.#session.handle(),
      onError: (error) => this.#onError(error),
      deliver,
      concurrency,
      leaseMs,
      retry,
    })
    this.#relays.add(relay)
    return {
      stop: async () => {
        await relay.stop()
        this.#relays.delete(relay)
      },
    }
  }

  #setExecutor(make: () => Executor<TPayload>): this {
    if (this.#makeExecutor !== null) throw new StateError('this queue has a handler already; make another Queue')
    this.#makeExecutor = make
    if (this.#phase === 'started') this.#beginWork()
    return this
  }

  /**
   * Opens the storage and, if there is a handler, begins to work. A started queue with a handler keeps its process alive
   * until {@link stop}. Starting twice is harmless.
   *
   * @throws {@link StorageError} if the storage can't be opened; start again later
   */
  start(): Promise<void> {
    return this.#change(async () => {
      if (this.#phase === 'started') return
      this.#session.revive()
      try {
        await this.#session.handle()
      } catch (error) {
        // Still stopped, then: a later call must not open what no stop would close.
        if (this.#phase === 'stopped') await this.#session.stop()
        throw error
      }
      this.#waiter.revive()
      this.#observe()
      this.#phase = 'started'
      this.#beginWork()
    })
  }

  /**
   * Takes no new work, lets running jobs finish within `stopTimeout` while their leases are renewed, then aborts the rest
   * and gives their attempts back. Waits end with StoppedError. The storage is let go of; {@link start} begins anew.
   */
  stop(): Promise<void> {
    return this.#change(async () => {
      if (this.#phase === 'stopped') return
      this.#phase = 'stopping'
      this.#worker?.stop()
      this.#worker = null
      this.#waiter.stop()
      const relayed = this.#stopRelays()
      await this.#drain()
      await relayed
      this.#keeper.stop()
      // What was to be stored is stored: a handle that can't be closed is no reason not to be stopped.
      await this.#session.stop().catch((error: unknown) => this.#onError(error))
      this.#unobserve?.()
      this.#unobserve = null
      this.#phase = 'stopped'
    })
  }

  /** Stops: for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /** Claims no more jobs in this object until {@link resume}; running ones go on. */
  pause(): void {
    this.#paused = true
    this.#worker?.pause()
  }

  /** Claims jobs again. */
  resume(): void {
    this.#paused = false
    this.#worker?.resume()
  }

  /** Whether {@link pause} was called last. */
  get paused(): boolean {
    return this.#paused
  }

  /** Adds a listener. Listeners that throw hurt nobody: it is told as `error`, or logged. */
  on<Name extends keyof QueueEvents<TResult>>(name: Name, listener: Listener<TResult, Name>): this {
    guardFunction('listener', listener)
    this.#emitter.on(name, listener)
    return this
  }

  /** Adds a listener for one event. */
  once<Name extends keyof QueueEvents<TResult>>(name: Name, listener: Listener<TResult, Name>): this {
    guardFunction('listener', listener)
    this.#emitter.once(name, listener)
    return this
  }

  /** Removes a listener. */
  off<Name extends keyof QueueEvents<TResult>>(name: Name, listener: Listener<TResult, Name>): this {
    guardFunction('listener', listener)
    this.#emitter.off(name, listener)
    return this
  }

  /** How many listeners an event has. */
  listenerCount(name: keyof QueueEvents<TResult>): number {
    return this.#emitter.listenerCount(name)
  }

  /** Starts and stops follow one another, however they are called. */
  #change(change: () => Promise<void>): Promise<void> {
    const changed = this.#changing.then(change)
    this.#changing = changed.catch(() => {})
    return changed
  }

  #beginWork(): void {
    if (this.#makeExecutor === null || this.#worker !== null) return
    const { clock, random, storage, leaseMs, sweepIntervalMs } = this.#settings
    this.#worker = new Worker({
      clock,
      random,
      traits: storage.traits,
      tokens: this.#tokens,
      leaseMs,
      sweepIntervalMs,
      exchange: this.#exchange,
      keeper: this.#keeper,
      executor: this.#makeExecutor(),
      handle: () => this.#session.handle(),
      onExhausted: (record) => this.#attempts.tellExhausted(record),
      onUnwanted: (lease) => this.#attempts.giveBack(lease),
      onIdle: () => this.#emitter.emit('idle'),
      onError: (error) => this.#onError(error),
    })
    if (this.#paused) this.#worker.pause()
    this.#worker.start()
  }

  /** Lets deliveries end within `stopTimeout`, then cuts them off. */
  async #stopRelays(): Promise<void> {
    const relays = [...this.#relays]
    this.#relays.clear()
    const stopped = Promise.all(relays.map((relay) => relay.stop())).then(() => {})
    if (await this.#within(stopped, this.#settings.stopTimeout)) return
    for (const relay of relays) relay.abandon()
    await this.#within(stopped, flushMsMax)
  }

  async #drain(): Promise<void> {
    if (!(await this.#within(this.#quiet(), this.#settings.stopTimeout))) {
      for (const lease of [...this.#keeper]) this.#attempts.giveBack(lease)
    }
    // What was decided must be stored; a storage that is down may keep us only so long, then the leases run out.
    await this.#within(this.#quiet(), flushMsMax)
    this.#exchange.abandon()
    this.#waiter.stop()
  }

  /** Resolves when no lease is held and no call under way that could bring one. */
  async #quiet(): Promise<void> {
    do {
      await this.#asker.answered()
      await this.#exchange.flushed()
      await this.#keeper.empty()
    } while (this.#exchange.busy || this.#asker.busy)
  }

  /** Whether the promise resolved in time. */
  async #within(promise: Promise<void>, ms: number): Promise<boolean> {
    if (ms === Number.POSITIVE_INFINITY) return promise.then(() => true)
    let timer: Timer | undefined
    const late = new Promise<boolean>((resolve) => {
      timer = this.#settings.clock.timer(() => resolve(false), ms, true)
    })
    const inTime = await Promise.race([promise.then(() => true), late])
    timer?.clear()
    return inTime
  }

  #onHint(hint: Hint): void {
    if (hint.type === 'due') this.#worker?.hint(hint.inMs)
    if (hint.type === 'outbox') {
      for (const relay of this.#relays) relay.hint(hint.inMs)
      return
    }
    if (hint.type === 'warning') {
      const { code, message, detail } = hint
      this.#log('warn', { code }, message)
      this.#emitter.emit('warning', { code, message, detail })
      return
    }
    this.#waiter.hint(hint)
  }

  #onError(thrown: unknown): void {
    // A poll or a heartbeat that a stop cut off is no trouble to tell of.
    const cutOff = thrown instanceof StoppedError || thrown instanceof StorageClosedError
    if (cutOff && (this.#phase === 'stopping' || this.#phase === 'stopped')) return
    const error = toError(thrown)
    this.#log('error', { err: error }, 'a storage call failed')
    this.#emitter.emit('error', error)
  }

  #log(level: 'warn' | 'error', fields: object, message: string): void {
    try {
      this.#settings.logger?.[level]({ queue: this.#settings.name, workerId: this.workerId, ...fields }, message)
    } catch {
      // A logger that throws must not stop a queue.
    }
  }
}
