/**
 * `npm run bench -- file`: the File storage itself, through its handle, against its baselines.
 *
 * @module
 */

import { readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { complete } from '../../src/record.ts'
import type { EnqueueItem, StorageHandle } from '../../src/storage.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { exitOnSignals, TemporaryFolder } from '../../test/support/tidy.ts'
import { figure, machine, spread, table } from '../support/report.ts'
import type { Baseline } from './baselines.ts'
import { appendLoop, atomicWrites } from './baselines.ts'
import { counting } from './counting.ts'
import { wakeUps } from './wake.ts'

type Durability = 'fsync' | 'os'

/** A request of some 120 bytes, and an answer of the same size. */
const payload = JSON.stringify({ vin: '1HGCM82633A004352', note: 'n'.repeat(80) })
const hour = 3_600_000
const rounds = 3

function item(id: string): EnqueueItem {
  const tokens = { incarnation: `${id}.dGhpcyBpcyAx`, fingerprint: 'kC3kRkQ5cUeOvq8WkC3kRg' }
  return {
    spec: { id, ...tokens, maxAttempts: 3, resultTTL: hour, failureTTL: hour },
    payload,
    delayMs: 0,
    rejectMismatch: false,
    lease: null,
    wait: false,
  }
}

async function fill(handle: StorageHandle, from: number, count: number): Promise<void> {
  for (let done = 0; done < count; done += 1_000) {
    const size = Math.min(1_000, count - done)
    await handle.enqueue(Array.from({ length: size }, (_, index) => item(`deep-${from + done + index}`)))
  }
}

/** Runs `jobs` jobs, `concurrency` at a time. */
async function timed(
  jobs: number,
  concurrency: number,
  job: (index: number) => Promise<void>,
): Promise<Omit<Measured, 'calls'>> {
  let next = 0
  const lane = async () => {
    while (next < jobs) await job(next++)
  }
  const cpuBegun = process.cpuUsage()
  const begun = performance.now()
  await Promise.all(Array.from({ length: concurrency }, lane))
  const { user, system } = process.cpuUsage(cpuBegun)
  return { jobsPerSecond: (jobs / (performance.now() - begun)) * 1_000, cpu: (user + system) / jobs }
}

/** A whole job through the handle: three calls, as a client without any batching of its own makes them. */
function wholeJob(handle: StorageHandle, round: number): (index: number) => Promise<void> {
  return async (index) => {
    await handle.enqueue([item(`job-${round}-${index}`)])
    const { jobs } = await handle.claim({ generation: `g.${round}.${index}`, leaseMs: 30_000, limit: 1 })
    await handle.settle(
      jobs.map(({ spec, generation }) => ({ id: spec.id, generation, verdict: complete(payload, hour) })),
      null,
    )
  }
}

interface Measured {
  readonly jobsPerSecond: number
  /** Microseconds of processor time a job, the kernel's part included. Steadier than a disk that others use, too. */
  readonly cpu: number
  readonly calls: ReadonlyMap<string, number>
}

/** Whole jobs at a depth: the queue holds `depth` jobs all the while. */
async function ours(durability: Durability, depth: number, concurrency: number, jobs: number): Promise<Measured> {
  const folder = new TemporaryFolder('bench')
  const basePath = folder.path
  const { fs, counts } = counting()
  const handle = await new FileStorage({ basePath, durability }, fs).open('bench')
  await fill(handle, 0, depth)
  await timed(Math.ceil(jobs / 10), concurrency, wholeJob(handle, 0))
  counts.clear()
  const measured = await timed(jobs, concurrency, wholeJob(handle, 1))
  const calls = new Map([...counts].map(([name, count]) => [name, count / jobs]))
  await handle.close()
  folder.end()
  return { ...measured, calls }
}

async function baseline(
  make: (folder: string, fsync: boolean, payload: string) => Baseline | Promise<Baseline>,
  durability: Durability,
  concurrency: number,
  jobs: number,
): Promise<Omit<Measured, 'calls'>> {
  const folder = new TemporaryFolder('bench')
  const basePath = folder.path
  const made = await make(basePath, durability === 'fsync', payload)
  const measured = await timed(jobs, concurrency, (index) => made.job(index))
  await made.close()
  folder.end()
  return measured
}

/** Jobs for one measurement: enough to last, few enough to end. */
function jobsFor(durability: Durability, concurrency: number): number {
  if (durability === 'os') return concurrency === 1 ? 20_000 : 50_000
  return { 1: 1_000, 8: 6_000 }[concurrency] ?? 40_000
}

async function throughput(depths: readonly number[]): Promise<void> {
  type Figures = Omit<Measured, 'calls'>
  const middle = (figures: readonly Figures[], of: keyof Figures) => spread(figures.map((made) => made[of])).median
  for (const durability of ['fsync', 'os'] as const) {
    const rows: string[][] = []
    for (const concurrency of [1, 8, 64]) {
      const jobs = jobsFor(durability, concurrency)
      const loop: Figures[] = []
      const atomic: Figures[] = []
      const own = depths.map((): Figures[] => [])
      // Alternating, so that a disk that changes its pace does so for all.
      for (let round = 0; round < rounds; round++) {
        loop.push(await baseline(appendLoop, durability, concurrency, jobs))
        atomic.push(await baseline(atomicWrites, durability, concurrency, Math.ceil(jobs / 20)))
        for (const [index, depth] of depths.entries()) {
          own[index]?.push(await ours(durability, depth, concurrency, jobs))
        }
      }
      const a = middle(loop, 'jobsPerSecond')
      const b = middle(atomic, 'jobsPerSecond')
      const row = (name: string, figures: readonly Figures[]): string[] => {
        const { median, min, max } = spread(figures.map(({ jobsPerSecond }) => jobsPerSecond))
        const cells = [name, `${figure(median)} (${figure(min)}–${figure(max)})`]
        return [...cells, `${figure(median / a)}x`, `${figure(median / b)}x`, figure(middle(figures, 'cpu'))]
      }
      rows.push(row(`(a) append loop, ${concurrency} in flight`, loop))
      rows.push(row(`(b) write-file-atomic, ${concurrency} in flight`, atomic))
      for (const [index, depth] of depths.entries()) {
        rows.push(row(`askonce, ${depth.toLocaleString('en-US')} queued, ${concurrency} in flight`, own[index] ?? []))
      }
    }
    console.log(`\n## Whole jobs a second, durability '${durability}'\n`)
    console.log(table(['', 'jobs/s', 'of (a)', 'of (b)', 'CPU us/job'], rows))
  }
}

async function systemCalls(): Promise<void> {
  console.log('\n## Calls on the file system per job, 1,000 queued\n')
  const rows: string[][] = []
  for (const concurrency of [1, 8, 64]) {
    const { calls } = await ours('fsync', 1_000, concurrency, jobsFor('fsync', concurrency))
    const of = (name: string) => figure(calls.get(name) ?? 0)
    const all = [...calls.values()].reduce((sum, count) => sum + count, 0)
    rows.push([String(concurrency), figure(all), of('append'), of('status'), of('read'), of('syncData')])
  }
  console.log(table(['in flight', 'all', 'write', 'stat', 'read', 'fdatasync'], rows))
}

async function wake(): Promise<void> {
  const folder = new TemporaryFolder('bench')
  const basePath = folder.path
  const times = await wakeUps(basePath, 300, async (handle, index) => {
    await handle.enqueue([item(`wake-${index}`)])
  })
  folder.end()
  times.sort((a, b) => a - b)
  const at = (share: number) => figure(times[Math.floor(times.length * share)] ?? 0)
  console.log(
    '\n## Wake-up of an idle worker in another process: from before the enqueue to after its claim, both on disk\n',
  )
  console.log(`p50 ${at(0.5)} ms, p99 ${at(0.99)} ms (300 rounds)`)
}

function bytesIn(basePath: string): number {
  return readdirSync(basePath, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(path.join(entry.parentPath, entry.name)).size, 0)
}

async function sizes(records: number): Promise<void> {
  console.log(`\n## A folder of ${records.toLocaleString('en-US')} records\n`)
  const folder = new TemporaryFolder('bench')
  const basePath = folder.path
  const settings = { basePath, durability: 'os' } as const
  const writer = await new FileStorage(settings).open('bench')
  await fill(writer, 0, records)
  const queuedBytes = bytesIn(basePath)
  await writer.close()
  const open = async () => {
    const begun = performance.now()
    const handle = await new FileStorage(settings).open('bench')
    return { handle, ms: performance.now() - begun }
  }
  const fromLog = await open()
  for (let done = 0; done < records; done += 1_000) {
    const { jobs } = await fromLog.handle.claim({ generation: `g${done}`, leaseMs: hour, limit: 1_000 })
    const verdict = complete(payload, hour)
    await fromLog.handle.settle(
      jobs.map(({ spec, generation }) => ({ id: spec.id, generation, verdict })),
      null,
    )
  }
  await fromLog.handle.close()
  const wholeBytes = bytesIn(basePath)
  const fromSnapshot = await open()
  await fromSnapshot.handle.close()
  folder.end()
  const perRecord = (bytes: number) => `${figure(bytes / records)} bytes`
  console.log(
    table(
      ['', 'open', 'on disk per record'],
      [
        ['all queued, from the log', `${figure(fromLog.ms / 1_000)} s`, perRecord(queuedBytes)],
        ['all completed, from snapshot and log', `${figure(fromSnapshot.ms / 1_000)} s`, perRecord(wholeBytes)],
      ],
    ),
  )
  console.log(`\nValues are ${payload.length} bytes each.`)
}

/** `npm run bench -- file [--quick]`. */
export async function run(argv: readonly string[] = []): Promise<void> {
  const { values } = parseArgs({ args: [...argv], options: { quick: { type: 'boolean', default: false } } })
  exitOnSignals()
  console.log(`# File storage\n\n${machine()}; medians of ${rounds} alternating rounds (min–max), ${tmpdir()}`)
  await throughput(values.quick ? [1_000, 20_000] : [1_000, 20_000, 200_000])
  await systemCalls()
  await wake()
  await sizes(values.quick ? 100_000 : 1_000_000)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run(process.argv.slice(2))
