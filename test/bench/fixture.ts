/**
 * A small run, as it would be written.
 */

import type { BackendName } from '../../benchmarks/backends/backend.ts'
import type { MetricName } from '../../benchmarks/results/metrics.ts'
import type { Results, Series } from '../../benchmarks/results/results.ts'

export function series(
  scenario: string,
  one: string,
  backend: BackendName,
  system: string,
  metric: MetricName,
  ...samples: number[]
): Series {
  return { scenario, case: one, backend, system, metric, samples }
}

export function results(list: readonly Series[], changes: Partial<Results> = {}): Results {
  return {
    format: 1,
    askonce: '0.1.0',
    commit: 'abc1234',
    begunAt: '2026-11-30T12:00:00.000Z',
    seconds: 90,
    machine: 'Node 24.0.0, 2 x Test CPU, 8 GiB, 2026-11-30',
    load: [0, 0],
    quick: true,
    arguments: '--quick',
    rounds: 3,
    backends: [
      { name: 'memory', title: 'Memory', baseline: 'a Map', software: 'in this process' },
      { name: 'redis', title: 'Redis', baseline: 'by hand', software: 'Redis 7' },
    ],
    series: list,
    omissions: [],
    ...changes,
  }
}

/** Something of every scenario. */
export function everything(): Results {
  const list: Series[] = []
  for (const [backend, factor] of [
    ['memory', 100],
    ['redis', 1],
  ] as const) {
    for (const [system, pace] of [
      ['bare', 2],
      ['askonce', 1],
    ] as const) {
      const rate = (scenario: string, one: string) =>
        list.push(
          series(scenario, one, backend, system, 'rate', 90 * factor * pace, 100 * factor * pace, 120 * factor * pace),
        )
      for (const scenario of ['enqueue', 'duplicate'])
        for (const one of ['1 in flight', '64 in flight']) rate(scenario, one)
      for (const one of ['1 at once', '64 at once']) rate('process', one)
      for (const one of ['1 KB', '64 KB']) rate('payload', one)
      for (const one of ['1,000 queued', '20,000 queued']) rate('depth', one)
      for (const one of ['1 in flight', '50 in flight']) {
        rate('wait', one)
        list.push(series('wait', one, backend, system, 'p50', 1 / pace, 2 / pace, 3 / pace))
        list.push(series('wait', one, backend, system, 'p99', 4 / pace, 5 / pace, 6 / pace))
      }
      list.push(series('wake', 'one job at a time', backend, system, 'p50', 1 / pace, 2 / pace, 3 / pace))
      list.push(series('space', 'small jobs', backend, system, 'heapQueued', 600 / pace))
      list.push(series('space', 'small jobs', backend, system, 'heapCompleted', 700 / pace))
      list.push(series('idle', '64 slots', backend, system, 'idleCalls', system === 'askonce' ? 1 : 0))
    }
  }
  for (const [system, calls, rows] of [
    ['askonce', 20, 5_000],
    ['BullMQ, deduplication', 900, 6_000],
  ] as const) {
    const one = '1,000 rows, 100 VINs, 5 producers'
    list.push(
      series('vin', one, 'redis', system, 'upstreamCalls', calls),
      series('vin', one, 'redis', system, 'rows', rows),
    )
  }
  const reason = 'too slow <here>'
  return results(list, {
    omissions: [{ scenario: 'depth', case: '500,000 queued', backend: 'redis', system: 'all', reason }],
  })
}
