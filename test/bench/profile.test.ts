import t from 'tap'
import { memory } from '../../benchmarks/backends/memory.ts'
import { profileFile, recordings } from '../../benchmarks/profile/files.ts'
import { cpuSpendings, heapSpendings, summaries } from '../../benchmarks/profile/summary.ts'
import { measure } from '../../benchmarks/run/host.ts'
import { results, series } from './fixture.ts'

const frame = (functionName: string, url = '', lineNumber = 0) => ({
  functionName,
  url,
  lineNumber,
  scriptId: '0',
  columnNumber: 0,
})

t.test('what is measured is recorded where that is asked for, and can be told', async (t) => {
  const folder = t.testdir()
  const site = await memory.start()
  for (const kind of recordings) {
    const file = profileFile(folder, 'enqueue', '64 in flight', 'memory', kind)
    const order = { scenario: 'enqueue', case: '64 in flight', system: 'askonce', jobs: 20_000, quick: true }
    const figures = await measure('memory', site, { ...order, recording: { kind, file } })
    t.ok(figures.rate! > 0, 'figures all the same')
  }
  await site.stop()
  const figures = (['rate', 'cpu'] as const).map((metric) => {
    return series('enqueue', '64 in flight', 'memory', 'askonce', metric, 1)
  })
  const told = [...summaries(results(figures), folder)]
  t.equal(told.length, 2, 'one a profile, not one a figure')
  t.match(told[0], /^enqueue, 64 in flight, memory: .* ms of processor time \(/)
  t.match(told[1], /MB allocated/)
  t.match(told.join(), /(?:src|storages)\/.*\.ts:\d+ +\| +[\d.]+ %/)
})

t.test('cases that have no part to be recorded are passed over', async (t) => {
  const idle = series('idle', 'idle', 'memory', 'askonce', 'idleCalls', 1)
  t.same([...summaries(results([idle]), t.testdir())], [])
})

t.test('functions are summed over all places that they were called from; rest does not count', async (t) => {
  const nodes = [
    { id: 1, callFrame: frame('(root)') },
    { id: 2, callFrame: frame('work', 'file:///home/me/askonce/.bench/src/queue.js', 9) },
    { id: 3, callFrame: frame('work', 'file:///home/me/askonce/.bench/src/queue.js', 9) },
    { id: 4, callFrame: frame('(idle)') },
    { id: 5, callFrame: frame('', 'file:///home/me/askonce/node_modules/ioredis/built/Redis.js', 4) },
  ]
  const profile = { nodes, startTime: 0, endTime: 100, samples: [2, 3, 4, 5, 2], timeDeltas: [10, 20, 40, 5, -3] }
  t.same(cpuSpendings(profile), [
    { where: 'work src/queue.js:10', amount: 30 },
    { where: '(anonymous) node_modules/ioredis/built/Redis.js:5', amount: 5 },
  ])
  const leaf = { callFrame: frame('make', 'file:///x/.bench/src/a.js', 0), selfSize: 7, id: 2, children: [] }
  const head = { callFrame: frame('(root)'), selfSize: 0, id: 1, children: [leaf, { ...leaf, id: 3, selfSize: 1 }] }
  t.same(heapSpendings({ head }), [{ where: 'make src/a.js:1', amount: 8 }])
})
