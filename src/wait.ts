/**
 * One caller's wait for one id: what it hears of, and how it ends.
 *
 * @module
 */

import { JobCancelledError, ResultGoneError } from './errors.ts'
import type { JobRecord } from './record.ts'
import { isTerminal, keptAt } from './record.ts'

/** What a wait needs of all waits together. */
export interface Lookout {
  /** Looks begun so far: what one of them reads is older than a wait that began after it. */
  readonly looksBegun: number
  /** Reads all ids that are waited for in a moment. */
  pollSoon(): void
  /** Reads one id at once. */
  seek(id: string): void
}

/** See the module's description. The caller awaits one thing at a time: {@link orFail} or {@link next}. */
export class Wait {
  readonly id: string
  /** Whether the caller wants to hear, too, that the job is open but due, so that it can take it over. */
  readonly takeover: boolean
  /** While the caller itself runs the job, `stop` must not end the wait. */
  running = false
  /** @internal Among those who wait for the id. */
  place = 0
  #incarnation: string | null = null
  #content = false
  #since = 0
  #failure: { readonly error: unknown } | null = null
  #resolve: ((value: JobRecord | 'due') => void) | null = null
  #reject: ((error: unknown) => void) | null = null
  /** What a hint told before the caller knew which record is its own. */
  #early: JobRecord | null = null
  /** A hint told of an end before the caller knew which record is its own, but not of which. */
  #ended = false
  #cancelled: Set<string> | null = null
  readonly #lookout: Lookout
  readonly #end: () => void

  constructor(lookout: Lookout, id: string, takeover: boolean, end: () => void) {
    this.#lookout = lookout
    this.id = id
    this.takeover = takeover
    this.#end = end
  }

  /**
   * Says which record is waited for. Nothing read before counts from now on.
   *
   * @param content - whether a result that a later run of the id keeps will do: it may be all that is left of this one
   */
  follow(incarnation: string, content: boolean): void {
    this.#incarnation = incarnation
    this.#content = content
    this.#since = this.#lookout.looksBegun
  }

  /** What the promise comes to, unless the wait fails before. */
  orFail<T>(promise: Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      // In any case: a rejection that comes too late is nobody's.
      promise.then(resolve, reject)
      this.#rejectBy(reject)
    })
  }

  /** The terminal record; or 'due', once, if the job may be taken over. Rejects when the wait fails. */
  next(): Promise<JobRecord | 'due'> {
    const early = this.#early
    if (early !== null && early.spec.incarnation === this.#incarnation) return Promise.resolve(early)
    return new Promise((resolve, reject) => {
      this.#rejectBy(reject)
      this.#resolve = resolve
      if (this.#isCancelled) this.#lookout.pollSoon()
      if (this.#ended) this.#lookout.seek(this.id)
      this.#ended = false
    })
  }

  #rejectBy(reject: (error: unknown) => void): void {
    if (this.#failure === null) this.#reject = reject
    else reject(this.#failure.error)
  }

  /** Fails the wait: by time-out, signal or stop. What the caller awaits rejects, now or as soon as it is awaited. */
  fail(error: unknown): void {
    if (this.#failure !== null) return
    this.#failure = { error }
    this.#reject?.(error)
  }

  /** Ends the wait; harmless twice. */
  close(): void {
    this.#end()
  }

  /** @internal A hint brought a terminal record. */
  tell(record: JobRecord): void {
    if (this.#incarnation === null || this.#resolve === null) this.#early = record
    else if (record.spec.incarnation === this.#incarnation) this.#answer(record)
  }

  /** @internal A hint told that a record of the id has ended, but brought none. */
  tellEnded(): void {
    if (this.#incarnation === null || this.#resolve === null) this.#ended = true
    else this.#lookout.seek(this.id)
  }

  /** @internal A hint told of a cancellation. */
  tellCancelled(incarnation: string): void {
    this.#cancelled ??= new Set()
    this.#cancelled.add(incarnation)
    if (incarnation === this.#incarnation) this.#lookout.pollSoon()
  }

  /**
   * @internal Look number `look` read this.
   * @returns until the job can be taken over, ms; Infinity if that is of no interest
   */
  see(record: JobRecord | null, now: number, look: number): number {
    const incarnation = this.#incarnation
    if (incarnation === null || this.#resolve === null || look <= this.#since) return Number.POSITIVE_INFINITY
    if (record !== null && record.spec.incarnation !== incarnation && this.#content && keeps(record, now)) {
      this.#answer(record)
      return Number.POSITIVE_INFINITY
    }
    if (record === null || record.spec.incarnation !== incarnation) {
      this.#resolve = null
      this.#reject?.(this.#isCancelled ? new JobCancelledError(this.id) : new ResultGoneError(this.id))
      return Number.POSITIVE_INFINITY
    }
    if (isTerminal(record)) {
      this.#answer(record)
      return Number.POSITIVE_INFINITY
    }
    if (!this.takeover) return Number.POSITIVE_INFINITY
    if (record.at > now) return record.at - now
    this.#answer('due')
    return Number.POSITIVE_INFINITY
  }

  get #isCancelled(): boolean {
    return this.#cancelled !== null && this.#incarnation !== null && this.#cancelled.has(this.#incarnation)
  }

  #answer(value: JobRecord | 'due'): void {
    this.#resolve?.(value)
    this.#resolve = null
  }
}

/** Whether the record was refreshed since, and what it keeps is still good. */
function keeps(record: JobRecord, now: number): boolean {
  return !isTerminal(record) && keptAt(record, now) !== null
}
