/**
 * Histories: what the calls of a namespace mean for each id. Ids have nothing to do with each other, so each has a history of its
 * own.
 *
 * @module
 */

import type { Answers, Command } from '../../../src/machine.ts'
import type { JobRecord } from '../../../src/record.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CollectAnswer,
  CollectRequest,
  DeliverAnswers,
  Delivery,
  EnqueueAnswers,
  EnqueueItem,
  GetAnswers,
  LeaseTerms,
  Mark,
  SettleAnswers,
  Settlement,
} from '../../../src/storage.ts'
import type { HistoryEntry } from './recorded-storage.ts'

/** Looks, and changes nothing. */
export interface ReadCommand {
  readonly type: 'read'
}

/** What a caller was told. */
export interface Seen {
  /** Null for a read. */
  readonly answer: Answers[Command['type']] | null
  /** The record, where the answer showed it; null: there was none. Left out where it did not tell. */
  readonly record?: JobRecord | null
  /** Whether the caller holds the lease now, and must have got the payload. */
  readonly owner: boolean
}

/** Milliseconds by the storage's clock, both possible. */
export interface Span {
  readonly lo: number
  readonly hi: number
}

/** One command on one id, as its caller saw it. */
export interface TimedCommand {
  readonly id: string
  readonly caller: string
  readonly command: Command | ReadCommand
  /** By the clock that all callers share. */
  readonly calledAt: number
  /** Null: it was never answered, and took effect at any time after the call, or never. */
  readonly returnedAt: number | null
  /** Whatever was called later than this comes after it. */
  readonly deadline: number
  /** The storage's time at which it was run: one millisecond where the answer told it. */
  readonly now: Span
  /** Beyond which the storage's clock was not when it was answered, ms. */
  readonly latest: number
  /** Null exactly if it was never answered. */
  readonly seen: Seen | null
}

/** How entries are read. */
export interface HistoryOptions {
  /** How far the storage's clock may be from the callers', ms. Default 0. */
  readonly skewMs?: number
  /** What the storage adds to a lease's end before another may take it over, ms. Default 0. */
  readonly graceMs?: number
  /**
   * Until when an unanswered call of this caller can have been run, ms since 1970: the caller was dead by then, and so was
   * whatever it had sent. Default: for ever.
   */
  readonly deadAt?: (caller: string) => number
  /** How long after it was made an unanswered call can be run, ms, whatever becomes of its caller. Default: for ever. */
  readonly openMsMax?: number
}

type Call = Extract<HistoryEntry, { kind: 'call' }>
type Return = Extract<HistoryEntry, { kind: 'return' }>

/**
 * What the entries of all callers mean for each id.
 *
 * @throws Error for a history with holds: they bind all ids together
 */
export function timedCommands(
  entries: Iterable<HistoryEntry>,
  options: HistoryOptions = {},
): Map<string, TimedCommand[]> {
  const reader = new HistoryReader(options)
  for (const entry of entries) reader.add(entry)
  return reader.end()
}

class HistoryReader {
  readonly #options: HistoryOptions
  readonly #calls = new Map<string, Call>()
  readonly #commands = new Map<string, TimedCommand[]>()
  /** Unanswered claims of whatever was due: they may have leased any id. */
  readonly #loose: { call: Call; command: Command }[] = []
  /** When calls were made, by both clocks. */
  readonly #times: { at: number; wall: number }[] = []

  constructor(options: HistoryOptions) {
    this.#options = options
  }

  add(entry: HistoryEntry): void {
    const key = `${entry.n} ${entry.caller}`
    if (entry.kind === 'call') {
      this.#calls.set(key, entry)
      this.#times.push(entry)
      return
    }
    const call = this.#calls.get(key)
    if (call === undefined) throw new Error(`a return without its call: ${key}`)
    this.#calls.delete(key)
    this.#read(call, entry)
  }

  end(): Map<string, TimedCommand[]> {
    this.#times.sort((one, other) => one.at - other.at)
    for (const call of this.#calls.values()) this.#read(call, null)
    for (const [id, commands] of this.#commands) {
      for (const { call, command } of this.#loose) commands.push(this.#timed(id, call, null, command, null, null))
      commands.sort((one, other) => one.calledAt - other.calledAt)
    }
    return this.#commands
  }

  #read(call: Call, back: Return | null): void {
    const { operation, args } = call
    switch (operation) {
      case 'enqueue':
        this.#enqueue(call, back, args[0] as readonly EnqueueItem[])
        break
      case 'claim':
        this.#claim(call, back, args[0] as ClaimRequest, (back?.answer ?? null) as ClaimAnswer | null)
        break
      case 'extend':
        this.#each(call, back, args[0] as readonly ({ id: string } & LeaseTerms)[], (item) => {
          return { type: 'extend', generation: item.generation, leaseMs: item.leaseMs }
        })
        break
      case 'settle':
        this.#settle(call, back, args[0] as readonly Settlement[], args[1] as ClaimRequest | null)
        break
      case 'cancel':
        this.#each(
          call,
          back,
          (args[0] as readonly string[]).map((id) => ({ id })),
          () => ({ type: 'cancel' }),
        )
        break
      case 'touch':
        this.#each(call, back, args[0] as readonly { id: string; ttlMs: number }[], ({ ttlMs }) => {
          return { type: 'touch', ttlMs }
        })
        break
      case 'mark':
        this.#each(call, back, args[0] as readonly Mark[], ({ name, token }) => ({ type: 'mark', name, token }))
        break
      case 'deliver':
        this.#deliver(call, back, args[0] as readonly Delivery[], args[1] as CollectRequest | null)
        break
      case 'get':
        this.#get(call, back, args[0] as readonly string[])
        break
      case 'hold':
        throw new Error('a history with holds cannot be checked id by id')
    }
  }

  #enqueue(call: Call, back: Return | null, items: readonly EnqueueItem[]): void {
    const answers = (back?.answer ?? null) as EnqueueAnswers | null
    for (const [index, item] of items.entries()) {
      const { spec, payload, delayMs, rejectMismatch, lease, refresh } = item
      const terms = lease === null ? null : { ...lease, graceMs: this.#graceMs }
      const base = { type: 'enqueue', spec, payload, delayMs, rejectMismatch, lease: terms } as const
      const inline = lease !== null
      const command: Command = refresh === undefined ? { ...base, inline } : { ...base, inline, refresh }
      const answer = answers?.answers[index]
      let seen: Seen | null = null
      if (answer !== undefined) {
        const { outcome, leased, mismatch, record } = answer
        seen = { answer: { outcome, leased, mismatch }, record, owner: leased }
      }
      this.#push(spec.id, call, back, command, seen, answers?.now ?? null)
    }
  }

  #claim(call: Call, back: Return | null, request: ClaimRequest, answer: ClaimAnswer | null): void {
    const { generation, leaseMs, ids, limit } = request
    const command: Command = { type: 'claim', generation, leaseMs, graceMs: this.#graceMs }
    if (answer === null) {
      if (ids === undefined) this.#loose.push({ call, command })
      for (const id of new Set(ids)) this.#push(id, call, null, command, null, null)
      return
    }
    const told = new Set<string>()
    for (const record of answer.jobs) {
      told.add(record.spec.id)
      this.#push(record.spec.id, call, back, command, { answer: 'leased', record, owner: true }, answer.now)
    }
    for (const record of answer.exhausted) {
      told.add(record.spec.id)
      this.#push(record.spec.id, call, back, command, { answer: 'exhausted', record, owner: false }, answer.now)
    }
    // Of others than those it named nothing is known: there may have been better ones. Nor of those beyond its limit.
    if (ids === undefined || told.size >= limit) return
    for (const id of new Set(ids)) {
      if (!told.has(id)) this.#push(id, call, back, command, { answer: 'refused', owner: false }, answer.now)
    }
  }

  #settle(call: Call, back: Return | null, items: readonly Settlement[], claim: ClaimRequest | null): void {
    const answers = (back?.answer ?? null) as SettleAnswers | null
    const now = answers?.claim?.now ?? null
    for (const [index, { id, generation, verdict }] of items.entries()) {
      const answer = answers?.answers[index]
      const seen = answer === undefined ? null : { answer, owner: false }
      this.#push(id, call, back, { type: 'settle', generation, verdict }, seen, now)
    }
    if (claim !== null) this.#claim(call, back, claim, answers?.claim ?? null)
  }

  #deliver(call: Call, back: Return | null, items: readonly Delivery[], request: CollectRequest | null): void {
    const answers = (back?.answer ?? null) as DeliverAnswers | null
    for (const [index, { id, generation, rows, delayMs }] of items.entries()) {
      const answer = answers?.answers[index]
      const seen = answer === undefined ? null : { answer, owner: false }
      this.#push(id, call, back, { type: 'deliver', generation, rows, delayMs }, seen, null)
    }
    if (request !== null) this.#collect(call, back, request, answers?.collected ?? null)
  }

  #collect(call: Call, back: Return | null, request: CollectRequest, answer: CollectAnswer | null): void {
    const { generation, leaseMs } = request
    const command: Command = { type: 'collect', generation, leaseMs, graceMs: this.#graceMs }
    if (answer === null) this.#loose.push({ call, command })
    for (const record of answer?.records ?? []) {
      this.#push(
        record.spec.id,
        call,
        back,
        command,
        { answer: 'collected', record, owner: false },
        answer?.now ?? null,
      )
    }
  }

  #get(call: Call, back: Return | null, ids: readonly string[]): void {
    if (back === null) return
    const { now, records } = back.answer as GetAnswers
    for (const [index, id] of ids.entries()) {
      this.#push(id, call, back, { type: 'read' }, { answer: null, record: records[index] ?? null, owner: false }, now)
    }
  }

  /** Operations that answer a word for each item, and no time. */
  #each<Item extends { readonly id: string }>(
    call: Call,
    back: Return | null,
    items: readonly Item[],
    commandOf: (item: Item) => Command,
  ): void {
    const answers = (back?.answer ?? null) as readonly Answers[Command['type']][] | null
    for (const [index, item] of items.entries()) {
      const answer = answers?.[index]
      const seen = answer === undefined ? null : { answer, owner: false }
      this.#push(item.id, call, back, commandOf(item), seen, null)
    }
  }

  get #graceMs(): number {
    return this.#options.graceMs ?? 0
  }

  #push(
    id: string,
    call: Call,
    back: Return | null,
    command: Command | ReadCommand,
    seen: Seen | null,
    now: number | null,
  ): void {
    const timed = this.#timed(id, call, back, command, seen, now)
    const known = this.#commands.get(id)
    if (known === undefined) this.#commands.set(id, [timed])
    else known.push(timed)
  }

  #timed(
    id: string,
    call: Call,
    back: Return | null,
    command: Command | ReadCommand,
    seen: Seen | null,
    now: number | null,
  ): TimedCommand {
    const { caller, at, wall } = call
    const skewMs = this.#options.skewMs ?? 0
    const until = back?.wall ?? this.#openUntil(call)
    const latest = until + skewMs
    const span = now === null ? { lo: wall - skewMs, hi: latest } : { lo: now, hi: now }
    const returnedAt = back?.at ?? null
    const deadline = returnedAt ?? this.#firstAfter(latest)
    return { id, caller, command, calledAt: at, returnedAt, deadline, now: span, latest, seen }
  }

  /** Until when an unanswered call can have been run, ms since 1970. */
  #openUntil({ caller, wall }: Call): number {
    const { deadAt, openMsMax = Number.POSITIVE_INFINITY } = this.#options
    return Math.min(wall + openMsMax, deadAt?.(caller) ?? Number.POSITIVE_INFINITY)
  }

  /** The first call that was made later, by the clock that orders calls. */
  #firstAfter(wall: number): number {
    return this.#times.find((time) => time.wall > wall)?.at ?? Number.POSITIVE_INFINITY
  }
}
