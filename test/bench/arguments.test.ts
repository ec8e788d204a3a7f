import t from 'tap'
import { commandOf, type RunCommand } from '../../benchmarks/arguments.ts'

const scenarios = ['enqueue', 'wait']
const of = (...argv: string[]) => commandOf(argv, scenarios, '/home/me')

t.test('nothing given: everything', async (t) => {
  t.same(of(), {
    kind: 'run',
    backends: ['memory', 'file-fsync', 'file-os', 'redis', 'dynamodb'],
    scenarios: [],
    quick: false,
    json: null,
    out: null,
    compare: null,
    profile: null,
    report: null,
  })
})

t.test('backends by name; a storage stands for all its settings', async (t) => {
  const backends = (...argv: string[]) => (of(...argv) as RunCommand).backends
  t.same(backends('file'), ['file-fsync', 'file-os'])
  t.same(backends('redis', 'file-os'), ['file-os', 'redis'])
  t.match(of('postgres'), { kind: 'wrong', message: /no backend 'postgres'; there are memory, / })
})

t.test('one storage alone is followed by its own report; a part of it is not', async (t) => {
  t.match(of('redis'), { kind: 'run', report: 'redis' })
  t.match(of('redis', '--quick'), { kind: 'run', report: null, quick: true })
  t.match(of('redis', '--scenario', 'wait'), { kind: 'run', report: null, scenarios: ['wait'] })
  t.match(of('redis', 'file'), { kind: 'run', report: null })
  t.match(of('file-os'), { kind: 'run', report: null })
})

t.test("the report's own options choose the report alone, and reach it", async (t) => {
  t.same(of('redis', '--rounds', '1', '--scale=0.1'), {
    kind: 'report',
    name: 'redis',
    arguments: ['--rounds', '1', '--scale=0.1'],
  })
  t.same(of('dynamodb', '--jobs', '20'), { kind: 'report', name: 'dynamodb', arguments: ['--jobs', '20'] })
  t.same(of('file', '--details', '--quick'), { kind: 'report', name: 'file', arguments: ['--quick'] })
  t.match(of('--details'), { kind: 'wrong', message: /--details needs one of/ })
})

t.test('files are meant from where the user is', async (t) => {
  t.match(of('--json', 'a.json', '--out', '../out', '--compare', '/b.json'), {
    json: '/home/me/a.json',
    out: '/home/out',
    compare: '/b.json',
  })
  t.same(of('--render', 'a.json'), { kind: 'render', file: '/home/me/a.json', out: '/home/me/docs' })
  t.match(of('--render', 'a.json', '--out', 'x'), { out: '/home/me/x' })
})

t.test('a profile is no measurement, and is not kept or compared as one', async (t) => {
  t.match(of('redis', '--profile', 'p'), { kind: 'run', profile: '/home/me/p', report: null })
  t.match(of('--profile', 'p', '--json', 'a.json'), { kind: 'wrong', message: /--profile goes without --json/ })
})

t.test('a page that is made again takes a place, and nothing else', async (t) => {
  for (const [argv, alien] of [
    [['redis'], 'redis'],
    [['--scenario', 'wait'], '--scenario'],
    [['--quick'], '--quick'],
    [['--compare', 'b'], '--compare'],
    [['--profile', 'p'], '--profile'],
    [['--json', 'j'], '--json'],
    [['--details'], '--details'],
  ] as const) {
    const message = `--render runs nothing, and goes without ${alien}`
    t.same(of('--render', 'a.json', ...argv), { kind: 'wrong', message })
  }
})

t.test('no name is no place', async (t) => {
  for (const name of ['json', 'out', 'compare', 'profile', 'render']) {
    const wrong = { kind: 'wrong', message: `--${name} needs a name` }
    t.same(of(`--${name}`, ''), wrong)
    t.same(of(`--${name}=`), wrong)
  }
})

t.test('what is not known is told', async (t) => {
  t.match(of('--scenario', 'sleep'), { kind: 'wrong', message: "no scenario 'sleep'; there are enqueue, wait" })
  t.match(of('--fast'), { kind: 'wrong', message: /--fast/ })
  t.match(of('--help'), { kind: 'help' })
  t.match(of('file', '--details', '--help'), { kind: 'help' })
})
