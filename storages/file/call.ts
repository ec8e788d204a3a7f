/**
 * A call on its way: what it asks for, what of that was done, and who waits for it.
 *
 * @module
 */

import type { Command } from '../../src/machine.ts'
import type { CompletedRecord, JobRecord, ProcessingRecord } from '../../src/record.ts'
import type { ClaimRequest, CollectRequest } from '../../src/storage.ts'
import type { LogEntry } from './entries.ts'
import type { Outcome, Replica } from './replica.ts'
import { Change } from './replicated-log.ts'

/** What a call asks for. */
export interface Plan {
  /** Commands, each on one id, run in their order. */
  readonly commands?: readonly PlannedCommand[]
  /** Run after all commands of the turn. */
  readonly claim?: ClaimRequest | null
  /** Run after all commands of the turn. */
  readonly collect?: CollectRequest | null
  /** Frees records past their end, at most so many. */
  readonly sweepLimit?: number
  /** Holds the namespace. */
  readonly holdMs?: number
}

/** A command on one id. */
export interface PlannedCommand {
  readonly id: string
  readonly command: Command
}

const noCommands: readonly PlannedCommand[] = []

/** See the module's description. */
export class Call {
  readonly plan: Plan
  /** Of each command; undefined while it has none. */
  readonly outcomes: (Outcome | undefined)[]
  /** What the claim brought. */
  readonly jobs: ProcessingRecord[] = []
  readonly exhausted: JobRecord[] = []
  /** What the collection brought. */
  readonly collected: CompletedRecord[] = []
  /** Whether claim and collection are over, as far as there were any. */
  isServed: boolean
  /** Records that the sweep freed. */
  swept = 0
  /** When it was run, ms since 1970. */
  now = 0
  /** Changes that are not in the log yet; infinite while the plan was not looked at. */
  missing = Number.POSITIVE_INFINITY
  readonly #prepare: (call: Call, replica: Replica) => unknown
  readonly #resolve: (answer: unknown) => void
  readonly #reject: (error: unknown) => void
  readonly #ended: () => void
  #answer: unknown

  constructor(
    plan: Plan,
    prepare: (call: Call, replica: Replica) => unknown,
    resolve: (answer: unknown) => void,
    reject: (error: unknown) => void,
    ended: () => void,
  ) {
    this.plan = plan
    this.outcomes = new Array(this.commands.length)
    this.isServed = (plan.claim ?? null) === null && (plan.collect ?? null) === null
    this.#prepare = prepare
    this.#resolve = resolve
    this.#reject = reject
    this.#ended = ended
  }

  get commands(): readonly PlannedCommand[] {
    return this.plan.commands ?? noCommands
  }

  /** Whether claim or collection have brought something. */
  get hasGot(): boolean {
    return this.jobs.length + this.exhausted.length + this.collected.length > 0
  }

  /** Whether everything it asks for was done. */
  get isDone(): boolean {
    return this.missing === 0 && this.isServed
  }

  /** Makes the answer from the state of now, to be given by {@link resolve}. */
  prepare(replica: Replica): void {
    this.#answer = this.#prepare(this, replica)
  }

  resolve(): void {
    this.#ended()
    this.#resolve(this.#answer)
  }

  reject(error: unknown): void {
    this.#ended()
    this.#reject(error)
  }
}

/** Index of changes that are no command of their call. */
export const noCommand = -1

/** One change of a call. */
export class CallChange extends Change {
  readonly call: Call
  /** Of the command, or {@link noCommand}. */
  readonly index: number

  constructor(entry: LogEntry, call: Call, index: number) {
    super(entry)
    this.call = call
    this.index = index
  }
}
