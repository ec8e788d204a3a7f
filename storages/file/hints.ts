/**
 * Collects what changed, and tells the listeners of it once it may be told.
 *
 * @module
 */

import type { Clock } from '../../src/clock.ts'
import type { JobRecord } from '../../src/record.ts'
import type { Hint, HintListener } from '../../src/storage.ts'
import type { Warn } from './loader.ts'
import type { ChangeListener } from './replica.ts'

/** Warnings kept for the first listener, when there is none yet: damage is found while a namespace is opened. */
const warningsMax = 100

/** What happened since the last look, not yet told. */
export interface PendingHints {
  readonly hints: readonly Hint[]
  /** Something may be claimable from then on, ms since 1970; Infinity for nothing. */
  readonly dueAt: number
  /** An outbox may be due from then on, likewise. */
  readonly outboxAt: number
}

const never = Number.POSITIVE_INFINITY

/** See the module's description. One per open namespace. */
export class Hints implements ChangeListener {
  readonly #clock: Clock
  readonly #listeners = new Set<HintListener>()
  #hints: Hint[] = []
  #dueAt = never
  #outboxAt = never
  #warnings: Hint[] = []

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether anybody listens. */
  get isObserved(): boolean {
    return this.#listeners.size > 0
  }

  add(listener: HintListener): () => void {
    // A listener given twice counts twice, and each function returned ends its own.
    const own: HintListener = (hint) => listener(hint)
    this.#listeners.add(own)
    if (this.#warnings.length > 0) {
      const warnings = this.#warnings
      this.#warnings = []
      queueMicrotask(() => {
        for (const hint of warnings) own(hint)
      })
    }
    return () => void this.#listeners.delete(own)
  }

  settled(record: JobRecord): void {
    this.#hints.push({ type: 'settled', id: record.spec.id, record })
  }

  cancelled(record: JobRecord): void {
    this.#hints.push({ type: 'cancelled', id: record.spec.id, incarnation: record.spec.incarnation })
  }

  due(at: number): void {
    if (at < this.#dueAt) this.#dueAt = at
  }

  outbox(at: number): void {
    if (at < this.#outboxAt) this.#outboxAt = at
  }

  /** Tells of a trouble at once: it is so, however durable what caused it is. */
  readonly warn: Warn = (code, message, detail) => {
    const hint: Hint = { type: 'warning', code, message, detail }
    if (this.isObserved) this.tell(hint)
    else if (this.#warnings.length < warningsMax) this.#warnings.push(hint)
  }

  /** Takes what happened; null if nothing did. */
  take(): PendingHints | null {
    if (this.#hints.length === 0 && this.#dueAt === never && this.#outboxAt === never) return null
    const pending = { hints: this.#hints, dueAt: this.#dueAt, outboxAt: this.#outboxAt }
    this.#hints = []
    this.#dueAt = never
    this.#outboxAt = never
    return pending
  }

  /** Tells what was taken. */
  send({ hints, dueAt, outboxAt }: PendingHints): void {
    for (const hint of hints) this.tell(hint)
    const now = this.#clock.now()
    if (dueAt !== never) this.tell({ type: 'due', inMs: Math.max(0, dueAt - now) })
    if (outboxAt !== never) this.tell({ type: 'outbox', inMs: Math.max(0, outboxAt - now) })
  }

  tell(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint)
  }
}
