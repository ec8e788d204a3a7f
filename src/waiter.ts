/**
 * Waiting for outcomes. However many wait for an id, it is watched once; hints make the answer prompt, and polling, one call
 * for all ids, makes it certain.
 *
 * @module
 */

import type { Clock, Timer } from './clock.ts'
import { StoppedError, TimeoutError } from './errors.ts'
import { limits } from './limits.ts'
import type { Hint, StorageHandle, StorageTraits } from './storage.ts'
import { type Lookout, Wait } from './wait.ts'

/** The least time between two polls, ms, however many hints ask for one. */
const pollSoonMs = 5

/** All waits of a queue object. */
export class Waiter implements Lookout {
  readonly #clock: Clock
  readonly #random: () => number
  readonly #traits: StorageTraits
  readonly #handle: () => Promise<StorageHandle>
  readonly #onError: (error: unknown) => void
  readonly #watches = new Map<string, Wait[]>()
  readonly #signals = new WeakMap<AbortSignal, Set<() => void>>()
  #takeovers = 0
  #poll: Timer | null = null
  #pollAt = Number.POSITIVE_INFINITY
  #polling = false
  /** Ids that hints told the end of, but not how. */
  readonly #sought = new Set<string>()
  #seeking = false
  #pollMs: number
  /** New waits are refused: the queue stops, or has stopped. */
  #refusing = false
  #looksBegun = 0

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

  get looksBegun(): number {
    return this.#looksBegun
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
    const onAbort = () => wait.fail(signal?.reason)
    const wait: Wait = new Wait(this, id, takeover, () => {
      if (!this.#remove(wait)) return
      timer?.clear()
      if (signal !== undefined) this.#unlisten(signal, onAbort)
    })
    if (timeoutMs !== Number.POSITIVE_INFINITY) {
      timer = this.#clock.timer(() => wait.fail(new TimeoutError(what, timeoutMs)), timeoutMs, true)
    }
    if (signal !== undefined) this.#listen(signal, onAbort)
    const watch = this.#watches.get(id)
    if (watch === undefined) this.#watches.set(id, [wait])
    else wait.place = watch.push(wait) - 1
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
      for (const wait of watch) {
        if (hint.record === undefined) wait.tellEnded()
        else wait.tell(hint.record)
      }
    } else if (hint.type === 'cancelled') {
      const watch = this.#watches.get(hint.id)
      if (watch !== undefined) for (const wait of watch) wait.tellCancelled(hint.incarnation)
    } else if (hint.type === 'due' && this.#takeovers > 0) {
      this.#pollIn(Math.max(pollSoonMs, hint.inMs))
    }
  }

  /** Polls in a moment. */
  pollSoon(): void {
    this.#pollIn(pollSoonMs)
  }

  seek(id: string): void {
    this.#sought.add(id)
    if (this.#seeking) return
    this.#seeking = true
    // The hints of one batch come one after the other: one call reads what they told of.
    queueMicrotask(() => void this.#seek())
  }

  /** Allows waits again. */
  revive(): void {
    this.#refusing = false
  }

  /** Refuses new waits, and ends all but those whose caller runs the job itself. */
  stop(): void {
    this.#refusing = true
    for (const watch of this.#watches.values()) {
      for (const wait of watch) if (!wait.running) wait.fail(new StoppedError('the wait'))
    }
  }

  #remove(wait: Wait): boolean {
    const watch = this.#watches.get(wait.id)
    if (watch?.[wait.place] !== wait) return false
    const last = watch.pop() as Wait
    if (last !== wait) {
      watch[wait.place] = last
      last.place = wait.place
    }
    if (wait.takeover) this.#takeovers--
    if (watch.length === 0) this.#watches.delete(wait.id)
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
    let nextMs = Number.POSITIVE_INFINITY
    try {
      nextMs = await this.#look([...this.#watches.keys()])
    } catch (error) {
      this.#onError(error)
    }
    this.#polling = false
    const ms = this.#pollMs
    this.#pollMs = Math.min(this.#traits.pollMs.max, ms * 1.5)
    this.#pollIn(Math.min(nextMs, ms * (0.75 + this.#random() / 2)))
  }

  /** There is a look for each batch of hints, so that there are never more of them than hints. */
  async #seek(): Promise<void> {
    try {
      while (this.#sought.size > 0) {
        const ids = [...this.#sought].filter((id) => this.#watches.has(id))
        this.#sought.clear()
        if (ids.length > 0) this.#pollIn(await this.#look(ids))
      }
    } catch (error) {
      this.#onError(error)
      this.pollSoon()
    }
    this.#seeking = false
  }

  /** Answers until a job that somebody would take over is due, ms. */
  async #look(ids: readonly string[]): Promise<number> {
    const look = ++this.#looksBegun
    const handle = await this.#handle()
    let nextMs = Number.POSITIVE_INFINITY
    for (let from = 0; from < ids.length; from += limits.callItemsMax) {
      const slice = ids.slice(from, from + limits.callItemsMax)
      const { now, records } = await handle.get(slice)
      for (let index = 0; index < slice.length; index++) {
        for (const wait of this.#watches.get(slice[index] as string) ?? []) {
          nextMs = Math.min(nextMs, wait.see(records[index] ?? null, now, look))
        }
      }
    }
    return nextMs
  }
}
