/**
 * Finds the Redis server that the tests need, or installs it where that can be done without asking: as root on Debian and its
 * kin.
 *
 * @module
 */

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { redisServerPath } from '../redis-server.ts'

/** Answers the path of the server, or null where Redis tests can't run; says through `print` what it does. */
export function ensureRedis(print: (line: string) => void): string | null {
  const found = redisServerPath()
  if (found !== null) return found
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return null
  print('# no redis-server or valkey-server on the PATH: installing redis-server with apt-get')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const install = ['install', '-y', '--no-install-recommends', 'redis-server']
  for (const args of [install, ['update'], install]) {
    // Runlevel 1 keeps Debian's scripts from starting a service: the tests start servers of their own.
    const run = spawnSync('apt-get', args, { env: { ...env, RUNLEVEL: '1' }, stdio: 'ignore', timeout: 180_000 })
    if (args === install && run.status === 0) break
  }
  const installed = redisServerPath()
  print(installed === null ? '# apt-get could not install it' : `# installed: ${installed}`)
  return installed
}
