/**
 * Waiting for outcomes. However many wait for an id, it is watched once; hints make the answer prompt, and polling, one call
 * for all ids, makes it certain.
 *
 * @module
 */

import type { Clock, Timer } from './clock.ts'
import { JobCancelledError, ResultGoneError, StoppedError, TimeoutError } from './errors.ts'
import { limits } from './limits.ts'
import type { JobRecord } from './record.ts'
import { isTerminal, keptAt } from './record.ts'
import type { Hint, StorageHandle, StorageTraits } from './storage.ts'

/** The least time between two polls, ms, however many hints ask for one. */
const pollSoonMs = 5

interface Settled<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

function deferred<T>(): Settled<T> {
  let resolve!: (value: T) => void
  let reject!: (error: unknown) => void
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Whoever loses interest must not cause an unhandled rejection.
  promise.catch(() => {})
  return { promise, resolve, reject }
}

/** One caller's wait for one id. */
export class Wait {
  readonly id: string
  /** Whether the caller wants to hear, too, that the job is open but due, so that it can take it over. */
  readonly takeover: boolean
  /** While the caller itself runs the job, `stop` must not end the wait. */
  running = false
  /** Rejects when the wait ends by time-out, signal or stop. */
  readonly failed: Settled<never> = deferred()
  #incarnation: string | null = null
  #content = false
  #since = 0
  #next: Settled<JobRecord | 'due'> | null = null
  /** What a hint told before the caller knew which record is its own. */
  #early: JobRecord | null = null
  readonly #cancelled = new Set<string>()
  readonly #waiter: Waiter
  readonly #end: () => void

  constructor(waiter: Waiter, id: string, takeover: boolean, end: () => void) {
    this.#waiter = waiter
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
    this.#since = this.#waiter.pollsBegun
  }

  /** The terminal record; or 'due', once, if the job may be taken over. Rejects as {@link failed} does. */
  next(): Promise<JobRecord | 'due'> {
    if (this.#early !== null && this.#early.spec.incarnation === this.#incarnation) return Promise.resolve(this.#early)
    this.#next = deferred()
    if (this.#incarnation !== null && this.#cancelled.has(this.#incarnation)) this.#waiter.pollSoon()
    return Promise.race([this.#next.promise, this.failed.promise])
  }

  /** Ends the wait; harmless twice. */
  close(): void {
    this.#end()
  }

  /** @internal A hint brought a terminal record. */
  tell(record: JobRecord): void {
    if (this.#incarnation === null || this.#next === null) this.#early = record
    else if (record.spec.incarnation === this.#incarnation) this.#resolve(record)
  }

  /** @internal A hint told of a cancellation. */
  tellCancelled(incarnation: string): void {
    this.#cancelled.add(incarnation)
    if (incarnation === this.#incarnation) this.#waiter.pollSoon()
  }

  /**
   * @internal Poll number `poll` read this.
   * @returns until the job can be taken over, ms; Infinity if that is of no interest
   */
  see(record: JobRecord | null, now: number, poll: number): number {
    const incarnation = this.#incarnation
    if (incarnation === null || this.#next === null || poll <= this.#since) return Number.POSITIVE_INFINITY
    if (record !== null && record.spec.incarnation !== incarnation && this.#content && keeps(record, now)) {
      this.#resolve(record)
      return Number.POSITIVE_INFINITY
    }
    if (record === null || record.spec.incarnation !== incarnation) {
      this.#next.reject(
        this.#cancelled.has(incarnation) ? new JobCancelledError(this.id) : new ResultGoneError(this.id),
      )
      this.#next = null
      return Number.POSITIVE_INFINITY
    }
    if (isTerminal(record)) {
      this.#resolve(record)
      return Number.POSITIVE_INFINITY
    }
    if (!this.takeover) return Number.POSITIVE_INFINITY
    if (record.at > now) return record.at - now
    this.#resolve('due')
    return Number.POSITIVE_INFINITY
  }

  #resolve(value: JobRecord | 'due'): void {
    this.#next?.resolve(value)
    this.#next = null
  }
}

/** Whether the record was refreshed since, and what it keeps is still good. */
function keeps(record: JobRecord, now: number): boolean {
  return !isTerminal(record) && keptAt(record, now) !== null
}

/** All waits of a queue object. */
export class Waiter {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #traits: StorageTraits
  readonly #handle: () => Promise<StorageHandle>
  readonly #onError: (error: unknown) => void
  readonly #watches = new Map<string, Set<Wait>>()
  readonly #signals = new WeakMap<AbortSignal, Set<() => void>>()
  #takeovers = 0
  #poll: Timer | null = null
  #pollAt = Number.POSITIVE_INFINITY
  #polling = false
  #pollMs: number
  /** New waits are refused: the queue stops, or has stopped. */
  #refusing = false
  /** Polls begun so far: what one of them reads is older than a wait that began after it. */
  pollsBegun = 0

  constructor(
    clock: Clock,
    random: () => number,
    traits: StorageTraits,
    handle: () => Promise<StorageHandle>,
    onError: (error: unknown) => void,
  ) {
    this.#clock = clock
    this.#random = random
    this.#traits = traits
    this.#handle = handle
    this.#onError = onError
    this.#pollMs = traits.pollMs.min
  }

  /** Whether it was stopped, and not revived. */
  get refusing(): boolean {
    return this.#refusing
  }

  /** Ids that are waited for. */
  get size(): number {
    return this.#watches.size
  }

  /**
   * Begins a wait, before the id is enqueued, so that no hint is missed.
   *
   * @param timeoutMs - may be Infinity
   * @throws the signal's reason, if it is aborted already; {@link StoppedError} after {@link stop}
   */
  open(id: string, what: string, timeoutMs: number, signal: AbortSignal | undefined, takeover: boolean): Wait {
    signal?.throwIfAborted()
    if (this.#refusing) throw new StoppedError(what)
    let timer: Timer | null = null
    const onAbort = () => wait.failed.reject(signal?.reason)
    const wait: Wait = new Wait(this, id, takeover, () => {
      if (!this.#remove(wait)) return
      timer?.clear()
      if (signal !== undefined) this.#unlisten(signal, onAbort)
    })
    if (timeoutMs !== Number.POSITIVE_INFINITY) {
      timer = this.#clock.timer(() => wait.failed.reject(new TimeoutError(what, timeoutMs)), timeoutMs, true)
    }
    if (signal !== undefined) this.#listen(signal, onAbort)
    const watch = this.#watches.get(id)
    if (watch === undefined) this.#watches.set(id, new Set([wait]))
    else watch.add(wait)
    if (takeover) this.#takeovers++
    this.#pollMs = this.#traits.pollMs.min
    this.#pollIn(this.#pollMs)
    return wait
  }

  /** Gets every hint of the storage. */
  hint(hint: Hint): void {
    if (this.#watches.size === 0) return
    if (hint.type === 'settled') {
      const watch = this.#watches.get(hint.id)
      if (watch === undefined) return
      if (hint.record === undefined) this.pollSoon()
      else for (const wait of [...watch]) wait.tell(hint.record)
    } else if (hint.type === 'cancelled') {
      const watch = this.#watches.get(hint.id)
      if (watch !== undefined) for (const wait of [...watch]) wait.tellCancelled(hint.incarnation)
    } else if (hint.type === 'due' && this.#takeovers > 0) {
      this.#pollIn(Math.max(pollSoonMs, hint.inMs))
    }
  }

  /** Polls in a moment. */
  pollSoon(): void {
    this.#pollIn(pollSoonMs)
  }

  /** Allows waits again. */
  revive(): void {
    this.#refusing = false
  }

  /** Refuses new waits, and ends all but those whose caller runs the job itself. */
  stop(): void {
    this.#refusing = true
    for (const watch of this.#watches.values()) {
      for (const wait of watch) if (!wait.running) wait.failed.reject(new StoppedError('the wait'))
    }
  }

  #remove(wait: Wait): boolean {
    const watch = this.#watches.get(wait.id)
    if (watch === undefined || !watch.delete(wait)) return false
    if (wait.takeover) this.#takeovers--
    if (watch.size === 0) this.#watches.delete(wait.id)
    if (this.#watches.size === 0) {
      this.#poll?.clear()
      this.#poll = null
      this.#pollAt = Number.POSITIVE_INFINITY
    }
    return true
  }

  /** One listener a signal, however many wait on it. */
  #listen(signal: AbortSignal, onAbort: () => void): void {
    const listeners = this.#signals.get(signal)
    if (listeners !== undefined) {
      listeners.add(onAbort)
      return
    }
    const own = new Set([onAbort])
    const all = () => {
      this.#signals.delete(signal)
      for (const listener of own) listener()
    }
    this.#signals.set(signal, own)
    signal.addEventListener('abort', all, { once: true })
    Object.assign(own, { detach: () => signal.removeEventListener('abort', all) })
  }

  #unlisten(signal: AbortSignal, onAbort: () => void): void {
    const listeners = this.#signals.get(signal)
    if (listeners === undefined) return
    listeners.delete(onAbort)
    if (listeners.size > 0) return
    this.#signals.delete(signal)
    ;(listeners as Set<() => void> & { detach(): void }).detach()
  }

  /** Ref'ed: while somebody waits, the process must not end. */
  #pollIn(ms: number): void {
    if (this.#watches.size === 0) return
    const at = this.#clock.monotonic() + ms
    if (at >= this.#pollAt) return
    this.#poll?.clear()
    this.#pollAt = at
    this.#poll = this.#clock.timer(() => void this.#onPoll(), ms, true)
  }

  async #onPoll(): Promise<void> {
    this.#poll = null
    if (this.#polling) {
      this.#pollAt = Number.POSITIVE_INFINITY
      this.pollSoon()
      return
    }
    this.#polling = true
    // Hints that come while the poll is under way may be newer than what it reads: they arm the timer again.
    this.#pollAt = Number.POSITIVE_INFINITY
    const poll = ++this.pollsBegun
    let nextMs = Number.POSITIVE_INFINITY
    try {
      nextMs = await this.#look([...this.#watches.keys()], poll)
    } catch (error) {
      this.#onError(error)
    }
    this.#polling = false
    const ms = this.#pollMs
    this.#pollMs = Math.min(this.#traits.pollMs.max, ms * 1.5)
    this.#pollIn(Math.min(nextMs, ms * (0.75 + this.#random() / 2)))
  }

  async #look(ids: readonly string[], poll: number): Promise<number> {
    const handle = await this.#handle()
    let nextMs = Number.POSITIVE_INFINITY
    for (let from = 0; from < ids.length; from += limits.callItemsMax) {
      const slice = ids.slice(from, from + limits.callItemsMax)
      const { now, records } = await handle.get(slice)
      for (let index = 0; index < slice.length; index++) {
        for (const wait of [...(this.#watches.get(slice[index] as string) ?? [])]) {
          nextMs = Math.min(nextMs, wait.see(records[index] ?? null, now, poll))
        }
      }
    }
    return nextMs
  }
}
