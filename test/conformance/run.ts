/** Runs the suite under tap. */

import type { Test } from 'tap'
import type { ConformanceOptions, ConformanceSummary } from '../../storages/conformance/index.ts'
import { conformance } from '../../storages/conformance/index.ts'

/** Every case as a subtest; answers the summary, complete once the subtests have run. */
export function runConformance(t: Test, options: Omit<ConformanceOptions, 'test'>): ConformanceSummary {
  return conformance({
    ...options,
    test: (name, run) =>
      t.test(name, async (t) => {
        await run()
        t.pass('holds')
      }),
  })
}
