/**
 * What a seed makes of a world: which storage, which clocks, how bad the weather.
 *
 * @module
 */

import type { Faults } from '../../storages/conformance/testing/faults.ts'
import { noFaults } from '../../storages/conformance/testing/faults.ts'
import type { Seeded } from '../../storages/conformance/testing/seeded.ts'

/** `calm`: a network, but no faults, so that much more can be promised; `rough`; `savage`. */
export type Weather = 'calm' | 'rough' | 'savage'

/** `memory`: the Memory storage; `rows`: fromRecordStore without hints; `pushing rows`: with hints. */
export type Tier = 'memory' | 'rows' | 'pushing rows'

/** A world before it begins. */
export interface Setting {
  readonly weather: Weather
  readonly tier: Tier
  readonly faults: Faults
  readonly processes: number
  readonly ids: readonly string[]
  readonly leaseMs: number
  readonly handlerTimeoutMs: number
  readonly stopTimeoutMs: number
  /** The clocks of processes are wrong by up to this, either way. */
  readonly skewMs: number
  readonly graceMs: number
  readonly createFirst: boolean
  readonly leaseCacheMax: number
  readonly holdCacheMs: number
  /** From one action of a process's clients to the next, at most, ms. */
  readonly idleMsMax: number
  /** Chance of a crash at each touch of a process with the world outside it. */
  readonly crash: number
  /** Chance that a process stalls, or its clock jumps, at an action of its clients. */
  readonly stall: number
  readonly jump: number
  /** What `afterExecution` does, if anything. */
  readonly hook: 'none' | 'shorter TTL' | 'throws'
}

/** Draws a world. */
export function drawSetting(random: Seeded, given: { weather?: Weather; tier?: Tier } = {}): Setting {
  const drawn = {
    weather: random.pick<Weather>(['calm', 'rough', 'rough', 'savage']),
    tier: random.pick<Tier>(['memory', 'memory', 'rows', 'pushing rows']),
  }
  const { weather, tier } = { ...drawn, ...given }
  const leaseMs = random.between(400, 2_000)
  const skewMs = weather === 'calm' ? 0 : random.pick([0, 5, 200])
  const rows = tier !== 'memory'
  return {
    weather,
    tier,
    faults: drawFaults(random, weather, rows),
    processes: random.between(2, 4),
    ids: ['a', 'b', 'c', 'd', '__proto__', 'f', 'g', 'h'].slice(0, random.between(2, 8)),
    leaseMs,
    handlerTimeoutMs: random.pick([leaseMs * 2, 5_000]),
    stopTimeoutMs: random.pick([0, 100, 3_000]),
    skewMs,
    graceMs: rows ? 2 * skewMs : 0,
    createFirst: random.chance(0.5),
    leaseCacheMax: random.pick([0, 3, 10_000]),
    holdCacheMs: random.pick([0, 100]),
    idleMsMax: random.pick([20, 100, 400]),
    crash: weather === 'calm' ? 0 : random.pick([0, 0.000_5, 0.003]),
    stall: weather === 'calm' ? 0 : random.pick([0, 0.01, 0.03]),
    jump: weather === 'calm' ? 0 : random.pick([0, 0.02]),
    hook: random.pick(['none', 'none', 'shorter TTL', 'throws']),
  }
}

function drawFaults(random: Seeded, weather: Weather, rows: boolean): Faults {
  if (weather === 'calm') return { ...noFaults, latencyMs: random.pick([0, 1, 4]) }
  const worst = weather === 'savage' ? 0.12 : 0.03
  const chance = (): number => (random.chance(0.5) ? 0 : random.next() * worst)
  const hints = (): number => (random.chance(0.3) ? 1 : random.next())
  const due = (): number => (rows && random.chance(0.5) ? random.next() * 0.5 : 0)
  return {
    latencyMs: random.pick([1, 10, 60]),
    slow: chance(),
    slowMs: random.pick([300, 3_000]),
    before: chance(),
    after: chance(),
    late: chance(),
    twice: chance(),
    hintLost: random.chance(0.5) ? hints() : 0,
    hintTwice: random.chance(0.5) ? random.next() : 0,
    dueStale: due(),
    dueLost: due(),
    dueWrong: due(),
    changeDoubt: rows ? chance() : 0,
    changeEcho: rows ? chance() : 0,
  }
}
