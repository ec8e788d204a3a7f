/**
 * Processing alone: jobs are queued, handlers answer at once.
 *
 * @module
 */

import { fill, ids, processed, withSession } from './measure.ts'
import type { Case, Scenario } from './scenario.ts'

function processCase(concurrency: number): Case {
  return {
    name: `${concurrency} at once`,
    size: 'tried',
    measure: (trial) =>
      withSession(trial, async (session) => {
        // Fewer would be over before that many run at once.
        const jobs = Math.max(trial.jobs, concurrency * 4)
        // Some before, some behind: neither start nor end is measured.
        const warm = Math.min(500, Math.ceil(jobs / 5))
        await fill(session, ids('job', warm + jobs + concurrency))
        return processed(trial, session, concurrency, warm, jobs)
      }),
  }
}

export const processScenario: Scenario = {
  name: 'process',
  title: 'Process no-op jobs',
  about: 'Claim, run and settle of jobs that are queued already; the handler answers at once.',
  cases: (quick) => (quick ? [1, 64] : [1, 16, 64]).map(processCase),
}
