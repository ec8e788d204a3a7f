/**
 * What a scenario of the queue works with: queues on one storage, as several processes would have them, and time. The same
 * scenarios run on any storage: on Memory in virtual time, on storages with a clock of their own in real time.
 */

import type { Test } from 'tap'
import { type Clock, systemClock } from '../../src/clock.ts'
import type { Counters } from '../../src/counters.ts'
import type { Job, QueueOptions } from '../../src/options.ts'
import { Queue } from '../../src/queue.ts'
import type { Storage } from '../../src/storage.ts'
import { settle, type VirtualClock } from '../../storages/conformance/index.ts'
import { FaultyStorage } from '../queue/support/faulty-storage.ts'
import { StallableClock } from '../queue/support/stallable-clock.ts'

/** A storage for one scenario. */
export interface RigStorage {
  readonly storage: Storage
  /** A further Storage object on the same data, as another process would have it. Default: the same object. */
  readonly another?: () => Promise<Storage>
  readonly cleanup?: () => unknown
}

export interface RigOptions {
  /** Makes an empty storage; in virtual time its clock is to be `clock`. */
  readonly makeStorage: () => Promise<RigStorage>
  /** Given where the storage's time is virtual. */
  readonly clock?: VirtualClock
  /** A lease that is waited for, ms. Default: 3,000 in virtual time, 400 in real time. */
  readonly leaseMs?: number
  /** A delay or TTL that is waited for, ms. Default: 1,000 in virtual time, 150 in real time. */
  readonly shortMs?: number
  /** Turns of the event loop in which a storage call and what it sets off are done, in virtual time. Default 3. */
  readonly turns?: number
  /** Whether a storage call is under way: virtual time then goes on in small steps only. Default: never, at a glance. */
  readonly busy?: () => boolean
  /** Whether the storage answers and pushes at once, so that nothing waits for a poll. Default: if time is virtual. */
  readonly prompt?: boolean
  /** How long the rig waits in real time for what must come, ms. Default 10,000. */
  readonly patienceMs?: number
}

/** One thing that a queue must do. */
export interface Scenario {
  readonly name: string
  readonly run: (t: Test, rig: QueueRig) => Promise<unknown>
}

/** A promise and its ends. */
export interface Gate<T> {
  readonly promise: Promise<T>
  readonly open: (value: T) => void
  readonly fail: (error: unknown) => void
}

/** Makes a gate. */
export function gate<T = void>(): Gate<T> {
  let open!: (value: T) => void
  let fail!: (error: unknown) => void
  const promise = new Promise<T>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  promise.catch(() => {})
  return { promise, open, fail }
}

/** Jobs that wait for the scenario to say how they end. */
export class ManualHandler<P = unknown, R = unknown> {
  /** Every call so far, in order. */
  readonly calls: { readonly job: Job<P>; readonly end: Gate<R> }[] = []

  readonly handle = (job: Job<P>): Promise<R> => {
    const end = gate<R>()
    this.calls.push({ job, end })
    return end.promise
  }
}

/** A process that can be made to stall, and the storage as it sees it. */
export interface Process {
  readonly clock: StallableClock
  readonly storage: FaultyStorage
}

export class QueueRig {
  readonly virtual: boolean
  readonly prompt: boolean
  readonly clock: Clock
  readonly leaseMs: number
  readonly shortMs: number
  /** What queues emitted as `error`. A scenario that expects some takes them out; any left fail it. */
  readonly errors: Error[] = []
  readonly #options: RigOptions
  readonly #made: RigStorage
  readonly #queues: Queue<any, any>[] = []
  #used = false

  private constructor(options: RigOptions, made: RigStorage) {
    this.#options = options
    this.#made = made
    this.virtual = options.clock !== undefined
    this.prompt = options.prompt ?? this.virtual
    this.clock = options.clock ?? systemClock
    this.leaseMs = options.leaseMs ?? (this.virtual ? 3_000 : 400)
    this.shortMs = options.shortMs ?? (this.virtual ? 1_000 : 150)
  }

  static async make(options: RigOptions): Promise<QueueRig> {
    return new QueueRig(options, await options.makeStorage())
  }

  /** A Storage object on the scenario's data: the first one made, then one more each time. */
  async storage(): Promise<Storage> {
    const { storage, another } = this.#made
    if (!this.#used || another === undefined) {
      this.#used = true
      return storage
    }
    return another()
  }

  /** A process's clock and storage; hand both to `queue`. */
  async process(): Promise<Process> {
    return { clock: new StallableClock(this.clock), storage: new FaultyStorage(await this.storage()) }
  }

  /** A queue in a process of its own, stopped for you at the end. */
  async queue<P = any, R = any>(options: QueueOptions<P, R> = {}): Promise<Queue<P, R>> {
    const { storage = await this.storage(), clock = this.clock, leaseMs = this.leaseMs } = options
    const queue = new Queue<P, R>({ stopTimeout: 1, ...options, storage, clock, leaseMs })
    queue.on('error', (error) => this.errors.push(error))
    this.#queues.push(queue)
    return queue
  }

  /** A queue that works. */
  async worker<P = any, R = any>(
    handler: (job: Job<P>) => R | PromiseLike<R>,
    options: QueueOptions<P, R> = {},
  ): Promise<Queue<P, R>> {
    const queue = await this.queue(options)
    queue.execute(handler)
    await queue.start()
    return queue
  }

  /** Lets `ms` go by. */
  async advance(ms: number): Promise<void> {
    const { clock } = this.#options
    if (clock === undefined) {
      await new Promise((resolve) => setTimeout(resolve, ms))
      return
    }
    const end = clock.monotonic() + ms
    for (;;) {
      await this.#settle()
      const left = end - clock.monotonic()
      if (left <= 0) break
      await clock.advance(Math.min(this.#stepMs(clock), left))
    }
    await this.#settle()
  }

  /** To the next timer; but not far while a call is under way, whose answer may set timers of its own. */
  #stepMs(clock: VirtualClock): number {
    const next = clock.nextInMs ?? 1_000
    return this.#options.busy?.() ? Math.min(next, 20) : next
  }

  #settle(times = 1): Promise<void> {
    return settle(times * (this.#options.turns ?? 3))
  }

  /** Lets what is on its way arrive, without time going by where time is virtual. */
  async calm(): Promise<void> {
    await this.#settle(3)
    if (!this.virtual) await this.advance(Math.min(50, this.shortMs / 3))
  }

  /** Waits for a promise, moving time on from timer to timer where it is virtual. */
  async drive<T>(promise: PromiseLike<T>): Promise<T> {
    let done = false
    const end = () => {
      done = true
    }
    const watched = Promise.resolve(promise)
    watched.then(end, end)
    await this.until('the promise settles', () => done)
    return watched
  }

  /** Waits until it is so, moving time on from timer to timer where it is virtual. */
  async until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    const { clock, patienceMs = 10_000 } = this.#options
    const deadline = performance.now() + patienceMs
    // Time stands still as long as something may yet happen without it.
    for (let round = 0; ; round++) {
      if (clock !== undefined) await this.#settle()
      if (await condition()) return
      if (performance.now() > deadline || round > 20_000) throw new Error(`waited in vain until ${what}`)
      if (clock === undefined) await this.advance(5)
      else if (round > 40) await clock.advance(this.#stepMs(clock))
    }
  }

  /** Counts go up when the worker is answered, which may be later than another's look at the result. */
  async counted(t: Test, { counters }: Pick<Queue, 'counters'>, expected: Partial<Counters>): Promise<void> {
    const named = Object.entries(expected) as [keyof Counters, number][]
    const isReached = (): boolean => named.every(([name, count]) => counters[name] >= count)
    // If it is not, the assertion tells by how much.
    await this.until('it is counted', isReached).catch(() => {})
    t.match(counters, expected)
  }

  /** The promise's error; fails if there is none. */
  async refusal(promise: PromiseLike<unknown>): Promise<any> {
    try {
      await this.drive(promise)
    } catch (error) {
      return error
    }
    throw new Error('a promise that was to reject resolved')
  }

  /** Takes the errors out that were emitted so far. */
  takeErrors(): Error[] {
    return this.errors.splice(0)
  }

  /** Stops everything; answers the errors nobody expected. */
  async end(): Promise<Error[]> {
    for (const queue of this.#queues) await this.drive(queue.stop())
    await this.#made.cleanup?.()
    return this.errors
  }
}

/** Each scenario as a subtest, on a rig of its own. */
export function runScenarios(t: Test, scenarios: readonly Scenario[], options: () => RigOptions): void {
  for (const { name, run } of scenarios) {
    t.test(name, async (t) => {
      const rig = await QueueRig.make(options())
      try {
        await run(t, rig)
      } finally {
        const errors = await rig.end()
        t.strictSame(
          errors.map((error) => `${error.name}: ${error.message}`),
          [],
          'no error was emitted unexpectedly',
        )
      }
    })
  }
}
