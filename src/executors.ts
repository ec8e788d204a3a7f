/**
 * How claimed jobs reach handlers: one by one, or in batches.
 *
 * @module
 */

import type { Attempts } from './attempts.ts'
import type { Clock, Timer } from './clock.ts'
import { InvalidArgumentError } from './errors.ts'
import type { Lease } from './lease.ts'
import type { BatchHandler, BatchOutcome, Handler, Job } from './options.ts'
import type { Executor } from './worker.ts'

/** One call of the handler a job, `concurrency` at once. */
export class SingleExecutor<TPayload, TResult> implements Executor<TPayload> {
  readonly #attempts: Attempts<TPayload, TResult>
  readonly #handler: Handler<TPayload, TResult>
  #free: number

  constructor(attempts: Attempts<TPayload, TResult>, handler: Handler<TPayload, TResult>, concurrency: number) {
    this.#attempts = attempts
    this.#handler = handler
    this.#free = concurrency
  }

  capacity(): number {
    return this.#free
  }

  take(lease: Lease<TPayload>): void {
    if (!this.#attempts.prepare(lease)) return
    this.#free--
    lease.onFree = this.#release
    this.#attempts.begin(lease, this.#handler)
  }

  // A slot is free as soon as the verdict goes out: the next job is claimed by the call that stores it.
  readonly #release = (): void => {
    this.#free++
  }
}

/** One call of the handler for up to `size` jobs; the first waits up to `waitMs` for company. */
export class BatchExecutor<TPayload, TResult> implements Executor<TPayload> {
  readonly #attempts: Attempts<TPayload, TResult>
  readonly #handler: BatchHandler<TPayload, TResult>
  readonly #clock: Clock
  readonly #size: number
  readonly #waitMs: number
  #freeCalls: number
  #gathering: Lease<TPayload>[] = []
  #timer: Timer | null = null
  /** What was gathered has waited long enough, but no call was free. */
  #ripe = false

  constructor(
    attempts: Attempts<TPayload, TResult>,
    handler: BatchHandler<TPayload, TResult>,
    clock: Clock,
    options: { size: number; waitMs: number; concurrency: number },
  ) {
    this.#attempts = attempts
    this.#handler = handler
    this.#clock = clock
    this.#size = options.size
    this.#waitMs = options.waitMs
    this.#freeCalls = options.concurrency
  }

  capacity(): number {
    return Math.max(0, this.#freeCalls * this.#size - this.#gathering.length)
  }

  take(lease: Lease<TPayload>): void {
    if (!this.#attempts.prepare(lease)) return
    this.#gathering.push(lease)
    if (this.#gathering.length >= this.#size) this.#flush()
    else if (this.#timer === null) this.#timer = this.#clock.timer(() => this.#flush(), this.#waitMs, true)
  }

  /** No more jobs will come: what was gathered does not wait for company. */
  drain(): void {
    if (this.#gathering.length > 0) this.#flush()
  }

  #flush(): void {
    this.#timer?.clear()
    this.#timer = null
    // A claim may bring jobs when all calls have been taken since it was sent: they go with the next free call.
    this.#ripe = this.#freeCalls < 1
    if (this.#ripe) return
    // A stop, or the handler's time, may have decided some while they waited.
    const waiting = this.#gathering.filter((lease) => !lease.decided)
    const batch = waiting.splice(0, this.#size)
    this.#gathering = waiting
    if (batch.length > 0) void this.#run(batch)
    if (waiting.length > 0) this.#flush()
  }

  async #run(batch: readonly Lease<TPayload>[]): Promise<void> {
    this.#freeCalls--
    let undecided = batch.length
    const onFree = () => {
      if (--undecided > 0) return
      this.#freeCalls++
      if (this.#ripe) this.#flush()
    }
    for (const lease of batch) {
      lease.onFree = onFree
      this.#attempts.countStart(lease)
    }
    try {
      const outcomes = await this.#handler(batch.map((lease) => lease.job as Job<TPayload>))
      if (!Array.isArray(outcomes) || outcomes.length !== batch.length) {
        const expected = `an array of ${batch.length} outcomes, one a job in the jobs’ order`
        throw new InvalidArgumentError('the batch handler’s answer', expected, outcomes)
      }
      for (let index = 0; index < batch.length; index++) this.#settle(batch[index] as Lease<TPayload>, outcomes[index])
    } catch (error) {
      for (const lease of batch) this.#attempts.failWith(lease, error)
    }
  }

  #settle(lease: Lease<TPayload>, outcome: BatchOutcome<TResult> | undefined): void {
    if (typeof outcome !== 'object' || outcome === null || !('error' in outcome || 'result' in outcome)) {
      const error = new InvalidArgumentError('a batch outcome', '{ result } or { error }', outcome)
      this.#attempts.failWith(lease, error)
    } else if ('error' in outcome) {
      this.#attempts.failWith(lease, outcome.error)
    } else {
      this.#attempts.succeed(lease, outcome.result)
    }
  }
}
