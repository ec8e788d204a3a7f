/**
 * What really happened, by the true time: every life of every id, every lease, every handler call. What callers are told is held
 * against it.
 *
 * @module
 */

import type { JobRecord } from '../../src/record.ts'
import { forgottenFrom, isTerminal } from '../../src/record.ts'
import { leaseKey } from '../../storages/conformance/testing/tokens-sent.ts'

/** One record's life. */
export interface Life {
  readonly id: string
  readonly incarnation: string
  /** The number in its payload: the call that made it. */
  readonly n: number
  readonly createdAt: number
  /** The last that was stored. */
  record: JobRecord
  /** Whether it was past its end by somebody's clock before it was kept longer. */
  seemedGone: boolean
  /** When it became terminal. */
  endedAt: number | null
  /** When it was removed while it lived. */
  cancelledAt: number | null
}

/** One handler call. */
export interface Run {
  readonly id: string
  readonly generation: string
  readonly startedAt: number
  /** What the handler answered, as stored. */
  returned: string | null
  active: boolean
}

/** A result as handlers of the simulation make it: which call asked, which lease answered. */
export interface Answer {
  readonly n: number
  readonly run: number
}

/** The history of one world. */
export class Ledger {
  readonly lives: Life[] = []
  readonly #byId = new Map<string, Life[]>()
  readonly #byIncarnation = new Map<string, Life>()
  /** The record that each lease was given with. */
  readonly leases = new Map<string, JobRecord>()
  readonly runs = new Map<string, Run>()
  /** How far clocks may differ from the true time, ms. */
  readonly #skewMs: number

  constructor(skewMs: number) {
    this.#skewMs = skewMs
  }

  /** A record changed at `now`; answers its life if it ended or was cancelled by that. */
  changed(id: string, before: JobRecord | null, after: JobRecord | null, now: number): Life | null {
    if (after === null) {
      const life = before === null ? undefined : this.#byIncarnation.get(before.spec.incarnation)
      if (life === undefined || isTerminal(life.record)) return null
      life.cancelledAt = now
      return life
    }
    let life = this.#byIncarnation.get(after.spec.incarnation)
    // A request that is sent twice and arrives after all is over makes the same record anew.
    const anew = life !== undefined && life.record.spec.createdAt !== after.spec.createdAt
    if (life === undefined || life.cancelledAt !== null || anew) {
      life = {
        id,
        incarnation: after.spec.incarnation,
        n: isTerminal(after) ? -1 : numberIn(after.payload),
        createdAt: now,
        record: after,
        seemedGone: false,
        endedAt: null,
        cancelledAt: null,
      }
      this.lives.push(life)
      this.#byIncarnation.set(life.incarnation, life)
      const lives = this.#byId.get(id)
      if (lives === undefined) this.#byId.set(id, [life])
      else lives.push(life)
    }
    life.seemedGone ||= this.#skewMs > 0 && forgottenFrom(life.record) <= now + this.#skewMs
    life.record = after
    if (after.state === 'processing') this.leases.set(leaseKey(id, after.generation), after)
    if (!isTerminal(after) || life.endedAt !== null) return null
    life.endedAt = now
    return life
  }

  /** The lives of an id that can have been seen between two moments. */
  seenBetween(id: string, from: number, to: number): Life[] {
    const skewMs = this.#skewMs
    return (this.#byId.get(id) ?? []).filter((life) => {
      if (life.createdAt > to) return false
      if (life.cancelledAt !== null) return life.cancelledAt >= from
      return this.#goneFrom(life) + skewMs >= from
    })
  }

  #goneFrom({ record, endedAt }: Life): number {
    // A write that was slow may arrive past its own end.
    if (isTerminal(record)) return Math.max(record.at, endedAt ?? 0)
    return record.inline ? record.at + record.spec.resultTTL : Number.POSITIVE_INFINITY
  }

  /** The life that a call made, if any. */
  madeBy(n: number): Life | undefined {
    return this.lives.find((life) => life.n === n)
  }
}

/** The call's number in a payload. */
export function numberIn(payload: string | Uint8Array): number {
  return (JSON.parse(String(payload)) as { n: number }).n
}
