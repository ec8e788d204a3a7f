/**
 * The conformance suite: what any storage must do, as cases for any test runner.
 *
 * ```ts
 * import { test } from 'node:test'
 * import { conformance } from 'askonce/conformance'
 *
 * conformance({ test, create: async () => new MyStorage() })
 * ```
 *
 * @module
 */

import { crossedCases } from './crossed.ts'
import type { Case, ConformanceOptions } from './rig.ts'
import { Rig } from './rig.ts'

export type { ReferenceStorageOptions } from './reference.ts'
export { ReferenceStorage } from './reference.ts'
export type { ConformanceOptions, CreateContext, CreatedStorage, RandomOptions } from './rig.ts'
export { settle, VirtualClock } from './virtual-clock.ts'

const cases: readonly Case[] = [...crossedCases]

/** What a run of the suite has come to; complete when the runner has ended. */
export interface ConformanceSummary {
  /** The names of all cases, in order. */
  readonly cases: readonly string[]
  /** The names of those that have passed so far. */
  readonly passed: readonly string[]
  /** What was not tested, and why: each begins with its case's name. */
  readonly notes: readonly string[]
}

/** Registers every case with the runner. */
export function conformance(options: ConformanceOptions): ConformanceSummary {
  const passed: string[] = []
  const notes: string[] = []
  const note = (text: string) => {
    notes.push(text)
    if (options.note === undefined) console.log(`# not tested: ${text}`)
    else options.note(text)
  }
  for (const { name, run } of cases) {
    options.test(name, async () => {
      const rig = await Rig.make(options, name, note)
      try {
        await run(rig)
      } catch (error) {
        // The case's own failure is told, not what closing after it may meet.
        await rig.end().catch(() => {})
        throw error
      }
      await rig.end()
      passed.push(name)
    })
  }
  return { cases: cases.map(({ name }) => name), passed, notes }
}
