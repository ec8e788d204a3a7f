/** Histories of real processes on File and on Redis, some of them killed, checked against the machine. */

import t from 'tap'
import { checkLinearizability, type HistoryEntry } from '../../storages/conformance/index.ts'
import { skip } from '../redis/suite.ts'
import { Seeded } from '../support/seeded.ts'
import { round, siteOf } from './linear.ts'
import { callerProgram, type Recording } from './record.ts'

/** Of twenty settlements whose answer is changed, the share that the checker notices. */
function changesNoticed({ entries, read }: Recording): number {
  const changes = entries
    .map(
      (entry, index) => [index, JSON.stringify(entry).replace('"answers":["settled"]', '"answers":["stale"]')] as const,
    )
    .filter(([, text]) => text.includes('"answers":["stale"]'))
    .filter(([index]) => JSON.stringify(entries[index]).includes('settled'))
    .slice(0, 20)
  const noticed = changes.filter(([index, text]) => {
    const changed = entries.with(index, JSON.parse(text) as HistoryEntry)
    return checkLinearizability(read(changed)).outcome !== 'linearizable'
  })
  return noticed.length / changes.length
}

const program = callerProgram()
t.teardown(() => program.end())

for (const kind of ['file', 'redis'] as const) {
  const skipped = kind === 'redis' ? skip : false
  t.test(`${kind}: an order of all calls explains all answers`, { skip: skipped, timeout: 120_000 }, async (t) => {
    const { seed } = new Seeded()
    const site = await siteOf(kind)
    t.teardown(() => site.end())
    const options = { seed, ops: 2_000, namespace: 'linear', processes: 3, kills: 3 }
    const { recording, result } = await round(program, site, options)
    const { histories, entries, kills } = recording
    t.comment(`${entries.length} entries, ${histories.size} ids, ${kills} kills, ${result.nodes} states (seed ${seed})`)
    t.equal(result.outcome, 'linearizable', 'message' in result ? result.message : '')
    t.ok(kills > 0, 'processes were killed')
    t.ok(result.commands > 800, `${result.commands} commands`)
    // A lease whose end nobody looked at may have ended this way or that.
    t.ok(changesNoticed(recording) > 0.5, 'a changed answer is noticed')
  })
}
