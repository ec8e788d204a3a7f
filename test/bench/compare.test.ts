import t from 'tap'
import { compared } from '../../benchmarks/results/compare.ts'
import { comparisonText } from '../../benchmarks/results/print.ts'
import { advantages, ratioToBare } from '../../benchmarks/results/statistics.ts'
import { spread } from '../../benchmarks/support/report.ts'
import { results, series } from './fixture.ts'

const rate = (...samples: number[]) => series('enqueue', '1 in flight', 'memory', 'askonce', 'rate', ...samples)
const bare = (...samples: number[]) => series('enqueue', '1 in flight', 'memory', 'bare', 'rate', ...samples)

t.test('medians', async (t) => {
  t.same(spread([3, 1, 2]), { median: 2, min: 1, max: 3 })
  t.same(spread([4, 1, 2, 3]), { median: 2.5, min: 1, max: 4 })
})

t.test('ratios are of the same round; an advantage above 1 is better, whichever way the metric goes', async (t) => {
  t.same(advantages(rate(10, 20), bare(20, 10)), [0.5, 2])
  const p50 = (system: string, ...samples: number[]) => series('wait', '1', 'memory', system, 'p50', ...samples)
  t.same(advantages(p50('askonce', 4), p50('bare', 1)), [0.25])
  const all = new Map([['enqueue / 1 in flight / memory / bare / rate', bare(20, 10)]])
  t.equal(ratioToBare(rate(10, 20), all), 1.25)
  t.equal(ratioToBare(rate(10, 20), new Map()), null)
})

t.test('a machine that is slower as a whole moves nothing', async (t) => {
  const before = results([rate(100, 110, 120), bare(200, 220, 240)])
  const after = results([rate(30, 33, 36), bare(60, 66, 72)])
  t.same(compared(before, after).moved, [])
  t.equal(compared(before, after).compared, 1, 'the baseline itself is not compared')
})

t.test('a ratio that fell beyond both ranges is told as worse, one that rose as better', async (t) => {
  const before = results([rate(100, 110, 120), bare(200, 220, 240)])
  const slower = results([rate(60, 66, 72), bare(200, 220, 240)])
  t.match(compared(before, slower).moved, [{ metric: 'rate', of: 'advantage', better: false }])
  t.match(compared(slower, before).moved, [{ better: true }])
  t.match(comparisonText(compared(before, slower)), /1 of 1 figures moved[\s\S]*0\.5 [\s\S]*0\.3 [\s\S]*WORSE/)
})

t.test('ranges that touch, or nearly, are noise', async (t) => {
  const of = (...samples: number[]) => results([rate(...samples)])
  t.same(compared(of(100, 120, 140), of(60, 80, 101)).moved, [], 'touching')
  t.same(compared(of(100, 120, 140), of(60, 80, 95)).moved, [], 'touching once widened')
  t.match(compared(of(100, 120, 140), of(40, 50, 60)).moved, [{ of: 'value', better: false }])
  t.same(compared(of(100, 100, 100), of(95, 95, 95)).moved, [], 'apart, but by less than matters')
})

t.test('less is better where less is better; tails are not compared', async (t) => {
  const of = (metric: 'heapQueued' | 'p99', value: number) =>
    results([series('space', 'small jobs', 'memory', 'askonce', metric, value)])
  t.match(compared(of('heapQueued', 500), of('heapQueued', 700)).moved, [{ better: false }])
  t.match(compared(of('heapQueued', 700), of('heapQueued', 500)).moved, [{ better: true }])
  t.same(compared(of('p99', 1), of('p99', 100)), { moved: [], compared: 0, missing: [], added: [], cautions: [] })
})

t.test('what only one run has, and what makes them incomparable, is told', async (t) => {
  const before = results([rate(1), series('wait', '1', 'memory', 'askonce', 'p50', 1)])
  const after = results([series('enqueue', '64 in flight', 'memory', 'askonce', 'rate', 1)], {
    machine: 'another',
    quick: false,
    load: [1_000, 1],
  })
  const { missing, added, cautions } = compared(before, after)
  t.same(missing, ['enqueue / 1 in flight / memory / askonce / rate'], 'not what it did not set out to measure')
  t.same(added, ['enqueue / 64 in flight / memory / askonce / rate'])
  t.match(cautions, [/other machine/, /--quick/, /busy in this run: load 1000 to 1/])
})
