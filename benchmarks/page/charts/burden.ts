/**
 * What many jobs take: time by depth, and space.
 *
 * @module
 */

import type { MetricName } from '../../results/metrics.ts'
import type { Results, Series } from '../../results/results.ts'
import { finite } from '../../results/statistics.ts'
import { spread } from '../../support/report.ts'
import { backendColours, config, ownColour, peerColour, width } from '../look.ts'
import { backendOrder, type Chart, pick, point, titleOf } from './points.ts'

export function depth(results: Results): Chart | null {
  const found = pick(results, ['depth'], 'rate').filter(({ system }) => system === 'askonce')
  const queued = (series: Series) => Number(series.case.replace(/\D/g, ''))
  const values = found.flatMap((series) => {
    const first = found.find((other) => other.backend === series.backend)
    if (first === undefined) return []
    const cost = spread(finite(first.samples)).median / spread(finite(series.samples)).median
    return [{ backend: titleOf(results, series.backend), queued: queued(series), cost }]
  })
  if (new Set(values.map(({ queued }) => queued)).size < 2) return null
  const shown = results.backends.filter(({ title }) => values.filter(({ backend }) => backend === title).length > 1)
  return {
    name: 'depth',
    alt: 'Time per job with many jobs queued, as a multiple of the time with 1,000 queued',
    spec: {
      title: {
        text: 'Time per job by depth',
        subtitle: 'Against the same storage with 1,000 jobs queued; flat is good.',
      },
      config,
      width,
      height: 200,
      data: { values: values.filter(({ backend }) => shown.some(({ title }) => title === backend)) },
      mark: { type: 'line', point: { size: 50, filled: true }, strokeWidth: 2 },
      encoding: {
        x: {
          field: 'queued',
          type: 'quantitative',
          scale: { type: 'log' },
          title: 'jobs queued',
          axis: { format: ',' },
        },
        y: { field: 'cost', type: 'quantitative', scale: { domainMin: 0 }, title: 'times the cost at 1,000' },
        color: {
          field: 'backend',
          type: 'nominal',
          title: null,
          scale: { domain: shown.map(({ title }) => title), range: shown.map(({ name }) => backendColours[name]) },
        },
      },
    },
  }
}

export function space(results: Results): Chart | null {
  const parts: [MetricName, string][] = [
    ['heapQueued', 'queued'],
    ['outsideQueued', 'queued'],
    ['heapCompleted', 'completed'],
    ['outsideCompleted', 'completed'],
  ]
  const values = parts.flatMap(([metric, state]) =>
    pick(results, ['space'], metric).map((series) => ({
      ...point(results, series, state),
      // Less than nothing is what the collector left over from before.
      value: Math.max(0, spread(finite(series.samples)).median),
      part: metric.startsWith('heap') ? 'Node’s heap' : 'outside: disk, Redis, table',
    })),
  )
  if (values.length === 0) return null
  return {
    name: 'space',
    alt: 'Bytes a job takes on Node’s heap and outside, queued and completed, of askonce and the bare baseline',
    spec: {
      title: {
        text: 'Bytes a small job takes',
        subtitle: 'File keeps its records in each process: queued, the producer’s; completed, the worker’s, too.',
      },
      config: { ...config, facet: { spacing: 12 } },
      data: { values },
      facet: {
        row: {
          field: 'row',
          type: 'nominal',
          sort: ['queued', 'completed'],
          title: null,
          header: { labelAngle: 0, labelAlign: 'left' },
        },
        column: { field: 'system', type: 'nominal', sort: ['askonce', 'bare'], title: null },
      },
      spec: {
        width: (width - 100) / 2,
        height: { step: 18 },
        mark: 'bar',
        encoding: {
          x: { field: 'value', type: 'quantitative', stack: 'zero', title: 'bytes a job' },
          y: { field: 'backend', type: 'nominal', sort: backendOrder(results), title: null },
          color: {
            field: 'part',
            type: 'nominal',
            title: null,
            scale: { domain: ['Node’s heap', 'outside: disk, Redis, table'], range: [ownColour, peerColour] },
          },
        },
      },
    },
  }
}
