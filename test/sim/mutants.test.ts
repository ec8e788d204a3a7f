/** The simulation can fail: every broken program is caught, by an oracle that is there for it. */

import t from 'tap'
import { sourceMutants } from './mutants/list.ts'
import { tryAll } from './mutants/run.ts'

t.test('every mutant is caught', async (t) => {
  t.ok(sourceMutants.length >= 20)
  const verdicts = await tryAll(sourceMutants, { seeds: 4_000, ops: 1_000, jobs: 2 }, ({ mutant, oracle, message }) => {
    const caught = oracle !== null && (mutant.oracles as readonly string[]).includes(oracle)
    t.ok(caught, `${mutant.name}: ${oracle ?? 'not caught'}: ${message.split('\n')[0]}`)
  })
  t.equal(verdicts.length, sourceMutants.length)
})

t.setTimeout(600_000)
