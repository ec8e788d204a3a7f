/**
 * The transition table: the whole state machine as data. For each state and command the facts that decide, the state after it,
 * and the answer. Tests hold it against the code of `machine.ts`, and the diagram in `docs/state-machine.md` against it.
 *
 * @module
 */

import { limits } from './limits.ts'
import type { Command } from './machine.ts'
import { collectableFrom, living } from './machine.ts'
import type { JobRecord, JobState } from './record.ts'
import { isTerminal, keptAt } from './record.ts'

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
  | 'mark'
  | 'collect'
  | 'deliver'
  | 'forget'

/** What a transition may depend on. Each is told by a function of `facts`. */
export type Fact =
  | 'stored'
  | 'repeated'
  | 'rejected'
  | 'refresh'
  | 'answered'
  | 'inline'
  | 'due'
  | 'own'
  | 'left'
  | 'kept'
  | 'missed'
  | 'posted'
  | 'named'
  | 'room'
  | 'known'

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
  /** The enqueue asks for a new run of what has ended. */
  refresh: (_stored, command) => command.type === 'enqueue' && command.refresh === true,
  /** The result of the run before is there, and enough for the caller. */
  answered(stored, command, now) {
    if (command.type !== 'enqueue' || command.refresh === true) return false
    return stored !== null && !isTerminal(stored) && keptAt(stored, now) !== null
  },
  /** The record is an inline run's, and nobody else counts on it. */
  inline: (stored) => stored !== null && !isTerminal(stored) && stored.inline,
  /** `at` is past; of another's lease, `at` and the grace after it. */
  due(stored, command, now) {
    if (stored === null) return false
    if (command.type === 'collect') {
      return (
        stored.state === 'completed' &&
        stored.outbox !== undefined &&
        collectableFrom(stored.outbox, command.graceMs) <= now
      )
    }
    const lease = command.type === 'enqueue' ? command.lease : command.type === 'claim' ? command : null
    return stored.at + (stored.state === 'processing' ? (lease?.graceMs ?? 0) : 0) <= now
  },
  /** The command's lease is the record's (or its outbox's) present or last one; the mark is the caller's own. */
  own(stored, command) {
    if (command.type === 'collect' || command.type === 'deliver') {
      return stored?.state === 'completed' && stored.outbox?.generation === command.generation
    }
    if (command.type === 'mark') {
      return `\n${stored?.spec.marks ?? ''}`.includes(`\n${command.name}=${command.token}\n`)
    }
    if (command.type === 'enqueue') return command.lease !== null && stored?.generation === command.lease.generation
    return 'generation' in command && stored?.generation === command.generation
  },
  /** Another attempt may be made. */
  left: (stored) => stored !== null && stored.attempts < stored.spec.maxAttempts,
  /** The record is being refreshed, and its former result is still good. */
  kept: (stored, _command, now) => stored !== null && !isTerminal(stored) && keptAt(stored, now) !== null,
  /** A handler's error ended a refresh, and the former result is back. */
  missed: (stored) => stored?.state === 'completed' && stored.missed?.reason === 'error',
  /** Rows are to be delivered. */
  posted: (stored) => stored?.state === 'completed' && stored.outbox !== undefined,
  /** An effect of this name was begun. */
  named(stored, command) {
    return command.type === 'mark' && `\n${stored?.spec.marks ?? ''}`.includes(`\n${command.name}=`)
  },
  /** There is room for this mark. */
  room(stored, command) {
    if (command.type !== 'mark') return false
    const length = (stored?.spec.marks ?? '').length + command.name.length + command.token.length + 2
    return length <= limits.marksCharsMax
  },
  /** The outcome is there to be kept longer: the storage has not lost the result or the error. */
  known(stored) {
    if (stored?.state === 'completed') return stored.result !== null
    return stored?.state === 'failed' && (stored.reason === 'exhausted' || stored.error !== null)
  },
}

/** An enqueue that the result of a run before does not answer. */
const unanswered: readonly Condition[] = ['not repeated', 'not rejected', 'not answered']
/** An enqueue that has what has ended run anew. */
const anew: readonly Condition[] = ['not repeated', 'not rejected', 'refresh']
/** What has no outbox. */
const unposted: readonly Short[] = [
  ['collect', [], null, 'refused'],
  ['deliver', [], null, 'stale'],
]

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
    ['mark', [], null, 'not_found'],
    ['collect', [], null, 'refused'],
    ['deliver', [], null, 'stale'],
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
    ['enqueue leased', ['not repeated', 'not rejected', 'not own', 'answered'], null, 'exists'],
    ['enqueue leased', [...unanswered, 'not own', 'not due'], null, 'exists'],
    ['enqueue leased', [...unanswered, 'not own', 'due', 'left'], 'processing', 'exists, leased'],
    ['enqueue leased', [...unanswered, 'not own', 'due', 'not left', 'refresh'], 'processing', 'created, leased'],
    ['enqueue leased', [...unanswered, 'not own', 'due', 'not left', 'not refresh'], 'failed', 'exists'],
    ['claim', ['own'], null, 'leased'],
    ['claim', ['not own', 'not due'], null, 'refused'],
    ['claim', ['not own', 'due', 'left'], 'processing', 'leased'],
    ['claim', ['not own', 'due', 'not left', 'not kept'], 'failed', 'exhausted'],
    ['claim', ['not own', 'due', 'not left', 'kept'], 'completed', 'exhausted'],
    ['extend', ['own'], 'processing', 'extended'],
    ['extend', ['not own'], null, 'stale'],
    ['complete', ['own'], 'completed', 'settled'],
    ['complete', ['not own'], null, 'stale'],
    ['fail', ['own', 'not kept'], 'failed', 'settled'],
    ['fail', ['own', 'kept'], 'completed', 'settled'],
    ['fail', ['not own'], null, 'stale'],
    ['retry', ['own', 'left'], 'failing', 'settled'],
    ['retry', ['own', 'not left', 'not kept'], 'failed', 'settled'],
    ['retry', ['own', 'not left', 'kept'], 'completed', 'settled'],
    ['retry', ['not own'], null, 'stale'],
    ['release', ['own'], 'queued', 'settled'],
    ['release', ['not own'], null, 'stale'],
    ['cancel', [], null, 'processing'],
    ['touch', [], null, 'not_terminal'],
    ...marked('processing'),
    ...unposted,
    ['forget', [], null, 'kept'],
  ]),
  ...waiting('failing', 'retry'),
  ...ended('completed'),
  ...from('completed', [
    ...renewed(['not posted']),
    ...(['enqueue', 'enqueue inline', 'enqueue leased'] as const).map(
      (command): Short => [command, [...anew, 'posted'], null, 'exists'],
    ),
    // A refresh that failed left the former result here: it is its own verdict that is repeated then.
    ['complete', ['own', 'not missed'], null, 'settled'],
    ['complete', ['own', 'missed'], null, 'stale'],
    ['complete', ['not own'], null, 'stale'],
    ...(['fail', 'retry'] as const).flatMap((kind): Short[] => [
      [kind, ['own', 'missed'], null, 'settled'],
      [kind, ['own', 'not missed'], null, 'stale'],
      [kind, ['not own'], null, 'stale'],
    ]),
    ['collect', ['not posted'], null, 'refused'],
    ['collect', ['posted', 'own'], null, 'collected'],
    ['collect', ['posted', 'not own', 'not due'], null, 'refused'],
    ['collect', ['posted', 'not own', 'due'], 'completed', 'collected'],
    ['deliver', ['own'], 'completed', 'delivered'],
    ['deliver', ['not own'], null, 'stale'],
  ]),
  ...ended('failed'),
  ...from('failed', [
    ...renewed([]),
    ['complete', [], null, 'stale'],
    ...(['fail', 'retry'] as const).flatMap((kind): Short[] => [
      [kind, ['own'], null, 'settled'],
      [kind, ['not own'], null, 'stale'],
    ]),
    ...unposted,
  ]),
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
  ...(['queued', 'processing', 'failing'] as const).flatMap((state): Ending[] => [
    { from: state, when: ['inline', 'not kept'], at: 'at + resultTTL' },
    { from: state, when: ['inline', 'kept'], at: 'at + resultTTL, and not before what is kept' },
  ]),
  { from: 'completed', when: ['not posted'], at: 'at' },
  { from: 'completed', when: ['posted'], at: 'at, and not before the outbox’s end' },
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
    ['enqueue', ['not repeated', 'not rejected', 'answered'], null, 'exists'],
    ['enqueue', [...unanswered, 'inline'], state, 'exists'],
    ['enqueue', [...unanswered, 'not inline'], null, 'exists'],
    ['enqueue inline', ['repeated'], null, 'created'],
    ['enqueue inline', ['not repeated'], null, 'exists'],
  ]
}

/** Marks on a living record. */
function marked(state: Situation): Short[] {
  return [
    ['mark', ['named', 'own'], null, 'marked'],
    ['mark', ['named', 'not own'], null, 'taken'],
    ['mark', ['not named', 'room'], state, 'marked'],
    ['mark', ['not named', 'not room'], null, 'full'],
  ]
}

/** Waits for an attempt. `verdict` is what brought it here: given again for the same lease, it is answered as before. */
function waiting(state: 'queued' | 'failing', verdict: 'release' | 'retry'): Transition[] {
  const others = (['complete', 'fail', 'retry', 'release'] as const).filter((kind) => kind !== verdict)
  return from(state, [
    ...met(state),
    ['enqueue leased', ['repeated'], null, 'created'],
    ['enqueue leased', ['not repeated', 'rejected'], null, 'exists'],
    ['enqueue leased', ['not repeated', 'not rejected', 'answered'], null, 'exists'],
    ['enqueue leased', [...unanswered, 'not due'], null, 'exists'],
    ['enqueue leased', [...unanswered, 'due'], 'processing', 'exists, leased'],
    ['claim', ['not due'], null, 'refused'],
    ['claim', ['due'], 'processing', 'leased'],
    ['extend', [], null, 'stale'],
    [verdict, ['own'], null, 'settled'],
    [verdict, ['not own'], null, 'stale'],
    ...others.map((kind): Short => [kind, [], null, 'stale']),
    ['cancel', ['not kept'], 'absent', 'cancelled'],
    ['cancel', ['kept'], 'completed', 'cancelled'],
    ['touch', [], null, 'not_terminal'],
    ...marked(state),
    ...unposted,
    ['forget', [], null, 'kept'],
  ])
}

/** Has ended: what is alike for both ways. */
function ended(state: 'completed' | 'failed'): Transition[] {
  return from(state, [
    ...(['enqueue', 'enqueue inline', 'enqueue leased'] as const).flatMap((command): Short[] => [
      [command, ['repeated'], null, 'created'],
      [command, ['not repeated', 'rejected'], null, 'exists'],
      [command, ['not repeated', 'not rejected', 'not refresh'], null, 'exists'],
    ]),
    ['claim', [], null, 'refused'],
    ['extend', [], null, 'stale'],
    ['release', [], null, 'stale'],
    ['cancel', [], null, state],
    ['touch', ['known'], state, 'updated'],
    ['touch', ['not known'], null, 'missing_payload'],
    ...marked(state),
    ['forget', [], null, 'kept'],
  ])
}

/** What has ended is run anew. */
function renewed(when: readonly Condition[]): Short[] {
  return [
    ['enqueue', [...anew, ...when], 'queued', 'created'],
    ['enqueue inline', [...anew, ...when], 'queued', 'created'],
    ['enqueue leased', [...anew, ...when], 'processing', 'created, leased'],
  ]
}
