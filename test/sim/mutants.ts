/**
 * `npm run mutants`: breaks the program in one place after the other, and shows that the simulation notices.
 *
 *     npm run mutants                       all
 *     npm run mutants -- --only heartbeat   those whose name has it
 *
 * The exit code is 0 if every one was caught, by an oracle that is there for it.
 *
 * @module
 */

import { parseArgs } from 'node:util'
import { whole } from '../support/arguments.ts'
import { sourceMutants } from './mutants/list.ts'
import { tryAll } from './mutants/run.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string', default: '' },
    seeds: { type: 'string', default: '4000' },
    ops: { type: 'string', default: '1000' },
    jobs: { type: 'string', default: '2' },
  },
})

const mutants = sourceMutants.filter(({ name }) => name.includes(values.only))
const options = { seeds: whole(values, 'seeds', 1), ops: whole(values, 'ops', 1), jobs: whole(values, 'jobs', 1) }
let caught = 0
await tryAll(mutants, options, ({ mutant, oracle, message, seeds }) => {
  const fits = oracle !== null && (mutant.oracles as readonly string[]).includes(oracle)
  if (fits) caught++
  const by =
    oracle === null ? 'NOT CAUGHT' : `${fits ? 'caught' : 'CAUGHT BY ANOTHER ORACLE'}: ${oracle}, seed ${seeds}`
  console.log(`${mutant.name}\n    ${by}: ${message.split('\n')[0]}`)
})
console.log(`${caught} of ${mutants.length} caught`)
process.exitCode = caught === mutants.length ? 0 : 1
