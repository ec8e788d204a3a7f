/** The suite can fail: every storage that is broken in one place is caught, by the case that is there for it. */

import t from 'tap'
import { conformance, VirtualClock } from '../../storages/conformance/index.ts'
import { brokenMachines } from './broken-machines.ts'
import { brokenOperations } from './broken-operations.ts'
import { brokenDeliveries, brokenOutboxMachines } from './broken-outboxes.ts'
import { brokenRefreshes } from './broken-refreshes.ts'
import { brokenWorlds } from './broken-worlds.ts'
import type { Mutant } from './mutants.ts'

/** Every case, ready to run on the storage; each answers how it failed, or null. */
function casesOn({ make }: Mutant): Map<string, () => Promise<Error | null>> {
  const clock = new VirtualClock()
  const cases = new Map<string, () => Promise<Error | null>>()
  conformance({
    test: (name, run) =>
      cases.set(name, () =>
        run().then(
          () => null,
          (error) => error as Error,
        ),
      ),
    create: async () => make({ clock }),
    advance: (ms) => clock.advance(ms),
    patienceMs: 150,
    random: { seed: 1, runs: 2, commands: 200 },
    note: () => {},
  })
  return cases
}

const machines = [...brokenMachines, ...brokenRefreshes, ...brokenOutboxMachines]

for (const mutant of [...machines, ...brokenOperations, ...brokenDeliveries, ...brokenWorlds]) {
  t.test(mutant.name, async (t) => {
    const cases = casesOn(mutant)
    const expected = cases.get(mutant.catches)
    if (expected === undefined) return void t.fail(`there is no case '${mutant.catches}'`)
    const error = await expected()
    t.ok(error, `caught by '${mutant.catches}'`)
    if (error !== null) t.comment(error.message.split('\n')[0])
  })
}

/** What these break takes time to show, or a sequence of calls: more than one operation on one state. */
const beyondCrossed = new Set([
  'an inline refresh is forgotten with its runner',
  'marks have no bound',
  'the job’s own lease delivers',
  'a delivered record outlasts its TTL',
])

t.test('every broken machine is caught by the crossed cases too', async (t) => {
  for (const { name, make } of machines.filter(({ name }) => !beyondCrossed.has(name))) {
    const mutant = { name, make, catches: 'crossed: ' }
    const crossed = [...casesOn(mutant)].filter(([name]) => name.startsWith('crossed: '))
    // The states that only these break are the last.
    if (!brokenMachines.some((machine) => machine.name === name)) crossed.reverse()
    let caughtOn: string | null = null
    for (const [state, run] of crossed) {
      if ((await run()) === null) continue
      caughtOn = state
      break
    }
    t.ok(caughtOn, `${name}: ${caughtOn}`)
  }
})
