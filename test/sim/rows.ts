/**
 * The record store of the simulation: rows in a map, each change shown to an observer at the moment it is made.
 *
 * @module
 */

import type { JobRecord } from '../../src/record.ts'
import type { DueKind, JobRow, RecordStore, Row, SwapAnswer } from '../../src/record-store.ts'
import { claimableFrom, deliverableFrom, forgettableFrom } from '../../src/record-store.ts'
import type { Hint, HintListener, StorageTraits } from '../../src/storage.ts'

/** Traits of a storage on rows. */
export function rowTraits(push: boolean): StorageTraits {
  return {
    kind: push ? 'rows that push' : 'rows',
    durable: true,
    shared: true,
    push,
    ordering: 'fifo',
    clock: 'client',
    payloadBytesMax: 1_000_000,
    ttlResolutionMs: 1,
    pollMs: push ? { min: 200, max: 1_000 } : { min: 20, max: 500 },
    gather: 'macrotask',
  }
}

/** Sees a change of a row when it is made. */
export type RowObserver = (key: string, before: Row | null, after: Row | null) => void

/** The rows that all processes share. */
export class Rows {
  readonly rows = new Map<string, Row>()
  readonly listeners = new Set<HintListener>()
  readonly #graceMs: number
  readonly #push: boolean

  constructor(graceMs: number, push: boolean) {
    this.#graceMs = graceMs
    this.#push = push
  }

  /** A process's store. */
  store(observer: RowObserver): RecordStore {
    const { rows, listeners } = this
    return {
      load: async (keys) => keys.map((key) => rows.get(key) ?? null),
      swap: async (changes) =>
        changes.map(({ key, from, to }): SwapAnswer => {
          const there = rows.get(key) ?? null
          if (there?.version !== from?.version) return { ok: false, row: there }
          // A row that changes goes to the end: `due` is in order of `at`, then of arrival.
          rows.delete(key)
          if (to !== null) rows.set(key, to)
          observer(key, there, to)
          this.#tell(key, to)
          return { ok: true }
        }),
      due: async (limit, now, kind) => this.#due(limit, now, kind),
      watch: (listener) => {
        const own: HintListener = (hint) => listener(hint)
        listeners.add(own)
        return () => void listeners.delete(own)
      },
      close: async () => {},
    }
  }

  #due(limit: number, now: number, kind: DueKind) {
    const due: { row: JobRow; at: number }[] = []
    let nextAt: number | null = null
    for (const row of this.rows.values()) {
      if (row.type !== 'job') continue
      const at = this.#from(row.record, kind)
      if (at === null) continue
      if (at <= now) due.push({ row, at })
      else if (nextAt === null || at < nextAt) nextAt = at
    }
    due.sort((a, b) => a.at - b.at)
    const items = due.slice(0, limit).map(({ row }, index) => (index % 2 === 0 ? row.key : row))
    return { items, nextAt: due.length > limit ? now : nextAt }
  }

  #from(record: JobRecord, kind: DueKind): number | null {
    if (kind === 'forgettable') return forgettableFrom(record)
    return kind === 'claimable' ? claimableFrom(record, this.#graceMs) : deliverableFrom(record, this.#graceMs)
  }

  /** As a store does that knows what changed, but sends no records about. */
  #tell(key: string, to: Row | null): void {
    if (!this.#push || to?.type !== 'job') return
    const { state } = to.record
    if (state === 'processing') return
    const hint: Hint =
      state === 'completed' || state === 'failed' ? { type: 'settled', id: key } : { type: 'due', inMs: 0 }
    for (const listener of this.listeners) listener(hint)
    if (state !== 'completed' || to.record.outbox === undefined) return
    for (const listener of this.listeners) listener({ type: 'outbox', inMs: 0 })
  }
}
