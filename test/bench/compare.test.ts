import t from 'tap'
import { compared, gotWorse } from '../../benchmarks/results/compare.ts'
import { comparisonText, scenarioTable } from '../../benchmarks/results/print.ts'
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
  t.same(compared(of('p99', 1), of('p99', 100)), { moved: [], gone: [], compared: 0, added: [], cautions: [] })
})

t.test('where a baseline has 0 there is no ratio: the values are compared', async (t) => {
  const idle = (system: string, ...samples: number[]) =>
    series('idle', '64 slots', 'redis', system, 'idleCalls', ...samples)
  const of = (own: number[], bare: number[]) => results([idle('askonce', ...own), idle('bare', ...bare)])
  const quiet = of([1, 1, 1], [0, 0, 0])
  t.match(compared(quiet, of([9, 9, 9], [0, 0, 0])).moved, [{ of: 'value', better: false, after: { median: 9 } }])
  t.match(compared(of([9, 9, 9], [0, 0, 0]), quiet).moved, [{ of: 'value', better: true }])
  t.match(compared(quiet, of([9, 9, 9], [0, 1, 0])).moved, [{ of: 'value', better: false }], 'a round of 0 is enough')
  t.same(compared(quiet, of([1, 1, 1], [0, 0, 0])).moved, [])
  t.match(compared(of([0, 0, 0], [0, 0, 0]), quiet).moved, [{ better: false }], 'from nothing')
  t.match(compared(of([9, 9, 9], [3, 3, 3]), of([0, 0, 0], [3, 3, 3])).moved, [{ better: true }], 'to nothing')
  const all = new Map(
    of([2, 2, 2], [0, 0, 1]).series.map((one) => [`idle / 64 slots / redis / ${one.system} / idleCalls`, one]),
  )
  t.equal(ratioToBare(idle('askonce', 2, 2, 2), all), null)
})

t.test('calls of File duplicates, which the bare loop has none of', async (t) => {
  const calls = (system: string, value: number) =>
    series('duplicate', '1 in flight', 'file-os', system, 'calls', value, value, value)
  const backends = [{ name: 'file-os', title: 'File', baseline: '', software: '' }] as const
  const of = (own: number) => results([calls('askonce', own), calls('bare', 0)], { backends })
  t.match(compared(of(1), of(2)).moved, [{ of: 'value', better: false }])
  t.same(compared(of(0), of(0.001)).moved, [], 'one now and then')
})

t.test('few rounds need twice the difference', async (t) => {
  const of = (...samples: number[]) => results([rate(...samples)])
  t.same(compared(of(100), of(85)).moved, [])
  t.same(compared(of(100, 100), of(85, 85)).moved, [])
  t.same(compared(of(100, 100, 100), of(85, 85)).moved, [], 'on either side')
  t.same(compared(of(100, 100), of(85, 85, 85)).moved, [], 'on either side')
  t.same(compared(of(100, 100, 100), of(85, Number.NaN, 85)).moved, [], 'a round without a figure is none')
  t.match(compared(of(100, 100, 100), of(85, 85, 85)).moved, [{ better: false }])
  t.match(compared(of(100), of(80)).moved, [{ better: false }], 'twice is enough')
})

t.test('a few bytes of a job are chance; so is the heap where jobs are kept elsewhere', async (t) => {
  const heap = (backend: 'memory' | 'redis' | 'dynamodb', system: string, value: number) =>
    series('space', 'small jobs', backend, system, 'heapQueued', value, value, value)
  const of = (value: number) => results([heap('memory', 'askonce', value)])
  t.same(compared(of(20), of(35)).moved, [], 'less than 16')
  t.match(compared(of(20), of(36)).moved, [{ better: false }])
  const ratios = (own: number, bare: number) => results([heap('memory', 'askonce', own), heap('memory', 'bare', bare)])
  t.same(compared(ratios(100, 40), ratios(101, 20)).moved, [], 'what only the baseline did')
  for (const backend of ['redis', 'dynamodb'] as const) {
    const kept = results([heap(backend, 'askonce', 100)])
    t.match(compared(kept, results([heap(backend, 'askonce', 900)])), { moved: [], compared: 0 })
    const left = results([series('space', 'small jobs', backend, 'askonce', 'outsideQueued', 1)])
    t.same(compared(kept, left).gone, [], 'nor is it missed')
  }
})

t.test('a round without a figure is no figure of 0', async (t) => {
  const nothing = Number.NaN
  t.same(advantages(rate(nothing, 20), bare(20, 10)), [2])
  // As a file would have it that nobody looked into.
  const raw = rate(null as unknown as number, 20)
  t.same(advantages(raw, bare(20, 10)), [2])
  const p50 = (system: string, ...samples: number[]) => series('wait', '1', 'memory', system, 'p50', ...samples)
  t.same(advantages(p50('askonce', 4, 4), p50('bare', null as unknown as number, 2)), [0.5])
  t.match(compared(results([rate(1)]), results([rate(nothing)])).gone, [{ reason: null }], 'all rounds without: gone')
})

t.test('ratios that say nothing are not told', async (t) => {
  const idle = (system: string) => series('idle', '64 slots', 'memory', system, 'idleCpu', 2)
  const all = new Map([['idle / 64 slots / memory / bare / idleCpu', idle('bare')]])
  t.equal(ratioToBare(idle('askonce'), all), null)
  t.same(advantages(idle('askonce'), idle('bare')), [])
  t.match(scenarioTable(results([idle('askonce'), idle('bare')]), 'idle'), /idle CPU, ms\/s +\| +2 \|/)
})

t.test('what failed, or is not there any more, is worse', async (t) => {
  const lane = (backend: 'memory' | 'redis', one: string, metric: 'rate' | 'p50' | 'p99' = 'rate') =>
    series('enqueue', one, backend, 'askonce', metric, 5, 5, 5)
  const before = results([
    lane('memory', 'a'),
    lane('memory', 'a', 'p50'),
    lane('redis', 'a'),
    lane('redis', 'a', 'p50'),
  ])
  const after = results([lane('memory', 'a'), lane('memory', 'a', 'p50')])

  t.test('a lane: once, not for each figure', async (t) => {
    const found = compared(before, after)
    t.same(found.gone, [{ key: 'enqueue / a / redis / askonce', reason: null }])
    t.ok(gotWorse(found))
    t.match(comparisonText(found), /WORSE[^\n]*\n- enqueue \/ a \/ redis \/ askonce: no longer measured/)
    t.notOk(gotWorse(compared(before, before)))
  })

  t.test('one of its figures, unless it is never compared', async (t) => {
    const [kept, lost] = [lane('memory', 'a'), lane('memory', 'a', 'p50')]
    t.same(compared(results([kept, lost]), results([kept])).gone, [
      { key: 'enqueue / a / memory / askonce / p50', reason: null },
    ])
    t.same(compared(results([kept, lane('memory', 'a', 'p99')]), results([kept])).gone, [])
  })

  const omission = { scenario: 'enqueue', case: 'all', backend: 'redis', system: 'all', reason: 'no server' } as const

  t.test('by failure: with its reason, once', async (t) => {
    const failed = results([...after.series], { omissions: [{ ...omission, failed: true }] })
    t.same(compared(before, failed).gone, [{ key: 'enqueue / all / redis / all', reason: 'no server' }])
    t.ok(gotWorse(compared(before, failed)))
    t.match(comparisonText(compared(before, failed)), 'WORSE')
    t.ok(gotWorse(compared(after, failed)), 'what was not there before must not fail either')
    t.notOk(gotWorse(compared(failed, failed)), 'what failed before is no worse than it was')
    const none = results([], { omissions: [{ ...omission, failed: true }] })
    t.match(
      compared(before, none).gone.map(({ key }) => key),
      ['enqueue / all / redis / all', 'enqueue / a / memory / askonce'],
      'a scenario of which nothing is left',
    )
  })

  t.test('in some rounds only', async (t) => {
    const one = { ...omission, case: 'a', system: 'askonce', failed: true }
    const some = results([...after.series, series('enqueue', 'a', 'redis', 'askonce', 'rate', 5)], { omissions: [one] })
    t.match(compared(before, some).gone, [{ key: 'enqueue / a / redis / askonce', reason: 'no server' }])
  })

  t.test('on purpose: in both runs it is nothing, in this one alone it is gone', async (t) => {
    const left = results([...after.series], { omissions: [omission] })
    t.same(compared(left, left).gone, [])
    t.same(compared(before, left).gone, [{ key: 'enqueue / a / redis / askonce', reason: 'no server' }])
  })

  t.test('a run owes only what it set out to do', async (t) => {
    const memory = { backends: before.backends.slice(0, 1) }
    t.same(compared(before, results([...after.series], memory)).gone, [], 'another backend')
    const other = results([series('wait', '1', 'memory', 'askonce', 'p50', 1)])
    t.same(compared(before, other).gone, [], 'another scenario')
    const quick = compared(before, results([...after.series], { quick: false }))
    t.same(quick.gone, [], 'other cases')
    t.match(quick.cautions, [/--quick.*cases differ/])
  })
})

t.test('what only this run has, and what makes them incomparable, is told', async (t) => {
  const before = results([rate(1), series('wait', '1', 'memory', 'askonce', 'p50', 1)])
  const after = results([series('enqueue', '64 in flight', 'memory', 'askonce', 'rate', 1)], {
    machine: 'another',
    quick: false,
    load: [1_000, 1],
  })
  const { added, cautions } = compared(before, after)
  t.same(added, ['enqueue / 64 in flight / memory / askonce / rate'])
  t.match(cautions, [/other machine/, /--quick/, /busy in this run: load 1000 to 1/])
})
