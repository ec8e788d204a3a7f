/**
 * The model: a namespace whose every answer is compared with the machine, one call at a time. For tests that make up sequences of
 * calls of their own, as model-based ones (fast-check's commands) do.
 *
 * @module
 */

import type { JobRecord } from '../../../src/record.ts'
import type { StorageHandle } from '../../../src/storage.ts'
import { Checked } from '../checked.ts'
import type { ConformanceOptions } from '../rig.ts'
import { Rig } from '../rig.ts'

/** A storage's operations; each rejects with an AssertionError if the storage does not what the machine does. */
export interface CheckedOperations
  extends Pick<
    StorageHandle,
    'enqueue' | 'claim' | 'extend' | 'settle' | 'cancel' | 'touch' | 'mark' | 'deliver' | 'sweep' | 'hold'
  > {
  /** Compares all that is there with all that should be: records and counts. */
  audit(): Promise<void>
  /** What should be there of an id, past its end or not. */
  record(id: string): JobRecord | null
}

/** A namespace of a fresh storage, and the machine beside it. */
export interface Model {
  readonly checked: CheckedOperations
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
