/**
 * Bytes per job, queued and completed.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { bytesInUse } from '../support/report.ts'
import { fill, ids, until, withSession } from './measure.ts'
import type { Scenario } from './scenario.ts'

const warmJobs = 200

export const spaceScenario: Scenario = {
  name: 'space',
  title: 'Memory and disk per job',
  about:
    'Bytes of Node’s heap and buffers (Memory, File: the others keep no records there), and of what lies outside (the folder, Redis, the table), per small job: all queued, with the producer’s queue alone, then all completed, with the worker’s, too. Of DynamoDB items count, entries of indexes do not: only askonce has an index.',
  cases: (quick) => [
    {
      name: 'small jobs',
      size: 'own',
      // Bytes hardly differ from round to round.
      rounds: quick ? 1 : 3,
      async measure(trial) {
        // What only first jobs bring along, such as connections and compiled code, is no job's.
        await withSession(trial, async (session) => {
          await fill(session, ids('warm', warmJobs))
          await session.work(64, () => {})
          await until(() => session.completed() >= warmJobs)
          return {}
        })
        return withSession(trial, async (session) => {
          const { site, backend } = trial
          const hasRecords = site.address.kind === 'memory' || site.address.kind === 'file'
          const jobs = Math.min(backend.depthMax / (quick ? 4 : 1), quick ? 10_000 : 50_000)
          const look = async () => {
            // Answers that are still being dealt with hold memory, too.
            await sleep(quick ? 100 : 300)
            return { heap: bytesInUse(), outside: await site.bytesOutside() }
          }
          const before = await look()
          await fill(session, ids('job', jobs))
          const queued = await look()
          await session.work(64, () => {})
          await until(() => session.completed() >= jobs)
          const completed = await look()
          return {
            // Elsewhere the heap holds no records: what is left of so few bytes is chance.
            ...(hasRecords && {
              heapQueued: (queued.heap - before.heap) / jobs,
              heapCompleted: (completed.heap - before.heap) / jobs,
            }),
            ...(site.address.kind !== 'memory' && {
              outsideQueued: (queued.outside - before.outside) / jobs,
              outsideCompleted: (completed.outside - before.outside) / jobs,
            }),
          }
        })
      },
    },
  ],
}
