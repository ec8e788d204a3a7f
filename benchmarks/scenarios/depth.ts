/**
 * What jobs cost while many others are queued.
 *
 * @module
 */

import { fill, ids, processed, withSession } from './measure.ts'
import type { Case, Scenario } from './scenario.ts'

/** What is measured of it, seconds at the backend's pace; and what goes before. */
const seconds = 0.5
/** Jobs that warm up, at most. */
const warmMax = 20_000

interface DepthCase extends Case {
  readonly queued: number
  readonly quick: boolean
}

function depth(queued: number, quick: boolean): DepthCase {
  return {
    name: `${queued.toLocaleString('en-US')} queued`,
    queued,
    quick,
    size: 'own',
    rounds: 3,
    measure: (trial) =>
      withSession(trial, async (session) => {
        const jobs = Math.max(200, Math.round(trial.backend.pace * (trial.quick ? seconds / 5 : seconds)))
        const warm = Math.min(jobs, warmMax)
        // The queue is never less deep than it is said to be.
        await fill(session, ids('job', warm + jobs + queued))
        return processed(trial, session, 64, warm, jobs)
      }),
  }
}

export const depthScenario: Scenario = {
  name: 'depth',
  title: 'Depth',
  about: 'Process, 64 at once, while so many more jobs stay queued behind.',
  cases: (quick) => (quick ? [1_000, 20_000] : [1_000, 20_000, 500_000]).map((queued) => depth(queued, quick)),
  leftOut(backend, one) {
    const { queued, quick } = one as DepthCase
    const patience = quick ? backend.depthMax / 20 : backend.depthMax
    return queued > patience ? 'dynalite takes too long to queue so many jobs' : null
  },
}
