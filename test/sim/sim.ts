/**
 * `npm run sim`: many seeds, each a world of its own.
 *
 *     npm run sim -- --seeds 1000 --ops 1000          seeds 1 to 1000, faults for 1,000 steps each
 *     npm run sim -- --from 5001 --seeds 1000         goes on where a run of 5,000 was ended
 *     npm run sim -- --jobs 2                         in two processes
 *     SEED=17 npm run sim -- --ops 1000               replays one seed, and prints its history
 *     npm run sim -- --weather calm --tier memory     only such worlds
 *     npm run sim -- --violations 1                   ends at the first of them
 *
 * The exit code is 0 if no promise was broken.
 *
 * @module
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { oneOf, whole } from '../support/arguments.ts'
import type { Tier, Weather } from './setting.ts'
import type { Outcome } from './simulate.ts'
import { simulate } from './simulate.ts'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    ops: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '1' },
    weather: { type: 'string' },
    tier: { type: 'string' },
    trace: { type: 'string', default: '80' },
    violations: { type: 'string', default: '10' },
    json: { type: 'boolean', default: false },
    quiet: { type: 'boolean', default: false },
  },
})

const seeds = whole(values, 'seeds', 1)
const ops = whole(values, 'ops', 1)
const from = whole(values, 'from', 0)
const jobs = whole(values, 'jobs', 1)
const traceLines = whole(values, 'trace', 0)
const violationsMax = whole(values, 'violations', 1)

/** What a run has come to. */
interface Totals {
  seeds: number
  steps: number
  virtualMs: number
  jobs: number
  handlerCalls: number
  faults: Record<string, number>
  /** Of all histories together: the same for the same seeds, whatever the number of processes. */
  hash: number
  violations: { seed: number; oracle: string; message: string }[]
}

function newTotals(): Totals {
  return { seeds: 0, steps: 0, virtualMs: 0, jobs: 0, handlerCalls: 0, faults: {}, hash: 0, violations: [] }
}

function add(totals: Totals, other: Omit<Totals, 'violations'> & Partial<Totals>): void {
  totals.seeds += other.seeds
  totals.steps += other.steps
  totals.virtualMs += other.virtualMs
  totals.jobs += other.jobs
  totals.handlerCalls += other.handlerCalls
  totals.hash = (totals.hash + other.hash) >>> 0
  for (const [kind, count] of Object.entries(other.faults)) totals.faults[kind] = (totals.faults[kind] ?? 0) + count
  totals.violations.push(...(other.violations ?? []))
}

function given(): { weather?: Weather; tier?: Tier } {
  return {
    ...(values.weather === undefined ? {} : { weather: oneOf(values, 'weather', ['savage', 'rough', 'calm']) }),
    ...(values.tier === undefined ? {} : { tier: oneOf(values, 'tier', ['memory', 'rows', 'pushing rows']) }),
  }
}

function run(seed: number, trace?: (line: string) => void): Promise<Outcome> {
  return simulate({ seed, ops, ...given(), ...(trace === undefined ? {} : { trace }) })
}

async function runRange(first: number, count: number, onSeed: (totals: Totals) => void): Promise<Totals> {
  const totals = newTotals()
  for (let seed = first; seed < first + count; seed++) {
    const outcome = await run(seed)
    add(totals, { ...outcome, seeds: 1 })
    if (outcome.violation !== null) totals.violations.push({ seed, ...outcome.violation })
    onSeed(totals)
    if (totals.violations.length >= violationsMax) break
  }
  return totals
}

/** In several processes, each with its share of the seeds. */
async function runShared(): Promise<Totals> {
  const totals = newTotals()
  const share = Math.ceil(seeds / jobs)
  const options = process.argv
    .slice(2)
    .filter(
      (_, index, all) =>
        !/^--(seeds|from|jobs)/.test(all[index - 1] ?? '') && !/^--(seeds|from|jobs)/.test(all[index] as string),
    )
  const children = Array.from({ length: jobs }, async (_, index) => {
    const first = from + index * share
    const count = Math.min(share, from + seeds - first)
    if (count <= 0) return
    const child = fork(fileURLToPath(import.meta.url), [
      ...options,
      '--from',
      `${first}`,
      '--seeds',
      `${count}`,
      '--json',
    ])
    child.on('message', (message) => add(totals, message as Totals))
    const [code, signal] = await once(child, 'exit')
    if (code !== 0 && code !== 1)
      throw new Error(`a process of seeds ${first} to ${first + count - 1} ended by ${signal ?? code}`)
  })
  await Promise.all(children)
  return totals
}

function replay(seed: number): string {
  const more = Object.entries(given()).map(([name, value]) => ` --${name} '${value}'`)
  return `SEED=${seed} npm run sim -- --ops ${ops}${more.join('')}`
}

function report(totals: Totals, seconds: number): void {
  const { violations, faults } = totals
  const hours = (totals.virtualMs / 3_600_000).toFixed(0)
  console.log(
    `${totals.seeds} seeds, ${totals.steps} steps, ${totals.jobs} jobs, ${totals.handlerCalls} handler calls, ${hours} hours of virtual time`,
  )
  const kinds = Object.entries(faults).sort(([a], [b]) => (a < b ? -1 : 1))
  console.log(`faults: ${kinds.map(([kind, count]) => `${kind} ${count}`).join(', ') || 'none'}`)
  console.log(
    `${seconds.toFixed(1)} s, ${Math.round(totals.steps / seconds)} steps/s; history ${totals.hash.toString(16).padStart(8, '0')}`,
  )
  for (const { seed, oracle, message } of violations)
    console.log(`VIOLATION of ${oracle} (${replay(seed)}): ${message}`)
  console.log(`${violations.length} violations`)
}

/** One seed, with the end of its history. */
async function replayOne(seed: number): Promise<void> {
  const lines: string[] = []
  const { violation, steps, hash } = await run(seed, (line) => {
    lines.push(line)
    if (lines.length > 2 * traceLines + 1) lines.splice(1, traceLines)
  })
  for (const line of lines.length > traceLines ? [lines[0], '…', ...lines.slice(-traceLines)] : lines) console.log(line)
  console.log(`seed ${seed}: ${steps} steps, history ${hash.toString(16).padStart(8, '0')}`)
  console.log(violation === null ? '0 violations' : `VIOLATION of ${violation.oracle}: ${violation.message}`)
  process.exitCode = violation === null ? 0 : 1
}

const given1 = process.env['SEED']
if (given1 !== undefined) {
  await replayOne(Number(given1))
} else {
  const startedAt = performance.now()
  let toldAt = startedAt
  const progress = (totals: Totals): void => {
    if (values.json || values.quiet || performance.now() - toldAt < 10_000) return
    toldAt = performance.now()
    const rate = Math.round(totals.steps / ((toldAt - startedAt) / 1_000))
    console.log(
      `… up to seed ${from + totals.seeds - 1}: ${totals.steps} steps, ${rate} steps/s, ${totals.violations.length} violations`,
    )
  }
  const totals = jobs > 1 ? await runShared() : await runRange(from, seeds, progress)
  if (values.json) process.send?.(totals)
  else report(totals, (performance.now() - startedAt) / 1_000)
  process.exitCode = totals.violations.length === 0 ? 0 : 1
}
