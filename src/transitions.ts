/**
 * The transition table: the whole state machine as data. For each state and command the facts that decide, the state after it,
 * and the answer. Tests hold it against the code of `machine.ts`, and the diagram in `docs/state-machine.md` against it.
 *
 * @module
 */

import type { Command } from './machine.ts'
import { living } from './machine.ts'
import type { JobRecord, JobState } from './record.ts'
import { isTerminal } from './record.ts'

/** A record's state, or that there is none: nothing is stored, or what is has passed its end. */
export type Situation = JobState | 'absent'

/**
 * The commands as the table has them: an inline run's enqueue apart from others, whether it asks for a lease or the queue is
 * held; and each verdict of a settle by itself.
 */
export type CommandName =
  | 'enqueue'
  | 'enqueue inline'
  | 'enqueue leased'
  | 'claim'
  | 'extend'
  | 'complete'
  | 'fail'
  | 'retry'
  | 'release'
  | 'cancel'
  | 'touch'
  | 'forget'

/** What a transition may depend on. Each is told by a function of `facts`. */
export type Fact = 'stored' | 'repeated' | 'rejected' | 'inline' | 'due' | 'own' | 'left' | 'known'

/** A fact, or that it does not hold. */
export type Condition = Fact | `not ${Fact}`

/** One row of the table. */
export interface Transition {
  readonly from: Situation
  readonly command: CommandName
  /** All must hold. Of the rows of one state and command, exactly one applies. */
  readonly when: readonly Condition[]
  readonly to: Situation
  /** Whether anything of the record changes. */
  readonly changes: boolean
  /** For an enqueue `created` or `exists`, with `, leased` if it is now the caller's; else the answer itself. */
  readonly answer: string
}

/** How each fact is told. */
const facts: { readonly [fact in Fact]: (stored: JobRecord | null, command: Command, now: number) => boolean } = {
  /** A record is stored, even if it has passed its end. */
  stored: (stored) => stored !== null,
  /** The command is the very enqueue that made the record. */
  repeated: (stored, command) => command.type === 'enqueue' && stored?.spec.incarnation === command.spec.incarnation,
  /** The payload is another, both were digested, and the caller wants it rejected. */
  rejected(stored, command) {
    if (command.type !== 'enqueue' || stored === null || !command.rejectMismatch) return false
    const [theirs, ours] = [stored.spec.fingerprint, command.spec.fingerprint]
    return theirs !== '' && ours !== '' && theirs !== ours
  },
  /** The record is an inline run's, and nobody else counts on it. */
  inline: (stored) => stored !== null && !isTerminal(stored) && stored.inline,
  /** `at` is past; of another's lease, `at` and the grace after it. */
  due(stored, command, now) {
    if (stored === null) return false
    const lease = command.type === 'enqueue' ? command.lease : command.type === 'claim' ? command : null
    return stored.at + (stored.state === 'processing' ? (lease?.graceMs ?? 0) : 0) <= now
  },
  /** The command's lease is the record's present or last one. */
  own(stored, command) {
    if (command.type === 'enqueue') return command.lease !== null && stored?.generation === command.lease.generation
    return 'generation' in command && stored?.generation === command.generation
  },
  /** Another attempt may be made. */
  left: (stored) => stored !== null && stored.attempts < stored.spec.maxAttempts,
  /** The outcome is there to be kept longer: the storage has not lost the result or the error. */
  known(stored) {
    if (stored?.state === 'completed') return stored.result !== null
    return stored?.state === 'failed' && (stored.reason === 'exhausted' || stored.error !== null)
  },
}

/** The table. */
export const transitions: readonly Transition[] = [
  ...from('absent', [
    ['enqueue', [], 'queued', 'created'],
    ['enqueue inline', [], 'queued', 'created'],
    ['enqueue leased', [], 'processing', 'created, leased'],
    ['claim', [], null, 'refused'],
    ['extend', [], null, 'stale'],
    ['complete', [], null, 'stale'],
    ['fail', [], null, 'stale'],
    ['retry', [], null, 'stale'],
    ['release', [], null, 'stale'],
    ['cancel', [], null, 'not_found'],
    ['touch', [], null, 'not_found'],
    ['forget', ['stored'], 'absent', 'forgotten'],
    ['forget', ['not stored'], null, 'kept'],
  ]),
  ...waiting('queued', 'release'),
  ...from('processing', [
    ...met('processing'),
    ['enqueue leased', ['repeated', 'own'], null, 'created, leased'],
    ['enqueue leased', ['repeated', 'not own'], null, 'created'],
    ['enqueue leased', ['not repeated', 'rejected'], null, 'exists'],
    ['enqueue leased', ['not repeated', 'not rejected', 'own'], null, 'exists, leased'],
    ['enqueue leased', ['not repeated', 'not rejected', 'not own', 'not due'], null, 'exists'],
    ['enqueue leased', ['not repeated', 'not rejected', 'not own', 'due', 'left'], 'processing', 'exists, leased'],
    ['enqueue leased', ['not repeated', 'not rejected', 'not own', 'due', 'not left'], 'failed', 'exists'],
    ['claim', ['own'], null, 'leased'],
    ['claim', ['not own', 'not due'], null, 'refused'],
    ['claim', ['not own', 'due', 'left'], 'processing', 'leased'],
    ['claim', ['not own', 'due', 'not left'], 'failed', 'exhausted'],
    ['extend', ['own'], 'processing', 'extended'],
    ['extend', ['not own'], null, 'stale'],
    ['complete', ['own'], 'completed', 'settled'],
    ['complete', ['not own'], null, 'stale'],
    ['fail', ['own'], 'failed', 'settled'],
    ['fail', ['not own'], null, 'stale'],
    ['retry', ['own', 'left'], 'failing', 'settled'],
    ['retry', ['own', 'not left'], 'failed', 'settled'],
    ['retry', ['not own'], null, 'stale'],
    ['release', ['own'], 'queued', 'settled'],
    ['release', ['not own'], null, 'stale'],
    ['cancel', [], null, 'processing'],
    ['touch', [], null, 'not_terminal'],
    ['forget', [], null, 'kept'],
  ]),
  ...waiting('failing', 'retry'),
  ...ended('completed', ['complete']),
  ...ended('failed', ['fail', 'retry']),
]

/** A move that the clock alone makes: no command is needed, and a sweep only frees the space. */
export interface Ending {
  readonly from: JobState
  readonly when: readonly Condition[]
  /** From when on. */
  readonly at: string
}

/** When a record becomes absent by itself. */
export const endings: readonly Ending[] = [
  { from: 'queued', when: ['inline'], at: 'at + resultTTL' },
  { from: 'processing', when: ['inline'], at: 'at + resultTTL' },
  { from: 'failing', when: ['inline'], at: 'at + resultTTL' },
  { from: 'completed', when: [], at: 'at' },
  { from: 'failed', when: [], at: 'at' },
]

/** The situation of what is stored for an id. */
function situationOf(stored: JobRecord | null, now: number): Situation {
  return living(stored, now)?.state ?? 'absent'
}

/** The name that a command has in the table. */
export function nameOf(command: Command): CommandName {
  switch (command.type) {
    case 'enqueue':
      if (command.lease !== null) return 'enqueue leased'
      return command.inline ? 'enqueue inline' : 'enqueue'
    case 'settle':
      return command.verdict.kind
    default:
      return command.type
  }
}

/** Whether a condition holds. */
export function holds(condition: Condition, stored: JobRecord | null, command: Command, now: number): boolean {
  const negated = condition.startsWith('not ')
  const fact = (negated ? condition.slice(4) : condition) as Fact
  return facts[fact](stored, command, now) !== negated
}

/** The rows that apply: always exactly one. */
export function applicable(stored: JobRecord | null, command: Command, now: number): readonly Transition[] {
  const situation = situationOf(stored, now)
  const name = nameOf(command)
  return transitions.filter(
    (row) =>
      row.from === situation &&
      row.command === name &&
      row.when.every((condition) => holds(condition, stored, command, now)),
  )
}

/** A row in short: command, conditions, the state after a change (null: nothing changes), answer. */
type Short = readonly [CommandName, readonly Condition[], Situation | null, string]

function from(state: Situation, rows: readonly Short[]): Transition[] {
  return rows.map(([command, when, to, answer]) => ({
    from: state,
    command,
    when,
    to: to ?? state,
    changes: to !== null,
    answer,
  }))
}

/** Enqueues that ask for no lease and find a record that has not ended. */
function met(state: Situation): Short[] {
  return [
    ['enqueue', ['repeated'], null, 'created'],
    ['enqueue', ['not repeated', 'rejected'], null, 'exists'],
    ['enqueue', ['not repeated', 'not rejected', 'inline'], state, 'exists'],
    ['enqueue', ['not repeated', 'not rejected', 'not inline'], null, 'exists'],
    ['enqueue inline', ['repeated'], null, 'created'],
    ['enqueue inline', ['not repeated'], null, 'exists'],
  ]
}

/** Waits for an attempt. `verdict` is what brought it here: given again for the same lease, it is answered as before. */
function waiting(state: 'queued' | 'failing', verdict: 'release' | 'retry'): Transition[] {
  const others = (['complete', 'fail', 'retry', 'release'] as const).filter((kind) => kind !== verdict)
  return from(state, [
    ...met(state),
    ['enqueue leased', ['repeated'], null, 'created'],
    ['enqueue leased', ['not repeated', 'rejected'], null, 'exists'],
    ['enqueue leased', ['not repeated', 'not rejected', 'not due'], null, 'exists'],
    ['enqueue leased', ['not repeated', 'not rejected', 'due'], 'processing', 'exists, leased'],
    ['claim', ['not due'], null, 'refused'],
    ['claim', ['due'], 'processing', 'leased'],
    ['extend', [], null, 'stale'],
    [verdict, ['own'], null, 'settled'],
    [verdict, ['not own'], null, 'stale'],
    ...others.map((kind): Short => [kind, [], null, 'stale']),
    ['cancel', [], 'absent', 'cancelled'],
    ['touch', [], null, 'not_terminal'],
    ['forget', [], null, 'kept'],
  ])
}

/** Has ended. `verdicts` are what may have brought it here. */
function ended(state: 'completed' | 'failed', verdicts: readonly CommandName[]): Transition[] {
  const others = (['complete', 'fail', 'retry', 'release'] as const).filter((kind) => !verdicts.includes(kind))
  return from(state, [
    ...(['enqueue', 'enqueue inline', 'enqueue leased'] as const).flatMap((command): Short[] => [
      [command, ['repeated'], null, 'created'],
      [command, ['not repeated'], null, 'exists'],
    ]),
    ['claim', [], null, 'refused'],
    ['extend', [], null, 'stale'],
    ...verdicts.flatMap((kind): Short[] => [
      [kind, ['own'], null, 'settled'],
      [kind, ['not own'], null, 'stale'],
    ]),
    ...others.map((kind): Short => [kind, [], null, 'stale']),
    ['cancel', [], null, state],
    ['touch', ['known'], state, 'updated'],
    ['touch', ['not known'], null, 'missing_payload'],
    ['forget', [], null, 'kept'],
  ])
}
