/**
 * What the pictures are made of: figures of a run, named as people read them.
 *
 * @module
 */

import type { BackendName } from '../../backends/backend.ts'
import type { MetricName } from '../../results/metrics.ts'
import type { Results, Series } from '../../results/results.ts'
import { finite } from '../../results/statistics.ts'
import { figure, spread } from '../../support/report.ts'

export interface Chart {
  /** Of the file, without `.svg`. */
  readonly name: string
  /** What it shows, for those who do not see it. */
  readonly alt: string
  readonly spec: object
}

/** A figure to draw. */
export interface Point {
  readonly backend: string
  readonly system: string
  readonly row: string
  readonly value: number
  readonly min: number
  readonly max: number
  readonly label: string
}

const scenarioLabels: Record<string, string> = {
  enqueue: 'enqueue',
  duplicate: 'dedupe hit',
  process: 'process',
  wait: 'enqueueAndWait',
  wake: 'wake-up',
  payload: 'whole job,',
}

export function titleOf(results: Results, backend: BackendName): string {
  return results.backends.find(({ name }) => name === backend)?.title ?? backend
}

export function point(results: Results, series: Series, row: string): Point {
  const { median, min, max } = spread(finite(series.samples))
  const { backend, system } = series
  return { backend: titleOf(results, backend), system, row, value: median, min, max, label: figure(median) }
}

export function rowOf({ scenario, case: one }: Series): string {
  return `${scenarioLabels[scenario] ?? scenario} ${one.replace('one job at a time', '')}`.trim()
}

export function pick(results: Results, scenarios: readonly string[], metric: MetricName): Series[] {
  return results.series.filter((series) => series.metric === metric && scenarios.includes(series.scenario))
}

export function backendOrder(results: Results): string[] {
  return results.backends.map(({ title }) => title)
}
