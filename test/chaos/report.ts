/**
 * The report of a chaos run, on one page: as text and as JSON.
 *
 * @module
 */

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { arch, cpus, platform, release } from 'node:os'
import type { Judgement, Violation } from '../support/fleet/oracles.ts'
import { redisServerPath } from '../support/redis-server.ts'

/** Where it was run, and what. */
export interface Versions {
  readonly askonce: string
  /** Of git; with `+` if files were changed since. Null outside of a clone. */
  readonly commit: string | null
  readonly node: string
  readonly redis: string | null
  readonly system: string
}

/** What befell one kind of storage. */
export interface StorageReport {
  rounds: number
  /** Calls of producers. */
  readonly operations: Record<string, number>
  /** Answers that were errors, by code: while faults are made, some calls fail. */
  readonly errors: Record<string, number>
  readonly faults: Record<string, number>
  acknowledged: number
  handlerRuns: number
  ranMoreThanOnce: number
  stalls: number
  compactions: number
  /** Faults that could not be made here, and why. */
  readonly untried: string[]
}

/** A broken promise, and where. */
export interface FoundViolation extends Violation {
  readonly storage: string
  readonly round: number
}

/** All of it. */
export interface ChaosReport {
  readonly seed: number
  readonly startedAt: string
  seconds: number
  readonly versions: Versions
  readonly storages: Record<string, StorageReport>
  readonly violations: FoundViolation[]
}

/** Violations that the text shows. */
const shownMax = 20

/** Nothing yet. */
export function newReport(seed: number, storages: readonly string[]): ChaosReport {
  return {
    seed,
    startedAt: new Date().toISOString(),
    seconds: 0,
    versions: versionsHere(),
    storages: Object.fromEntries(storages.map((name) => [name, newStorageReport()])),
    violations: [],
  }
}

function newStorageReport(): StorageReport {
  return {
    rounds: 0,
    operations: {},
    errors: {},
    faults: {},
    acknowledged: 0,
    handlerRuns: 0,
    ranMoreThanOnce: 0,
    stalls: 0,
    compactions: 0,
    untried: [],
  }
}

/** Adds what a round came to. */
export function addRound(
  report: ChaosReport,
  storage: string,
  round: number,
  found: Judgement & { readonly stalls: number; readonly compactions: number },
): void {
  const own = report.storages[storage] as StorageReport
  own.rounds++
  addCounts(own.operations, found.calls)
  addCounts(own.errors, found.errors)
  own.acknowledged += found.acknowledged
  own.handlerRuns += found.runs
  own.ranMoreThanOnce += found.ranMoreThanOnce
  own.stalls += found.stalls
  own.compactions += found.compactions
  report.violations.push(...found.violations.map((violation) => ({ storage, round, ...violation })))
}

/** Counts one thing. */
export function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

function addCounts(counts: Record<string, number>, more: Readonly<Record<string, number>>): void {
  for (const [name, number] of Object.entries(more)) counts[name] = (counts[name] ?? 0) + number
}

/** The text. */
export function reportText(report: ChaosReport): string {
  const { seed, startedAt, seconds, versions, storages, violations } = report
  const { askonce, commit, node, redis, system } = versions
  const lines = [
    `askonce chaos: ${violations.length} violations in ${seconds.toFixed(0)} s`,
    '',
    `seed ${seed}, started ${startedAt}`,
    `askonce ${askonce}, commit ${commit ?? 'unknown'}, Node ${node}, ${redis ?? 'no Redis'}, ${system}`,
  ]
  for (const [name, own] of Object.entries(storages)) {
    lines.push(
      '',
      `${name}: ${own.rounds} rounds, ${own.acknowledged} ids acknowledged, ${own.handlerRuns} handler runs, ` +
        `${own.ranMoreThanOnce} jobs ran more than once, ${own.stalls} stalls` +
        (own.compactions > 0 ? `, ${own.compactions} compactions` : ''),
      ...table('operations', own.operations),
      ...table('answered with an error', own.errors),
      ...table('faults', own.faults),
      ...own.untried.map((what) => `  not made: ${what}`),
    )
  }
  lines.push('', ...violations.slice(0, shownMax).map(violationText))
  if (violations.length > shownMax) lines.push(`… and ${violations.length - shownMax} more`)
  lines.push(violations.length === 0 ? 'No promise was broken.' : `${violations.length} promises were broken.`)
  return lines.join('\n')
}

function violationText({ oracle, message, storage, round }: FoundViolation): string {
  return `VIOLATION of ${oracle} (${storage}, round ${round}): ${message}`
}

function table(title: string, counts: Readonly<Record<string, number>>): string[] {
  const entries = Object.entries(counts).filter(([, number]) => number > 0)
  if (entries.length === 0) return []
  const sum = entries.reduce((total, [, number]) => total + number, 0)
  return [
    `  ${title}: ${sum}`,
    ...entries.sort(byCount).map(([name, number]) => `    ${String(number).padStart(9)}  ${name}`),
  ]
}

function byCount([a, one]: [string, number], [b, other]: [string, number]): number {
  return other - one || (a < b ? -1 : 1)
}

function versionsHere(): Versions {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const head = git('rev-parse', '--short=12', 'HEAD')
  const changed = git('status', '--porcelain')
  return {
    askonce: version,
    commit: head === null ? null : `${head}${changed === '' ? '' : '+'}`,
    node: process.versions.node,
    redis: redisVersion(),
    system: `${platform()} ${release()} ${arch()}, ${cpus().length} cores`,
  }
}

function git(...args: readonly string[]): string | null {
  try {
    const cwd = new URL('../..', import.meta.url)
    return execFileSync('git', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return null
  }
}

function redisVersion(): string | null {
  const path = redisServerPath()
  if (path === null) return null
  const found = /v=(\S+)/.exec(execFileSync(path, ['--version'], { encoding: 'utf8' }))
  return `Redis ${found?.[1] ?? 'of unknown version'}`
}
