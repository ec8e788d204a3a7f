/**
 * Medians and what they are worth.
 *
 * @module
 */

import { spread } from '../support/report.ts'
import { metrics } from './metrics.ts'
import type { Results, Series } from './results.ts'

/** What identifies a series in any run. */
export function keyOf({ scenario, case: one, backend, system, metric }: Omit<Series, 'samples'>): string {
  return [scenario, one, backend, system, metric].join(' / ')
}

/** The series of a run, by key. */
export function indexed(results: Results): Map<string, Series> {
  return new Map(results.series.map((series) => [keyOf(series), series]))
}

/**
 * How one system does against another in the same rounds: above 1 it is that much better, below 1 worse. Rounds without a figure
 * are passed over, and so are all of a metric whose ratios say nothing.
 */
export function advantages(own: Series, other: Series): number[] {
  const { better, ratio } = metrics[own.metric]
  if (!ratio) return []
  return pairs(own, other)
    .map(([a, b]) => (better === 'more' ? a / b : b / a))
    .filter(Number.isFinite)
}

/**
 * As {@link advantages}; null where they can't tell what moves: against a baseline of 0, everything that is more is as bad, and
 * of a figure that is 0 or less there is no multiple.
 */
export function soundAdvantages(own: Series, other: Series): number[] | null {
  const sound = pairs(own, other).every(([a, b]) => a > 0 && b > 0)
  const found = sound ? advantages(own, other) : []
  return found.length === 0 ? null : found
}

/** The figures of the rounds in which both have one. */
function pairs(own: Series, other: Series): [number, number][] {
  return own.samples
    .map((sample, round): [number, number] => [sample, other.samples[round] ?? Number.NaN])
    .filter(([a, b]) => Number.isFinite(a) && Number.isFinite(b))
}

/** The baseline of a series in the same run, if it has one and their ratio says anything. */
export function baselineOf(series: Series, all: ReadonlyMap<string, Series>): Series | undefined {
  if (series.system === 'bare' || !metrics[series.metric].ratio) return undefined
  return all.get(keyOf({ ...series, system: 'bare' }))
}

/** The median of a series' ratio to its baseline, as value against value; null without one, or where it is 0. */
export function ratioToBare(series: Series, all: ReadonlyMap<string, Series>): number | null {
  const bare = baselineOf(series, all)
  if (bare === undefined) return null
  const found = pairs(series, bare)
  if (found.length === 0 || found.some(([, other]) => other === 0)) return null
  return spread(found.map(([own, other]) => own / other)).median
}

/** The rounds that have a figure. */
export function finite(samples: readonly number[]): number[] {
  return samples.filter(Number.isFinite)
}
