/**
 * `npm run crash -- redis --kills N [--seed S] [--jobs J] [--cycles C] [--fsync always|everysec]`: four workers and two producers
 * on one Redis, killed with SIGKILL at random instants and replaced; J such groups at a time, each on a server of its own. Then,
 * with `--cycles`, so many times each of what befalls servers: SIGSTOP, SIGKILL and a restart from the append-only file,
 * half-open connections, SCRIPT FLUSH.
 *
 * Files lie in memory where there is any (`/dev/shm`): what a killed process has written is there as on a disk. With `--disk` they
 * lie on a real one.
 *
 * @module
 */

import { parseArgs } from 'node:util'
import { oneOf, seedOf, someOf, whole } from '../support/arguments.ts'
import { crashCommand } from '../support/fleet/crash.ts'
import { RedisSite, type Trouble } from '../support/fleet/sites.ts'

/** What befalls the server. */
export const serverTroubles: readonly Trouble[] = ['hang', 'kill', 'partition', 'half-open', 'flush']

/** The command. */
export async function run(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      kills: { type: 'string', default: '500' },
      cycles: { type: 'string', default: '0' },
      seed: { type: 'string' },
      jobs: { type: 'string', default: '2' },
      disk: { type: 'boolean', default: false },
      pause: { type: 'string', default: '150' },
      round: { type: 'string', default: '100' },
      fsync: { type: 'string', default: 'always' },
      troubles: { type: 'string' },
    },
  })
  const fsync = oneOf(values, 'fsync', ['always', 'everysec'])
  await crashCommand({
    kills: whole(values, 'kills'),
    seed: seedOf(values),
    jobs: whole(values, 'jobs', 1),
    pauseMs: whole(values, 'pause', 1),
    killsPerRound: whole(values, 'round', 1),
    cycles: whole(values, 'cycles'),
    troubles: someOf(values, 'troubles', serverTroubles),
    site: () => RedisSite.start(fsync, values.disk ? 'real' : 'memory'),
  })
}
