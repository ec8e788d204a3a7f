/**
 * The plainest possible storage: a Map per namespace and the machine. It is what the suite is tried on, an example for
 * storage authors, and nothing for production: every claim looks at every record.
 *
 * @module
 */

import type { Clock } from '../../src/clock.ts'
import { systemClock } from '../../src/clock.ts'
import { StorageClosedError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type {
  Answers,
  CancelOutcome,
  Command,
  ExtendOutcome,
  MarkOutcome,
  Step,
  TouchOutcome,
} from '../../src/machine.ts'
import { living, step } from '../../src/machine.ts'
import type { CompletedRecord, JobRecord, ProcessingRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
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

/** What can be set on a {@link ReferenceStorage}. */
export interface ReferenceStorageOptions {
  /** Default: the system's. */
  readonly clock?: Clock
}

/** The transition function that a storage runs: {@link step}, or a broken one in tests of the suite. */
export type Transition = typeof step

/** One namespace. */
interface Space {
  /** In order of arrival: a record that changes moves to the end. */
  readonly records: Map<string, JobRecord>
  readonly listeners: Set<HintListener>
  holdEndsAt: number
}

/** A storage of Maps. Records live as long as the object. */
export class ReferenceStorage implements Storage {
  readonly traits: StorageTraits = {
    kind: 'reference',
    durable: false,
    shared: false,
    push: true,
    ordering: 'fifo',
    clock: 'client',
    payloadBytesMax: limits.payloadBytesMax,
    ttlResolutionMs: 1,
    pollMs: { min: 100, max: 1_000 },
    gather: 'microtask',
  }
  readonly #clock: Clock
  readonly #spaces = new Map<string, Space>()

  constructor(options: ReferenceStorageOptions = {}) {
    this.#clock = options.clock ?? systemClock
  }

  async open(namespace: string): Promise<StorageHandle> {
    let space = this.#spaces.get(namespace)
    if (space === undefined) {
      space = { records: new Map(), listeners: new Set(), holdEndsAt: 0 }
      this.#spaces.set(namespace, space)
    }
    return new ReferenceHandle(space, this.#clock, this.transition)
  }

  /** What is run for every command: a place where tests of the suite put in faults. */
  protected get transition(): Transition {
    return step
  }
}

class ReferenceHandle implements StorageHandle {
  readonly #space: Space
  readonly #clock: Clock
  readonly #transition: Transition
  readonly #unwatch = new Set<() => void>()
  #closed = false

  constructor(space: Space, clock: Clock, transition: Transition) {
    this.#space = space
    this.#clock = clock
    this.#transition = transition
  }

  async enqueue(items: readonly EnqueueItem[]): Promise<EnqueueAnswers> {
    const now = this.#begin()
    const heldMs = this.#heldMs(now)
    const answers = items.map(({ spec, payload, delayMs, rejectMismatch, lease, refresh = false }) => {
      const held = lease !== null && heldMs > 0
      const answer = this.#apply(
        spec.id,
        {
          type: 'enqueue',
          spec,
          payload,
          delayMs: held ? Math.max(delayMs, heldMs) : delayMs,
          rejectMismatch,
          lease: lease === null || held ? null : { ...lease, graceMs: 0 },
          inline: lease !== null,
          refresh,
        },
        now,
      )
      return { ...answer, record: this.#space.records.get(spec.id)! }
    })
    return { now, answers }
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    return this.#claim(request, this.#begin())
  }

  async extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]> {
    const now = this.#begin()
    return items.map(({ id, generation, leaseMs }) => this.#apply(id, { type: 'extend', generation, leaseMs }, now))
  }

  async settle(items: readonly Settlement[], claim: ClaimRequest | null): Promise<SettleAnswers> {
    const now = this.#begin()
    const answers = items.map(({ id, generation, verdict }) =>
      this.#apply(id, { type: 'settle', generation, verdict }, now),
    )
    return { answers, claim: claim === null ? null : this.#claim(claim, now) }
  }

  async cancel(ids: readonly string[]): Promise<readonly CancelOutcome[]> {
    const now = this.#begin()
    return ids.map((id) => this.#apply(id, { type: 'cancel' }, now))
  }

  async touch(items: readonly { readonly id: string; readonly ttlMs: number }[]): Promise<readonly TouchOutcome[]> {
    const now = this.#begin()
    return items.map(({ id, ttlMs }) => this.#apply(id, { type: 'touch', ttlMs }, now))
  }

  async mark(items: readonly Mark[]): Promise<readonly MarkOutcome[]> {
    const now = this.#begin()
    return items.map(({ id, name, token }) => this.#apply(id, { type: 'mark', name, token }, now))
  }

  async deliver(items: readonly Delivery[], request: CollectRequest | null): Promise<DeliverAnswers> {
    const now = this.#begin()
    const answers = items.map(({ id, generation, rows, delayMs }) =>
      this.#apply(id, { type: 'deliver', generation, rows, delayMs }, now),
    )
    return { answers, collected: request === null ? null : this.#collect(request, now) }
  }

  #collect({ generation, leaseMs, limit }: CollectRequest, now: number): CollectAnswer {
    const records: CompletedRecord[] = []
    for (const { spec } of this.#posted()) {
      if (records.length >= limit) break
      const outcome = this.#apply(spec.id, { type: 'collect', generation, leaseMs, graceMs: 0 }, now)
      if (outcome === 'collected') records.push(this.#space.records.get(spec.id) as CompletedRecord)
    }
    const [next] = this.#posted()
    return { now, records, nextInMs: next === undefined ? null : Math.max(0, next.outbox!.at - now) }
  }

  /** What relays may look for, the earliest first. */
  #posted(): CompletedRecord[] {
    return [...this.#space.records.values()]
      .filter((record): record is CompletedRecord => record.state === 'completed' && record.outbox !== undefined)
      .sort((a, b) => a.outbox!.at - b.outbox!.at)
  }

  async get(ids: readonly string[]): Promise<GetAnswers> {
    const now = this.#begin()
    return { now, records: ids.map((id) => living(this.#space.records.get(id) ?? null, now)) }
  }

  watch(listener: HintListener): () => void {
    if (this.#closed) throw new StorageClosedError()
    const { listeners } = this.#space
    // A listener given twice is told twice: each watch is its own.
    const own: HintListener = (hint) => listener(hint)
    const unwatch = () => {
      listeners.delete(own)
      this.#unwatch.delete(unwatch)
    }
    listeners.add(own)
    this.#unwatch.add(unwatch)
    return unwatch
  }

  async sweep(limit: number): Promise<number> {
    const now = this.#begin()
    let swept = 0
    for (const id of [...this.#space.records.keys()]) {
      if (swept >= limit) break
      if (this.#apply(id, { type: 'forget' }, now) === 'forgotten') swept++
    }
    return swept
  }

  async hold(ms: number): Promise<void> {
    const now = this.#begin()
    this.#space.holdEndsAt = ms === 0 ? 0 : Math.max(this.#space.holdEndsAt, now + ms)
    this.#tell({ type: 'due', inMs: this.#heldMs(now) })
  }

  async stats(): Promise<StorageStats> {
    const now = this.#begin()
    const counts = { queued: 0, processing: 0, failing: 0, completed: 0, failed: 0 }
    for (const record of this.#space.records.values()) counts[record.state]++
    return { ...counts, heldForMs: this.#heldMs(now) }
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const unwatch of this.#unwatch) unwatch()
  }

  #begin(): number {
    if (this.#closed) throw new StorageClosedError()
    return this.#clock.now()
  }

  #heldMs(now: number): number {
    return Math.max(0, this.#space.holdEndsAt - now)
  }

  #apply<C extends Command>(id: string, command: C, now: number): Answers[C['type']] {
    const { records } = this.#space
    const before = records.get(id) ?? null
    const { record, answer }: Step<Answers[C['type']]> = this.#transition(before, command, now)
    if (record === before) return answer
    records.delete(id)
    if (record !== null) records.set(id, record)
    this.#tellOf(before, record, now)
    return answer
  }

  #claim(request: ClaimRequest, now: number): ClaimAnswer {
    const { generation, leaseMs, limit, ids } = request
    const heldForMs = this.#heldMs(now)
    const jobs: ProcessingRecord[] = []
    const exhausted: JobRecord[] = []
    if (heldForMs === 0) {
      for (const id of ids === undefined ? this.#open() : new Set(ids)) {
        if (jobs.length >= limit) break
        const outcome = this.#apply(id, { type: 'claim', generation, leaseMs, graceMs: 0 }, now)
        if (outcome === 'leased') jobs.push(this.#space.records.get(id) as ProcessingRecord)
        else if (outcome === 'exhausted') exhausted.push(this.#space.records.get(id)!)
      }
    }
    const [next] = this.#open()
    const nextAt = next === undefined ? null : this.#space.records.get(next)!.at
    return { now, jobs, exhausted, nextInMs: nextAt === null ? null : Math.max(0, nextAt - now), heldForMs }
  }

  /** What workers may look for, by `at`, then order of arrival. */
  #open(): string[] {
    return [...this.#space.records.values()]
      .filter((record) => !isTerminal(record) && !record.inline)
      .sort((a, b) => a.at - b.at)
      .map((record) => record.spec.id)
  }

  #tellOf(before: JobRecord | null, after: JobRecord | null, now: number): void {
    if (after === null) {
      if (before === null || living(before, now) === null) return
      this.#tell({ type: 'cancelled', id: before.spec.id, incarnation: before.spec.incarnation })
    } else if (isTerminal(after)) {
      this.#tell({ type: 'settled', id: after.spec.id, record: after })
      if (after.state === 'completed' && after.outbox !== undefined) {
        this.#tell({ type: 'outbox', inMs: Math.max(0, after.outbox.at - now) })
      }
    } else if (!after.inline && after.state !== 'processing') {
      this.#tell({ type: 'due', inMs: Math.max(0, after.at - now) })
    }
  }

  #tell(hint: Hint): void {
    for (const listener of this.#space.listeners) listener(hint)
  }
}
