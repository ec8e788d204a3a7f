/**
 * Finds the Redis server that the tests need, or installs it where that can be done without asking: as root on Debian and its
 * kin.
 *
 * @module
 */

import { ensureProgram } from '../program.ts'
import { redisServerPath } from '../redis-server.ts'

/** Answers the path of the server, or null where Redis tests can't run; says through `print` what it does. */
export function ensureRedis(print: (line: string) => void): string | null {
  return ensureProgram({ find: redisServerPath, package: 'redis-server' }, print)
}
