import t from 'tap'
import { Seeded } from '../support/seeded.ts'
import { crash, reportLine } from './crash.ts'
import { skip } from './suite.ts'

t.test(
  'kills and the server’s troubles lose nothing and settle nothing twice',
  { skip, timeout: 240_000 },
  async (t) => {
    const { seed } = new Seeded()
    const report = await crash({ kills: 40, cycles: 2, seed })
    t.comment(reportLine(report, seed))
    t.equal(report.lost, 0, 'lost')
    t.equal(report.settledTwice, 0, 'settled twice')
    t.equal(report.stalls, 0, 'stalls')
    t.ok(report.acknowledged > 100, `${report.acknowledged} jobs were acknowledged`)
    if (report.problems.length > 0) t.comment(report.problems.slice(0, 20).join('\n'))
  },
)
