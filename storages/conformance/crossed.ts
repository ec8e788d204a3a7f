/**
 * Every starting state crossed with every operation, compared with the machine: the answer, and the record afterwards.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { Checked } from './checked.ts'
import { expectState } from './items.ts'
import type { Operation } from './operations.ts'
import { operations } from './operations.ts'
import type { Case, Rig } from './rig.ts'
import type { StartingState } from './states.ts'
import { startingStates } from './states.ts'

const together = operations.filter(({ alone }) => !alone)
const alone = operations.filter(({ alone }) => alone)

/** Says in a failure which combination it was. */
async function during(what: string, run: () => Promise<unknown>): Promise<void> {
  try {
    await run()
  } catch (error) {
    if (error instanceof Error) error.message = `${what}: ${error.message}`
    throw error
  }
}

async function cross(rig: Rig, { name, state, make }: StartingState): Promise<void> {
  const prepare = async (namespace: string, ids: readonly string[]): Promise<Checked> => {
    const [one, two] = await rig.pair(namespace)
    const checked = new Checked(rig, one, two)
    await during(`bringing ids into the state '${name}'`, () => make(checked, ids))
    for (const id of ids) {
      if (state === null) assert.equal((await one.get([id])).records[0], null, `after '${name}' nothing is known`)
      else await expectState(one, id, state)
    }
    return checked
  }
  const attempt = (checked: Checked, operation: Operation, id: string) =>
    during(`'${operation.name}' on '${name}'`, async () => {
      await operation.run(checked, id)
      await during('the second time', () => operation.run(checked, id))
    })

  const prepareAlone = ({ name }: Operation) => prepare(name, [name])
  // Where time is real, they wait for it together; where it is not, each moves it, and so they come one after the other.
  const prepared = rig.virtual ? null : await Promise.all(alone.map(prepareAlone))
  const shared = await prepare(
    'together',
    together.map((operation) => operation.name),
  )
  for (const operation of together) await attempt(shared, operation, operation.name)
  await during(`all of '${name}'`, () => shared.audit())
  for (const [index, operation] of alone.entries()) {
    const own = prepared?.[index] ?? (await prepareAlone(operation))
    await attempt(own, operation, operation.name)
    await own.audit()
  }
}

export const crossedCases: readonly Case[] = startingStates.map((state) => ({
  name: `crossed: every operation on '${state.name}'`,
  run: (rig) => cross(rig, state),
}))
