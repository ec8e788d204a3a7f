/**
 * What can be measured: names, units, and which way is better.
 *
 * @module
 */

export interface Metric {
  /** As people read it. */
  readonly title: string
  readonly unit: string
  readonly better: 'more' | 'less'
  /**
   * Medians of two runs that are nearer to each other than this share are called equal, whatever their ranges. Null: never
   * compared; it moves with anything that the machine does besides.
   */
  readonly noise: number | null
}

export const metrics = {
  rate: { title: 'rate', unit: 'jobs/s', better: 'more', noise: 0.1 },
  cpu: { title: 'CPU', unit: 'µs/job', better: 'less', noise: 0.1 },
  calls: { title: 'calls', unit: 'calls/job', better: 'less', noise: 0.1 },
  p50: { title: 'p50', unit: 'ms', better: 'less', noise: 0.1 },
  p95: { title: 'p95', unit: 'ms', better: 'less', noise: null },
  p99: { title: 'p99', unit: 'ms', better: 'less', noise: null },
  bandwidth: { title: 'payloads', unit: 'MB/s', better: 'more', noise: null },
  idleCalls: { title: 'idle calls', unit: 'calls/s', better: 'less', noise: 0.25 },
  idleCpu: { title: 'idle CPU', unit: 'ms/s', better: 'less', noise: null },
  heapQueued: { title: 'heap, queued', unit: 'bytes/job', better: 'less', noise: 0.1 },
  heapCompleted: { title: 'heap, completed', unit: 'bytes/job', better: 'less', noise: 0.1 },
  outsideQueued: { title: 'outside, queued', unit: 'bytes/job', better: 'less', noise: 0.1 },
  outsideCompleted: { title: 'outside, completed', unit: 'bytes/job', better: 'less', noise: 0.1 },
  upstreamCalls: { title: 'upstream calls', unit: 'calls', better: 'less', noise: 0.05 },
  upstreamVins: { title: 'VINs asked upstream', unit: 'VINs', better: 'less', noise: 0.05 },
  callsSaved: { title: 'calls saved', unit: '% of rows', better: 'more', noise: 0.01 },
  rows: { title: 'rows', unit: 'rows/s', better: 'more', noise: 0.3 },
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof metrics

/** What one measurement came to. */
export type Figures = Partial<Record<MetricName, number>>
