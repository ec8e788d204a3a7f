import t from 'tap'
import { crash, reportLine } from './crash.ts'

t.test('fifty kills lose nothing and settle nothing twice', { timeout: 240_000 }, async (t) => {
  const seed = Date.now() % 2 ** 31
  const report = await crash(50, seed, 'os')
  t.comment(reportLine(report, seed))
  t.equal(report.lost, 0, 'lost')
  t.equal(report.settledTwice, 0, 'settled twice')
  t.ok(report.acknowledged > 100, `${report.acknowledged} jobs were acknowledged`)
  if (report.lost > 0 || report.settledTwice > 0) t.comment(report.problems.slice(0, 20).join('\n'))
})
