/** Histories of real processes on File and on Redis, some of them killed, checked against the machine. */

import t from 'tap'
import { checkLinearizability, type TimedCommand } from '../../storages/conformance/testing/index.ts'
import { skip } from '../redis/suite.ts'
import { Seeded } from '../support/seeded.ts'
import { round, siteOf } from './linear.ts'
import { callerProgram, type Recording } from './record.ts'

/** Settlements that were told that they are settled, and whose token somebody was shown. */
function* shownSettlements(histories: Recording['histories']) {
  for (const history of histories.values()) {
    const records = history.map(({ seen }) => JSON.stringify(seen?.record ?? null))
    for (const [index, { command, seen }] of history.entries()) {
      if (command.type !== 'settle' || seen?.answer !== 'settled') continue
      const { verdict } = command
      const token = 'result' in verdict ? verdict.result : 'error' in verdict ? verdict.error : null
      const text = JSON.stringify(token)
      if (token !== null && records.some((record) => record.includes(text))) yield { history, index }
    }
  }
}

/** Whether the checker explains it with "stale" in the place of the settlement's answer. */
function isExplainedAsStale(history: readonly TimedCommand[], index: number): boolean {
  const changed = history.with(index, { ...(history[index] as TimedCommand), seen: { answer: 'stale', owner: false } })
  // Twenty times what the right answers of an id take: a search that is given up explains nothing, either.
  const nodesMax = 2_000
  return checkLinearizability(new Map([['', changed]]), { nodesMax }).outcome === 'linearizable'
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
    t.equal(result.outcome, 'linearizable', 'an order explains them', {
      message: 'message' in result ? result.message : '',
    })
    t.ok(kills > 0, 'processes were killed')
    t.ok(result.commands > 800, `${result.commands} commands`)
    // Only whose effect nobody has seen may have been stale, for all that is known.
    const shown = [...shownSettlements(histories)].slice(0, 20)
    t.comment(`${shown.length} settlements are changed`)
    t.ok(shown.length > 0, 'there are settlements whose effect was seen')
    t.notOk(
      shown.some(({ history, index }) => isExplainedAsStale(history, index)),
      'a changed answer is noticed',
    )
  })
}
