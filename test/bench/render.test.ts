import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import t from 'tap'
import { charts } from '../../benchmarks/page/charts.ts'
import { writePage } from '../../benchmarks/page/index.ts'
import { losses, lossesText } from '../../benchmarks/page/losses.ts'
import { pageOf } from '../../benchmarks/page/page.ts'
import { drawer, howToInstall } from '../../benchmarks/page/vega.ts'
import { readResults, textOf } from '../../benchmarks/results/results.ts'
import { everything, results, series } from './fixture.ts'

t.test('figures survive being written and read', async (t) => {
  const file = path.join(t.testdir(), 'run.json')
  writeFileSync(file, textOf(everything()))
  t.same(readResults(file), everything())
  t.match(readFileSync(file, 'utf8'), /"samples": \[9000, 10000, 12000\]/, 'rounds stand in one line')
  writeFileSync(file, '{"format":2}')
  t.throws(() => readResults(file), /run\.json: not the results of a run in format 1/)
  writeFileSync(file, textOf(results([series('a', 'b', 'memory', 'askonce', 'speed' as 'rate', 1)])))
  t.throws(() => readResults(file), /unknown series/)
})

t.test('the page has every scenario, its pictures, what was left out, and how to repeat it', async (t) => {
  const run = everything()
  const page = pageOf(run, charts(run))
  for (const title of [
    '## In short',
    '## VINs: one file',
    '## Enqueue',
    '## Depth',
    '## Idle',
    '## How to repeat it',
  ]) {
    t.match(page, title)
  }
  for (const name of ['advantage', 'vin', 'throughput', 'latency', 'depth', 'space']) {
    t.match(page, `](benchmarks/${name}.svg)`)
  }
  t.match(page, 'depth, 500,000 queued, redis: too slow <here>')
  t.match(page, /\| 1 in flight: rate, jobs\/s +\| 10,000 \(9,000–12,000\) 0\.5x \| +100 \(90–120\) 0\.5x \|/)
  t.match(page, 'A quick run')
  t.notMatch(pageOf({ ...run, quick: false }, []), /A quick run|\.svg/)
})

t.test('losses are those of the figures, the worst first', async (t) => {
  const rate = (one: string, system: string, value: number) => series('enqueue', one, 'redis', system, 'rate', value)
  const lost = losses(
    results([rate('a', 'askonce', 50), rate('a', 'bare', 100), rate('b', 'askonce', 10), rate('b', 'bare', 100)]),
  )
  t.same(
    lost.map(({ series, advantage, own, bare }) => [series.case, advantage, own, bare]),
    [
      ['b', 0.1, 100_000, 10_000],
      ['a', 0.5, 20_000, 10_000],
    ],
  )
  const won = results([rate('a', 'askonce', 100), rate('a', 'bare', 100)])
  t.same(losses(won), [])
  t.match(lossesText(won), 'In no case')
  t.match(lossesText(everything()), 'askonce on Redis: 5,000 rows/s; BullMQ, deduplication: 6,000')
})

t.test('files', async (t) => {
  const out = t.testdir()
  await writePage(everything(), out)
  t.match(readFileSync(path.join(out, 'benchmarks.md'), 'utf8'), '# Benchmarks')
  t.same(readResults(path.join(out, 'benchmarks', 'results.json')), everything())
})

const draw = await drawer()

t.test('pictures', { skip: draw === null && `vega is not installed (${howToInstall})` }, async (t) => {
  for (const { name, spec } of charts(everything())) {
    const svg = (await draw?.(spec)) ?? ''
    t.match(svg, /^<svg [^>]*><style>@media \(prefers-color-scheme: dark\)/, `${name} follows the reader into the dark`)
    t.notMatch(svg, /fill="(?:#000|black|white|#fff)/, 'nothing that one of the two pages would swallow')
    t.notMatch(svg, 'NaN')
  }
})
