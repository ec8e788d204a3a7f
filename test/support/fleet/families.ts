/**
 * Kinds of jobs that a fleet works on, each by the first part of its id: what becomes of a job is known from its name.
 *
 * @module
 */

import type { EnqueueOptions } from '../../../src/options.ts'
import type { Seeded } from '../seeded.ts'

/** How jobs of one name behave. */
export interface Family {
  readonly name: string
  /** Of a hundred new ids, how many are of it. */
  readonly share: number
  readonly options: EnqueueOptions
  /** How long a handler takes, ms. */
  readonly workMs: (random: Seeded) => number
  /** Whether an attempt fails. */
  readonly fails: (attempts: number) => boolean
  /** How it ends at last if nobody cancels it. */
  readonly ends: 'completed' | 'failed'
  /** Whether its record outlives the test, once it is there. */
  readonly stays: boolean
}

const hour = 3_600_000
const quick = (random: Seeded): number => random.next() * 5
const never = (): boolean => false

/** Attempts that killed workers and lost leases cannot use up. */
const unbounded = 1_000_000

/** Jobs that are enqueued once, run, and are kept: what a crash test needs. */
const steady: Family = {
  name: 'steady',
  share: 100,
  options: { maxAttempts: unbounded, resultTTL: hour },
  workMs: quick,
  fails: never,
  ends: 'completed',
  stays: true,
}

/** All families. */
const families: readonly Family[] = [
  { ...steady, share: 55 },
  /** Fails twice before it succeeds. */
  { ...steady, name: 'flaky', share: 10, fails: (attempts) => attempts <= 2 },
  /** Takes longer than a lease. */
  { ...steady, name: 'slow', share: 3, workMs: (random) => 1_200 + random.below(600) },
  /** Never succeeds: its attempts are used up. */
  {
    ...steady,
    name: 'failing',
    share: 8,
    options: { maxAttempts: 3, resultTTL: hour, failureTTL: hour },
    fails: () => true,
    ends: 'failed',
  },
  /** Is cancelled, if that comes in time. */
  {
    ...steady,
    name: 'dropped',
    share: 8,
    options: { maxAttempts: unbounded, resultTTL: hour, delay: 60 },
    stays: false,
  },
  /** A few ids that are forgotten soon, and come again. */
  { ...steady, name: 'short', share: 10, options: { maxAttempts: unbounded, resultTTL: 400 }, stays: false },
  /** Inline. */
  { ...steady, name: 'inline', share: 6, options: { maxAttempts: unbounded, resultTTL: 2_000 }, stays: false },
]

const byName = new Map(families.map((family) => [family.name, family]))

/** The family of an id. */
export function familyOf(id: string): Family {
  const family = byName.get(id.slice(0, id.indexOf('-')))
  if (family === undefined) throw new Error(`no family has ${id}`)
  return family
}

/** How many ids the families have whose ids come again. */
const shortIds = 12

/** The id with a number: the same in every process. `all`: of all families, by their shares. */
export function idOf(number: number, all: boolean): string {
  if (!all) return `${steady.name}-${number}`
  let place = (number * 61) % 100
  for (const { name, share } of families) {
    place -= share
    if (place < 0) return `${name}-${name === 'short' ? number % shortIds : number}`
  }
  return `${steady.name}-${number}`
}
