/** Runs the suite under tap. */

import type { Test } from 'tap'
import type { ConformanceOptions, ConformanceSummary } from '../../storages/conformance/index.ts'
import { conformance } from '../../storages/conformance/index.ts'

/**
 * Cases that a variant of a storage can leave to the file that runs the suite on it plainly. Where each call is a slow
 * request they are skipped by name unless ASKONCE_LONG is set, so that `npm test` stays short.
 */
export const longCases = /^(crossed|random|ids|sizes|namespaces|watch|stats|close|traits): /

/** Every case as a subtest; answers the summary, complete once the subtests have run. */
export function runConformance(
  t: Test,
  options: Omit<ConformanceOptions, 'test'>,
  unlessLong: RegExp | null = null,
): ConformanceSummary {
  const skipped = process.env['ASKONCE_LONG'] === undefined ? unlessLong : null
  return conformance({
    ...options,
    test: (name, run) =>
      t.test(name, { skip: skipped?.test(name) === true && 'runs with ASKONCE_LONG=1' }, async (t) => {
        await run()
        t.pass('holds')
      }),
  })
}
