/**
 * `npm test`: runs every test file, and closes with what was skipped and the totals.
 *
 *     npm test                          all tests
 *     npm test -- test/machine.test.ts  some of them: files, or folders
 *
 * A test file is a program that uses tap and can be run by itself, or by `npx tap run`. This runs many of them: in an order that
 * keeps all cores at work, and without tap's own loaders, which a process takes longer to load than most files to run.
 *
 * Redis tests need `redis-server` or `valkey-server`, and the browser tests Chromium; what is missing is installed where that can be
 * done without asking. Where it can't, the tests are named as skipped, and with `CI=true` that is a failure. The exit code is
 * otherwise 0 if all went well and something passed, else 1; 2 for arguments that are not understood.
 *
 * @module
 */

import { parseArgs } from 'node:util'
import { ensureChromium, skippedForBrowser } from '../../browser/support/ensure-chromium.ts'
import { whole } from '../arguments.ts'
import { skippedForRedis } from '../redis-server.ts'
import { inOrder, testFiles } from './files.ts'
import { ensureRedis } from './redis.ts'
import { endAll, runFile } from './run-file.ts'
import { TapTotals } from './tap-totals.ts'

const print = (line: string): void => console.log(line)
const { jobs, waitingJobs, files } = understood()
const redis = ensureRedis(print)
if (redis !== null) print(`# redis: ${redis}`)
// A browser is large: it is fetched for its own tests only.
const browser = files.some((file) => file.includes('browser')) ? ensureChromium(print) : null
if (browser !== null) print(`# browser: ${browser}`)

let stopped: NodeJS.Signals | null = null
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    stopped = signal
    endAll(signal)
  })
}

const report = new TapTotals(print)
const interrupted: string[] = []
/** Runs these, so many at a time. */
async function runAll(left: string[], jobs: number, behind: boolean): Promise<void> {
  const work = async (): Promise<void> => {
    for (let file = left.shift(); file !== undefined && stopped === null; file = left.shift()) {
      const { stream, end } = await runFile(file, behind)
      // One that had come to its end has a result all the same.
      if (stopped !== null && end.code !== 0) interrupted.push(file)
      else report.file(file, stream, end)
    }
  }
  await Promise.all(Array.from({ length: Math.min(jobs, left.length) }, work))
}
const { computing, waiting } = inOrder(files)
// Who waits for real time to pass must not wait for the processor, too.
await Promise.all([runAll(computing, jobs, waiting.length > 0), runAll(waiting, waitingJobs, false)])

const { passed, failed, skipped, skips, failedFiles } = report.totals
const missing = skips.filter((skip) => skip.includes(skippedForRedis) || skip.includes(skippedForBrowser))
process.exitCode = failedFiles.length > 0 || stopped !== null || passed === 0 ? 1 : 0

print('')
if (stopped !== null) print(`# the run did not come to its end: ${stopped}`)
else if (passed === 0 && failedFiles.length === 0) print('# nothing passed: that is a failure')
for (const file of interrupted) print(`# not run to its end: ${file}`)
for (const file of failedFiles) print(`# failed: ${file}`)
for (const skip of skips) print(`# skipped: ${skip}`)
if (missing.length > 0) {
  print(
    `# ${missing.length} of them for want of a server or browser: install redis-server (or valkey-server) and chromium`,
  )
  if (process.env['CI'] === 'true' && process.exitCode === 0) {
    print('# with CI=true that is a failure')
    process.exitCode = 1
  }
}
print(`${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`)

/** What was asked for; ends the process with a line if it is not understood. */
function understood(): { jobs: number; waitingJobs: number; files: string[] } {
  try {
    const { values, positionals } = parseArgs({
      allowPositionals: true,
      options: {
        /** How many files at once that compute, and how many that wait. */
        jobs: { type: 'string', default: '2' },
        waiting: { type: 'string', default: '2' },
      },
    })
    return { jobs: whole(values, 'jobs', 1), waitingJobs: whole(values, 'waiting', 1), files: testFiles(positionals) }
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException
    const unknown = code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION'
    console.error(unknown ? `${message.split('.')[0]}; options of tap are for: npx tap run` : message.split('\n')[0])
    process.exit(2)
  }
}
