/**
 * The upload of a file of VINs.
 *
 * @module
 */

import type { MetricName } from '../../results/metrics.ts'
import type { Results } from '../../results/results.ts'
import { config, inks, ownColour, peerColour } from '../look.ts'
import { type Chart, pick, point } from './points.ts'

export function vin(results: Results): Chart | null {
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
