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
  /** Medians of two runs that are nearer to each other than this are called equal, too; in the unit. */
  readonly resolution: number
  /** Whether a multiple of the baseline's figure says anything. */
  readonly ratio: boolean
}

const usual = { resolution: 0, ratio: true } as const
/** A call now and then is chance. */
const calls = { unit: 'calls/job', better: 'less', noise: 0.1, resolution: 0.01, ratio: true } as const
/** A word or two are what a collector, or an allocator's classes of sizes, leave to chance. */
const bytes = { unit: 'bytes/job', better: 'less', noise: 0.1, resolution: 16, ratio: true } as const

export const metrics = {
  rate: { title: 'rate', unit: 'jobs/s', better: 'more', noise: 0.1, ...usual },
  cpu: { title: 'CPU', unit: 'µs/job', better: 'less', noise: 0.1, ...usual },
  calls: { title: 'calls', ...calls },
  p50: { title: 'p50', unit: 'ms', better: 'less', noise: 0.1, ...usual },
  p95: { title: 'p95', unit: 'ms', better: 'less', noise: null, ...usual },
  p99: { title: 'p99', unit: 'ms', better: 'less', noise: null, ...usual },
  bandwidth: { title: 'payloads', unit: 'MB/s', better: 'more', noise: null, ...usual },
  // Of four seconds, in which a call more or less is chance.
  idleCalls: { title: 'idle calls', unit: 'calls/s', better: 'less', noise: 0.25, resolution: 0.5, ratio: true },
  // Both are next to nothing: what the process does besides is the most of it.
  idleCpu: { title: 'idle CPU', unit: 'ms/s', better: 'less', noise: null, resolution: 0, ratio: false },
  heapQueued: { title: 'heap, queued', ...bytes },
  heapCompleted: { title: 'heap, completed', ...bytes },
  outsideQueued: { title: 'outside, queued', ...bytes },
  outsideCompleted: { title: 'outside, completed', ...bytes },
  // How full a batch is when it is sent is chance: a few calls more or less.
  upstreamCalls: { title: 'upstream calls', unit: 'calls', better: 'less', noise: 0.05, resolution: 10, ratio: true },
  upstreamVins: { title: 'VINs asked upstream', unit: 'VINs', better: 'less', noise: 0.05, resolution: 0, ratio: true },
  callsSaved: { title: 'calls saved', unit: '% of rows', better: 'more', noise: 0.01, resolution: 0, ratio: true },
  rows: { title: 'rows', unit: 'rows/s', better: 'more', noise: 0.3, ...usual },
} as const satisfies Record<string, Metric>

export type MetricName = keyof typeof metrics

/** What one measurement came to. */
export type Figures = Partial<Record<MetricName, number>>
