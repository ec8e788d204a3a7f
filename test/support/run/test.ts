/**
 * `npm test`: runs every test by tap, and closes with what was skipped and the totals.
 *
 *     npm test                          all tests
 *     npm test -- test/machine.test.ts  some of them; everything after `--` goes to tap
 *
 * Redis tests need `redis-server` or `valkey-server`, and the browser tests Chromium; what is missing is installed where that can be
 * done without asking. Where it can't, the tests are named as skipped, and with `CI=true` that is a failure. The exit code is
 * otherwise tap's.
 *
 * @module
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { ensureChromium, skippedForBrowser } from '../../browser/support/ensure-chromium.ts'
import { skippedForRedis } from '../redis-server.ts'
import { ensureRedis } from './redis.ts'
import { TapTotals } from './tap-totals.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const print = (line: string): void => console.log(line)

const redis = ensureRedis(print)
if (redis !== null) print(`# redis: ${redis}`)
const asked = process.argv.slice(2)
// A browser is large: it is fetched for its own tests only.
const browser = asked.length === 0 || asked.some((arg) => arg.includes('browser')) ? ensureChromium(print) : null
if (browser !== null) print(`# browser: ${browser}`)

const tap = join(dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist', 'esm', 'run.mjs')
const preload = new URL('preload.mjs', import.meta.url).href
const child = spawn(process.execPath, [tap, 'run', '--reporter=tap', ...asked], {
  cwd: root,
  env: { ...process.env, NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} --import=${preload}`.trim() },
  stdio: ['inherit', 'pipe', 'inherit'],
})
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))

const report = new TapTotals(print)
const lines = createInterface({ input: child.stdout })
lines.on('line', (line) => report.line(line))
const [[code, signal]] = await Promise.all([once(child, 'close'), once(lines, 'close')])

const { passed, failed, skipped, skips, failedFiles, complete } = report.totals
const missing = skips.filter((skip) => skip.includes(skippedForRedis) || skip.includes(skippedForBrowser))
let exitCode: number = typeof code === 'number' ? code : 1

print('')
if (!complete) print(`# the run did not come to its end${signal === null ? '' : `: ${signal}`}`)
for (const file of failedFiles) print(`# failed: ${file}`)
for (const skip of skips) print(`# skipped: ${skip}`)
if (missing.length > 0) {
  print(
    `# ${missing.length} of them for want of a server or browser: install redis-server (or valkey-server) and chromium`,
  )
  if (process.env['CI'] === 'true' && exitCode === 0) {
    print('# with CI=true that is a failure')
    exitCode = 1
  }
}
if (!complete && exitCode === 0) exitCode = 1
print(`${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`)
process.exitCode = exitCode
