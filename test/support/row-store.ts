/**
 * A store of rows in memory whose misbehaviour can be set: stale and wrong hints, lost replies, refused and failed writes,
 * other writers in between. Several storages on one table are what several processes are.
 *
 * @module
 */

import type { Clock } from '../../src/clock.ts'
import { StorageError } from '../../src/errors.ts'
import type { Change, DueAnswer, DueKind, JobRow, RecordStore, Row, SwapAnswer } from '../../src/record-store.ts'
import { claimableFrom, deliverableFrom, forgettableFrom } from '../../src/record-store.ts'
import type { HintListener, StorageTraits } from '../../src/storage.ts'

export const rowTraits: StorageTraits = {
  kind: 'rows',
  durable: false,
  shared: true,
  push: false,
  ordering: 'fifo',
  clock: 'client',
  payloadBytesMax: 16 * 1024 * 1024,
  ttlResolutionMs: 1,
  pollMs: { min: 10, max: 1_000 },
  gather: 'macrotask',
}

/** Chances from 0 to 1, each rolled for each call or change. */
export interface Faults {
  /** A load rejects. */
  load: number
  /** A due rejects. */
  due: number
  /** A whole swap rejects before anything was written. */
  before: number
  /** A whole swap rejects after all was written. */
  after: number
  /** One change answers an error; by half it was made. */
  change: number
  /** One change was made, and then seems to have been refused, as when an SDK repeated it. */
  echo: number
  /** A refused change answers no row, so that it must be looked up. */
  rowless: number
  /** A due answers what was true before the last write, whole rows included. */
  stale: number
  /** A due answers keys that are not due or do not exist, at the head. */
  wrong: number
  /** A due leaves entries out. */
  incomplete: number
  /** A due answers whole rows instead of keys. */
  rows: number
}

export const noFaults: Faults = Object.freeze({
  load: 0,
  due: 0,
  before: 0,
  after: 0,
  change: 0,
  echo: 0,
  rowless: 0,
  stale: 0,
  wrong: 0,
  incomplete: 0,
  rows: 0,
})

/** What is counted: requests, and the changes that swaps carried. */
export interface Counts {
  load: number
  loaded: number
  swap: number
  changes: number
  refused: number
  due: number
}

/** The rows of one namespace, as every process sees them. */
export class RowTable {
  readonly rows = new Map<string, Row>()
  /** The rows before the last swap: what a stale index still shows. */
  before: Row[] = []
  /** Order of arrival, for hints in the order of `at`, then arrival. */
  readonly arrival = new Map<string, number>()
  order = 0
}

/** What a store is made with. */
export interface RowStoreOptions {
  readonly table: RowTable
  readonly clock: Clock
  readonly graceMs?: number
  readonly faults?: Faults
  readonly random?: () => number
  /** Runs between a call's arrival and its effect: where other writers can be let in. */
  readonly interleave?: (call: 'load' | 'swap' | 'due') => Promise<void> | void
}

/** One process's view of a table. */
export class RowStore implements RecordStore {
  readonly counts: Counts = { load: 0, loaded: 0, swap: 0, changes: 0, refused: 0, due: 0 }
  readonly listeners = new Set<HintListener>()
  closed = 0
  readonly #options: RowStoreOptions

  constructor(options: RowStoreOptions) {
    this.#options = options
  }

  async load(keys: readonly string[]): Promise<readonly (Row | null)[]> {
    this.counts.load++
    this.counts.loaded += keys.length
    await this.#arrive('load')
    if (this.#roll('load')) throw new StorageError('load failed')
    return keys.map((key) => this.#options.table.rows.get(key) ?? null)
  }

  async swap(changes: readonly Change[]): Promise<readonly SwapAnswer[]> {
    this.counts.swap++
    this.counts.changes += changes.length
    await this.#arrive('swap')
    if (new Set(changes.map(({ key }) => key)).size !== changes.length) throw new TypeError('a key comes twice')
    if (this.#roll('before')) throw new StorageError('failed before writing')
    const { table } = this.#options
    table.before = [...table.rows.values()]
    const answers = changes.map((change) => this.#change(change))
    if (this.#roll('after')) throw new Error('the reply was lost')
    return answers
  }

  async due(limit: number, now: number, kind: DueKind): Promise<DueAnswer> {
    this.counts.due++
    await this.#arrive('due')
    if (this.#roll('due')) throw new StorageError('due failed')
    const { table, graceMs = 0 } = this.#options
    const rows = this.#roll('stale') ? table.before : [...table.rows.values()]
    const dueFrom = ({ record }: JobRow): number | null => {
      if (kind === 'forgettable') return forgettableFrom(record)
      return kind === 'claimable' ? claimableFrom(record, graceMs) : deliverableFrom(record, graceMs)
    }
    const found: { row: JobRow; at: number }[] = []
    for (const row of rows) {
      const at = row.type === 'job' ? dueFrom(row) : null
      if (at !== null) found.push({ row: row as JobRow, at })
    }
    const order = (row: JobRow): number => table.arrival.get(row.key) ?? 0
    found.sort((a, b) => a.at - b.at || order(a.row) - order(b.row))
    const due = found.filter(({ at }) => at <= now && !this.#roll('incomplete'))
    const items: (string | JobRow)[] = due.map(({ row }) => (this.#roll('rows') ? row : row.key))
    if (this.#roll('wrong'))
      items.unshift('no such id', ...found.filter(({ at }) => at > now).map(({ row }) => row.key))
    const nextAt = items.length > limit ? now : (found.find(({ at }) => at > now)?.at ?? null)
    return { items: items.slice(0, limit), nextAt }
  }

  watch(listener: HintListener): () => void {
    this.listeners.add(listener)
    return () => void this.listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.closed++
  }

  #change({ key, from, to }: Change): SwapAnswer {
    const { table } = this.#options
    const there = table.rows.get(key) ?? null
    const fails = this.#roll('change')
    const happens = !fails || this.#random() < 0.5
    if (there?.version !== from?.version) {
      this.counts.refused++
      return this.#roll('rowless') ? { ok: false } : { ok: false, row: there }
    }
    if (happens) {
      if (to === null) {
        table.rows.delete(key)
        table.arrival.delete(key)
      } else {
        if (there === null) table.arrival.set(key, table.order++)
        table.rows.set(key, to)
      }
    }
    if (fails) return { ok: false, error: new StorageError('change failed') }
    if (!this.#roll('echo')) return { ok: true }
    // What an honest store must say: a removal leaves nothing to tell it by.
    if (to === null) return { ok: false, error: new StorageError('removed or not') }
    return this.#roll('rowless') ? { ok: false } : { ok: false, row: to }
  }

  async #arrive(call: 'load' | 'swap' | 'due'): Promise<void> {
    await this.#options.interleave?.(call)
  }

  #random(): number {
    return (this.#options.random ?? Math.random)()
  }

  #roll(fault: keyof Faults): boolean {
    const chance = this.#options.faults?.[fault] ?? 0
    return chance > 0 && this.#random() < chance
  }
}
