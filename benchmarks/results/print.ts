/**
 * Runs and comparisons as text: Markdown tables that are legible in a terminal.
 *
 * @module
 */

import type { Scenario } from '../scenarios/scenario.ts'
import { figure, spread, table } from '../support/report.ts'
import type { Comparison } from './compare.ts'
import { noiseRule } from './compare.ts'
import { type MetricName, metrics } from './metrics.ts'
import type { Results, Series } from './results.ts'
import { finite, indexed, ratioToBare } from './statistics.ts'

/** A median with its range, if that is worth telling; a dash where no round has a figure. */
export function spreadText(samples: readonly number[]): string {
  const known = finite(samples)
  if (known.length === 0) return figure(Number.NaN)
  const { median, min, max } = spread(known)
  return min === max ? figure(median) : `${figure(median)} (${figure(min)}–${figure(max)})`
}

function cell(series: Series | undefined, all: ReadonlyMap<string, Series>): string {
  if (series === undefined) return ''
  const ratio = ratioToBare(series, all)
  return ratio === null ? spreadText(series.samples) : `${spreadText(series.samples)} ${figure(ratio)}x`
}

/** A scenario's table: a row for each case, system and metric, a column for each backend; empty where nothing was measured. */
export function scenarioTable(results: Results, scenario: string, chosen?: readonly MetricName[]): string {
  const all = indexed(results)
  const own = results.series.filter((series) => series.scenario === scenario)
  const backends = results.backends.filter(({ name }) => own.some(({ backend }) => backend === name))
  const rows = new Map<string, string[]>()
  for (const series of own) {
    const { case: one, system, metric } = series
    if (system === 'bare' || (chosen !== undefined && !chosen.includes(metric))) continue
    const { title, unit } = metrics[metric]
    const name = `${one}${system === 'askonce' ? '' : `, ${system}`}: ${title}, ${unit}`
    const cells = rows.get(name) ?? [name, ...backends.map(() => '')]
    cells[1 + backends.findIndex(({ name }) => name === series.backend)] = cell(series, all)
    rows.set(name, cells)
  }
  return rows.size === 0 ? '' : table(['', ...backends.map(({ title }) => title)], [...rows.values()])
}

/** The machine, the versions, the settings: what every figure hangs on. */
export function settingsText(results: Results): string {
  const { machine, rounds, quick, load, backends, commit, askonce } = results
  return [
    `askonce ${askonce}${commit === null ? '' : ` (${commit})`}; ${machine}; load ${load.map(figure).join(' before, ')} after`,
    `${rounds} alternating rounds (fewer where one takes long)${quick ? ', quick' : ''}; medians (min–max); 2x: twice the baseline's figure in the same round`,
    ...backends.map(({ title, software, baseline }) => `- ${title}: ${software}. Baseline: ${baseline}`),
  ].join('\n')
}

export function resultsText(results: Results, scenarios: readonly Scenario[]): string {
  const parts = [`# askonce: benchmarks\n\n${settingsText(results)}`]
  for (const { name, title, about } of scenarios) {
    const shown = scenarioTable(results, name)
    if (shown !== '') parts.push(`## ${title}\n\n${about}\n\n${shown}`)
  }
  if (results.series.length === 0) parts.push('Nothing was measured.')
  if (results.omissions.length > 0) parts.push(`Not measured:\n${omissionsText(results)}`)
  return `${parts.join('\n\n')}\n`
}

export function omissionsText({ omissions }: Results): string {
  return omissions
    .map(({ scenario, case: one, backend, system, reason }) => {
      return `- ${scenario}, ${one}, ${backend}${system === 'all' ? '' : `, ${system}`}: ${reason}`
    })
    .join('\n')
}

export function comparisonText({ moved, gone, compared, added, cautions }: Comparison): string {
  const parts = [`## Against the earlier run: ${moved.length} of ${compared} figures moved beyond noise`]
  for (const caution of cautions) parts.push(`Take care: ${caution}`)
  if (moved.length > 0) {
    const rows = moved.map(({ key, metric, of, before, after, better }) => [
      key,
      of === 'advantage' ? 'x of bare (more is better)' : metrics[metric].unit,
      `${figure(before.median)} (${figure(before.min)}–${figure(before.max)})`,
      `${figure(after.median)} (${figure(after.min)}–${figure(after.max)})`,
      better ? 'better' : 'WORSE',
    ])
    parts.push(table(['figure', 'of', 'before', 'now', ''], rows))
  }
  if (gone.length > 0) {
    const lines = gone.map(({ key, reason }) => `- ${key}: ${reason ?? 'no longer measured'}`)
    parts.push(`WORSE, since there are no figures any more:\n${lines.join('\n')}`)
  }
  if (added.length > 0) parts.push(`New: ${added.length} figures`)
  parts.push(noiseRule)
  return parts.join('\n\n')
}
