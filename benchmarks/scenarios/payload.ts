/**
 * Whole jobs with payloads of some size.
 *
 * @module
 */

import { pool, timedPool, withSession } from './measure.ts'
import type { Case, Scenario } from './scenario.ts'

const inFlight = 16

function payload(kilobytes: number): Case {
  return {
    name: `${kilobytes} KB`,
    size: 'tried',
    measure: (trial) =>
      withSession(trial, async (session) => {
        // Text as it is in JSON documents; not all of one letter, so that nothing can be clever about it.
        const text = Array.from({ length: 64 }, (_, index) => `field ${index}: ${(index * 7919) % 9973}`).join(', ')
        const value = { text: text.repeat(Math.ceil((kilobytes * 1_024) / text.length)).slice(0, kilobytes * 1_024) }
        await session.work(inFlight, () => {})
        await pool(Math.min(inFlight, trial.jobs), inFlight, (index) => session.wait(`warm-${index}`, value))
        const figures = await timedPool(trial, inFlight, (index) => session.wait(`job-${index}`, value))
        return { ...figures, bandwidth: ((figures.rate ?? 0) * kilobytes * 1_024) / 1e6 }
      }),
  }
}

export const payloadScenario: Scenario = {
  name: 'payload',
  title: 'Payloads of 1 KB and 64 KB',
  about: `Whole jobs as in "end to end", ${inFlight} in flight, whose payload is a JSON text of that size; the result is small.`,
  cases: () => [payload(1), payload(64)],
}
