import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import t from 'tap'
import { charts } from '../../benchmarks/page/charts/index.ts'
import { pageWriter } from '../../benchmarks/page/index.ts'
import { losses, lossesText } from '../../benchmarks/page/losses.ts'
import { pageOf } from '../../benchmarks/page/page.ts'
import { drawer, howToInstall } from '../../benchmarks/page/vega.ts'
import { scenarioTable } from '../../benchmarks/results/print.ts'
import { readResults, textOf } from '../../benchmarks/results/results.ts'
import { everything, results, series } from './fixture.ts'

t.test('figures survive being written and read', async (t) => {
  const file = path.join(t.testdir(), 'run.json')
  writeFileSync(file, textOf(everything()))
  t.same(readResults(file), everything())
  t.match(readFileSync(file, 'utf8'), /"samples": \[9000, 10000, 12000\]/, 'rounds stand in one line')
})

t.test('rounds without a figure survive, and do not become 0', async (t) => {
  const file = path.join(t.testdir(), 'run.json')
  const made = results([series('wait', '1', 'redis', 'askonce', 'p50', Number.NaN, 2, 3)])
  writeFileSync(file, textOf(made))
  t.match(readFileSync(file, 'utf8'), /"samples": \[null, 2, 3\]/)
  t.same(readResults(file), made)
  const none = results([series('wait', '1', 'redis', 'askonce', 'p50', Number.NaN)])
  t.match(scenarioTable(none, 'wait'), /p50, ms +\| +– \|/)
})

function told(file: string): string {
  try {
    readResults(file)
    return 'nothing'
  } catch (error) {
    return (error as Error).message
  }
}

t.test('what is no run is told, with file and field, in a line', async (t) => {
  const file = path.join(t.testdir(), 'run.json')
  const good = JSON.parse(textOf(everything()))
  const [first] = good.series
  const [left] = good.omissions
  for (const [changes, said] of [
    [{ format: 2 }, 'format must be 1'],
    [{ series: undefined }, 'series is missing'],
    [{ series: {} }, 'series must be a list'],
    [{ series: [first, null] }, 'series[1] must be an object'],
    [{ series: [first, []] }, 'series[1] must be an object'],
    [{ series: [{ ...first, scenario: 1 }] }, 'series[0].scenario must be a text'],
    [{ series: [{ ...first, case: undefined }] }, 'series[0].case is missing'],
    [{ series: [{ ...first, backend: 'postgres' }] }, 'series[0].backend must be one of memory, '],
    [{ series: [{ ...first, backend: 'file-os' }] }, 'series[0].backend is not among the backends'],
    [{ series: [{ ...first, system: null }] }, 'series[0].system must be a text'],
    [{ series: [{ ...first, metric: 'toString' }] }, 'series[0].metric must be one of rate, '],
    [{ series: [{ ...first, samples: 'a' }] }, 'series[0].samples must be a list of at least 1'],
    [{ series: [{ ...first, samples: [] }] }, 'series[0].samples must be a list of at least 1'],
    [{ series: [{ ...first, samples: [1, '2'] }] }, 'series[0].samples[1] must be a number or null'],
    [{ backends: undefined }, 'backends is missing'],
    [{ backends: [{ name: 'x' }] }, 'backends[0].name must be one of memory, '],
    [{ load: [1] }, 'load must be two numbers'],
    [{ load: undefined }, 'load is missing'],
    [{ machine: undefined }, 'machine is missing'],
    [{ rounds: 0 }, 'rounds must be a whole number from 1'],
    [{ omissions: undefined }, 'omissions is missing'],
    [{ omissions: [{ ...left, reason: 3 }] }, 'omissions[0].reason must be a text'],
    [{ omissions: [{ ...left, failed: 'yes' }] }, 'omissions[0].failed must be true or false'],
  ] as const) {
    writeFileSync(file, JSON.stringify({ ...good, ...changes }))
    t.equal(told(file).slice(0, file.length + 2 + said.length), `${file}: ${said}`)
  }
  for (const [content, said] of [
    ['null', 'the whole must be an object'],
    ['[]', 'the whole must be an object'],
    ['{\n "a":\n b', ''],
    ['', ''],
  ] as const) {
    writeFileSync(file, content)
    t.match(told(file), `${file}: ${said}`)
    t.notMatch(told(file), '\n')
  }
  t.match(told(path.dirname(file)), /EISDIR/)
  t.match(told(`${file}.no`), /ENOENT/)
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

const draw = await drawer()

t.test('files', { skip: draw === null && `vega is not installed (${howToInstall})` }, async (t) => {
  const out = path.join(t.testdir(), 'docs')
  const write = await pageWriter(out)
  t.same(readdirSync(path.join(out, 'benchmarks')), [], 'trying leaves nothing')
  const files = await write(everything())
  t.equal(files.length, 8)
  t.ok(files.every(existsSync))
  t.match(readFileSync(path.join(out, 'benchmarks.md'), 'utf8'), /# Benchmarks[\s\S]*benchmarks\/vin\.svg/)
  t.same(readResults(path.join(out, 'benchmarks', 'results.json')), everything())
})

t.test('a page is not written without its pictures, nor where it cannot be', async (t) => {
  const out = t.testdir({ 'benchmarks.md': 'with pictures' })
  await t.rejects(pageWriter(out, out), /vega, which is not installed: npm ci --prefix benchmarks/)
  t.equal(readFileSync(path.join(out, 'benchmarks.md'), 'utf8'), 'with pictures')
  if (draw === null) return
  await t.rejects(pageWriter(path.join(out, 'benchmarks.md')), /a file is in the place of a folder/)
  const taken = t.testdir({ 'benchmarks.md': {} })
  await t.rejects(pageWriter(taken), /can't write .*benchmarks\.md: it is a folder/)
})

t.test('pictures', { skip: draw === null && `vega is not installed (${howToInstall})` }, async (t) => {
  for (const { name, spec } of charts(everything())) {
    const svg = (await draw?.(spec)) ?? ''
    t.match(svg, /^<svg [^>]*><style>@media \(prefers-color-scheme: dark\)/, `${name} follows the reader into the dark`)
    t.notMatch(svg, /fill="(?:#000|black|white|#fff)/, 'nothing that one of the two pages would swallow')
    t.notMatch(svg, 'NaN')
  }
})
