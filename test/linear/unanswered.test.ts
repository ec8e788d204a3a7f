/** Commands that were never answered: what others are shown later tells when they were carried out. */

import fc from 'fast-check'
import t from 'tap'
import { living } from '../../src/machine.ts'
import { checkLinearizability, type TimedCommand } from '../../storages/conformance/testing/index.ts'
import { type Happened, moves, play } from '../support/machine-history.ts'

/** Until when what was not answered may have been carried out: far beyond what is tried millisecond by millisecond. */
const openUntil = 100_000

/** Each command of its own moment, and a look at the record behind it. */
function timed(history: readonly Happened[], unanswered: ReadonlySet<number>): TimedCommand[] {
  return history.flatMap(({ command, now, after, answer }, index): TimedCommand[] => {
    const calledAt = 10 * index
    const base = { id: 'id', caller: 'c', calledAt }
    const isOpen = unanswered.has(index)
    const own: TimedCommand = isOpen
      ? {
          ...base,
          command,
          returnedAt: null,
          deadline: Infinity,
          now: { lo: now - 5, hi: openUntil },
          latest: openUntil,
          seen: null,
        }
      : {
          ...base,
          command,
          returnedAt: calledAt + 1,
          deadline: calledAt + 1,
          now: { lo: now, hi: now },
          latest: now,
          seen: { answer: answer as never, owner: false },
        }
    const look: TimedCommand = {
      ...base,
      calledAt: calledAt + 5,
      command: { type: 'read' },
      returnedAt: calledAt + 6,
      deadline: calledAt + 6,
      now: { lo: now, hi: now },
      latest: now,
      seen: { answer: null, owner: false, record: living(after, now) },
    }
    return [own, look]
  })
}

t.test('the moment at which a command without an answer was carried out is found', async (t) => {
  const counts = { open: 0 }
  fc.assert(
    fc.property(moves, fc.infiniteStream(fc.nat(9)), (script, dice) => {
      const history = play(script)
      const open = new Set(
        history.flatMap((one, index) => (one.command.type !== 'forget' && dice.next().value === 0 ? [index] : [])),
      )
      counts.open += open.size
      const result = checkLinearizability(new Map([['id', timed(history, open)]]))
      if (result.outcome !== 'linearizable') throw new Error(`${result.outcome}: ${result.message}`)
    }),
    { numRuns: 400 },
  )
  t.ok(counts.open > 300, `${counts.open} were not answered`)
})
