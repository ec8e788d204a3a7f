/** Ways to break the machine in one place. */

import type { Command } from '../../src/machine.ts'
import { step } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import type { ReferenceStorageOptions, Transition } from '../../storages/conformance/reference.ts'
import { ReferenceStorage } from '../../storages/conformance/reference.ts'
import type { Mutant } from './mutants.ts'
import { mutantsOf } from './mutants.ts'

export interface AnyStep {
  record: JobRecord | null
  answer: unknown
}

export type AnyTransition = (record: JobRecord | null, command: Command, now: number) => AnyStep

/** The sound machine, without the types that tie an answer to its command. */
export const sound: AnyTransition = step

/** A storage that runs another machine. */
function withMachine(broken: AnyTransition): (options: ReferenceStorageOptions) => ReferenceStorage {
  class Broken extends ReferenceStorage {
    protected override get transition(): Transition {
      return broken as Transition
    }
  }
  return (options) => new Broken(options)
}

/** A machine that does something to what the sound one answers. */
export function afterwards(
  when: Command['type'],
  change: (result: AnyStep, before: JobRecord | null, command: Command, now: number) => AnyStep,
): AnyTransition {
  return (record, command, now) => {
    const result = sound(record, command, now)
    return command.type === when ? change(result, record, command, now) : result
  }
}

/** A machine that sees another record than is there. */
export function seeing(
  when: readonly Command['type'][],
  change: (record: JobRecord, command: Command, now: number) => JobRecord | null,
): AnyTransition {
  return (record, command, now) => {
    if (record === null || !when.includes(command.type)) return sound(record, command, now)
    const seen = change(record, command, now)
    const result = sound(seen, command, now)
    return result.record === seen && seen !== null ? { record, answer: result.answer } : result
  }
}

export function later(record: JobRecord | null, ms: number): JobRecord | null {
  return record === null ? null : ({ ...record, at: record.at + ms } as JobRecord)
}

/** Machines by what is broken, each with the case that must notice. */
export type Machines = Readonly<Record<string, readonly [catches: string, machine: AnyTransition]>>

export function mutantsOfMachines(machines: Machines): readonly Mutant[] {
  return mutantsOf(
    Object.fromEntries(
      Object.entries(machines).map(([name, [catches, machine]]) => [name, [catches, withMachine(machine)] as const]),
    ),
  )
}
