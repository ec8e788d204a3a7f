/**
 * Finds the browser that the tests need, or installs it where that can be done without asking: as root on Debian and its
 * kin. Apart from the rest, so that `npm test` can do so before any test without loading playwright-core.
 *
 * @module
 */

import { ensureProgram, onPath } from '../../support/program.ts'

/** Written into the name of tests that had to be left out, so that the closing lines of `npm test` name them. */
export const skippedForBrowser = 'no chromium, chromium-browser or google-chrome on the PATH'

/** The program: ASKONCE_CHROMIUM, or the first of the known names on the PATH; null if there is none. */
function chromiumPath(): string | null {
  return process.env['ASKONCE_CHROMIUM'] || onPath('chromium', 'chromium-browser', 'google-chrome')
}

/** Answers the browser's path, or null where browser tests can't run; says through `print` what it does. */
export function ensureChromium(print: (line: string) => void): string | null {
  const note = ' (115 MB to fetch, 415 MB on disk)'
  return ensureProgram({ find: chromiumPath, package: 'chromium', note }, print)
}
