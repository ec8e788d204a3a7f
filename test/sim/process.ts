/**
 * One simulated process: a queue object, its clock, its handlers, its clients; it can crash at any touch with the world outside
 * it, stall, and have its clock jump.
 *
 * @module
 */

import type { Clock } from '../../src/clock.ts'
import { AskonceError, RateLimitedError, UnrecoverableError } from '../../src/errors.ts'
import type { BatchOutcome, Job } from '../../src/options.ts'
import { Queue } from '../../src/queue.ts'
import { isTerminal } from '../../src/record.ts'
import { exponential } from '../../src/retry.ts'
import type { Storage, StorageHandle } from '../../src/storage.ts'
import { leaseKey } from '../../storages/conformance/testing/tokens-sent.ts'
import { Clients } from './clients.ts'
import type { Answer, Run } from './ledger.ts'
import { numberIn } from './ledger.ts'
import type { Owner } from './scheduler.ts'
import type { World } from './world.ts'

/** What jobs carry. */
export interface Payload {
  readonly n: number
}

export class SimProcess implements Owner {
  dead = false
  stalledUntil = 0
  timers = 0
  readonly name: string
  readonly slot: number
  readonly queue: Queue<Payload, Answer>
  /** As the queue sees the time: wrong by up to the setting's skew. */
  readonly clock: Clock
  /** Brings replies and hints; a touch with it is no reason to crash. */
  readonly wireClock: Clock
  readonly clients: Clients
  readonly #world: World
  readonly #unwatches = new Set<() => void>()
  readonly #concurrency: number
  readonly #batches: boolean
  readonly #works: boolean
  #skewMs: number
  #running = 0
  #ending = false
  #idleFrom = Number.POSITIVE_INFINITY

  constructor(world: World, slot: number) {
    const { random, setting, scheduler } = world
    this.#world = world
    this.slot = slot
    this.name = `p${slot}.${world.born++}`
    this.#skewMs = this.#drawSkew()
    this.wireClock = scheduler.clock(this, false)
    const inner = scheduler.clock(this, true, () => this.#world.now + this.#skewMs)
    this.clock = {
      now: () => {
        this.#touch()
        return inner.now()
      },
      monotonic: () => {
        this.#touch()
        return inner.monotonic()
      },
      timer: (callback, ms, ref) => {
        this.#touch()
        return inner.timer(callback, ms, ref)
      },
    }
    // The first process always works, and one by one, so that some job always finds a worker.
    this.#works = slot === 0 || random.chance(0.6)
    this.#batches = slot > 0 && random.chance(0.25)
    this.#concurrency = random.between(1, 3)
    const { leaseMs, handlerTimeoutMs, stopTimeoutMs, hook } = setting
    this.queue = new Queue<Payload, Answer>({
      storage: world.storageFor(this),
      name: 'sim',
      clock: this.clock,
      random: random.next,
      leaseMs,
      handlerTimeoutMs,
      stopTimeout: stopTimeoutMs,
      retry: exponential({ baseMs: 50, maxMs: 500 }),
      sweepIntervalMs: 2_000,
      concurrency: this.#concurrency,
      ...(hook === 'none'
        ? {}
        : {
            afterExecution: (context) => {
              if (hook === 'throws') throw new Error('the hook is broken')
              context.ttl = Math.max(1, context.ttl >> 1)
            },
          }),
    })
    this.queue.on('error', (error) => this.#onError(error))
    if (this.#works) this.#execute()
    this.clients = new Clients(world, this)
  }

  #execute(): void {
    const { random } = this.#world
    if (!this.#batches) {
      this.queue.execute((job) => this.handle(job, false))
      return
    }
    const handle = (job: Job<Payload>): Promise<BatchOutcome<Answer>> =>
      this.handle(job, true).then(
        (result) => ({ result }),
        (error: unknown) => ({ error }),
      )
    this.queue.executeBatch((jobs) => Promise.all(jobs.map(handle)), {
      size: random.between(1, 4),
      waitMs: random.between(1, 50),
    })
  }

  /** Starts, and lets its clients loose. */
  begin(): void {
    // Whatever it does before its first event counts as its own.
    this.#world.scheduler.schedule(this, 0, () => {
      if (this.#works) void this.start()
      this.clients.begin()
    })
  }

  async start(): Promise<void> {
    if (this.#ending) return
    try {
      await this.queue.start()
      if (!this.dead) this.#idleFrom = this.#world.now
    } catch (error) {
      if (this.dead) return
      this.judgeError('start', error)
      if (this.#works && this.queue.phase !== 'started')
        this.#world.scheduler.schedule(this, 500, () => void this.start())
    }
  }

  async stop(): Promise<void> {
    this.#idleFrom = Number.POSITIVE_INFINITY
    await this.queue.stop()
  }

  /** Stops for good. */
  end(): Promise<void> {
    this.#ending = true
    return this.stop()
  }

  pause(): void {
    this.#idleFrom = Number.POSITIVE_INFINITY
    this.queue.pause()
  }

  resume(): void {
    this.queue.resume()
    if (this.queue.phase === 'started') this.#idleFrom = this.#world.now
  }

  /** Whether it was ready for another job all the time since `from`. */
  idleSince(from: number): boolean {
    if (!this.#works || this.#batches || this.dead || this.queue.paused || this.queue.phase !== 'started') return false
    return this.#running < this.#concurrency && this.#idleFrom <= from
  }

  /** Without faults a wait that began before `from` has its answer by now. */
  mustHaveAnswered(id: string, from: number): void {
    if (this.dead) return
    const late = this.clients.waitingFor(id, from)
    if (late !== null) this.#world.fail('promptness', `'${id}': ${late} was not answered, though it has ended`)
  }

  /** The storage of which nothing reaches a dead process any more. */
  leaving(storage: Storage): Storage {
    return {
      traits: storage.traits,
      open: async (namespace) => this.#leavingHandle(await storage.open(namespace)),
    }
  }

  #leavingHandle(handle: StorageHandle): StorageHandle {
    return {
      enqueue: (items) => handle.enqueue(items),
      claim: (request) => handle.claim(request),
      extend: (items) => handle.extend(items),
      settle: (items, claim) => handle.settle(items, claim),
      cancel: (ids) => handle.cancel(ids),
      touch: (items) => handle.touch(items),
      mark: (items) => handle.mark(items),
      deliver: (items, request) => handle.deliver(items, request),
      get: (ids) => handle.get(ids),
      sweep: (limit) => handle.sweep(limit),
      hold: (ms) => handle.hold(ms),
      stats: () => handle.stats(),
      close: () => handle.close(),
      watch: (listener) => {
        const unwatch = handle.watch(listener)
        this.#unwatches.add(unwatch)
        return () => {
          this.#unwatches.delete(unwatch)
          unwatch()
        }
      },
    }
  }

  /** Whatever the process does outside itself passes here: this is where it can crash. */
  #touch(): void {
    const { setting, random, stormy } = this.#world
    if (stormy && setting.crash > 0 && !this.dead && random.chance(setting.crash)) this.crash()
  }

  /** It never acts again: its timers and replies are dropped. Another takes its place. */
  crash(): void {
    const world = this.#world
    this.dead = true
    world.count('crash')
    world.say(() => `${this.name} CRASHES`)
    for (const unwatch of this.#unwatches) unwatch()
    this.#unwatches.clear()
    const { scheduler } = world
    scheduler.schedule(scheduler.nobody, world.random.between(0, 2_000), () => world.spawn(this.slot))
  }

  stall(): void {
    const { scheduler, random, setting } = this.#world
    this.#world.count('stall')
    this.stalledUntil = scheduler.now + random.between(1, setting.leaseMs * 2)
    this.#world.say(() => `${this.name} stalls for ${this.stalledUntil - scheduler.now} ms`)
  }

  jump(): void {
    this.#world.count('jump')
    this.#skewMs = this.#drawSkew()
  }

  #drawSkew(): number {
    const { skewMs, tier } = this.#world.setting
    // Memory has a clock of its own: the callers' may be as wrong as they like.
    const bound = tier === 'memory' && skewMs > 0 ? 3_600_000 : skewMs
    return this.#world.random.between(-bound, bound)
  }

  /** A lease's owner was told of it: unless renewed, its signal must abort soon after its end. */
  believes(id: string, generation: string, endsAt: number): void {
    const { setting } = this.#world
    const key = leaseKey(id, generation)
    this.#ends.set(key, Math.max(endsAt, this.#ends.get(key) ?? 0))
    // An answer may come so late that its lease is over when it comes.
    this.#mustHaveToldBy(Math.max(endsAt, this.#world.now) + setting.leaseMs / 3 + 1, id, key, endsAt)
  }

  /** A process that stalled has another third of the lease to notice. */
  #mustHaveToldBy(at: number, id: string, key: string, endsAt: number): void {
    const { scheduler, setting, ledger } = this.#world
    scheduler.schedule(this, at - scheduler.now, () => {
      const job = this.#jobs.get(key)
      if (job === undefined || this.#ends.get(key) !== endsAt || ledger.runs.get(key)?.active !== true) return
      if (job.signal.aborted) return
      const calmFrom = this.stalledUntil + setting.leaseMs / 3
      if (calmFrom >= scheduler.now) this.#mustHaveToldBy(calmFrom + 1, id, key, endsAt)
      else this.#world.fail('signals', `'${id}': its lease ended at ${endsAt}, and its handler was not told`)
    })
  }

  readonly #ends = new Map<string, number>()
  readonly #jobs = new Map<string, Job<Payload>>()

  /** The handler, of workers and of inline runs. */
  async handle(job: Job<Payload>, inline: boolean): Promise<Answer> {
    if (this.dead) return new Promise(() => {})
    const world = this.#world
    const { ledger } = world
    const key = leaseKey(job.id, job.generation)
    const lease = ledger.leases.get(key)
    if (ledger.runs.has(key)) world.fail('handlers', `'${job.id}': a handler was called twice for one lease`)
    if (lease === undefined) world.fail('handlers', `'${job.id}': a handler was called without a lease`)
    else if (lease.attempts !== job.attempts || isTerminal(lease) || numberIn(lease.payload) !== job.payload.n) {
      world.fail('handlers', `'${job.id}': a handler was called for something else than was leased`)
    }
    if (job.attempts > job.maxAttempts)
      world.fail('attempts', `'${job.id}': attempt ${job.attempts} of ${job.maxAttempts}`)
    const number = ledger.runs.size
    const run: Run = { id: job.id, generation: job.generation, startedAt: world.now, returned: null, active: true }
    ledger.runs.set(key, run)
    this.#jobs.set(key, job)
    world.say(
      () => `${this.name} runs '${job.id}' n ${job.payload.n} attempt ${job.attempts}${inline ? ' (apart)' : ''}`,
    )
    if (!inline) this.#running++
    this.#touch()
    try {
      await this.#work(job)
      const answer: Answer = { n: job.payload.n, run: number }
      run.returned = JSON.stringify(answer)
      return answer
    } finally {
      run.active = false
      this.#jobs.delete(key)
      if (!inline) {
        this.#running--
        if (this.queue.phase === 'started' && !this.queue.paused) this.#idleFrom = world.now
      }
      this.#touch()
    }
  }

  async #work(job: Job<Payload>): Promise<void> {
    const { random, setting, stormy } = this.#world
    const roll = random.below(100)
    if (roll < 15) return
    if (roll < 65 || !stormy) return this.#sleep(random.between(0, 60))
    if (roll < 75) return this.#sleep(random.between(setting.leaseMs, setting.leaseMs * 3))
    if (roll < 78) {
      // A good handler: it ends when it is told to.
      return new Promise((_, reject) => {
        job.signal.addEventListener('abort', () => reject(new Error('aborted')))
      })
    }
    // A bad one: it never ends.
    if (roll < 80) return new Promise(() => {})
    if (roll < 83) throw new RateLimitedError(random.between(10, 800))
    await this.#sleep(random.between(0, 30))
    if (roll < 86) throw new UnrecoverableError('says the handler')
    throw new Error('says the handler')
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.scheduler.schedule(this, ms, resolve))
  }

  #onError(error: Error): void {
    if (this.dead) return
    this.judgeError('the queue', error)
  }

  /** Errors that a fault explains are typed; others are bugs. */
  judgeError(what: string, error: unknown): void {
    const world = this.#world
    const message = error instanceof Error ? error.message : String(error)
    if (message === 'the hook is broken') return
    world.say(() => `${this.name} ${what}: ${error}`)
    if (!(error instanceof AskonceError))
      world.fail('errors', `${what}: ${error instanceof Error ? error.stack : message}`)
    else if (world.calm && (error.code === 'ASKONCE_STORAGE' || error.code === 'ASKONCE_STORAGE_FULL'))
      world.fail('calm', `${what}: ${error.code}: ${message}`)
  }
}
