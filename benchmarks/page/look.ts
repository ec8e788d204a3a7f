/**
 * How charts look: colours that are legible on white and on black, and everything else of their style.
 *
 * @module
 */

import type { BackendName } from '../backends/backend.ts'

/** Text and lines. Each stands in charts only as ink, so that it can be changed for dark pages. */
export const inks = { text: '#57606a', faint: '#d8dee4', baseline: '#8c959f' } as const
export const inkDark: Record<keyof typeof inks, string> = { text: '#adbac7', faint: '#3d444d', baseline: '#768390' }

/** One for each backend; told apart by people who see few colours, too. */
export const backendColours: Record<BackendName, string> = {
  memory: '#a371f7',
  'file-fsync': '#388bfd',
  'file-os': '#2da3a3',
  redis: '#e5534b',
  dynamodb: '#c9912b',
}

export const ownColour = '#388bfd'
export const peerColour = '#c9912b'

const font = 'system-ui, -apple-system, "Segoe UI", sans-serif'

export const width = 560

/** Of every chart. */
export const config = {
  font,
  background: null,
  view: { stroke: null },
  axis: {
    labelColor: inks.text,
    titleColor: inks.text,
    gridColor: inks.faint,
    domainColor: inks.faint,
    tickColor: inks.faint,
    labelFontSize: 11,
    titleFontSize: 11,
    titleFontWeight: 'normal',
    labelLimit: 0,
  },
  header: { labelColor: inks.text, titleColor: inks.text, labelFontSize: 11, labelLimit: 0 },
  legend: {
    labelColor: inks.text,
    titleColor: inks.text,
    orient: 'top',
    labelFontSize: 11,
    labelLimit: 0,
    symbolSize: 80,
    symbolOpacity: 1,
  },
  title: {
    color: inks.text,
    fontSize: 14,
    anchor: 'start',
    offset: 12,
    subtitleColor: inks.text,
    subtitleFontSize: 11,
  },
  text: { color: inks.text, fontSize: 11 },
} as const
