/**
 * The Memory storage: the reference for all others, and the default. Records live in this process and end with it.
 *
 * @module
 */

import type { Clock, Timer } from '../../src/clock.ts'
import { systemClock } from '../../src/clock.ts'
import { guardInteger, StorageClosedError, StorageFullError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type {
  CancelOutcome,
  EnqueueCommand,
  ExtendOutcome,
  MarkOutcome,
  SettleCommand,
  SettleOutcome,
  TouchOutcome,
} from '../../src/machine.ts'
import { living } from '../../src/machine.ts'
import type { JobRecord, ProcessingRecord } from '../../src/record.ts'
import { isTerminal, release } from '../../src/record.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CollectRequest,
  DeliverAnswers,
  Delivery,
  EnqueueAnswer,
  EnqueueAnswers,
  EnqueueItem,
  GetAnswers,
  Hint,
  HintListener,
  LeaseTerms,
  Mark,
  SettleAnswers,
  Settlement,
  Storage,
  StorageHandle,
  StorageStats,
  StorageTraits,
} from '../../src/storage.ts'
import { RecordTable, recordOverheadBytes } from './table.ts'

/** What can be set on a {@link MemoryStorage}. */
export interface MemoryStorageOptions {
  /** Default: the system's. */
  clock?: Clock
  /** Records kept at once, over all namespaces; default: no bound. Beyond it `enqueue` throws StorageFullError. */
  recordsMax?: number
  /** Bytes kept at once, over all namespaces, roughly (values, ids, 400 bytes a record); default: no bound. */
  bytesMax?: number
}

const traits: StorageTraits = Object.freeze({
  kind: 'memory',
  durable: false,
  shared: false,
  push: true,
  ordering: 'fifo',
  clock: 'client',
  payloadBytesMax: limits.payloadBytesMax,
  ttlResolutionMs: 1,
  pollMs: Object.freeze({ min: 1_000, max: 5_000 }),
  gather: 'microtask',
})

/** Records removed in one go, so that a crowd that expires together does not block the event loop. */
const sweepSliceMax = 10_000

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** Commands to be filled in: see where they are copied. */
const noEnqueue: Writable<Required<EnqueueCommand>> = {
  type: 'enqueue',
  spec: { id: '', incarnation: '', fingerprint: '', maxAttempts: 0, resultTTL: 0, failureTTL: 0 },
  payload: '',
  delayMs: 0,
  rejectMismatch: false,
  lease: null,
  inline: false,
  refresh: false,
}
const noSettle: Writable<SettleCommand> = { type: 'settle', generation: '', verdict: release(0) }

/** What one namespace's handles share. */
class Space {
  readonly table = new RecordTable()
  readonly listeners = new Set<HintListener>()

  tell(hint: Hint): void {
    for (const listener of this.listeners) listener(hint)
  }
}

/**
 * Keeps records in this process's memory. Queues that are given the same MemoryStorage and the same name share their jobs.
 * Expired records leave by themselves: one unref'ed timer serves all of them.
 */
export class MemoryStorage implements Storage {
  readonly traits = traits
  readonly clock: Clock
  readonly #spaces = new Map<string, Space>()
  readonly #recordsMax: number
  readonly #bytesMax: number
  #timer: Timer | null = null
  #timerAt = Number.POSITIVE_INFINITY

  /** @throws InvalidArgumentError for a bound that is no whole number from 1 */
  constructor(options: MemoryStorageOptions = {}) {
    const { clock = systemClock, recordsMax, bytesMax } = options
    if (recordsMax !== undefined) guardInteger('options.recordsMax', recordsMax, 1, Number.MAX_SAFE_INTEGER)
    if (bytesMax !== undefined) guardInteger('options.bytesMax', bytesMax, 1, Number.MAX_SAFE_INTEGER)
    this.clock = clock
    this.#recordsMax = recordsMax ?? Number.POSITIVE_INFINITY
    this.#bytesMax = bytesMax ?? Number.POSITIVE_INFINITY
  }

  async open(namespace: string): Promise<StorageHandle> {
    let space = this.#spaces.get(namespace)
    if (space === undefined) {
      space = new Space()
      this.#spaces.set(namespace, space)
    }
    return new MemoryHandle(this, space)
  }

  /** Records kept over all namespaces, those past their end but not yet freed among them. */
  get size(): number {
    let size = 0
    for (const space of this.#spaces.values()) size += space.table.size
    return size
  }

  /** @internal Refuses a call that would go over a bound, after freeing what is past its end. */
  makeRoom(space: Space, items: readonly EnqueueItem[]): void {
    if (this.#recordsMax === Number.POSITIVE_INFINITY && this.#bytesMax === Number.POSITIVE_INFINITY) return
    const now = this.clock.now()
    let records = 0
    let bytes = 0
    for (const item of new Map(items.map((item) => [item.spec.id, item])).values()) {
      if (living(space.table.get(item.spec.id), now) !== null) continue
      records++
      bytes += recordOverheadBytes + item.payload.length + item.spec.id.length
    }
    if (records === 0 || this.#fits(records, bytes)) return
    for (const other of this.#spaces.values()) other.table.sweep(Number.POSITIVE_INFINITY, now)
    if (this.#fits(records, bytes)) return
    if (this.size + records > this.#recordsMax) throw new StorageFullError('recordsMax', this.#recordsMax)
    throw new StorageFullError('bytesMax', this.#bytesMax)
  }

  #fits(records: number, bytes: number): boolean {
    let kept = 0
    for (const space of this.#spaces.values()) kept += space.table.bytes
    return this.size + records <= this.#recordsMax && kept + bytes <= this.#bytesMax
  }

  /** @internal Has the timer fire when the space's next record is to be forgotten. */
  scheduleSweep(space: Space): void {
    const at = space.table.nextForgetAt()
    if (at === null || at >= this.#timerAt) return
    this.#timer?.clear()
    this.#timerAt = at
    // Weakly: a timer an hour ahead must not keep a storage that nobody uses any more.
    const storage = new WeakRef(this)
    this.#timer = this.clock.timer(() => storage.deref()?.sweep(), at - this.clock.now(), false)
  }

  /** @internal Frees what is past its end now. */
  sweep(): void {
    this.#timer = null
    this.#timerAt = Number.POSITIVE_INFINITY
    const now = this.clock.now()
    for (const space of this.#spaces.values()) {
      space.table.sweep(sweepSliceMax, now)
      this.scheduleSweep(space)
    }
  }
}

class MemoryHandle implements StorageHandle {
  readonly #storage: MemoryStorage
  readonly #clock: Clock
  readonly #space: Space
  readonly #table: RecordTable
  readonly #unwatch = new Set<() => void>()
  #closed = false

  constructor(storage: MemoryStorage, space: Space) {
    this.#storage = storage
    this.#clock = storage.clock
    this.#space = space
    this.#table = space.table
  }

  async enqueue(items: readonly EnqueueItem[]): Promise<EnqueueAnswers> {
    this.#guard()
    this.#storage.makeRoom(this.#space, items)
    const table = this.#table
    const now = this.#clock.now()
    const heldForMs = Math.max(0, table.holdUntil - now)
    const answers = new Array<EnqueueAnswer>(items.length)
    // One object for all: a step keeps nothing of its command, and most calls have many.
    const command = { ...noEnqueue }
    let dueInMs = Number.POSITIVE_INFINITY
    let forgettable = false
    for (let index = 0; index < items.length; index++) {
      const item = items[index] as EnqueueItem
      const inline = item.lease !== null
      command.spec = item.spec
      command.payload = item.payload
      command.rejectMismatch = item.rejectMismatch
      command.lease = item.lease === null || heldForMs > 0 ? null : { ...item.lease, graceMs: 0 }
      command.delayMs = inline ? heldForMs : item.delayMs
      command.inline = inline
      command.refresh = item.refresh === true
      const { record, answer } = table.apply(item.spec.id, command, now) as { record: JobRecord; answer: EnqueueAnswer }
      answers[index] = { outcome: answer.outcome, leased: answer.leased, mismatch: answer.mismatch, record }
      if (inline) forgettable = true
      else if (!isTerminal(record)) dueInMs = Math.min(dueInMs, record.at - now)
      if (inline && answer.outcome === 'exists' && isTerminal(record)) this.#tellSettled(record)
    }
    if (forgettable) this.#storage.scheduleSweep(this.#space)
    if (dueInMs !== Number.POSITIVE_INFINITY) this.#space.tell({ type: 'due', inMs: Math.max(0, dueInMs) })
    return { now, answers }
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    this.#guard()
    return this.#claim(request)
  }

  #claim(request: ClaimRequest): ClaimAnswer {
    const table = this.#table
    const now = this.#clock.now()
    const heldForMs = Math.max(0, table.holdUntil - now)
    if (heldForMs > 0) return { now, jobs: [], exhausted: [], nextInMs: table.nextDueInMs(now, 0), heldForMs }
    const terms = { generation: request.generation, leaseMs: request.leaseMs, graceMs: 0 }
    const { jobs, exhausted } =
      request.ids === undefined
        ? table.claimDue(terms, request.limit, now)
        : this.#claimIds(request.ids, terms, request.limit, now)
    if (exhausted.length > 0 || request.ids !== undefined) {
      for (const record of exhausted) this.#tellSettled(record)
      this.#storage.scheduleSweep(this.#space)
    }
    return { now, jobs, exhausted, nextInMs: table.nextDueInMs(now, 0), heldForMs }
  }

  #claimIds(ids: readonly string[], terms: LeaseTerms & { graceMs: number }, limit: number, now: number) {
    const jobs: ProcessingRecord[] = []
    const exhausted: JobRecord[] = []
    const command = { type: 'claim', ...terms } as const
    for (const id of new Set(ids)) {
      if (jobs.length >= limit) break
      const { record, answer } = this.#table.apply(id, command, now)
      if (answer === 'leased') jobs.push(record as ProcessingRecord)
      else if (answer === 'exhausted') exhausted.push(record as JobRecord)
    }
    return { jobs, exhausted }
  }

  async extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]> {
    this.#guard()
    const now = this.#clock.now()
    return items.map(({ id, generation, leaseMs }) => {
      return this.#table.apply(id, { type: 'extend', generation, leaseMs }, now).answer
    })
  }

  async settle(items: readonly Settlement[], claim: ClaimRequest | null): Promise<SettleAnswers> {
    this.#guard()
    const now = this.#clock.now()
    const answers = new Array<SettleOutcome>(items.length)
    const command = { ...noSettle }
    let dueInMs = Number.POSITIVE_INFINITY
    for (let index = 0; index < items.length; index++) {
      const item = items[index] as Settlement
      command.generation = item.generation
      command.verdict = item.verdict
      const { record, answer } = this.#table.apply(item.id, command, now)
      answers[index] = answer
      if (answer === 'stale' || record === null) continue
      if (isTerminal(record)) {
        this.#tellSettled(record)
        if (record.state === 'completed' && record.outbox !== undefined) this.#space.tell({ type: 'outbox', inMs: 0 })
      } else if (!record.inline) dueInMs = Math.min(dueInMs, record.at - now)
    }
    this.#storage.scheduleSweep(this.#space)
    if (dueInMs !== Number.POSITIVE_INFINITY) this.#space.tell({ type: 'due', inMs: Math.max(0, dueInMs) })
    return { answers, claim: claim === null ? null : this.#claim(claim) }
  }

  async cancel(ids: readonly string[]): Promise<readonly CancelOutcome[]> {
    this.#guard()
    const now = this.#clock.now()
    return ids.map((id) => {
      const before = this.#table.get(id)
      const { record, answer } = this.#table.apply(id, { type: 'cancel' }, now)
      if (answer === 'cancelled' && record !== null) {
        this.#tellSettled(record)
        this.#storage.scheduleSweep(this.#space)
      } else if (answer === 'cancelled' && before !== null) {
        this.#space.tell({ type: 'cancelled', id, incarnation: before.spec.incarnation })
      }
      return answer
    })
  }

  async touch(items: readonly { readonly id: string; readonly ttlMs: number }[]): Promise<readonly TouchOutcome[]> {
    this.#guard()
    const now = this.#clock.now()
    const answers = items.map(({ id, ttlMs }) => this.#table.apply(id, { type: 'touch', ttlMs }, now).answer)
    this.#storage.scheduleSweep(this.#space)
    return answers
  }

  async mark(items: readonly Mark[]): Promise<readonly MarkOutcome[]> {
    this.#guard()
    const now = this.#clock.now()
    return items.map(({ id, name, token }) => this.#table.apply(id, { type: 'mark', name, token }, now).answer)
  }

  async deliver(items: readonly Delivery[], request: CollectRequest | null): Promise<DeliverAnswers> {
    this.#guard()
    const table = this.#table
    const now = this.#clock.now()
    const answers = items.map(({ id, generation, rows, delayMs }) => {
      const { answer } = table.apply(id, { type: 'deliver', generation, rows, delayMs }, now)
      if (answer === 'delivered' && rows !== null) this.#space.tell({ type: 'outbox', inMs: delayMs })
      return answer
    })
    this.#storage.scheduleSweep(this.#space)
    if (request === null) return { answers, collected: null }
    const { generation, leaseMs, limit } = request
    const records = table.collectDue({ generation, leaseMs, graceMs: 0 }, limit, now)
    return { answers, collected: { now, records, nextInMs: table.nextOutboxInMs(now) } }
  }

  async get(ids: readonly string[]): Promise<GetAnswers> {
    this.#guard()
    const now = this.#clock.now()
    return { now, records: ids.map((id) => living(this.#table.get(id), now)) }
  }

  watch(listener: HintListener): () => void {
    this.#guard()
    // A listener given twice counts twice, and each unwatch ends its own.
    const own: HintListener = (hint) => listener(hint)
    const unwatch = () => {
      this.#space.listeners.delete(own)
      this.#unwatch.delete(unwatch)
    }
    this.#space.listeners.add(own)
    this.#unwatch.add(unwatch)
    return unwatch
  }

  async sweep(limit: number): Promise<number> {
    this.#guard()
    return this.#table.sweep(limit, this.#clock.now())
  }

  async hold(ms: number): Promise<void> {
    this.#guard()
    const table = this.#table
    const now = this.#clock.now()
    table.holdUntil = ms === 0 ? 0 : Math.max(table.holdUntil, now + ms)
    this.#space.tell({ type: 'due', inMs: Math.max(0, table.holdUntil - now) })
  }

  async stats(): Promise<StorageStats> {
    this.#guard()
    const now = this.#clock.now()
    this.#table.sweep(Number.POSITIVE_INFINITY, now)
    return { ...this.#table.counts, heldForMs: Math.max(0, this.#table.holdUntil - now) }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const unwatch of this.#unwatch) unwatch()
  }

  #guard(): void {
    if (this.#closed) throw new StorageClosedError()
  }

  #tellSettled(record: JobRecord): void {
    if (this.#space.listeners.size > 0) this.#space.tell({ type: 'settled', id: record.spec.id, record })
  }
}
