/**
 * Programs that tests need beside Node: found on the PATH, or installed where that can be done without asking.
 *
 * @module
 */

import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The path of the first of these names on the PATH; null if there is none. */
export function onPath(...names: readonly string[]): string | null {
  for (const name of names) {
    for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
      const path = join(folder, name)
      try {
        accessSync(path, constants.X_OK)
        return path
      } catch {
        // Look on.
      }
    }
  }
  return null
}

/** What is to be there. */
export interface WantedProgram {
  readonly find: () => string | null
  /** The Debian package that has it, and what to say of it. */
  readonly package: string
  readonly note?: string
}

/** Answers the program's path: as root on Debian and its kin it is installed if it is not there; null where it can't be had. */
export function ensureProgram(wanted: WantedProgram, print: (line: string) => void): string | null {
  const found = wanted.find()
  if (found !== null) return found
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return null
  print(`# not on the PATH: installing ${wanted.package} with apt-get${wanted.note ?? ''}`)
  // Runlevel 1 keeps Debian's scripts from starting a service: the tests start servers of their own.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const install = ['install', '-y', '--no-install-recommends', wanted.package]
  for (const args of [install, ['update'], install]) {
    const run = spawnSync('apt-get', args, { env, stdio: 'ignore', timeout: 240_000 })
    if (args === install && run.status === 0) break
  }
  const installed = wanted.find()
  print(installed === null ? '# apt-get could not install it' : `# installed: ${installed}`)
  return installed
}
