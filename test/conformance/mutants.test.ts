/** The suite can fail: every storage that is broken in one place is caught, by the case that is there for it. */

import t from 'tap'
import { conformance, VirtualClock } from '../../storages/conformance/index.ts'
import { brokenMachines } from './broken-machines.ts'
import { brokenOperations } from './broken-operations.ts'
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

for (const mutant of [...brokenMachines, ...brokenOperations, ...brokenWorlds]) {
  t.test(mutant.name, async (t) => {
    const cases = casesOn(mutant)
    const expected = cases.get(mutant.catches)
    if (expected === undefined) return void t.fail(`there is no case '${mutant.catches}'`)
    const error = await expected()
    t.ok(error, `caught by '${mutant.catches}'`)
    if (error !== null) t.comment(error.message.split('\n')[0])
  })
}

t.test('every broken machine is caught by the crossed cases too', async (t) => {
  for (const mutant of brokenMachines) {
    const caught: string[] = []
    for (const [name, run] of casesOn(mutant)) {
      if (name.startsWith('crossed: ') && (await run()) !== null) caught.push(name)
    }
    t.ok(caught.length > 0, `${mutant.name}: ${caught.length} states`)
  }
})
