/**
 * What a started queue costs that has nothing to do.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { withSession } from './measure.ts'
import type { Scenario } from './scenario.ts'

export const idleScenario: Scenario = {
  name: 'idle',
  title: 'Idle',
  about: 'A producer and a worker of 64 slots, started, with nothing queued: calls that go out, processor time.',
  cases: (quick) => [
    {
      name: '64 slots',
      size: 'own',
      rounds: quick ? 2 : 4,
      together: true,
      measure: (trial) =>
        withSession(trial, async (session) => {
          await session.work(64, () => {})
          // Looks come at ever longer intervals: what they settle at counts.
          globalThis.gc?.()
          await sleep(quick ? 500 : 3_000)
          const seconds = quick ? 1 : 4
          const before = await trial.site.spent()
          const cpuBefore = process.cpuUsage()
          await sleep(seconds * 1_000)
          const { user, system } = process.cpuUsage(cpuBefore)
          const after = await trial.site.spent()
          const us = user + system + after.serverUs - before.serverUs
          return {
            idleCpu: us / 1_000 / seconds,
            ...(before.calls !== null && after.calls !== null && { idleCalls: (after.calls - before.calls) / seconds }),
          }
        }),
    },
  ],
}
