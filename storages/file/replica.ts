/**
 * This process's copy of a namespace's state, made by running the log's commands through the machine in the log's order.
 * Every process that reads the same lines has the same records.
 *
 * @module
 */

import type { Answers, Command, Step } from '../../src/machine.ts'
import { step } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import { RecordTable } from '../memory/table.ts'
import type { LogEntry } from './entries.ts'

/** Told what changed: what hints are made of. */
export interface ChangeListener {
  settled(record: JobRecord): void
  cancelled(record: JobRecord): void
  /** Something may be claimable from then on, ms since 1970. */
  due(at: number): void
  /** An outbox may be due from then on, ms since 1970. */
  outbox(at: number): void
}

/** What a command did; null for entries that are about the whole namespace. */
export type Outcome = Step<Answers[Command['type']]> | null

/** See the module's description. */
export class Replica {
  readonly table = new RecordTable()
  /** Told of changes while it is set. */
  listener: ChangeListener | null = null

  /** What the command would do, without doing it. */
  preview(id: string, command: Command, now: number): Step<Answers[Command['type']]> {
    const record = this.table.get(id)
    const effective = this.#underHold(command, now)
    return effective === null ? { record, answer: 'refused' } : step(record, effective, now)
  }

  /** Runs one entry. */
  apply(entry: LogEntry): Outcome {
    switch (entry.kind) {
      case 'command':
        return this.#run(entry.id, entry.command, entry.now)
      case 'hold': {
        const { ms, now } = entry
        const { table } = this
        table.holdUntil = ms === 0 ? 0 : Math.max(table.holdUntil, now + ms)
        this.listener?.due(table.holdUntil)
        return null
      }
      case 'seal':
        // All that is past its end by now, not some of it: how many a process keeps must not depend on its indexes.
        this.table.sweep(Number.POSITIVE_INFINITY, entry.now)
        return null
    }
  }

  /** What a snapshot of this would take, bytes, roughly: the table's own weight without the objects, with the fields. */
  get bytesOnDisk(): number {
    return Math.max(0, this.table.bytes - 250 * this.table.size)
  }

  #run(id: string, command: Command, now: number): Outcome {
    const { table, listener } = this
    const before = table.get(id)
    const effective = this.#underHold(command, now)
    if (effective === null) return { record: before, answer: 'refused' }
    const done = table.apply(id, effective, now)
    if (listener !== null && done.record !== before) tell(listener, command, before, done)
    return done
  }

  /** What becomes of a command while the namespace is held: nothing is leased. Null: nothing at all. */
  #underHold(command: Command, now: number): Command | null {
    const { holdUntil } = this.table
    if (holdUntil <= now) return command
    if (command.type === 'claim') return null
    if (command.type !== 'enqueue' || command.lease === null) return command
    return { ...command, lease: null, delayMs: holdUntil - now }
  }
}

function tell(
  listener: ChangeListener,
  command: Command,
  before: JobRecord | null,
  { record, answer }: Step<Answers[Command['type']]>,
): void {
  if (record === null) {
    if (answer === 'cancelled' && before !== null) listener.cancelled(before)
    return
  }
  // Nobody waits for either: a mark is answered to who makes it, and so are rows to who collects them.
  if (command.type === 'mark' || command.type === 'collect') return
  if (!isTerminal(record)) {
    // Queued and failing ones; and an inline lease that became everybody's, which workers must watch from now on.
    if (!record.inline && (record.state !== 'processing' || before?.state === 'processing')) listener.due(record.at)
    return
  }
  if (command.type !== 'deliver') listener.settled(record)
  // Posted, or put back.
  const outbox = record.state === 'completed' ? record.outbox : undefined
  if (outbox !== undefined && (command.type === 'settle' || command.type === 'deliver')) listener.outbox(outbox.at)
}
