/**
 * Enqueue alone.
 *
 * @module
 */

import { pool, timedPool, withSession } from './measure.ts'
import type { Case, Scenario } from './scenario.ts'

function enqueue(inFlight: number): Case {
  return {
    name: `${inFlight} in flight`,
    size: 'tried',
    measure: (trial) =>
      withSession(trial, async (session) => {
        await pool(Math.min(100, trial.jobs), inFlight, (index) => session.enqueue(`warm-${index}`))
        return timedPool(trial, inFlight, (index) => session.enqueue(`job-${index}`))
      }),
  }
}

export const enqueueScenario: Scenario = {
  name: 'enqueue',
  title: 'Enqueue',
  about: 'New jobs of a small payload, one call each; nobody works on them.',
  cases: () => [enqueue(1), enqueue(64)],
}
