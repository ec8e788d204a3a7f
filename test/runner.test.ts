/** `npm test` on made-up files: what is wrong with a file fails it, and the run. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { atExit } from './support/tidy.ts'
import { typescript } from './support/typescript.ts'

const runner = fileURLToPath(new URL('support/run/test.ts', import.meta.url))
const tidy = new URL('support/tidy.ts', import.meta.url).href

// They mostly wait for processes to begin.
t.jobs = 3

interface Run {
  readonly child: ChildProcess
  /** Resolves as soon as the errors' stream has the line. */
  said(line: string): Promise<unknown>
  /** Resolves when the process, and whatever holds on to its streams, has ended. */
  readonly ended: Promise<{ code: number | null; out: string; errors: string }>
}

function start(args: readonly string[], env: NodeJS.ProcessEnv = {}): Run {
  const child = spawn(process.execPath, [...typescript, runner, ...args], {
    env: { ...process.env, CI: '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  atExit(() => void child.kill('SIGKILL'))
  let [out, errors] = ['', '']
  child.stdout.on('data', (chunk) => {
    out += chunk
  })
  child.stderr.on('data', (chunk) => {
    errors += chunk
  })
  const ended = once(child, 'close').then(([code]) => ({ code, out, errors }))
  const said = async (line: string): Promise<void> => {
    while (!errors.includes(`${line}\n`)) await once(child.stderr, 'data')
  }
  return { child, said, ended }
}

/** Files by their names, each with tap and a test that passes; null is an empty one. */
function made(t: Test, files: Record<string, string | null>): string {
  const sound = `import t from 'tap'\nt.test('sound', async (t) => t.pass())\n`
  const texts = Object.entries(files).map(([name, code]) => [
    `${name}.test.ts`,
    code === null ? '' : `${sound}${code}\n`,
  ])
  return t.testdir(Object.fromEntries(texts))
}

/** Lines of the output that begin so, without the folder and the time. */
function lines(out: string, begin: string): string[] {
  const found = out.split('\n').filter((line) => line.startsWith(begin))
  return found.map((line) => line.replace(/^.*[/ ]([\w-]+)\.test\.ts.*$/, '$1')).sort()
}

t.test('what makes a file fail, though all that it asserted in time was right', async (t) => {
  const bad = {
    'thrown-at-exit': `process.on('exit', () => { throw new Error('at exit') })`,
    'asserted-at-exit': `process.on('exit', () => t.fail('at exit'))`,
    'asserted-after-automatic-end': `t.teardown(() => {})\nsetTimeout(() => t.fail('late'), 50)`,
    'asserted-after-end': `t.end()\nsetTimeout(() => t.fail('late'), 10)`,
    'asserted-beyond-plan': `t.plan(1)\nsetTimeout(() => t.pass('late'), 10)`,
    'listener-left': `process.on('uncaughtException', () => {})\nsetTimeout(() => { throw new Error('unheard') }, 1)`,
    'rejection-listener-left': `process.on('unhandledRejection', () => {})\nvoid Promise.reject(new Error('unheard'))`,
    'exit-code-changed': `t.fail('no')\nprocess.on('exit', () => { process.exitCode = 0 })`,
    'exited-again': `t.teardown(() => {})\nsetTimeout(() => t.fail('late'), 50)\nprocess.on('exit', () => process.exit(0))`,
    'exited-before-end': `console.log('1..1\\n# { total: 1, pass: 1 }')\nprocess.exit(0)`,
    'without-tests': null,
    'wrote-too-much': `const line = 'x'.repeat(1e6) + '\\n'\nfor (let i = 0; i < 600; i++) process.stdout.write(line)`,
  }
  const good = {
    'printed-like-tap': `console.log('ok 1 - printed\\n# { total: 50000, pass: 50000 }')`,
  }
  const run = await start([made(t, { ...bad, ...good }), '--jobs', '3']).ended
  t.equal(run.code, 1)
  t.strictSame(lines(run.out, 'ok '), Object.keys(good).sort())
  t.strictSame(lines(run.out, '# failed: '), Object.keys(bad).sort())
  t.match(run.out, /^ {4}# was ended: it wrote more than 64 MB$/m)
  t.match(run.errors, /thrown-at-exit\.test\.ts: it threw at its exit/)
  t.match(run.errors, /listener-left\.test\.ts: a listener of uncaughtException was left/)
})

t.test("tap's options in the environment leave no test out", async (t) => {
  const folder = made(t, { failing: `t.test('failing', async (t) => t.fail('no'))` })
  const run = await start([folder], { TAP_GREP: '/nothing/', TAP_ONLY: '1', TAP_BAIL: '1', TAP_CHILD_ID: '7' }).ended
  t.match(run, { code: 1, out: /\n1 passed, 1 failed\n$/ })
})

t.test('a run in which nothing passed has failed', async (t) => {
  const folder = t.testdir({
    'skipping.test.ts': `import t from 'tap'\nt.test('one', { skip: 'no' }, async () => {})\n`,
  })
  const run = await start([folder]).ended
  t.match(run, { code: 1, out: /# nothing passed: that is a failure\n.*\n0 passed, 0 failed, 1 skipped\n$/ })
})

t.test('arguments that are not understood end it with a line', async (t) => {
  const empty = t.testdir({})
  for (const [args, line] of [
    [['test/nosuch.test.ts'], 'there is no test file: test/nosuch.test.ts'],
    [[empty], `there is no test file: ${empty}`],
    [['--wat'], "Unknown option '--wat'; options of tap are for: npx tap run"],
    [['--grep', 'x'], "Unknown option '--grep'; options of tap are for: npx tap run"],
    [['--jobs', '0'], '--jobs must be a whole number from 1'],
  ] as const) {
    t.strictSame(await start(args).ended, { code: 2, out: '', errors: `${line}\n` }, args.join(' '))
  }
})

/** Says `waiting`, and stays until it is ended: for 20 s if nobody does so. */
const waiting = `
  import { mkdtempSync } from 'node:fs'
  import { tmpdir } from 'node:os'
  import { TemporaryFolder } from '${tidy}'
  t.test('waiting', async (t) => {
    new TemporaryFolder('runner')
    mkdtempSync(tmpdir() + '/forgotten-')
    console.error('waiting')
    await new Promise((resolve) => setTimeout(resolve, 20_000))
    console.error('waited')
  })`

/** A folder for the temporary files of a run that has this one. */
function temporaryIn(folder: string): string {
  const path = join(folder, 'temporary')
  mkdirSync(path)
  return path
}

t.test('a signal has all files tidy up, and none of them has failed', async (t) => {
  const folder = made(t, { waiting, zero: '' })
  const temporary = temporaryIn(folder)
  const run = start([folder, '--jobs', '1'], { TMPDIR: temporary })
  await run.said('waiting')
  run.child.kill('SIGINT')
  const { code, out, errors } = await run.ended
  t.equal(code, 1)
  t.match(out, '# the run did not come to its end: SIGINT\n')
  t.strictSame(lines(out, '# not run to its end: '), ['waiting'])
  t.strictSame([...lines(out, '# failed: '), ...lines(out, 'ok ')], [])
  t.notMatch(errors, 'waited')
  t.strictSame(readdirSync(temporary), [])
})

t.test('no file outlives a runner that is killed, and what it can it tidies up', async (t) => {
  const folder = made(t, { waiting })
  const temporary = temporaryIn(folder)
  const run = start([folder], { TMPDIR: temporary })
  await run.said('waiting')
  run.child.kill('SIGKILL')
  const { errors } = await run.ended
  t.notMatch(errors, 'waited')
  const left = readdirSync(temporary, { recursive: true, encoding: 'utf8' })
  t.match(left, [/^askonce-test-\w+$/, /forgotten-\w+$/])
  t.equal(left.length, 2)
})

t.test('what a file has started, and holds on to its output, does not hold up the run', async (t) => {
  const folder = made(t, {
    starting: `
      import { spawn } from 'node:child_process'
      import { writeFileSync } from 'node:fs'
      const code = "setTimeout(() => require('node:fs').writeFileSync('ended', ''), 20_000)"
      const stdio = ['ignore', 'inherit', 'ignore']
      const child = spawn(process.execPath, ['-e', code], { cwd: import.meta.dirname, stdio })
      writeFileSync(new URL('pid', import.meta.url), String(child.pid))
      child.unref()`,
  })
  const run = await start([folder]).ended
  t.notOk(existsSync(join(folder, 'ended')))
  process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')), 'SIGKILL')
  t.match(run, { code: 0, out: /\n1 passed, 0 failed\n$/ })
})
