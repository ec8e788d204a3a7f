/**
 * The one place where a simulation's time passes and its order is decided: a heap of events, ties broken by the seed. Between two
 * events every microtask runs to its end; nothing real (timers, I/O) takes part, so that a seed is always the same history.
 *
 * @module
 */

import type { Clock, Timer } from '../../src/clock.ts'
import type { Seeded } from '../../storages/conformance/testing/seeded.ts'

/** Whose events they are: a simulated process. */
export interface Owner {
  /** It never acts again. */
  dead: boolean
  /** It does not act before. */
  stalledUntil: number
  /** Its timers that wait: a stopped queue must leave none. */
  timers: number
}

class SimEvent {
  at: number
  tie: number
  order: number
  readonly owner: Owner
  readonly run: () => void
  live = true
  readonly isTimer: boolean

  constructor(at: number, tie: number, order: number, owner: Owner, run: () => void, isTimer: boolean) {
    this.at = at
    this.tie = tie
    this.order = order
    this.owner = owner
    this.run = run
    this.isTimer = isTimer
  }
}

const realSetImmediate = globalThis.setImmediate

/** Events in a row before the real event loop gets its turn: for signals, and pipes to a parent. */
const burst = 20_000

/** Time and order of one simulation. */
export class Scheduler {
  /** Ms of virtual time; the true time of the simulation. */
  now = 1_700_000_000_000
  steps = 0
  /** Owns what belongs to no process: the network, the storage. */
  readonly nobody: Owner = { dead: false, stalledUntil: 0, timers: 0 }
  /** Whose event runs. */
  current: Owner = this.nobody
  readonly #random: Seeded
  readonly #heap: SimEvent[] = []
  readonly #immediates = new Map<Owner, (() => void)[]>()
  #order = 0
  #stopped = false

  constructor(random: Seeded) {
    this.#random = random
  }

  /** Has `run` called in `ms`. */
  schedule(owner: Owner, ms: number, run: () => void, isTimer = false): { clear(): void } {
    const at = this.now + Math.max(0, Math.ceil(ms))
    const event = new SimEvent(at, this.#random.below(2 ** 20), this.#order++, owner, run, isTimer)
    if (isTimer) owner.timers++
    this.#push(event)
    return {
      clear: () => {
        if (!event.live) return
        event.live = false
        if (isTimer) owner.timers--
      },
    }
  }

  /**
   * A clock whose timers are the owner's.
   *
   * @param counted - whether they count as timers that the owner must not leave behind
   */
  clock(owner: Owner, counted: boolean, now: () => number = () => this.now): Clock {
    return {
      now,
      monotonic: () => this.now,
      timer: (callback, ms): Timer => this.schedule(owner, ms, callback, counted),
    }
  }

  /** Stands in for `setImmediate`: first in, first out within a process, in an order of the seed's between processes. */
  immediate(run: () => void): void {
    const owner = this.current
    const waiting = this.#immediates.get(owner)
    if (waiting !== undefined) {
      waiting.push(run)
      return
    }
    this.#immediates.set(owner, [run])
    this.schedule(owner, 0, () => this.#runImmediate(owner))
  }

  #runImmediate(owner: Owner): void {
    const waiting = this.#immediates.get(owner) ?? []
    const run = waiting.shift()
    if (waiting.length > 0) this.schedule(owner, 0, () => this.#runImmediate(owner))
    else this.#immediates.delete(owner)
    run?.()
  }

  /** Ends the run after the present event. */
  stop(): void {
    this.#stopped = true
  }

  /** Runs events until `done`, or until there are none. */
  run(done: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let left = burst
      // The next tick comes when the microtasks of this event, and all that they bring, have run.
      const next = () => queueMicrotask(() => process.nextTick(pump))
      const pump = () => {
        try {
          if (this.#stopped || done() || !this.#step()) {
            resolve()
            return
          }
        } catch (error) {
          reject(error)
          return
        }
        if (--left > 0) next()
        else {
          left = burst
          realSetImmediate(pump)
        }
      }
      next()
    })
  }

  #step(): boolean {
    for (;;) {
      const event = this.#pop()
      if (event === undefined) return false
      if (!event.live) continue
      const { owner } = event
      if (owner.dead) continue
      if (owner.stalledUntil > event.at) {
        // In the order in which they would have come.
        event.at = owner.stalledUntil
        event.tie = -1
        event.order = this.#order++
        this.#push(event)
        continue
      }
      if (event.isTimer) owner.timers--
      event.live = false
      this.now = Math.max(this.now, event.at)
      this.current = owner
      this.steps++
      event.run()
      return true
    }
  }

  #push(event: SimEvent): void {
    const heap = this.#heap
    let slot = heap.length
    heap.push(event)
    while (slot > 0) {
      const parentSlot = (slot - 1) >> 1
      const parent = heap[parentSlot] as SimEvent
      if (!before(event, parent)) break
      heap[slot] = parent
      slot = parentSlot
    }
    heap[slot] = event
  }

  #pop(): SimEvent | undefined {
    const heap = this.#heap
    const top = heap[0]
    const last = heap.pop()
    if (last === undefined || last === top) return top
    const { length } = heap
    let slot = 0
    for (;;) {
      let child = slot * 2 + 1
      if (child >= length) break
      if (child + 1 < length && before(heap[child + 1] as SimEvent, heap[child] as SimEvent)) child++
      if (!before(heap[child] as SimEvent, last)) break
      heap[slot] = heap[child] as SimEvent
      slot = child
    }
    heap[slot] = last
    return top
  }
}

function before(a: SimEvent, b: SimEvent): boolean {
  if (a.at !== b.at) return a.at < b.at
  return a.tie !== b.tie ? a.tie < b.tie : a.order < b.order
}

/** Has every `setImmediate` go through a scheduler while the simulation runs. */
export async function withImmediates<T>(scheduler: Scheduler, run: () => Promise<T>): Promise<T> {
  globalThis.setImmediate = ((callback: () => void) => {
    scheduler.immediate(callback)
    return { unref() {}, ref() {} }
  }) as unknown as typeof setImmediate
  try {
    return await run()
  } finally {
    globalThis.setImmediate = realSetImmediate
  }
}
