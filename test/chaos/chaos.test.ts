/** A few seconds of chaos: longer ones are `npm run chaos`. */

import t from 'tap'
import { skip } from '../redis/suite.ts'
import { Seeded } from '../support/seeded.ts'
import { chaos } from './chaos.ts'
import { reportText } from './report.ts'

t.test('a short round on each storage breaks no promise', { timeout: 240_000 }, async (t) => {
  const { seed } = new Seeded()
  const storages = skip === false ? (['file', 'redis'] as const) : (['file'] as const)
  const report = await chaos({ seed, ms: 3_000, roundMs: 3_000, storages })
  t.same(report.violations, [], reportText(report))
  for (const kind of storages) {
    const { rounds, acknowledged, faults } = report.storages[kind] ?? {}
    t.equal(rounds, 1)
    t.ok((acknowledged ?? 0) > 20, `${acknowledged} ids were acknowledged`)
    t.ok(Object.keys(faults ?? {}).length > 0, 'faults were made')
  }
})
