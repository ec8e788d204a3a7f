/**
 * `npm test`: runs every test by tap, and closes with what was skipped and the totals.
 *
 *     npm test                          all tests
 *     npm test -- test/machine.test.ts  some of them; everything after `--` goes to tap
 *
 * Redis tests need `redis-server` or `valkey-server`; where there is none, they are named as skipped, and with `CI=true` that is a
 * failure. The exit code is otherwise tap's.
 *
 * @module
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { skippedForRedis } from '../redis-server.ts'
import { ensureRedis } from './redis.ts'
import { TapTotals } from './tap-totals.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const print = (line: string): void => console.log(line)

const redis = ensureRedis(print)
if (redis !== null) print(`# redis: ${redis}`)

const tap = join(dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist', 'esm', 'run.mjs')
const child = spawn(process.execPath, [tap, 'run', '--reporter=tap', ...process.argv.slice(2)], {
  cwd: root,
  stdio: ['inherit', 'pipe', 'inherit'],
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))

const report = new TapTotals(print)
const lines = createInterface({ input: child.stdout })
lines.on('line', (line) => report.line(line))
const [[code, signal]] = await Promise.all([once(child, 'close'), once(lines, 'close')])

const { passed, failed, skipped, skips, failedFiles, complete } = report.totals
const missing = skips.filter((skip) => skip.includes(skippedForRedis))
let exitCode: number = typeof code === 'number' ? code : 1

print('')
if (!complete) print(`# the run did not come to its end${signal === null ? '' : `: ${signal}`}`)
for (const file of failedFiles) print(`# failed: ${file}`)
for (const skip of skips) print(`# skipped: ${skip}`)
if (missing.length > 0) {
  print(`# ${missing.length} of them for want of Redis: install redis-server or valkey-server to run them`)
  if (process.env['CI'] === 'true' && exitCode === 0) {
    print('# with CI=true that is a failure')
    exitCode = 1
  }
}
if (!complete && exitCode === 0) exitCode = 1
print(`${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`)
process.exitCode = exitCode
