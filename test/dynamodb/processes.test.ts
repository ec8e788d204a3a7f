import t from 'tap'
import { eight } from './eight.ts'

t.setTimeout(300_000)

t.test('three processes on 150 jobs, one killed on the way: each job is settled once', async (t) => {
  const report = await eight({ processes: 3, jobs: 150, lagMs: 20, kill: 1 })
  t.comment(JSON.stringify(report))
  t.equal(report.settledTwice, 0)
  t.equal(report.unsettled, 0)
  t.ok(report.queued <= 150, `${report.queued} enqueues were answered 'queued'`)
})
