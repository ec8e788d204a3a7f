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

import { cancelCases } from './cancel.ts'
import { claimCases } from './claim.ts'
import { closeCases } from './close.ts'
import { concurrencyCases } from './concurrency.ts'
import { crossedCases } from './crossed.ts'
import { deliverCases } from './deliver.ts'
import { enqueueCases } from './enqueue.ts'
import { extendCases } from './extend.ts'
import { fencingCases } from './fencing.ts'
import { getCases } from './get.ts'
import { holdCases } from './hold.ts'
import { idCases } from './ids.ts'
import { inlineCases } from './inline.ts'
import { markCases } from './mark.ts'
import { namespaceCases } from './namespaces.ts'
import { outboxCases } from './outbox.ts'
import { randomCases } from './random.ts'
import { refreshCases } from './refresh.ts'
import { refreshInVainCases } from './refresh-in-vain.ts'
import { refreshInlineCases } from './refresh-inline.ts'
import type { Case, ConformanceOptions } from './rig.ts'
import { Rig } from './rig.ts'
import { settleCases } from './settle.ts'
import { sizeCases } from './sizes.ts'
import { statsCases } from './stats.ts'
import { sweepCases } from './sweep.ts'
import { touchCases } from './touch.ts'
import { traitCases } from './traits.ts'
import { ttlCases } from './ttl.ts'
import { watchCases } from './watch.ts'

export type { ReferenceStorageOptions } from './reference.ts'
export { ReferenceStorage } from './reference.ts'
export type { ConformanceOptions, CreateContext, CreatedStorage, RandomOptions } from './rig.ts'
export * from './testing/index.ts'
export { settle, VirtualClock } from './virtual-clock.ts'

const cases: readonly Case[] = [
  ...traitCases,
  ...enqueueCases,
  ...claimCases,
  ...extendCases,
  ...settleCases,
  ...cancelCases,
  ...touchCases,
  ...markCases,
  ...deliverCases,
  ...outboxCases,
  ...getCases,
  ...watchCases,
  ...sweepCases,
  ...holdCases,
  ...statsCases,
  ...closeCases,
  ...fencingCases,
  ...ttlCases,
  ...idCases,
  ...sizeCases,
  ...namespaceCases,
  ...concurrencyCases,
  ...inlineCases,
  ...refreshCases,
  ...refreshInVainCases,
  ...refreshInlineCases,
  ...crossedCases,
  ...randomCases,
]

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
