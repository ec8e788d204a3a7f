/**
 * `npm run crash -- file --kills N [--seed S] [--jobs J] [--durability fsync|os]`: four workers and two producers on one folder,
 * killed with SIGKILL at random instants and replaced; J such groups at a time, each on a folder of its own.
 *
 * Files lie in memory where there is any (`/dev/shm`): what a killed process has written is there as on a disk. With `--disk` they
 * lie on a real one.
 *
 * @module
 */

import { parseArgs } from 'node:util'
import { oneOf, seedOf, whole } from '../support/arguments.ts'
import { crashCommand } from '../support/fleet/crash.ts'
import { FileSite } from '../support/fleet/sites.ts'

/** The command. */
export async function run(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      kills: { type: 'string', default: '500' },
      seed: { type: 'string' },
      jobs: { type: 'string', default: '2' },
      disk: { type: 'boolean', default: false },
      pause: { type: 'string', default: '150' },
      round: { type: 'string', default: '100' },
      durability: { type: 'string', default: 'fsync' },
    },
  })
  const durability = oneOf(values, 'durability', ['fsync', 'os'])
  await crashCommand({
    kills: whole(values, 'kills'),
    seed: seedOf(values),
    jobs: whole(values, 'jobs', 1),
    pauseMs: whole(values, 'pause', 1),
    killsPerRound: whole(values, 'round', 1),
    cycles: 0,
    troubles: [],
    site: async () => new FileSite(durability, values.disk ? 'real' : 'memory'),
  })
}
