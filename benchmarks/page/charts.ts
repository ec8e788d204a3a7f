/**
 * The pictures of a run, as Vega-Lite specs.
 *
 * @module
 */

import type { BackendName } from '../backends/backend.ts'
import type { MetricName } from '../results/metrics.ts'
import { metrics } from '../results/metrics.ts'
import type { Results, Series } from '../results/results.ts'
import { advantages, baselineOf, indexed } from '../results/statistics.ts'
import { figure, spread } from '../support/report.ts'
import { backendColours, config, inks, ownColour, peerColour, width } from './look.ts'

export interface Chart {
  /** Of the file, without `.svg`. */
  readonly name: string
  /** What it shows, for those who do not see it. */
  readonly alt: string
  readonly spec: object
}

/** A figure to draw. */
interface Point {
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

/** All that the run has figures for. */
export function charts(results: Results): Chart[] {
  const all = [throughput, advantage, latency, depth, space, vin].map((make) => make(results))
  return all.filter((chart) => chart !== null)
}

function titleOf(results: Results, backend: BackendName): string {
  return results.backends.find(({ name }) => name === backend)?.title ?? backend
}

function point(results: Results, series: Series, row: string): Point {
  const { median, min, max } = spread(series.samples.filter(Number.isFinite))
  const { backend, system } = series
  return { backend: titleOf(results, backend), system, row, value: median, min, max, label: figure(median) }
}

function rowOf({ scenario, case: one }: Series): string {
  return `${scenarioLabels[scenario] ?? scenario} ${one.replace('one job at a time', '')}`.trim()
}

function pick(results: Results, scenarios: readonly string[], metric: MetricName): Series[] {
  return results.series.filter((series) => series.metric === metric && scenarios.includes(series.scenario))
}

function backendOrder(results: Results): string[] {
  return results.backends.map(({ title }) => title)
}

/** An axis with a mark for each power of ten, and no others. */
function logarithmic(points: readonly { readonly min: number; readonly max: number }[], title: string): object {
  const exponents = points.flatMap(({ min, max }) => [min, max].filter((value) => value > 0).map(Math.log10))
  const first = Math.floor(Math.min(...exponents))
  const last = Math.ceil(Math.max(...exponents))
  const values = Array.from({ length: last - first + 1 }, (_, index) => 10 ** (first + index))
  return {
    type: 'quantitative',
    scale: { type: 'log', domain: [values[0], values.at(-1)] },
    title,
    axis: { values, format: ',~r' },
  }
}

const systemColour = {
  field: 'system',
  type: 'nominal',
  title: null,
  scale: { domain: ['askonce', 'bare'], range: [ownColour, inks.baseline] },
}

/** Dots on a logarithmic axis, a line from the lowest to the highest round, a block of backends for each row. */
function dots(results: Results, points: readonly Point[], xTitle: string, title: string, subtitle: string): object {
  const x = logarithmic(points, xTitle)
  const y = { field: 'backend', type: 'nominal', sort: backendOrder(results), title: null }
  return {
    title: { text: title, subtitle },
    config: { ...config, facet: { spacing: 12 } },
    data: { values: points },
    facet: {
      row: {
        field: 'row',
        type: 'nominal',
        title: null,
        sort: [...new Set(points.map(({ row }) => row))],
        header: { labelOrient: 'top', labelAnchor: 'start', labelFontWeight: 'bold', labelPadding: 2 },
      },
    },
    spec: {
      width: width - 80,
      height: { step: 15 },
      layer: [
        {
          mark: { type: 'rule', strokeWidth: 2, opacity: 0.6 },
          encoding: { x: { ...x, field: 'min' }, x2: { field: 'max' }, y, color: systemColour },
        },
        {
          mark: { type: 'point', filled: true, size: 55, opacity: 1 },
          encoding: { x: { ...x, field: 'value' }, y, color: systemColour },
        },
      ],
    },
  }
}

function throughput(results: Results): Chart | null {
  const cases = ['64 in flight', '64 at once', '50 in flight', '1 KB', '64 KB', '1 in flight', '1 at once']
  const order = [
    ['enqueue', '1 in flight'],
    ['enqueue', '64 in flight'],
    ['duplicate', '64 in flight'],
    ['process', '1 at once'],
    ['process', '64 at once'],
    ['wait', '50 in flight'],
    ['payload', '1 KB'],
    ['payload', '64 KB'],
  ]
  const found = pick(results, ['enqueue', 'duplicate', 'process', 'wait', 'payload'], 'rate').filter((series) =>
    cases.includes(series.case),
  )
  const points = order.flatMap(([scenario, one]) =>
    found
      .filter((series) => series.scenario === scenario && series.case === one)
      .map((series) => point(results, series, rowOf(series))),
  )
  if (points.length === 0) return null
  const subtitle = 'Dots: medians; lines: lowest to highest round. Logarithmic: each mark is ten times the one before.'
  return {
    name: 'throughput',
    alt: 'Jobs a second of askonce and of the bare baseline on each backend, logarithmic',
    spec: dots(results, points, metrics.rate.unit, 'Jobs a second, against the bare baseline', subtitle),
  }
}

function latency(results: Results): Chart | null {
  const found = pick(results, ['wait', 'wake'], 'p50')
  const tails = indexed(results)
  const points = found.map((series) => {
    const made = point(results, series, rowOf(series))
    const tail = tails.get([series.scenario, series.case, series.backend, series.system, 'p95'].join(' / '))
    return { ...made, min: made.value, max: tail === undefined ? made.max : spread(tail.samples).median }
  })
  if (points.length === 0) return null
  return {
    name: 'latency',
    alt: 'Latency of waiting for a result and of waking an idle worker: p50 to p95, in ms, logarithmic',
    spec: dots(
      results,
      points,
      'ms',
      'Until the answer is there; until an idle worker runs',
      'Dots: p50; lines to p95.',
    ),
  }
}

/** Where askonce is better and where it is worse than the baseline, in one picture. */
function advantage(results: Results): Chart | null {
  const all = indexed(results)
  const points = results.series.flatMap((series) => {
    const { metric, scenario } = series
    const wanted = metric === (scenario === 'wake' ? 'p50' : 'rate') && scenario !== 'depth'
    const bare = baselineOf(series, all)
    if (!wanted || bare === undefined) return []
    const { median, min, max } = spread(advantages(series, bare))
    return [{ ...point(results, series, rowOf(series)), value: median, min, max }]
  })
  if (points.length === 0) return null
  const colours = results.backends.map(({ name }) => backendColours[name])
  const color = {
    field: 'backend',
    type: 'nominal',
    title: null,
    scale: { domain: backendOrder(results), range: colours },
  }
  const y = { field: 'row', type: 'nominal', sort: [...new Set(points.map(({ row }) => row))], title: null }
  const yOffset = { field: 'backend', sort: backendOrder(results) }
  const x = logarithmic(points, 'times the baseline’s rate (wake-up: its speed)')
  return {
    name: 'advantage',
    alt: 'Rate of askonce as a multiple of the bare baseline’s, by case and backend; left of 1 askonce is slower',
    spec: {
      title: {
        text: 'askonce against a bare loop',
        subtitle: 'Right of the line askonce is quicker: it sends many calls as one. Left of it a bare loop is.',
      },
      config,
      width,
      height: { step: 7 },
      data: { values: points },
      layer: [
        { mark: { type: 'rule', color: inks.text, strokeDash: [4, 3] }, encoding: { x: { datum: 1 } } },
        {
          mark: { type: 'rule', strokeWidth: 2, opacity: 0.5 },
          encoding: { x: { ...x, field: 'min' }, x2: { field: 'max' }, y, yOffset, color },
        },
        {
          mark: { type: 'point', filled: true, size: 50, opacity: 1 },
          encoding: { x: { ...x, field: 'value' }, y, yOffset, color },
        },
      ],
    },
  }
}

function depth(results: Results): Chart | null {
  const found = pick(results, ['depth'], 'rate').filter(({ system }) => system === 'askonce')
  const queued = (series: Series) => Number(series.case.replace(/\D/g, ''))
  const values = found.flatMap((series) => {
    const first = found.find((other) => other.backend === series.backend)
    if (first === undefined) return []
    const cost = spread(first.samples).median / spread(series.samples).median
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

function space(results: Results): Chart | null {
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
      value: Math.max(0, spread(series.samples).median),
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

function vin(results: Results): Chart | null {
  const panel = (metric: MetricName, title: string) => {
    const values = pick(results, ['vin'], metric).map((series) => {
      const made = point(results, series, '')
      const own = made.system.startsWith('askonce')
      const name = own ? made.system.replace('askonce', `askonce on ${made.backend}`) : made.system
      return { ...made, name, own: own ? 'askonce' : 'others' }
    })
    const y = { field: 'name', type: 'nominal', sort: values.map(({ name }) => name), title: null }
    return {
      title: { text: title, fontSize: 12, offset: 4 },
      width: 150,
      height: { step: 20 },
      data: { values },
      layer: [
        {
          mark: { type: 'bar' },
          encoding: {
            x: { field: 'value', type: 'quantitative', title: null },
            y: metric === 'upstreamCalls' ? y : { ...y, axis: null },
            color: {
              field: 'own',
              type: 'nominal',
              title: null,
              legend: null,
              scale: { domain: ['askonce', 'others'], range: [ownColour, peerColour] },
            },
          },
        },
        {
          mark: { type: 'text', align: 'left', dx: 4, color: inks.text },
          encoding: { x: { field: 'value', type: 'quantitative' }, y, text: { field: 'label' } },
        },
      ],
    }
  }
  const found = pick(results, ['vin'], 'rows')
  if (found.length === 0) return null
  return {
    name: 'vin',
    alt: 'Upstream calls, VINs asked upstream, and rows a second of askonce, BullMQ and single-flight when five producers upload one file of VINs',
    spec: {
      title: {
        text: 'VINs: one file, five producers',
        subtitle: `${found[0]?.case ?? ''}. Of calls and VINs fewer are better, of rows more.`,
      },
      config,
      hconcat: [
        panel('upstreamCalls', 'upstream calls'),
        panel('upstreamVins', 'VINs asked upstream'),
        panel('rows', 'rows a second'),
      ],
    },
  }
}
