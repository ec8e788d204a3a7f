/**
 * The small tier of the storage contract: a store of rows with five functions, of which {@link fromRecordStore} makes a full
 * {@link Storage}. All that a record can do is decided here by the machine; the store only keeps rows, and swaps a row for
 * another if its version is still the expected one.
 *
 * @module
 */

import type { Clock } from './clock.ts'
import { systemClock } from './clock.ts'
import type { AskonceError } from './errors.ts'
import { StorageClosedError } from './errors.ts'
import type { EnqueueCommand, EnqueueOutcome, ExtendOutcome, Step } from './machine.ts'
import { living, step } from './machine.ts'
import type { JobRecord, JobState } from './record.ts'
import { forgottenFrom, isTerminal } from './record.ts'
import { DueClaims } from './record-claims.ts'
import { DueReader } from './record-due.ts'
import { HoldKeeper } from './record-hold.ts'
import { collect, endDeliveries } from './record-outbox.ts'
import type { Task } from './record-swapper.ts'
import { Swapper, typed } from './record-swapper.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
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
  Settlement,
  Storage,
  StorageHandle,
  StorageStats,
  StorageTraits,
} from './storage.ts'

/** The row of one job. Its key is the job's id, never empty. */
export interface JobRow {
  readonly type: 'job'
  readonly key: string
  /** Opaque and never used before, in any row: made anew for each write, so that a writer knows its own. */
  readonly version: string
  readonly record: JobRecord
}

/** The one row of a namespace that is no job's: until when it is held. */
export interface HoldRow {
  readonly type: 'hold'
  readonly key: ''
  readonly version: string
  /** ms since 1970. */
  readonly heldUntil: number
}

/**
 * What a store keeps under one key. A store may answer objects that carry more than this (where a payload lies, what a
 * row's cost is): the adapter hands the very object back as {@link Change.from}.
 */
export type Row = JobRow | HoldRow

/** One compare-and-swap. */
export interface Change {
  readonly key: string
  /**
   * What must be stored under the key for the change to be made: the row of this version, or no row at all if null. Only
   * `version` counts for the comparison; the rest tells the store what will be different.
   */
  readonly from: Row | null
  /** What is stored then; null removes the row. */
  readonly to: Row | null
}

/**
 * How a swap went. `ok`: the change was made; `row`, where given, is what was stored, with whatever the store adds to its rows.
 * Not `ok`: it was not made, as another version is there; `row`, where the store has it at hand, is the one that is (null:
 * none is), and saves a load. With `error`: it may or may not have been made. (A removal that was repeated below, by a driver
 * or SDK, and then did not find its version, is such a case: say `error`, for the first try may have removed it.)
 */
export type SwapAnswer =
  | { readonly ok: true; readonly row?: Row }
  | { readonly ok: false; readonly row?: Row | null; readonly error?: undefined }
  | { readonly ok: false; readonly row?: undefined; readonly error: unknown }

/**
 * What is looked for. `claimable`: rows whose {@link claimableFrom} is past; `forgettable`: rows whose
 * {@link forgettableFrom} is; `deliverable`: rows whose {@link deliverableFrom} is.
 */
export type DueKind = 'claimable' | 'forgettable' | 'deliverable'

/** What a store believes is due. */
export interface DueAnswer {
  /** Keys, or whole rows where the store has them, which saves a load; earliest first where it can. */
  readonly items: readonly (string | JobRow)[]
  /**
   * When the next row after these becomes due, ms since 1970: `now` or before if more are due than were asked for; null if
   * the store doesn't know, or there is none.
   */
  readonly nextAt: number | null
}

/** How many job rows are in each state; null where that can't be told cheaply. */
export type RowCounts = { readonly [state in JobState]: number | null }

/**
 * A store of rows: five functions, and some that it may add. Any of them may reject: with an AskonceError, which is passed on as it
 * is, or with anything else, which becomes the cause of a StorageError.
 */
export interface RecordStore {
  /** The rows of these keys, in their order; null where there is none. Must see every write that was acknowledged before. */
  load(keys: readonly string[]): Promise<readonly (Row | null)[]>
  /** Makes each change or leaves its key alone; each is atomic by itself. No key comes twice in one call. */
  swap(changes: readonly Change[]): Promise<readonly SwapAnswer[]>
  /** A hint at what is due at `now`. It may be stale, incomplete or wrong: every row is looked at before it is changed. */
  due(limit: number, now: number, kind: DueKind): Promise<DueAnswer>
  /** Sends hints of what others do to this namespace, as far as the store learns of it; answers the function that ends that. */
  watch(listener: HintListener): () => void
  /** Lets go of everything. Called once, after the last operation has ended. */
  close(): Promise<void>
  /**
   * Completes rows whose payload the store left out (''), in their order. Called for rows that have just been leased, or are
   * found to be leased by the asker. An error instead of a row is that row's alone. Only stores that keep payloads apart need it.
   */
  fill?(rows: readonly JobRow[]): Promise<readonly (JobRow | AskonceError)[]>
  /** Counts rows. Without it no count is known. */
  stats?(): Promise<RowCounts>
}

/** What {@link fromRecordStore} needs. */
export interface RecordStoreOptions {
  readonly traits: StorageTraits
  /** Opens the store of one namespace. Called again only after the store of that name was closed. */
  open(namespace: string): Promise<RecordStore>
  /** Default: the system's. */
  readonly clock?: Clock
  /** Another's lease is taken over only this long after its end, ms. Default 0; give the bound of the clocks' skew. */
  readonly graceMs?: number
  /**
   * Try to create a record before looking whether there is one. Saves a load for each new id, where a create that finds the
   * id taken costs no more than a load and answers the row that is there. Default false.
   */
  readonly createFirst?: boolean
  /** How long the hold of a namespace may be remembered, ms; others' holds are noticed that much later. Default 0: not at all. */
  readonly holdCacheMs?: number
  /** Rows of this process's leases to remember, so that renewing and settling need no load. Default 10,000; 0 for none. */
  readonly leaseCacheMax?: number
  /** Numbers from 0 to below 1, for jitter. Default: Math.random. */
  readonly random?: () => number
}

/** From when on a worker may claim the row, ms since 1970; null if never: it has ended, or is an inline run's. */
export function claimableFrom(record: JobRecord, graceMs: number): number | null {
  if (isTerminal(record) || record.inline) return null
  return record.state === 'processing' ? record.at + graceMs : record.at
}

/** From when on the row can be removed, ms since 1970; null if not before it has ended. */
export function forgettableFrom(record: JobRecord): number | null {
  const from = forgottenFrom(record)
  return from === Number.POSITIVE_INFINITY ? null : from
}

export { deliverableFrom } from './record-outbox.ts'

/**
 * A full storage on a store of rows.
 *
 * Each operation loads what it needs, lets the machine decide, swaps what changed, and starts over with those that another
 * writer was faster at; after limits.swapRoundsMax rounds it rejects with a retryable StorageError. Hints of everything done
 * through this object reach its own watchers, whether or not the store can push.
 */
export function fromRecordStore(options: RecordStoreOptions): Storage {
  const opened = new Map<string, Promise<Namespace>>()

  async function open(namespace: string): Promise<StorageHandle> {
    for (;;) {
      let opening = opened.get(namespace)
      if (opening === undefined) {
        opening = openNamespace(namespace, options)
        opened.set(namespace, opening)
      }
      let space: Namespace
      try {
        space = await opening
      } catch (error) {
        if (opened.get(namespace) === opening) opened.delete(namespace)
        throw error
      }
      if (space.closing === null) {
        const mine = opening
        return new Handle(space, () => {
          // Stays listed until it is closed, so that the next opener waits for that.
          const forget = () => void (opened.get(namespace) === mine && opened.delete(namespace))
          return space.release().finally(forget)
        })
      }
      await space.closing.catch(() => {})
      if (opened.get(namespace) === opening) opened.delete(namespace)
    }
  }

  return { traits: options.traits, open }
}

async function openNamespace(namespace: string, options: RecordStoreOptions): Promise<Namespace> {
  try {
    return new Namespace(await options.open(namespace), options)
  } catch (error) {
    throw typed(error)
  }
}

/** What all handles of one namespace share. */
class Namespace {
  readonly store: RecordStore
  readonly clock: Clock
  readonly graceMs: number
  readonly createFirst: boolean
  readonly swapper: Swapper
  readonly hold: HoldKeeper
  readonly claims: DueClaims
  readonly #listeners = new Set<{ readonly listener: HintListener }>()
  #unwatch: (() => void) | null = null
  #users = 0
  /** The store's closing, once the last handle has gone. */
  closing: Promise<void> | null = null

  constructor(store: RecordStore, options: RecordStoreOptions) {
    const { clock = systemClock, graceMs = 0, createFirst = false, holdCacheMs = 0, leaseCacheMax = 10_000 } = options
    this.store = store
    this.clock = clock
    this.graceMs = graceMs
    this.createFirst = createFirst
    const random = options.random ?? Math.random
    const emit = (hint: Hint) => this.emit(hint)
    this.swapper = new Swapper({ store, clock, random, leaseCacheMax, emit })
    this.hold = new HoldKeeper({ store, clock, random, cacheMs: holdCacheMs, emit })
    this.claims = new DueClaims({ store, clock, graceMs, swapper: this.swapper, hold: this.hold })
  }

  use(): void {
    this.#users++
  }

  async release(): Promise<void> {
    if (--this.#users > 0) return
    this.#unwatch?.()
    this.#unwatch = null
    this.closing = this.store.close()
    try {
      await this.closing
    } catch (error) {
      throw typed(error)
    }
  }

  watch(listener: HintListener): () => void {
    const entry = { listener }
    this.#listeners.add(entry)
    this.#unwatch ??= this.store.watch((hint) => this.emit(hint))
    return () => {
      if (!this.#listeners.delete(entry) || this.#listeners.size > 0) return
      this.#unwatch?.()
      this.#unwatch = null
    }
  }

  emit(hint: Hint): void {
    for (const { listener } of this.#listeners) {
      try {
        listener(hint)
      } catch {
        // A listener must not throw; one that does must not undo an operation that has been done.
      }
    }
  }
}

class Handle implements StorageHandle {
  readonly #space: Namespace
  readonly #release: () => Promise<void>
  readonly #running = new Set<Promise<unknown>>()
  readonly #unwatches = new Set<() => void>()
  #closing: Promise<void> | null = null

  constructor(space: Namespace, release: () => Promise<void>) {
    this.#space = space
    this.#release = release
    space.use()
  }

  enqueue(items: readonly EnqueueItem[]): Promise<EnqueueAnswers> {
    return this.#do(async ({ swapper, hold, clock, graceMs, createFirst }) => {
      if (items.length === 0) return { now: clock.now(), answers: [] }
      const heldUntil = items.some((item) => item.lease !== null) ? await hold.until() : 0
      const assume = createFirst ? { assume: null } : {}
      const tasks = items.map(
        (item): Task<EnqueueOutcome> => ({
          key: item.spec.id,
          apply: (record, now) => enqueueItem(record, item, heldUntil, graceMs, now),
          // A refresh expects a record, whose whole size the vain creation would cost where a store counts that.
          ...(item.refresh === true ? {} : assume),
        }),
      )
      const { now, outcomes } = await swapper.run(tasks, { leased: (answer) => answer.leased })
      // An enqueue always leaves a record.
      return { now, answers: outcomes.map(({ answer, record }) => ({ ...answer, record: record! })) }
    })
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    return this.#do((space) => claim(space, request))
  }

  extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]> {
    return this.#do(async ({ swapper }) => {
      const tasks = items.map(({ id, generation, leaseMs }) => ({
        key: id,
        apply: (record: JobRecord | null, now: number) => step(record, { type: 'extend', generation, leaseMs }, now),
      }))
      return (await swapper.run(tasks, { remembered: true })).outcomes.map(({ answer }) => answer)
    })
  }

  settle(items: readonly Settlement[], request: ClaimRequest | null) {
    return this.#do(async (space) => {
      const tasks = items.map(({ id, generation, verdict }) => ({
        key: id,
        apply: (record: JobRecord | null, now: number) => step(record, { type: 'settle', generation, verdict }, now),
      }))
      const { outcomes } = await space.swapper.run(tasks, { remembered: true })
      const answers = outcomes.map(({ answer }) => answer)
      return { answers, claim: request === null ? null : await claim(space, request) }
    })
  }

  cancel(ids: readonly string[]) {
    return this.#do(async ({ swapper }) => {
      const tasks = ids.map((id) => ({
        key: id,
        apply: (record: JobRecord | null, now: number) => step(record, { type: 'cancel' }, now),
      }))
      return (await swapper.run(tasks)).outcomes.map(({ answer }) => answer)
    })
  }

  touch(items: readonly { readonly id: string; readonly ttlMs: number }[]) {
    return this.#do(async ({ swapper }) => {
      const tasks = items.map(({ id, ttlMs }) => ({
        key: id,
        apply: (record: JobRecord | null, now: number) => step(record, { type: 'touch', ttlMs }, now),
      }))
      return (await swapper.run(tasks)).outcomes.map(({ answer }) => answer)
    })
  }

  mark(items: readonly Mark[]) {
    return this.#do(async ({ swapper }) => {
      const tasks = items.map(({ id, name, token }) => ({
        key: id,
        apply: (record: JobRecord | null, now: number) => step(record, { type: 'mark', name, token }, now),
      }))
      return (await swapper.run(tasks)).outcomes.map(({ answer }) => answer)
    })
  }

  deliver(items: readonly Delivery[], request: CollectRequest | null): Promise<DeliverAnswers> {
    return this.#do(async (space) => {
      const answers = items.length === 0 ? [] : await endDeliveries(space, items)
      return { answers, collected: request === null ? null : await collect(space, request) }
    })
  }

  get(ids: readonly string[]): Promise<GetAnswers> {
    return this.#do(async ({ swapper, clock }) => {
      // Before the load: a row that is read late must not be taken as ended, for it may have been kept longer meanwhile.
      const now = clock.now()
      const rows = await swapper.load([...new Set(ids)])
      return { now, records: ids.map((id) => living(rows.get(id)?.record ?? null, now)) }
    })
  }

  watch(listener: HintListener): () => void {
    if (this.#closing !== null) throw new StorageClosedError()
    const unwatch = this.#space.watch(listener)
    this.#unwatches.add(unwatch)
    return () => {
      this.#unwatches.delete(unwatch)
      unwatch()
    }
  }

  sweep(limit: number): Promise<number> {
    return this.#do(async ({ store, clock, swapper }) => {
      const due = new DueReader(store, clock, 'forgettable')
      let forgotten = 0
      while (forgotten < limit) {
        const items = await due.next(limit - forgotten)
        if (items.length === 0) break
        const tasks = items.map((item) => ({
          key: typeof item === 'string' ? item : item.key,
          apply: (record: JobRecord | null, now: number) => step(record, { type: 'forget' }, now),
          ...(typeof item === 'string' ? {} : { assume: item }),
        }))
        // One round: a row that somebody changes meanwhile is not past its end any more, or is the next sweep's.
        const { outcomes } = await swapper.run(tasks, { rounds: 1, partial: true })
        for (const outcome of outcomes) if (outcome.error === null && outcome.answer === 'forgotten') forgotten++
      }
      return forgotten
    })
  }

  hold(ms: number): Promise<void> {
    return this.#do(({ hold }) => hold.hold(ms))
  }

  stats(): Promise<StorageStats> {
    return this.#do(async ({ store, hold, clock }) => {
      const unknown = { queued: null, processing: null, failing: null, completed: null, failed: null }
      const [counts, heldUntil] = await Promise.all([store.stats?.() ?? unknown, hold.until()])
      return { ...counts, heldForMs: Math.max(0, heldUntil - clock.now()) }
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    for (const unwatch of this.#unwatches) unwatch()
    this.#unwatches.clear()
    await Promise.allSettled(this.#running)
    await this.#release()
  }

  #do<T>(operation: (space: Namespace) => Promise<T>): Promise<T> {
    if (this.#closing !== null) return Promise.reject(new StorageClosedError())
    const running = operation(this.#space).catch((error) => {
      throw typed(error)
    })
    this.#running.add(running)
    const ended = () => void this.#running.delete(running)
    running.then(ended, ended)
    return running
  }
}

function enqueueItem(
  record: JobRecord | null,
  item: EnqueueItem,
  heldUntil: number,
  graceMs: number,
  now: number,
): Step<EnqueueOutcome> {
  const { spec, payload, delayMs, rejectMismatch, lease, refresh } = item
  const heldForMs = lease === null ? 0 : Math.max(0, heldUntil - now)
  // A lease got before the hold began is answered as it was: this is that call once more, its reply lost.
  const alive = living(record, now)
  const mine = alive?.state === 'processing' && alive.generation === lease?.generation
  const command: EnqueueCommand = {
    type: 'enqueue',
    spec,
    payload,
    delayMs: Math.max(delayMs, heldForMs),
    rejectMismatch,
    lease: lease === null || (heldForMs > 0 && !mine) ? null : { ...lease, graceMs },
    inline: lease !== null,
    ...(refresh === true ? { refresh } : {}),
  }
  return step(record, command, now)
}

function claim(space: Namespace, request: ClaimRequest): Promise<ClaimAnswer> {
  return request.ids === undefined ? space.claims.claim(request) : space.claims.claimIds(request, request.ids)
}
