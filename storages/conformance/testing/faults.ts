/**
 * Faults, and a network that has them: how a call can go wrong between a caller and what it calls.
 *
 * @module
 */

import type { Clock } from '../../../src/clock.ts'
import { StorageError } from '../../../src/errors.ts'

/** Chances from 0 to 1, each rolled for each call or hint; and lengths. All zero: nothing goes wrong, and takes no time. */
export interface Faults {
  /** The longest that a request, a reply or a hint usually travels, ms; each takes from 0 to this. What overtakes is reordered. */
  latencyMs: number
  /** One of them takes up to `slowMs`. */
  slow: number
  slowMs: number
  /** The call is not made, and rejects. */
  before: number
  /** The call is made, its reply is lost: it rejects. */
  after: number
  /** The call rejects first, and is made later: a time-out whose request was still on its way. */
  late: number
  /** The call is made twice, as when a driver sends it again; its reply is the second one's. */
  twice: number
  /** A hint is lost. */
  hintLost: number
  /** A hint comes twice. */
  hintTwice: number
  /** A `due` answers what it answered before. For record stores, as all that follow. */
  dueStale: number
  /** A `due` leaves entries out. */
  dueLost: number
  /** A `due` names keys, at its head, that are not due or not there. */
  dueWrong: number
  /** One change of a swap is made, but answered with an error. */
  changeDoubt: number
  /** One change of a swap is made, but answered as refused, as when a driver sent it twice. */
  changeEcho: number
}

/** Nothing goes wrong. */
export const noFaults: Readonly<Faults> = Object.freeze({
  latencyMs: 0,
  slow: 0,
  slowMs: 0,
  before: 0,
  after: 0,
  late: 0,
  twice: 0,
  hintLost: 0,
  hintTwice: 0,
  dueStale: 0,
  dueLost: 0,
  dueWrong: 0,
  changeDoubt: 0,
  changeEcho: 0,
})

/** A kind of fault that happened. */
export type FaultKind = Exclude<keyof Faults, 'latencyMs' | 'slowMs'>

/** What a network is made of. */
export interface NetworkOptions {
  /** The caller's clock: replies and hints reach the caller by its timers. If those never fire, the caller is gone. */
  readonly clock: Clock
  /** Requests travel by this clock, so that they arrive even if their caller is gone. Default: `clock`. */
  readonly wire?: Clock
  /** Numbers from 0 to below 1; all faults come from them. */
  readonly random: () => number
  /** Read at each call: change it and the weather changes. */
  readonly faults: Readonly<Faults>
  /** Told of each fault that happens, `latencyMs` excepted. */
  readonly onFault?: (kind: FaultKind) => void
}

/** Carries calls, replies and hints, with the faults that it is told to have. */
export class Network {
  readonly #options: NetworkOptions
  readonly #wire: Clock

  constructor(options: NetworkOptions) {
    this.#options = options
    this.#wire = options.wire ?? options.clock
  }

  /** Rolls for a fault. */
  roll(kind: FaultKind): boolean {
    const chance = this.#options.faults[kind]
    if (chance <= 0 || this.#options.random() >= chance) return false
    this.#options.onFault?.(kind)
    return true
  }

  random(): number {
    return this.#options.random()
  }

  /**
   * Makes a call over there.
   *
   * @param make - the call itself; may be made not at all, or twice
   */
  call<T>(make: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const reply = (end: () => void): void => this.#travel(this.#options.clock, end)
      if (this.roll('before')) {
        reply(() => reject(outage()))
        return
      }
      if (this.roll('late')) {
        reply(() => reject(outage()))
        this.#travel(this.#wire, () => this.#travel(this.#wire, () => void make().catch(() => {})))
        return
      }
      const lost = this.roll('after')
      const arrive = (): void => {
        make().then(
          (answer) => reply(() => (lost ? reject(outage()) : resolve(answer))),
          (error: unknown) => reply(() => reject(error)),
        )
      }
      const twice = this.roll('twice')
      this.#travel(this.#wire, () => {
        if (!twice) {
          arrive()
          return
        }
        make().catch(() => {})
        this.#travel(this.#wire, arrive)
      })
    })
  }

  /** Brings a hint to the caller: in time, late, twice or never. */
  hint(deliver: () => void): void {
    if (this.roll('hintLost')) return
    this.#travel(this.#options.clock, deliver)
    if (this.roll('hintTwice')) this.#travel(this.#options.clock, deliver)
  }

  #travel(clock: Clock, arrive: () => void): void {
    const { faults, random } = this.#options
    const longest = faults.slow > 0 && this.roll('slow') ? faults.slowMs : faults.latencyMs
    clock.timer(arrive, Math.floor(random() * (longest + 1)), true)
  }
}

function outage(): StorageError {
  return new StorageError('the storage is away, says the fault injector')
}
