/**
 * The records of one namespace in memory, with what has to be found fast: the due, the dead leases, the expired. All
 * transitions are the machine's; this only keeps the indexes beside them. Memory is this table; File is this table and a log.
 *
 * @module
 */

import type { Answers, ClaimTerms, Command, Step } from '../../src/machine.ts'
import { collectableFrom, step } from '../../src/machine.ts'
import type { CompletedRecord, JobRecord, JobState, ProcessingRecord } from '../../src/record.ts'
import { forgottenFrom } from '../../src/record.ts'
import { AtEntry, AtQueue, before } from './at-queue.ts'

class Entry extends AtEntry<Entry> {
  record: JobRecord
  home: AtQueue<Entry> | null = null

  constructor(record: JobRecord) {
    super()
    this.record = record
  }
}

/** An outbox that is to be delivered; its record has an entry of its own beside it. */
class OutboxEntry extends AtEntry<OutboxEntry> {
  readonly id: string

  constructor(id: string) {
    super()
    this.id = id
  }
}

/** What a claim by due brought. */
export interface TableClaim {
  readonly jobs: ProcessingRecord[]
  readonly exhausted: JobRecord[]
}

/** Bytes a record weighs beside its values: the objects, the map's slot, the indexes. Measured, rounded up. */
export const recordOverheadBytes = 400

/** Records by id, indexed by time. */
export class RecordTable {
  readonly #entries = new Map<string, Entry>()
  /** queued and failing, not inline. */
  readonly #ready = new AtQueue<Entry>()
  /** processing, not inline. */
  readonly #leases = new AtQueue<Entry>()
  /** terminal, and inline ones: by when they are forgotten. */
  readonly #forgettable = new AtQueue<Entry>()
  /** Outboxes by when their next delivery may begin; few records have one. */
  readonly #outboxes = new AtQueue<OutboxEntry>()
  readonly #outboxEntries = new Map<string, OutboxEntry>()
  readonly #counts: { [state in JobState]: number } = { queued: 0, processing: 0, failing: 0, completed: 0, failed: 0 }
  #order = 0
  #bytes = 0
  /** The namespace is held until then, ms since 1970. */
  holdUntil = 0

  /** Records kept, those past their end but not yet swept among them. */
  get size(): number {
    return this.#entries.size
  }

  /** What they weigh, roughly. */
  get bytes(): number {
    return this.#bytes
  }

  /** Records by state; those past their end but not yet swept are counted. */
  get counts(): Readonly<{ [state in JobState]: number }> {
    return this.#counts
  }

  /** The stored record, be it past its end or not; or null. */
  get(id: string): JobRecord | null {
    return this.#entries.get(id)?.record ?? null
  }

  /** Every stored record, in the map's order. */
  *records(): Generator<JobRecord, void> {
    for (const entry of this.#entries.values()) yield entry.record
  }

  /** One transition of one id. */
  apply<C extends Command>(id: string, command: C, now: number): Step<Answers[C['type']]> {
    const entry = this.#entries.get(id)
    const done = step(entry === undefined ? null : entry.record, command, now)
    this.#set(id, entry, done.record, now)
    return done
  }

  /** Stores a record as it is, or removes it. */
  put(id: string, record: JobRecord | null, now: number): void {
    this.#set(id, this.#entries.get(id), record, now)
  }

  /** Leases what is due, in order: by `at`, then by arrival. */
  claimDue(terms: ClaimTerms, limit: number, now: number): TableClaim {
    const command = { type: 'claim', ...terms } as const
    const jobs: ProcessingRecord[] = []
    const exhausted: JobRecord[] = []
    while (jobs.length < limit) {
      const entry = this.#firstDue(now, terms.graceMs)
      if (entry === null) break
      const before = entry.record
      const { record, answer } = step(before, command, now)
      this.#set(before.spec.id, entry, record, now)
      if (answer === 'leased') jobs.push(record as ProcessingRecord)
      else if (answer === 'exhausted') exhausted.push(record as JobRecord)
      // It would be the first again: the lease of this very claim, come a second time and late, is over; or a clock ran
      // backwards, and the index and the machine disagree. The next call will see to the others.
      if (record === before) break
    }
    return { jobs, exhausted }
  }

  /** Due records without touching them, in order: for stores in which somebody else may win them. Cost: O(limit). */
  dueIds(limit: number, now: number, graceMs: number, skip: (id: string) => boolean): string[] {
    const taken: Entry[] = []
    const ids: string[] = []
    // Taking them out and putting them back keeps their `at` and order, hence their places.
    while (ids.length < limit) {
      const entry = this.#firstDue(now, graceMs)
      if (entry === null) break
      entry.home?.remove(entry)
      taken.push(entry)
      if (!skip(entry.record.spec.id)) ids.push(entry.record.spec.id)
    }
    for (const entry of taken) entry.home?.add(entry, entry.at, entry.order, false)
    return ids
  }

  /** Records past their end without touching them, at most `limit`: for stores that must agree on what they forget. */
  expiredIds(limit: number, now: number): string[] {
    const taken: Entry[] = []
    while (taken.length < limit) {
      const entry = this.#forgettable.peek()
      if (entry === null || entry.at > now) break
      this.#forgettable.remove(entry)
      taken.push(entry)
    }
    for (const entry of taken) this.#forgettable.add(entry, entry.at, entry.order, false)
    return taken.map((entry) => entry.record.spec.id)
  }

  /** Until the next record is due, ms; 0 if one is; null if there is none. */
  nextDueInMs(now: number, graceMs: number): number | null {
    const ready = this.#ready.peek()
    const lease = this.#leases.peek()
    let at = Number.POSITIVE_INFINITY
    if (ready !== null) at = ready.at
    if (lease !== null) at = Math.min(at, lease.at + graceMs)
    return at === Number.POSITIVE_INFINITY ? null : Math.max(0, at - now)
  }

  /** When the next record is to be forgotten, ms since 1970; null if none is. */
  nextForgetAt(): number | null {
    return this.#forgettable.peek()?.at ?? null
  }

  /** Removes records past their end, at most `limit`; answers how many. */
  sweep(limit: number, now: number): number {
    let swept = 0
    while (swept < limit) {
      const entry = this.#forgettable.peek()
      if (entry === null || entry.at > now) break
      this.#set(entry.record.spec.id, entry, null, now)
      swept++
    }
    return swept
  }

  /** Leases outboxes that are due, earliest first. */
  collectDue(terms: ClaimTerms, limit: number, now: number): CompletedRecord[] {
    const records: CompletedRecord[] = []
    for (const id of this.outboxIds(limit, now, terms.graceMs)) {
      const { record, answer } = this.apply(id, { type: 'collect', ...terms }, now)
      if (answer === 'collected') records.push(record as CompletedRecord)
    }
    return records
  }

  /** Ids of outboxes that are due, earliest first, without touching them. */
  outboxIds(limit: number, now: number, graceMs: number): string[] {
    const ids: string[] = []
    const seen: OutboxEntry[] = []
    while (ids.length < limit) {
      const entry = this.#outboxes.peek()
      if (entry === null || entry.at > now) break
      this.#outboxes.remove(entry)
      seen.push(entry)
      const record = this.get(entry.id)
      if (record?.state !== 'completed' || record.outbox === undefined) continue
      if (collectableFrom(record.outbox, graceMs) <= now) ids.push(entry.id)
    }
    for (const entry of seen) this.#outboxes.add(entry, entry.at, entry.order, false)
    return ids
  }

  /** Until the next outbox is due, ms; null if there is none. */
  nextOutboxInMs(now: number): number | null {
    const entry = this.#outboxes.peek()
    return entry === null ? null : Math.max(0, entry.at - now)
  }

  #addOutbox({ spec, outbox }: CompletedRecord): void {
    const entry = new OutboxEntry(spec.id)
    this.#outboxEntries.set(spec.id, entry)
    this.#outboxes.add(entry, outbox!.at, this.#order++, outbox!.generation === null)
  }

  #dropOutbox(id: string): void {
    const entry = this.#outboxEntries.get(id)
    if (entry === undefined) return
    this.#outboxes.remove(entry)
    this.#outboxEntries.delete(id)
  }

  #firstDue(now: number, graceMs: number): Entry | null {
    const ready = this.#ready.peek()
    const lease = this.#leases.peek()
    const readyIsDue = ready !== null && ready.at <= now
    if (lease === null || lease.at + graceMs > now) return readyIsDue ? ready : null
    return readyIsDue && before(ready, lease) ? ready : lease
  }

  #set(id: string, entry: Entry | undefined, record: JobRecord | null, now: number): void {
    if (entry === undefined) {
      if (record === null) return
      const made = new Entry(record)
      this.#entries.set(id, made)
      this.#counts[record.state]++
      this.#bytes += weigh(record)
      this.#index(made, now)
      return
    }
    if (entry.record === record) return
    entry.home?.remove(entry)
    entry.home = null
    const before = entry.record
    this.#counts[before.state]--
    this.#bytes -= weigh(before)
    if (before.state === 'completed' && before.outbox !== undefined) this.#dropOutbox(id)
    if (record === null) {
      this.#entries.delete(id)
      return
    }
    entry.record = record
    this.#counts[record.state]++
    this.#bytes += weigh(record)
    this.#index(entry, now)
  }

  #index(entry: Entry, now: number): void {
    const { record } = entry
    if (record.state === 'completed' && record.outbox !== undefined) this.#addOutbox(record)
    const forgetAt = forgottenFrom(record)
    if (forgetAt !== Number.POSITIVE_INFINITY) {
      entry.home = this.#forgettable
      this.#forgettable.add(entry, forgetAt, this.#order++, true)
    } else if (record.state === 'processing') {
      entry.home = this.#leases
      this.#leases.add(entry, record.at, this.#order++, true)
    } else {
      entry.home = this.#ready
      this.#ready.add(entry, record.at, this.#order++, record.at <= now)
    }
  }
}

/** Bytes of what few records have, roughly. */
function weighExtras(record: JobRecord): number {
  let bytes = record.spec.marks?.length ?? 0
  if (record.state === 'completed') {
    if (record.outbox !== undefined) bytes += record.outbox.rows.length
    if (record.missed !== undefined) bytes += record.missed.error?.length ?? 0
  } else if (record.state !== 'failed' && record.kept !== undefined) {
    bytes += record.kept.result?.length ?? 0
  }
  return bytes
}

/** Bytes of a record, roughly: text counts as Latin-1, which is what V8 stores most text as. */
function weigh(record: JobRecord): number {
  let bytes = recordOverheadBytes + record.spec.id.length + weighExtras(record)
  switch (record.state) {
    case 'completed':
      if (record.result !== null) bytes += record.result.length
      return bytes
    case 'failed':
      if (record.error !== null) bytes += record.error.length
      return bytes
    case 'failing':
      return bytes + record.error.length + record.payload.length
    default:
      return bytes + record.payload.length
  }
}
