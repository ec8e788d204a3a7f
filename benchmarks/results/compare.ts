/**
 * What moved between two runs beyond noise.
 *
 * @module
 */

import { availableParallelism } from 'node:os'
import { type Spread, spread } from '../support/report.ts'
import type { MetricName } from './metrics.ts'
import { metrics } from './metrics.ts'
import type { Omission, Results, Series } from './results.ts'
import { baselineOf, finite, indexed, soundAdvantages } from './statistics.ts'

/** One figure that moved. */
export interface Move {
  readonly key: string
  readonly metric: MetricName
  /** `advantage`: against the baseline of its own run; `value`: as it is, where there is no baseline, or one of 0. */
  readonly of: 'advantage' | 'value'
  readonly before: Spread
  readonly after: Spread
  readonly better: boolean
}

/** What this run has no figures of, though the earlier one had, or though it tried. */
export interface Gone {
  /** A system of a case, or one of its figures. */
  readonly key: string
  /** Null where none is known. */
  readonly reason: string | null
}

export interface Comparison {
  readonly moved: readonly Move[]
  /** As bad as what got worse: nothing is slower than what does not run. */
  readonly gone: readonly Gone[]
  /** Figures that were looked at. */
  readonly compared: number
  /** Keys that only this run has. */
  readonly added: readonly string[]
  /** Why the two may not be comparable. */
  readonly cautions: readonly string[]
}

/** So many rounds have a range that tells something. */
const roundsMin = 3

/** What counts as beyond noise, for people. */
export const noiseRule = `Beyond noise: ranges from the lowest to the highest round that do not touch even when each is widened by half, and medians further apart than the metric’s own noise (10 % for rate, CPU, p50 and bytes; tails are not compared), or, with fewer than ${roundsMin} rounds, than twice that. Bytes of a job have to differ by ${metrics.heapQueued.resolution}, too. Where both runs have a baseline above 0, the ratio to it is compared: machines have better and worse hours.`

/** See {@link noiseRule}. */
export function compared(before: Results, after: Results): Comparison {
  const [old, now] = [measured(before), measured(after)]
  const moved: Move[] = []
  let count = 0
  for (const [key, series] of now) {
    const earlier = old.get(key)
    if (earlier === undefined || series.system === 'bare' || !isComparable(series)) continue
    count++
    const move = moveOf(key, { series: earlier, all: old }, { series, all: now })
    if (move !== null) moved.push(move)
  }
  return {
    moved,
    gone: gone(before, after),
    compared: count,
    added: [...now.keys()].filter((key) => !old.has(key)),
    cautions: cautions(before, after),
  }
}

/** Whether anything is worse than it was. */
export function gotWorse({ moved, gone }: Comparison): boolean {
  return gone.length > 0 || moved.some(({ better }) => !better)
}

/** The series that have figures, by key. */
function measured(results: Results): Map<string, Series> {
  return new Map([...indexed(results)].filter(([, { samples }]) => finite(samples).length > 0))
}

function isComparable({ metric, backend }: Series): boolean {
  // Jobs are kept elsewhere there: what the heap grows by is chance.
  const isChance = metric.startsWith('heap') && (backend === 'redis' || backend === 'dynamodb')
  return metrics[metric].noise !== null && !isChance
}

/** A system of a case. */
type Lane = Pick<Omission, 'scenario' | 'case' | 'backend' | 'system'>

function laneKey({ scenario, case: one, backend, system }: Lane): string {
  return [scenario, one, backend, system].join(' / ')
}

function covers(omission: Omission, lane: Lane): boolean {
  const same = (field: 'case' | 'system') => omission[field] === 'all' || omission[field] === lane[field]
  return omission.scenario === lane.scenario && omission.backend === lane.backend && same('case') && same('system')
}

function gone(before: Results, after: Results): Gone[] {
  const failedBefore = new Set(before.omissions.filter(({ failed }) => failed === true).map(laneKey))
  const failures = after.omissions.filter((one) => one.failed === true && !failedBefore.has(laneKey(one)))
  const now = measured(after)
  const lanes = new Set([...now.values()].map(laneKey))
  const found = new Map(failures.map((one) => [laneKey(one), one.reason as string | null]))
  for (const [key, series] of wanted(before, after)) {
    if (now.has(key) || failures.some((failure) => covers(failure, series))) continue
    const lane = laneKey(series)
    const reason = after.omissions.find((omission) => covers(omission, series))?.reason ?? null
    // All figures of a lane are one loss.
    if (!lanes.has(lane)) found.set(lane, reason)
    else if (isComparable(series)) found.set(key, reason)
  }
  return [...found].map(([key, reason]) => ({ key, reason }))
}

/** What the later run should have, too: one of one scenario owes nothing of the others, and a quick one has cases of its own. */
function wanted(before: Results, after: Results): [string, Series][] {
  if (before.quick !== after.quick) return []
  const scenarios = new Set([...after.series, ...after.omissions].map(({ scenario }) => scenario))
  const backends = new Set(after.backends.map(({ name }) => name))
  return [...measured(before)].filter(([, { scenario, backend }]) => scenarios.has(scenario) && backends.has(backend))
}

interface Side {
  readonly series: Series
  readonly all: ReadonlyMap<string, Series>
}

/** Against the baseline; null where there is none that a ratio to would tell anything of. */
function advantagesOf({ series, all }: Side): number[] | null {
  const bare = baselineOf(series, all)
  return bare === undefined ? null : soundAdvantages(series, bare)
}

function moveOf(key: string, old: Side, now: Side): Move | null {
  const { metric } = now.series
  const { better, noise, resolution } = metrics[metric]
  const own = [old, now].map(({ series }) => finite(series.samples)) as [number[], number[]]
  const [oldRatios, nowRatios] = [advantagesOf(old), advantagesOf(now)]
  const areRatios = oldRatios !== null && nowRatios !== null
  const looked = areRatios ? ([oldRatios, nowRatios] as const) : own
  const [before, after] = [spread(looked[0]), spread(looked[1])]
  if (!areApart(widened(before), widened(after))) return null
  // Whatever the baseline did: what is itself as it was has not moved.
  if (Math.abs(spread(own[1]).median - spread(own[0]).median) < resolution) return null
  const change = Math.abs(after.median - before.median) / Math.max(Math.abs(before.median), Number.MIN_VALUE)
  const isShort = looked.some(({ length }) => length < roundsMin)
  if (noise === null || (isShort ? change < 2 * noise : change <= noise)) return null
  const isMore = after.median > before.median
  const of = areRatios ? 'advantage' : 'value'
  return { key, metric, of, before, after, better: areRatios || better === 'more' ? isMore : !isMore }
}

/** A few rounds tell less than the whole range. */
function widened({ min, max }: Spread): { min: number; max: number } {
  const quarter = (max - min) / 4
  return { min: min - quarter, max: max + quarter }
}

type Range = ReturnType<typeof widened>

function areApart(one: Range, other: Range): boolean {
  return one.min > other.max || one.max < other.min
}

function cautions(before: Results, after: Results): string[] {
  const list: string[] = []
  const [then, now] = [before, after].map(({ machine }) => machine.replace(/, \d{4}-\d\d-\d\d$/, ''))
  if (then !== now) list.push(`other machine or versions: ${then}; ${now}`)
  if (before.quick !== after.quick)
    list.push(`one was --quick (${before.quick ? 'the earlier' : 'this'}), the other not: their cases differ`)
  for (const [which, { load }] of [
    ['the earlier', before],
    ['this', after],
  ] as const) {
    if (Math.max(...load) > availableParallelism())
      list.push(`the machine was busy in ${which} run: load ${load.join(' to ')}`)
  }
  for (const { name, software } of after.backends) {
    const earlier = before.backends.find((backend) => backend.name === name)
    if (earlier !== undefined && earlier.software !== software) list.push(`${name}: ${earlier.software}; ${software}`)
  }
  return list
}
