/**
 * `enqueueAndWait` and `run`: asking, and staying until there is an answer.
 *
 * @module
 */

import type { Attempts } from './attempts.ts'
import { errorOf } from './attempts.ts'
import { decode } from './codec.ts'
import type { Counters } from './counters.ts'
import { JobCancelledError, JobFailedError, StateError, StoppedError, StorageError } from './errors.ts'
import type { Ending } from './lease.ts'
import type { LeaseKeeper } from './leases.ts'
import type { Handler, RunOptions, WaitOptions } from './options.ts'
import type { Producer } from './producer.ts'
import { answerOf } from './producer.ts'
import type { FailedRecord, JobRecord, ProcessingRecord } from './record.ts'
import { isTerminal } from './record.ts'
import type { Settings } from './settings.ts'
import { guardFunction, guardSignal, guardWait } from './settings.ts'
import type { EnqueueAnswer, EnqueueItem } from './storage.ts'
import type { TokenSource } from './tokens.ts'
import type { Wait } from './wait.ts'
import type { Waiter } from './waiter.ts'

const undelivered =
  'the job can’t be refreshed yet: rows of its outbox are still to be delivered. Have a relay running, and repeat the call later'

/** The calls that wait. */
export class Asker<TPayload, TResult> {
  readonly #settings: Settings<TPayload, TResult>
  readonly #tokens: TokenSource
  readonly #counters: Counters
  readonly #producer: Producer<TPayload, TResult>
  readonly #waiter: Waiter
  readonly #keeper: LeaseKeeper<TPayload>
  readonly #attempts: Attempts<TPayload, TResult>
  /** Calls under way that may bring a lease. */
  #asking = 0
  #onAnswered: (() => void)[] = []

  constructor(
    settings: Settings<TPayload, TResult>,
    tokens: TokenSource,
    counters: Counters,
    producer: Producer<TPayload, TResult>,
    waiter: Waiter,
    keeper: LeaseKeeper<TPayload>,
    attempts: Attempts<TPayload, TResult>,
  ) {
    this.#settings = settings
    this.#tokens = tokens
    this.#counters = counters
    this.#producer = producer
    this.#waiter = waiter
    this.#keeper = keeper
    this.#attempts = attempts
  }

  async enqueueAndWait(id: string, payload: TPayload, options: WaitOptions = {}): Promise<TResult> {
    const item = this.#producer.item(id, payload, options, null, true)
    const wait = this.#open('enqueueAndWait', item, options, false)
    try {
      const { record, outcome } = await wait.orFail(this.#ask(item))
      const answered = this.#answeredBy(record, item)
      if (outcome === 'exists') options.onDuplicate?.(answered ? 'completed' : record.state)
      if (answered || isTerminal(record)) return this.#answer(record)
      wait.follow(record.spec.incarnation, item.refresh !== true)
      const settled = (await wait.next()) as JobRecord
      this.#counters.replayed++
      return this.#outcome(settled)
    } finally {
      wait.close()
    }
  }

  async run(
    id: string,
    payload: TPayload,
    handler: Handler<TPayload, TResult>,
    options: RunOptions = {},
  ): Promise<TResult> {
    guardFunction('handler', handler)
    const { leaseMs, clock } = this.#settings
    const item = this.#producer.item(id, payload, options, { generation: this.#tokens.next(), leaseMs }, true)
    const wait = this.#open('run', item, options, true)
    try {
      let sentAt = clock.monotonic()
      const asked = this.#ask(item)
      const first = await this.#unlessGivenUp(asked, wait, (answer) => (answer.leased ? answer.record : null), sentAt)
      let record: JobRecord = first.record
      let leased = first.leased
      const answered = !leased && this.#answeredBy(record, item)
      if (first.outcome === 'exists' && !leased) options.onDuplicate?.(answered ? 'completed' : record.state)
      if (answered) return this.#answer(record)
      wait.follow(record.spec.incarnation, item.refresh !== true)
      // Made inline and leased by nobody, as while the queue is held: only those who wait will run it, so none may sleep past it.
      if (!leased && isOrphan(record)) this.#waiter.pollSoon()
      // Bounded by the wait's time-out, and each round by a lease or a back-off.
      for (;;) {
        if (leased) {
          const ending = await this.#attempt(record as ProcessingRecord, sentAt, handler, wait)
          if (ending.kind === 'completed') return decode(this.#settings.resultSerde, ending.result, 'result')
          if (ending.kind === 'failed') throw this.#failure({ ...record, ...failedWith(ending) })
        } else if (isTerminal(record)) {
          return this.#answer(record)
        }
        // The attempt may have ended by a stop, which let the wait be: what is stopping begins no other.
        if (this.#waiter.refusing) throw new StoppedError('run')
        if (leased) this.#waiter.pollSoon()
        const seen = await wait.next()
        if (seen !== 'due') {
          this.#counters.replayed++
          return this.#outcome(seen)
        }
        sentAt = clock.monotonic()
        const claimed = this.#producer.claim(id, { generation: this.#tokens.next(), leaseMs })
        const taken = await this.#unlessGivenUp(claimed, wait, (record) => record, sentAt)
        leased = taken !== null && taken.spec.incarnation === first.record.spec.incarnation
        if (leased) record = taken as ProcessingRecord
        // The id was cancelled or forgotten, and asked for anew, since it was seen: that is not this caller's job.
        else if (taken !== null) this.#giveBack(taken, sentAt)
      }
    } finally {
      wait.close()
    }
  }

  /**
   * Asks, and once more if the storage may have done it without saying so: the same item is answered as the first time, where another
   * would find a record that nobody runs until its lease ends.
   */
  async #ask(item: EnqueueItem): Promise<EnqueueAnswer> {
    let answer: EnqueueAnswer
    try {
      answer = await this.#producer.ask(item)
    } catch (error) {
      if (!(error instanceof StorageError) || !error.retryable || this.#waiter.refusing) throw error
      answer = await this.#producer.ask(item)
    }
    const { record, outcome } = answer
    if (item.refresh === true && outcome === 'exists' && record.state === 'completed') throw new StateError(undelivered)
    return answer
  }

  /** Whether a call is under way that may bring a lease. */
  get busy(): boolean {
    return this.#asking > 0
  }

  /** Resolves when no call is under way that may bring a lease. */
  answered(): Promise<void> {
    if (!this.busy) return Promise.resolve()
    return new Promise((resolve) => this.#onAnswered.push(resolve))
  }

  #open(what: string, item: EnqueueItem, options: WaitOptions, takeover: boolean): Wait {
    const { timeout = this.#settings.timeout, signal } = options
    guardWait('options.timeout', timeout)
    guardSignal('options.signal', signal)
    return this.#waiter.open(item.spec.id, what, timeout, signal, takeover)
  }

  /** The answer; if the caller gives up before it comes, what it leases is given back: nobody would run it. */
  #unlessGivenUp<T>(
    answer: Promise<T>,
    wait: Wait,
    leasedIn: (answer: T) => JobRecord | null,
    sentAt: number,
  ): Promise<T> {
    let givenUp = false
    this.#asking++
    const giveBack = (late: T) => {
      const record = givenUp ? leasedIn(late) : null
      if (record !== null) this.#giveBack(record, sentAt)
    }
    void answer
      .then(giveBack, () => {})
      .finally(() => {
        if (--this.#asking > 0) return
        const waiting = this.#onAnswered
        this.#onAnswered = []
        for (const resolve of waiting) resolve()
      })
    return wait.orFail(answer).catch((error: unknown) => {
      givenUp = true
      throw error
    })
  }

  /** Ends a lease that nobody will use, at the cost of no attempt. */
  #giveBack(record: JobRecord, sentAt: number): void {
    this.#attempts.giveBack(this.#keeper.add(record as ProcessingRecord, sentAt, this.#settings.clock.monotonic()))
  }

  async #attempt(
    record: ProcessingRecord,
    sentAt: number,
    handler: Handler<TPayload, TResult>,
    wait: Wait,
  ): Promise<Ending> {
    wait.running = true
    try {
      const now = this.#settings.clock.monotonic()
      const lease = this.#keeper.add(record, sentAt, now)
      const ended = new Promise<Ending>((resolve) => {
        lease.onEnd = resolve
        if (this.#attempts.prepare(lease)) this.#attempts.begin(lease, handler)
      })
      return await wait.orFail(ended)
    } finally {
      wait.running = false
    }
  }

  /** Whether the record, as it was met, has a result that is enough for the caller. */
  #answeredBy(record: JobRecord, item: EnqueueItem): boolean {
    return record.state === 'completed' || (item.refresh !== true && answerOf(record) !== null)
  }

  /** What a record says to who has just met it. */
  #answer(record: JobRecord): TResult {
    const answer = answerOf(record)
    if (answer !== null) return this.#producer.resultOf(answer)
    throw this.#failure(record)
  }

  /** What the end of a run says to who has waited for that run. */
  #outcome(record: JobRecord): TResult {
    if (record.state !== 'completed' || record.missed === undefined) return this.#answer(record)
    if (record.missed.reason === 'cancelled') throw new JobCancelledError(record.spec.id)
    throw this.#failure(record)
  }

  #failure(record: JobRecord): JobFailedError {
    return new JobFailedError(record.spec.id, record.attempts, errorOf(record))
  }
}

/** Whether a record is seen by no worker and run by no caller. */
function isOrphan(record: JobRecord): boolean {
  return !isTerminal(record) && record.inline && record.state !== 'processing'
}

function failedWith(ending: Ending & { kind: 'failed' }): Omit<FailedRecord, 'spec' | 'attempts' | 'at'> {
  return { state: 'failed', reason: 'error', error: ending.error, generation: null, settledAt: 0 }
}
