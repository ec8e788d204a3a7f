/**
 * Finds the browser that the tests need, or installs it where that can be done without asking: as root on Debian and its
 * kin. Apart from the rest, so that `npm test` can do so before any test without loading playwright-core.
 *
 * @module
 */

import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Written into the name of tests that had to be left out, so that the closing lines of `npm test` name them. */
export const skippedForBrowser = 'no chromium, chromium-browser or google-chrome on the PATH'

/** The program: ASKONCE_CHROMIUM, or the first of the known names on the PATH; null if there is none. */
function chromiumPath(): string | null {
  const named = process.env['ASKONCE_CHROMIUM']
  if (named) return named
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
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

/** Answers the browser's path, or null where browser tests can't run; says through `print` what it does. */
export function ensureChromium(print: (line: string) => void): string | null {
  const found = chromiumPath()
  if (found !== null) return found
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !existsSync('/etc/debian_version')) return null
  print('no Chromium on the PATH: installing chromium with apt-get (115 MB to fetch, 415 MB on disk)')
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const install = ['install', '-y', '--no-install-recommends', 'chromium']
  for (const args of [install, ['update'], install]) {
    const run = spawnSync('apt-get', args, { env, stdio: 'ignore', timeout: 240_000 })
    if (args === install && run.status === 0) break
  }
  const installed = chromiumPath()
  print(installed === null ? 'apt-get could not install it' : `installed: ${installed}`)
  return installed
}
