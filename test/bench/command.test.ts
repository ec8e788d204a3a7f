import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { BackendName } from '../../benchmarks/backends/backend.ts'
import { textOf } from '../../benchmarks/results/results.ts'
import { tryFile, tryFolder } from '../../benchmarks/results/targets.ts'
import { run } from '../../benchmarks/run/runner.ts'
import type { Scenario } from '../../benchmarks/scenarios/scenario.ts'
import { redisServerPath, skippedForRedis } from '../support/redis-server.ts'
import { results, series } from './fixture.ts'

interface Ended {
  readonly status: number | null
  readonly out: string
  readonly err: string
}

/** Starts `npm run bench -- ...argv`, without anything on the PATH. */
function started(argv: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const bare = { ...process.env, PATH: t.testdirName, ASKONCE_REDIS_SERVER: '', INIT_CWD: undefined, ...env }
  const child = spawn(process.execPath, ['--import', 'tsx', '--expose-gc', 'benchmarks/index.ts', ...argv], {
    env: bare,
  })
  const text = { out: '', err: '' }
  child.stdout.on('data', (chunk) => {
    text.out += chunk
  })
  child.stderr.on('data', (chunk) => {
    text.err += chunk
  })
  const ended = new Promise<Ended>((resolve) => child.on('close', (status) => resolve({ status, ...text })))
  return { child, ended }
}

/** A line, and nothing begun. */
function isRefusal({ status, out, err }: Ended): boolean {
  return status === 2 && out === '' && /^[^#\n]+\n$/.test(err)
}

// It takes some seconds of waiting: the others go on meanwhile.
const idle = started(['memory', '--scenario', 'idle', '--quick', '--profile', t.testdir()])

t.test('what can be written, and what not, and why', async (t) => {
  const folder = t.testdir({ there: 'kept', sub: {}, loop: t.fixture('symlink', 'loop') })
  const at = (...names: string[]) => path.join(folder, ...names)
  tryFile(at('there'))
  tryFile(at('new'))
  tryFile('/dev/null')
  tryFolder(at('sub'))
  tryFolder(at('a', 'b'))
  t.same(readdirSync(folder).sort(), ['a', 'loop', 'sub', 'there'], 'what was tried is left as it was')
  t.equal(readFileSync(at('there'), 'utf8'), 'kept')
  t.same(readdirSync(at('a', 'b')), [])
  t.throws(() => tryFile(at('no', 'new')), { message: `can't write ${at('no', 'new')}: its folder is missing` })
  t.throws(() => tryFile(at('there', 'new')), /: a file is in the place of a folder$/)
  t.throws(() => tryFile(at('sub')), /: it is a folder$/)
  t.throws(() => tryFile(at('loop')), /: ELOOP/)
  t.throws(() => tryFolder(at('there')), /: a file is in the place of a folder$/)
  t.throws(() => tryFolder(at('there', 'sub')), /: a file is in the place of a folder$/)
})

t.test('what cannot be read or written is told in a line, before anything is run', async (t) => {
  const folder = t.testdir({ file: '{}' })
  const at = (...names: string[]) => path.join(folder, ...names)
  for (const argv of [
    ['--json', at('no', 'a.json')],
    ['--out', at('file')],
    ['--profile', at('file')],
    ['--compare', at('file')],
    ['--render', at('file')],
  ]) {
    const ended = await started(argv).ended
    t.ok(isRefusal(ended), argv.join(' '), { ended })
    t.match(ended.err, argv[1])
  }
})

t.test('reports refuse what they do not know', async (t) => {
  for (const argv of ['memory --details --wat', 'memory --details extra', 'file --details --wat']) {
    const ended = await started(argv.split(' ')).ended
    t.ok(isRefusal(ended), argv, { ended })
  }
})

t.test('a run of nothing has no table, keeps no figures, and is worse than one of something', async (t) => {
  const folder = t.testdir()
  const [before, json] = [path.join(folder, 'before.json'), path.join(folder, 'after.json')]
  writeFileSync(before, textOf(results([series('idle', '64 slots', 'redis', 'askonce', 'idleCalls', 1)])))
  const ended = await started(['redis', '--scenario', 'idle', '--quick', '--compare', before, '--json', json]).ended
  t.equal(ended.status, 1)
  t.match(ended.out, 'Nothing was measured.')
  t.match(ended.out, `- idle, all, redis: ${skippedForRedis}`)
  t.match(ended.out, /WORSE[^\n]*\n- idle \/ all \/ redis/)
  t.notMatch(ended.out, /^\|/m)
  t.notOk(existsSync(json))
})

t.test('a profile of what cannot be recorded', async (t) => {
  const ended = await idle.ended
  t.equal(ended.status, 1)
  t.match(ended.err, 'Nothing was recorded')
})

t.test("an interrupted report of File's leaves no folder", async (t) => {
  const folder = t.testdir()
  const left = () => readdirSync(folder).filter((name) => name.startsWith('askonce-bench-'))
  const { child, ended } = started(['file', '--details', '--quick'], { TMPDIR: folder })
  while (left().length === 0 && child.exitCode === null) await sleep(5)
  child.kill('SIGINT')
  t.match(await ended, { status: 130 })
  t.same(left(), [])
})

/** A scenario that the processes don't know: all of it fails. */
const unknown: Scenario = {
  name: 'unknown',
  title: '',
  about: '',
  cases: () => [{ name: 'one', size: 'tried', measure: async () => ({}) }],
}

function failing(backend: BackendName, progress: (line: string) => void) {
  return run({ scenarios: [unknown], backends: [backend], quick: true, arguments: [], profile: null, progress })
}

t.test('a lane that fails is told of once, as failed', async (t) => {
  const lines: string[] = []
  const { omissions } = await failing('memory', (line) => lines.push(line))
  t.same(
    omissions.map((one) => [one.case, one.system, one.failed]),
    [
      ['one', 'bare', true],
      ['one', 'askonce', true],
    ],
  )
  t.equal(lines.filter((line) => / no case /.test(line)).length, 2)
})

t.test(
  'if its process cannot be started again, that is told once',
  { skip: redisServerPath() === null && skippedForRedis },
  async (t) => {
    const was = process.env['ASKONCE_REDIS_SERVER']
    t.teardown(() => {
      if (was === undefined) delete process.env['ASKONCE_REDIS_SERVER']
      else process.env['ASKONCE_REDIS_SERVER'] = was
    })
    const { omissions } = await failing('redis', () => {
      process.env['ASKONCE_REDIS_SERVER'] = '/there/is/none'
    })
    t.same(
      omissions.map((one) => [one.case, one.system]),
      [
        ['one', 'bare'],
        ['all', 'all'],
      ],
    )
  },
)
