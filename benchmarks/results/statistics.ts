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

/** How one system does against another in the same rounds: above 1 it is that much better, below 1 worse. */
export function advantages(own: Series, other: Series): number[] {
  const rounds = Math.min(own.samples.length, other.samples.length)
  return Array.from({ length: rounds }, (_, round) => {
    const [a = Number.NaN, b = Number.NaN] = [own.samples[round], other.samples[round]]
    return metrics[own.metric].better === 'more' ? a / b : b / a
  }).filter(Number.isFinite)
}

/** The baseline of a series in the same run, if it has one. */
export function baselineOf(series: Series, all: ReadonlyMap<string, Series>): Series | undefined {
  if (series.system === 'bare') return undefined
  return all.get(keyOf({ ...series, system: 'bare' }))
}

/** The median of a series' ratio to its baseline, as value against value; null without one. */
export function ratioToBare(series: Series, all: ReadonlyMap<string, Series>): number | null {
  const bare = baselineOf(series, all)
  if (bare === undefined) return null
  const ratios = series.samples
    .map((sample, round) => sample / (bare.samples[round] ?? Number.NaN))
    .filter(Number.isFinite)
  return ratios.length === 0 ? null : spread(ratios).median
}
