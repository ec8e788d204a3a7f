/**
 * Enqueue of ids that are completed: what a deduplicating queue does most of the time.
 *
 * @module
 */

import { fill, ids, pool, timedPool, until, withSession } from './measure.ts'
import type { Case, Scenario } from './scenario.ts'

function duplicate(inFlight: number): Case {
  return {
    name: `${inFlight} in flight`,
    size: 'tried',
    measure: (trial) =>
      withSession(trial, async (session) => {
        const known = ids('job', Math.min(500, trial.jobs))
        await fill(session, known)
        await session.work(16, () => {})
        await until(() => session.completed() >= known.length)
        const ask = (index: number) => session.duplicate(known[index % known.length] as string)
        await pool(Math.min(100, trial.jobs), inFlight, ask)
        return timedPool(trial, inFlight, ask)
      }),
  }
}

export const duplicateScenario: Scenario = {
  name: 'duplicate',
  title: 'Dedupe hit',
  about: 'Enqueue of an id whose result is stored: the caller gets the result. 500 ids, in turn.',
  cases: () => [duplicate(1), duplicate(64)],
}
