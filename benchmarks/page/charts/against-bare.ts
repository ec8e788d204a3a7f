/**
 * askonce and the bare baseline beside each other: rates, latencies, and one against the other.
 *
 * @module
 */

import { metrics } from '../../results/metrics.ts'
import type { Results } from '../../results/results.ts'
import { advantages, baselineOf, finite, indexed } from '../../results/statistics.ts'
import { spread } from '../../support/report.ts'
import { backendColours, config, inks, ownColour, width } from '../look.ts'
import { backendOrder, type Chart, type Point, pick, point, rowOf } from './points.ts'

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

export function throughput(results: Results): Chart | null {
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

export function latency(results: Results): Chart | null {
  const found = pick(results, ['wait', 'wake'], 'p50')
  const tails = indexed(results)
  const points = found.map((series) => {
    const made = point(results, series, rowOf(series))
    const tail = tails.get([series.scenario, series.case, series.backend, series.system, 'p95'].join(' / '))
    return { ...made, min: made.value, max: tail === undefined ? made.max : spread(finite(tail.samples)).median }
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
export function advantage(results: Results): Chart | null {
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
