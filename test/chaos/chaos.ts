/**
 * `npm run chaos -- --minutes N [--seed S] [--json FILE] [--storage file,redis]`: real processes on a folder and on a Redis server, for
 * N minutes: killed, paused, their clocks shifted; the disk full; Redis hung, killed, cut off. In rounds, each on a queue of its own:
 * faults for half a minute, then calm, in which everything must come to its end; then the oracles judge. Closes with a report of
 * one page. The exit code is 0 if no promise was broken.
 *
 * A seed fixes what is done in which order; what it meets hangs on the machine. So it helps to see a failure again, but need not
 * show it at once.
 *
 * @module
 */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { seedOf, someOf, whole } from '../support/arguments.ts'
import type { Bundled } from '../support/bundled.ts'
import { fleetProgram } from '../support/fleet/fleet.ts'
import { runRound } from '../support/fleet/round.ts'
import { FileSite, RedisSite, type Site } from '../support/fleet/sites.ts'
import { redisServerPath, skippedForRedis } from '../support/redis-server.ts'
import { Seeded } from '../support/seeded.ts'
import { exitOnSignals, TemporaryFolder } from '../support/tidy.ts'
import { makeFaults } from './faults.ts'
import { addRound, type ChaosReport, count, newReport, reportText, type StorageReport } from './report.ts'

/** A kind of storage that chaos can be made of. */
export type StorageKind = 'file' | 'redis'

/** What is run. */
export interface ChaosOptions {
  readonly seed: number
  readonly ms: number
  /** How long a round's faults go on at most, ms. */
  readonly roundMs: number
  readonly storages: readonly StorageKind[]
  /** Told after each round. */
  readonly onRound?: (report: ChaosReport) => void
}

/**
 * By how much clocks may be wrong, ms. With Redis the server's clock decides. With File those of the processes do, which
 * are one machine's: they are as far apart as a lease may be cut short by.
 */
const skewMsMax: Readonly<Record<StorageKind, number>> = { file: 100, redis: 3_600_000 }

/** Two leases may seem to overlap by the distance of two clocks, and by the jump of one of them. */
const toleranceMs: Readonly<Record<StorageKind, number>> = { file: 4 * skewMsMax.file, redis: 0 }

const fleetSize = { workers: 3, producers: 2, spares: 1, idsPerSecond: 80, fillerChars: 1_500 }

/** Runs it. */
export async function chaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, storages } = options
  const report = newReport(seed, storages)
  const program = fleetProgram()
  const startedAt = performance.now()
  const notes = new TemporaryFolder('notes')
  try {
    await Promise.all(storages.map((kind) => runStorage(kind, options, program, notes.path, report, startedAt)))
  } finally {
    program.end()
    notes.end()
  }
  report.seconds = (performance.now() - startedAt) / 1_000
  return report
}

async function runStorage(
  kind: StorageKind,
  options: ChaosOptions,
  program: Bundled,
  notes: string,
  report: ChaosReport,
  startedAt: number,
): Promise<void> {
  const { seed, ms, roundMs, onRound } = options
  const own = report.storages[kind] as StorageReport
  const site = await siteOf(kind)
  own.untried.push(...site.untried)
  try {
    // At least one: a run that did nothing must not look like one that broke nothing.
    for (let round = 0; round === 0 || performance.now() < startedAt + ms; round++) {
      const random = new Seeded(seed + round * 7_919 + (kind === 'file' ? 0 : 1))
      const left = round === 0 ? ms : startedAt + ms - performance.now()
      const found = await runRound({
        ...fleetSize,
        program,
        site,
        folder: join(notes, `${kind}-${round}`),
        queue: `chaos-${round}`,
        seed: random.below(2 ** 31),
        all: true,
        toleranceMs: toleranceMs[kind],
        disturb: (fleet, progress) =>
          makeFaults({
            fleet,
            site,
            random,
            ms: Math.min(roundMs, left),
            skewMsMax: skewMsMax[kind],
            progress,
            onFault: (fault) => count(own.faults, fault),
          }),
      })
      addRound(report, kind, round, found)
      report.seconds = (performance.now() - startedAt) / 1_000
      onRound?.(report)
    }
  } finally {
    await site.end()
  }
}

async function siteOf(kind: StorageKind): Promise<Site> {
  return kind === 'file' ? new FileSite('fsync', 'small') : RedisSite.start('always', 'small')
}

async function command(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      minutes: { type: 'string', default: '2' },
      round: { type: 'string', default: '30' },
      seed: { type: 'string' },
      json: { type: 'string' },
      storage: { type: 'string', default: 'file,redis' },
    },
  })
  const minutes = Number(values.minutes)
  const asked = someOf<StorageKind, 'storage'>(values, 'storage', ['file', 'redis'])
  if (!(minutes > 0)) {
    console.error(
      'usage: npm run chaos -- --minutes N [--seed S] [--json FILE] [--storage file,redis] [--round SECONDS]',
    )
    process.exitCode = 2
    return
  }
  const storages = asked.filter((kind) => kind === 'file' || redisServerPath() !== null)
  if (storages.length < asked.length) console.log(`Redis is left out: ${skippedForRedis}`)
  const seed = seedOf(values)
  exitOnSignals()
  let toldAt = performance.now()
  const report = await chaos({
    seed,
    ms: minutes * 60_000,
    roundMs: whole(values, 'round', 1) * 1_000,
    storages,
    onRound: ({ seconds, violations, storages: sofar }) => {
      if (performance.now() - toldAt < 60_000) return
      toldAt = performance.now()
      const rounds = Object.values(sofar).reduce((sum, own) => sum + own.rounds, 0)
      console.log(`… ${seconds.toFixed(0)} s, ${rounds} rounds, ${violations.length} violations (seed ${seed})`)
    },
  })
  console.log(reportText(report))
  if (values.json !== undefined) writeFileSync(values.json, `${JSON.stringify(report, null, 2)}\n`)
  if (report.violations.length > 0) process.exitCode = 1
}

if (import.meta.filename === process.argv[1]) await command(process.argv.slice(2))
