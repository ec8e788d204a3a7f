/**
 * `npm run crash`: workers and producers killed with SIGKILL at random instants and replaced at once; then everything acknowledged
 * is looked for. In rounds, several at a time, each on a queue and a storage of its own.
 *
 * @module
 */

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Bundled } from '../bundled.ts'
import { Seeded } from '../seeded.ts'
import { exitOnSignals, TemporaryFolder } from '../tidy.ts'
import { type Fleet, fleetProgram, type Member } from './fleet.ts'
import type { Violation } from './oracles.ts'
import { type RoundReport, runRound } from './round.ts'
import type { Site, Trouble } from './sites.ts'

/** What is done to whom, and how often. */
export interface CrashOptions {
  /** Kills in all. */
  readonly kills: number
  readonly seed: number
  /** Rounds that run at the same time. */
  readonly jobs: number
  /** Kills after which a round is judged, at most. */
  readonly killsPerRound: number
  /** The longest pause between two kills of a round, ms. */
  readonly pauseMs: number
  /** Makes a storage: one for each job. */
  readonly site: () => Promise<Site>
  /** Of each of these troubles, so many after the kills, in the first round. */
  readonly cycles: number
  readonly troubles: readonly Trouble[]
  /** Told of each round that has ended. */
  readonly onRound?: (report: CrashReport) => void
}

/** What a run came to, so far. */
export interface CrashReport {
  kills: number
  cycles: number
  rounds: number
  acknowledged: number
  ranMoreThanOnce: number
  stalls: number
  compactions: number
  seconds: number
  readonly violations: Violation[]
}

const workers = 4
const producers = 2
const idsPerSecond = 150
const fillerChars = 6_000

/** Of the victims, how many must be at work; the others may be anywhere in their start. */
const busyVictims = 0.85

/** How long a kill waits for a victim that is at work, ms: on a busy machine starts take long. */
const busyMsMax = 3_000

/** Runs the test. */
export async function crash(options: CrashOptions): Promise<CrashReport> {
  const { kills, seed, jobs, killsPerRound, onRound } = options
  const startedAt = performance.now()
  const report: CrashReport = {
    kills: 0,
    cycles: options.cycles,
    rounds: 0,
    acknowledged: 0,
    ranMoreThanOnce: 0,
    stalls: 0,
    compactions: 0,
    seconds: 0,
    violations: [],
  }
  const program = fleetProgram()
  const notes = new TemporaryFolder('notes')
  const rounds = Math.max(1, Math.ceil(kills / killsPerRound))
  let next = 0
  const work = async (): Promise<void> => {
    if (next >= rounds) return
    const site = await options.site()
    try {
      while (next < rounds) {
        const round = next++
        const share = Math.floor(((round + 1) * kills) / rounds) - Math.floor((round * kills) / rounds)
        const found = await runCrashes(options, program, site, join(notes.path, `${round}`), round, share)
        report.kills += share
        report.rounds++
        report.acknowledged += found.acknowledged
        report.ranMoreThanOnce += found.ranMoreThanOnce
        report.stalls += found.stalls
        report.compactions += found.compactions
        report.violations.push(...found.violations.map((violation) => inRound(violation, seed, round)))
        report.seconds = (performance.now() - startedAt) / 1_000
        onRound?.(report)
      }
    } finally {
      await site.end()
    }
  }
  try {
    await Promise.all(Array.from({ length: jobs }, work))
  } finally {
    program.end()
    notes.end()
  }
  return report
}

function inRound({ oracle, message }: Violation, seed: number, round: number): Violation {
  return { oracle, message: `${message} (seed ${seed}, round ${round})` }
}

function runCrashes(
  options: CrashOptions,
  program: Bundled,
  site: Site,
  folder: string,
  round: number,
  kills: number,
): Promise<RoundReport> {
  const random = new Seeded(options.seed + round * 7_919)
  return runRound({
    program,
    site,
    folder,
    queue: `crash-${round}`,
    seed: random.below(2 ** 31),
    workers,
    producers,
    idsPerSecond,
    fillerChars,
    all: false,
    spares: 2,
    toleranceMs: 0,
    disturb: async (fleet, progress) => {
      for (let kill = 0; kill < kills; kill++) {
        await sleep(random.below(options.pauseMs))
        await fleet.replace(await victim(fleet, random))
      }
      if (round > 0) return
      for (const trouble of options.troubles) {
        for (let cycle = 0; cycle < options.cycles; cycle++) {
          await site.befall(trouble, random)
          await progress()
          await sleep(100 + random.below(300))
        }
      }
    },
  })
}

async function victim(fleet: Fleet, random: Seeded): Promise<Member> {
  if (!random.chance(busyVictims)) return random.pick(fleet.members)
  for (const end = performance.now() + busyMsMax; performance.now() < end; await sleep(5)) {
    const busy = fleet.running.filter((member) => member.busy)
    if (busy.length > 0) return random.pick(busy)
  }
  return random.pick(fleet.members)
}

/** Violations that are a loss of what was acknowledged, or a second record of it. */
function lostOf({ violations }: CrashReport): number {
  return violations.filter(({ oracle }) => oracle === 'conservation' || oracle === 'no replacement').length
}

/** Violations that are a second verdict. */
function settledTwiceOf({ violations }: CrashReport): number {
  return violations.filter(({ oracle }) => oracle === 'one verdict').length
}

/** The report in one line. */
export function reportLine(report: CrashReport, seed: number): string {
  const { kills, cycles, acknowledged, ranMoreThanOnce, stalls, compactions, rounds, seconds, violations } = report
  const more = cycles === 0 ? '' : `${cycles} cycles each of the server's troubles, `
  const lost = lostOf(report)
  const twice = settledTwiceOf(report)
  const others = violations.length - lost - twice
  const what = compactions > 0 ? `${compactions} compactions, ` : ''
  return (
    `${kills} kills, ${more}${acknowledged} jobs acknowledged, ${lost} lost, ${twice} settled twice, ${others} other ` +
    `violations, ${ranMoreThanOnce} ran more than once, ${stalls} stalls (${what}${rounds} rounds, ` +
    `${seconds.toFixed(0)} s, ${(kills / Math.max(1, seconds)).toFixed(1)} kills/s, seed ${seed})`
  )
}

/** Runs it as a command: prints what it comes to, and sets the exit code. */
export async function crashCommand(options: CrashOptions): Promise<void> {
  exitOnSignals()
  let toldAt = performance.now()
  const report = await crash({
    ...options,
    onRound: (sofar) => {
      if (performance.now() - toldAt < 30_000) return
      toldAt = performance.now()
      console.log(`… ${reportLine(sofar, options.seed)}`)
    },
  })
  for (const { oracle, message } of report.violations.slice(0, 20)) console.error(`VIOLATION of ${oracle}: ${message}`)
  console.log(reportLine(report, options.seed))
  if (report.violations.length > 0) process.exitCode = 1
}
