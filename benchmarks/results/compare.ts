/**
 * What moved between two runs beyond noise.
 *
 * @module
 */

import { availableParallelism } from 'node:os'
import { type Spread, spread } from '../support/report.ts'
import type { MetricName } from './metrics.ts'
import { metrics } from './metrics.ts'
import type { Results, Series } from './results.ts'
import { advantages, baselineOf, indexed } from './statistics.ts'

/** One figure that moved. */
export interface Move {
  readonly key: string
  readonly metric: MetricName
  /** `advantage`: against the baseline of its own run; `value`: as it is, where there is no baseline. */
  readonly of: 'advantage' | 'value'
  readonly before: Spread
  readonly after: Spread
  readonly better: boolean
}

export interface Comparison {
  readonly moved: readonly Move[]
  /** Figures that were looked at. */
  readonly compared: number
  /** Keys that only one of the runs has. */
  readonly missing: readonly string[]
  readonly added: readonly string[]
  /** Why the two may not be comparable. */
  readonly cautions: readonly string[]
}

/** What counts as beyond noise, for people. */
export const noiseRule =
  'Beyond noise: ranges from the lowest to the highest round that do not touch even when each is widened by half, and medians further apart than the metric’s own noise (10 % for rate, CPU, p50 and bytes; tails are not compared). Where both runs have a baseline, the ratio to it is compared: machines have better and worse hours.'

/** See {@link noiseRule}. */
export function compared(before: Results, after: Results): Comparison {
  const [old, now] = [indexed(before), indexed(after)]
  const moved: Move[] = []
  let count = 0
  for (const [key, series] of now) {
    const earlier = old.get(key)
    if (earlier === undefined || series.system === 'bare' || metrics[series.metric].noise === null) continue
    count++
    const move = moveOf(key, { series: earlier, all: old }, { series, all: now })
    if (move !== null) moved.push(move)
  }
  return {
    moved,
    compared: count,
    missing: within(old, after).filter((key) => !now.has(key)),
    added: [...now.keys()].filter((key) => !old.has(key)),
    cautions: cautions(before, after),
  }
}

/** Keys of what the other run set out to measure as well: a run of one scenario lacks nothing of the others. */
function within(old: ReadonlyMap<string, Series>, after: Results): string[] {
  const scenarios = new Set(after.series.map(({ scenario }) => scenario))
  const backends = new Set(after.backends.map(({ name }) => name))
  return [...old]
    .filter(([, { scenario, backend }]) => scenarios.has(scenario) && backends.has(backend))
    .map(([key]) => key)
}

interface Side {
  readonly series: Series
  readonly all: ReadonlyMap<string, Series>
}

function moveOf(key: string, old: Side, now: Side): Move | null {
  const { metric } = now.series
  const bares = [baselineOf(old.series, old.all), baselineOf(now.series, now.all)]
  const [oldBare, nowBare] = bares
  const ratios = oldBare !== undefined && nowBare !== undefined
  const of = ratios ? 'advantage' : 'value'
  const before = spread(ratios ? advantages(old.series, oldBare) : finite(old.series.samples))
  const after = spread(ratios ? advantages(now.series, nowBare) : finite(now.series.samples))
  const [wideBefore, wideAfter] = [widened(before), widened(after)]
  const apart = wideAfter.min > wideBefore.max || wideAfter.max < wideBefore.min
  const change = Math.abs(after.median - before.median) / Math.max(Math.abs(before.median), Number.MIN_VALUE)
  if (!apart || !(change > (metrics[metric].noise ?? Number.POSITIVE_INFINITY))) return null
  const more = after.median > before.median
  return { key, metric, of, before, after, better: ratios || metrics[metric].better === 'more' ? more : !more }
}

/** A few rounds tell less than the whole range. */
function widened({ min, max }: Spread): { min: number; max: number } {
  const quarter = (max - min) / 4
  return { min: min - quarter, max: max + quarter }
}

function finite(samples: readonly number[]): number[] {
  return samples.filter(Number.isFinite)
}

function cautions(before: Results, after: Results): string[] {
  const list: string[] = []
  const [then, now] = [before, after].map(({ machine }) => machine.replace(/, \d{4}-\d\d-\d\d$/, ''))
  if (then !== now) list.push(`other machine or versions: ${then}; ${now}`)
  if (before.quick !== after.quick)
    list.push(`one was --quick (${before.quick ? 'the earlier' : 'this'}), the other not`)
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
