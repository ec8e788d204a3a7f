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
  const durability = values.durability === 'os' ? 'os' : 'fsync'
  await crashCommand({
    kills: Number(values.kills),
    seed: values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed),
    jobs: Number(values.jobs),
    pauseMs: Number(values.pause),
    killsPerRound: Number(values.round),
    cycles: 0,
    troubles: [],
    site: async () => new FileSite(durability, values.disk ? 'real' : 'memory'),
  })
}
