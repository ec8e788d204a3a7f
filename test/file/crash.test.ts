import t from 'tap'
import { crash, reportLine } from '../support/fleet/crash.ts'
import { FileSite } from '../support/fleet/sites.ts'
import { Seeded } from '../support/seeded.ts'

t.test('fifty kills lose nothing and settle nothing twice', { timeout: 240_000 }, async (t) => {
  const { seed } = new Seeded()
  const site = async () => new FileSite('os', 'memory')
  const report = await crash({
    kills: 50,
    seed,
    jobs: 1,
    pauseMs: 150,
    killsPerRound: 50,
    cycles: 0,
    troubles: [],
    site,
  })
  t.comment(reportLine(report, seed))
  t.same(report.violations.slice(0, 20), [], 'violations')
  t.ok(report.acknowledged > 100, `${report.acknowledged} jobs were acknowledged`)
})
