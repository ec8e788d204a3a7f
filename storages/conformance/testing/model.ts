/**
 * The model: a namespace whose every answer is compared with the machine, one call at a time. For tests that make up sequences of
 * calls of their own, as model-based ones (fast-check's commands) do.
 *
 * @module
 */

import { Checked } from '../checked.ts'
import type { ConformanceOptions } from '../rig.ts'
import { Rig } from '../rig.ts'

/** A {@link Checked} namespace of a fresh storage. */
export interface Model {
  /** Its operations are a storage's; each rejects with an AssertionError if the storage does not what the machine does. */
  readonly checked: Checked
  /** A token never used before. */
  token(): string
  /** Lets time go on by the storage's clock, ms. */
  wait(ms: number): Promise<void>
  /** Closes what was opened, and has it cleared up. */
  end(): Promise<void>
}

/**
 * Makes one.
 *
 * @param options - as for the suite; `test`, `random` and `note` are not used
 * @param name - tells the storage's `create` for whom it is
 */
export async function openModel(options: Omit<ConformanceOptions, 'test'>, name: string): Promise<Model> {
  const rig = await Rig.make({ ...options, test: () => {} }, name, () => {})
  const [one, two] = await rig.pair(name)
  const checked = new Checked(rig, one, two)
  return {
    checked,
    token: () => rig.token(),
    wait: (ms) => rig.wait(checked.handle, ms),
    end: () => rig.end(),
  }
}
