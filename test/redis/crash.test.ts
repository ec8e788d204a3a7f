import t from 'tap'
import { crash, reportLine } from '../support/fleet/crash.ts'
import { RedisSite } from '../support/fleet/sites.ts'
import { Seeded } from '../support/seeded.ts'
import { serverTroubles } from './crash.ts'
import { skip } from './suite.ts'

t.test(
  'kills and the server’s troubles lose nothing and settle nothing twice',
  { skip, timeout: 240_000 },
  async (t) => {
    const { seed } = new Seeded()
    const report = await crash({
      kills: 40,
      seed,
      jobs: 1,
      pauseMs: 150,
      killsPerRound: 40,
      cycles: 2,
      troubles: serverTroubles,
      site: () => RedisSite.start('always', 'memory'),
    })
    t.comment(reportLine(report, seed))
    t.same(report.violations.slice(0, 20), [], 'violations')
    t.ok(report.acknowledged > 100, `${report.acknowledged} jobs were acknowledged`)
  },
)
