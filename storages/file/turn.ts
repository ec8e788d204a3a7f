/**
 * What one turn of the event loop asked of a namespace, run against its log: commands first, in the order of the calls, in
 * as few appends as there can be; then the wishes, which so see everything that the turn made due.
 *
 * @module
 */

import type { Command } from '../../src/machine.ts'
import type { Verdict } from '../../src/record.ts'
import type { Call, PlannedCommand } from './call.ts'
import { CallChange, noCommand } from './call.ts'
import type { ReplicatedLog } from './replicated-log.ts'
import { runWishes } from './wishes.ts'

/** Characters of payloads and ids that go into one append, but for a last item beyond. */
const appendCharsMax = 1024 * 1024
/** Characters of a line beside ids and values, roughly. */
const lineChars = 120

/** Runs calls. If it throws, each call knows what of it was done. */
export function runTurn(state: ReplicatedLog, calls: readonly Call[], now: number): void {
  runCommands(state, calls, now)
  runWishes(state, calls, now)
}

/** Gathers changes into appends. */
class Appender {
  readonly #state: ReplicatedLog
  #changes: CallChange[] = []
  #chars = 0

  constructor(state: ReplicatedLog) {
    this.#state = state
  }

  add(change: CallChange, chars: number): void {
    change.call.missing++
    this.#changes.push(change)
    this.#chars += lineChars + chars
    if (this.#chars >= appendCharsMax) this.flush()
  }

  flush(): void {
    const changes = this.#changes
    if (changes.length === 0) return
    this.#changes = []
    this.#chars = 0
    try {
      this.#state.append(changes)
    } finally {
      for (const { call, index, done, outcome } of changes) {
        if (!done) continue
        call.missing--
        if (index !== noCommand) call.outcomes[index] = outcome
        else if (outcome !== null && outcome.answer === 'forgotten') call.swept++
      }
    }
  }
}

/** Runs the calls' commands, holds and sweeps. */
function runCommands(state: ReplicatedLog, calls: readonly Call[], now: number): void {
  const { replica } = state
  const appender = new Appender(state)
  // Ids that a change on its way is about: what comes after it must be decided after it.
  const changing = new Set<string>()
  for (const call of calls) {
    call.now = now
    call.missing = 0
    const { commands, outcomes, plan } = call
    for (let index = 0; index < commands.length; index++) {
      if (outcomes[index] !== undefined) continue
      const { id, command } = commands[index] as PlannedCommand
      if (!changing.has(id)) {
        // What changes nothing needs no line: a thousand duplicates cost no byte.
        const preview = replica.preview(id, command, now)
        if (preview.record === replica.table.get(id)) {
          outcomes[index] = preview
          continue
        }
        changing.add(id)
      }
      appender.add(new CallChange({ kind: 'command', id, command, now }, call, index), charsOf(id, command))
    }
    const { holdMs, sweepLimit } = plan
    if (holdMs !== undefined) appender.add(new CallChange({ kind: 'hold', ms: holdMs, now }, call, noCommand), 0)
    if (sweepLimit !== undefined) {
      for (const id of replica.table.expiredIds(sweepLimit - call.swept, now)) {
        if (changing.has(id)) continue
        changing.add(id)
        appender.add(
          new CallChange({ kind: 'command', id, command: { type: 'forget' }, now }, call, noCommand),
          id.length,
        )
      }
    }
  }
  appender.flush()
}

function charsOf(id: string, command: Command): number {
  switch (command.type) {
    case 'enqueue':
      return id.length + command.payload.length
    case 'settle':
      return id.length + charsOfVerdict(command.verdict)
    case 'deliver':
      return id.length + (command.rows?.length ?? 0)
    default:
      return id.length
  }
}

function charsOfVerdict(verdict: Verdict): number {
  switch (verdict.kind) {
    case 'complete':
      return verdict.result.length + (verdict.outbox?.rows.length ?? 0)
    case 'fail':
    case 'retry':
      return verdict.error.length
    case 'release':
      return 0
  }
}
