/**
 * The linearizability checker: whether there is an order of the calls, each somewhere between its call and its return, in which the
 * machine, going through them one by one, gives every answer that was given. The search is Wing and Gong's ("Testing and verifying
 * concurrent objects", 1993) with Lowe's memory of states ("Testing for linearizability", 2017). The machine's only freedom is the time
 * at which it is asked; calls that were never answered come in at any place after their call, or nowhere.
 *
 * @module
 */

import { quoteId } from '../../../src/errors.ts'
import { type Command, living, step } from '../../../src/machine.ts'
import type { JobRecord } from '../../../src/record.ts'
import { forgottenFrom } from '../../../src/record.ts'
import type { ReadCommand, Seen, TimedCommand } from './history.ts'
import { momentsOf } from './moments.ts'
import { recordKey, shows } from './shown-record.ts'

/** What a history has come to. */
export type Linearizability =
  | { readonly outcome: 'linearizable'; readonly commands: number; readonly nodes: number }
  | {
      /** `undecided`: the search was given up; to be taken for a failure, too. */
      readonly outcome: 'violation' | 'undecided'
      readonly commands: number
      readonly nodes: number
      readonly id: string
      /** The history of the id, and how far it can be explained. */
      readonly message: string
    }

/** How a history is checked. */
export interface LinearizabilityOptions {
  /** States that are looked at for one id at most. Default 1,000,000. */
  readonly nodesMax?: number
  /** The transition function that is the specification. Default: the machine's. */
  readonly transition?: typeof step
}

const nodesMaxDefault = 1_000_000

/** Checks the histories of all ids. */
export function checkLinearizability(
  histories: ReadonlyMap<string, readonly TimedCommand[]>,
  options: LinearizabilityOptions = {},
): Linearizability {
  let commands = 0
  let nodes = 0
  for (const [id, history] of histories) {
    const search = new Search(history, options)
    const outcome = search.run()
    commands += history.length
    nodes += search.nodes
    if (outcome !== 'linearizable') return { outcome, commands, nodes, id, message: search.explain(id) }
  }
  return { outcome: 'linearizable', commands, nodes }
}

/** A place in the search: what has been put in order so far, and what the machine has then. */
interface Node {
  readonly record: JobRecord | null
  readonly done: Uint8Array
  /** The first command that is not done. */
  readonly first: number
  /** Answered commands that are done, and others. */
  readonly answered: number
  readonly unanswered: number
  /** When the last of them was called. */
  readonly calledAt: number
}

class Search {
  nodes = 0
  readonly #history: readonly TimedCommand[]
  readonly #nodesMax: number
  readonly #transition: typeof step
  readonly #answered: number
  readonly #start: Node
  readonly #moments: ReturnType<typeof momentsOf>
  /** Where most has been explained, for the message. */
  #best: Node

  constructor(history: readonly TimedCommand[], options: LinearizabilityOptions) {
    this.#history = [...history].sort((one, other) => one.calledAt - other.calledAt)
    this.#nodesMax = options.nodesMax ?? nodesMaxDefault
    this.#transition = options.transition ?? step
    this.#answered = history.filter(({ seen }) => seen !== null).length
    this.#moments = momentsOf(this.#history)
    const done = new Uint8Array(history.length)
    this.#start = { record: null, done, first: 0, answered: 0, unanswered: 0, calledAt: Number.NEGATIVE_INFINITY }
    this.#best = this.#start
  }

  /** Most histories are explained by few of the calls that were never answered: what takes more of them is tried later. */
  run(): 'linearizable' | 'violation' | 'undecided' {
    for (let budget = 0; ; budget++) {
      const outcome = this.#within(budget)
      if (outcome !== 'budget') return outcome
    }
  }

  #within(budget: number): 'linearizable' | 'violation' | 'undecided' | 'budget' {
    const seen = new Set<string>()
    let cut = false
    // An explicit stack: histories are longer than the call stack is deep.
    const stack: Node[] = [this.#start]
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (node.answered === this.#answered) return 'linearizable'
      if (node.unanswered > budget) {
        cut = true
        continue
      }
      const key = `${recordKey(node.record)} ${doneKey(node)}`
      if (seen.has(key)) continue
      seen.add(key)
      if (++this.nodes > this.#nodesMax) return 'undecided'
      if (node.answered > this.#best.answered) this.#best = node
      // The last one is looked at first: the likeliest.
      for (const next of this.#after(node).reverse()) stack.push(next)
    }
    return cut ? 'budget' : 'violation'
  }

  /** What can come next, the likeliest first. */
  #after(node: Node): Node[] {
    const candidates = this.#candidates(node)
    const answeredOnes: Node[] = []
    const others: Node[] = []
    for (const index of candidates) {
      const timed = this.#history[index] as TimedCommand
      for (const now of this.#moments(timed, node.record)) {
        const record = this.#explained(timed, node.record, now)
        if (record === undefined) continue
        const next = this.#with(node, index, record)
        if (timed.seen === null) {
          // What was never answered and changes nothing need not have happened.
          if (record !== node.record) others.push(next)
          continue
        }
        // What fits and changes nothing may as well come now: whatever follows is as possible after it.
        if (record === node.record && !this.#excludes(node, candidates, timed.calledAt)) return [next]
        answeredOnes.push(next)
      }
    }
    const forgotten = this.#forgotten(node, candidates)
    return [...answeredOnes, ...(forgotten === null ? [] : [forgotten]), ...others]
  }

  /** Commands that may be the next: called before any that is not done has returned. */
  #candidates({ done, first, calledAt: lastCall }: Node): number[] {
    const history = this.#history
    const candidates: number[] = []
    let earliestReturn = Number.POSITIVE_INFINITY
    for (let index = first; index < history.length; index++) {
      const { calledAt, returnedAt, deadline } = history[index] as TimedCommand
      if (calledAt > earliestReturn) break
      if (done[index] === 1 || deadline < lastCall) continue
      candidates.push(index)
      if (returnedAt !== null && returnedAt < earliestReturn) earliestReturn = returnedAt
    }
    return candidates.filter((index) => (history[index] as TimedCommand).calledAt <= earliestReturn)
  }

  /** Whether an unanswered command that can come now could not after one that was called then. */
  #excludes(node: Node, candidates: readonly number[], calledAt: number): boolean {
    if (calledAt <= node.calledAt) return false
    return candidates.some((index) => {
      const { seen, deadline } = this.#history[index] as TimedCommand
      return seen === null && deadline < calledAt
    })
  }

  /** The record after the command, if the machine answers as the storage did; else undefined. */
  #explained({ command, seen }: TimedCommand, record: JobRecord | null, now: number): JobRecord | null | undefined {
    if (command.type === 'read') {
      return seen !== null && shown(seen, living(record, now), now) ? record : undefined
    }
    const done = this.#transition(record, command as Command, now)
    if (seen === null) return done.record
    if (!sameAnswer(done.answer, seen.answer)) return undefined
    return shown(seen, done.record, now) ? done.record : undefined
  }

  #with(node: Node, index: number, record: JobRecord | null): Node {
    const { calledAt, seen } = this.#history[index] as TimedCommand
    const done = node.done.slice()
    done[index] = 1
    let { first } = node
    while (done[first] === 1) first++
    return {
      record,
      done,
      first,
      answered: node.answered + (seen === null ? 0 : 1),
      unanswered: node.unanswered + (seen === null ? 1 : 0),
      calledAt: Math.max(node.calledAt, calledAt),
    }
  }

  /**
   * Any sweeper may have removed what is past its end, by its clock: those who come after it, with a clock that is behind, find
   * nothing.
   */
  #forgotten(node: Node, candidates: readonly number[]): Node | null {
    const { record } = node
    if (record === null) return null
    let latest = Number.POSITIVE_INFINITY
    for (const index of candidates) {
      const timed = this.#history[index] as TimedCommand
      if (timed.seen !== null) latest = Math.min(latest, timed.latest)
    }
    return forgottenFrom(record) <= latest ? { ...node, record: null } : null
  }

  explain(id: string): string {
    const { record, done, answered } = this.#best
    const origin = this.#history[0]?.calledAt ?? 0
    const lines = this.#history.map((timed, index) => `  ${done[index] === 1 ? '+' : '-'} ${describe(timed, origin)}`)
    const rest = this.#history.findIndex(({ seen }, index) => seen !== null && done[index] !== 1)
    const from = Math.max(0, rest - 20)
    return [
      `${quoteId(id)}: no order explains more than ${answered} of ${this.#answered} answers; what is done is marked +`,
      ...(from > 0 ? [`  … ${from} more`] : []),
      ...lines.slice(from, from + 60),
      `  the record then: ${showRecord(record)}`,
    ].join('\n')
  }
}

/** What is done, in short: all before `first` is. */
function doneKey({ done, first }: Node): string {
  let last = done.length - 1
  while (last >= first && done[last] !== 1) last--
  return `${first}:${last < first ? '' : done.subarray(first, last + 1).join('')}`
}

function sameAnswer(machine: unknown, seen: Seen['answer']): boolean {
  if (typeof machine === 'string' || typeof seen === 'string' || machine === null || seen === null) {
    return machine === seen
  }
  const { outcome, leased, mismatch } = machine as Exclude<Seen['answer'], string | null>
  return outcome === seen.outcome && leased === seen.leased && mismatch === seen.mismatch
}

function shown(seen: Seen, record: JobRecord | null, now: number): boolean {
  return seen.record === undefined || shows(seen.record, record, seen.owner, now)
}

function describe({ caller, command, calledAt, returnedAt, now, seen }: TimedCommand, origin: number): string {
  const span = `${calledAt - origin}–${returnedAt === null ? '' : returnedAt - origin}`
  const time = now.lo === now.hi ? `at ${now.lo}` : `at ${now.lo} to ${now.hi}`
  const answer = seen === null ? 'never answered' : seen.answer === null ? '' : JSON.stringify(seen.answer)
  const record = seen?.record === undefined ? '' : ` ${showRecord(seen.record)}`
  return `${caller} [${span}] ${wordsOf(command)} ${time}: ${answer}${record}`
}

/** A record without its values. */
function showRecord(record: JobRecord | null): string {
  if (record === null) return 'no record'
  const { state, spec, attempts, at, generation } = record
  const inline = 'inline' in record && record.inline ? ' inline' : ''
  const marks = spec.marks === undefined ? '' : `, marks ${JSON.stringify(spec.marks)}`
  const beside = ['kept', 'missed', 'outbox'].map((name) => {
    const value = (record as unknown as Record<string, unknown>)[name]
    return value === undefined ? '' : `, ${name} ${JSON.stringify(value)}`
  })
  const words = `${state}${inline} ${spec.incarnation} at ${at}, ${attempts} of ${spec.maxAttempts} by ${generation}`
  return [words, marks, ...beside].join('')
}

function wordsOf(command: Command | ReadCommand): string {
  switch (command.type) {
    case 'enqueue':
      return `enqueue ${command.spec.incarnation}${command.lease === null ? '' : ` leased ${command.lease.generation}`}`
    case 'settle': {
      const { verdict } = command
      const ms = 'ttlMs' in verdict ? verdict.ttlMs : verdict.delayMs
      const outbox = verdict.kind === 'complete' && verdict.outbox !== undefined
      return `${verdict.kind} ${command.generation} for ${ms} ms${outbox ? ` outbox for ${verdict.outbox.ttlMs} ms` : ''}`
    }
    default:
      return 'generation' in command ? `${command.type} ${command.generation}` : command.type
  }
}
