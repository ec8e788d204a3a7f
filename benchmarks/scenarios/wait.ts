/**
 * From asking to having the answer.
 *
 * @module
 */

import { pool, timedPool, withSession } from './measure.ts'
import type { Case, Scenario } from './scenario.ts'

function wait(inFlight: number): Case {
  return {
    name: `${inFlight} in flight`,
    size: 'tried',
    measure: (trial) =>
      withSession(trial, async (session) => {
        await session.work(64, () => {})
        await pool(Math.min(inFlight * 2, trial.jobs), inFlight, (index) => session.wait(`warm-${index}`))
        return timedPool(trial, inFlight, (index) => session.wait(`job-${index}`))
      }),
  }
}

export const waitScenario: Scenario = {
  name: 'wait',
  title: 'End to end: enqueueAndWait',
  about:
    'From the call to the result: enqueue, claim, run, settle, wake the caller. Worker and caller have a connection each (Memory: share the storage).',
  cases: () => [wait(1), wait(50)],
}
