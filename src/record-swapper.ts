/**
 * Load, decide, swap, and again where another writer was faster: how every operation on a store of rows is made.
 *
 * Each write carries a version that was never used before. So a write whose reply was lost is recognised by finding that
 * version in the store, and a row that was removed and made anew is never taken for the old one.
 *
 * @module
 */

import { randomBytes } from 'node:crypto'
import type { Clock } from './clock.ts'
import { AskonceError, StorageError } from './errors.ts'
import { limits } from './limits.ts'
import type { Step } from './machine.ts'
import { living } from './machine.ts'
import type { JobRecord } from './record.ts'
import { forgottenFrom, isTerminal } from './record.ts'
import type { Change, JobRow, RecordStore, Row, SwapAnswer } from './record-store.ts'
import type { Hint } from './storage.ts'

/** One command on one record. */
export interface Task<Answer> {
  readonly key: string
  /** What the machine says to it. May be asked several times, with the record as it is then. */
  readonly apply: (record: JobRecord | null, now: number) => Step<Answer>
  /** What is probably stored, to be tried without looking; the swap will tell. */
  readonly assume?: JobRow | null
}

/** A task that was done. */
export interface Done<Answer> {
  readonly error: null
  readonly answer: Answer
  /** The record after it. */
  readonly record: JobRecord | null
}

/** How a task ended, where one may fail by itself. `lost`: other writers were faster every time. */
export type Outcome<Answer> =
  | (Done<Answer> & { readonly lost?: undefined })
  | { readonly error: AskonceError; readonly lost: boolean; readonly answer?: undefined; readonly record?: undefined }

/** How tasks are run. */
export interface RunOptions<Answer> {
  /** Compare-and-swap rounds at most. Default: limits.swapRoundsMax. */
  readonly rounds?: number
  /** Start from the rows remembered of this process's own leases. */
  readonly remembered?: boolean
  /** Take an assumed row's word where it leads to no change: for rows that are only worth trying. */
  readonly believe?: boolean
  /** Which answers lease the record to the caller, who then needs its payload. */
  readonly leased?: (answer: Answer) => boolean
}

interface SwapperOptions {
  readonly store: RecordStore
  readonly clock: Clock
  readonly random: () => number
  readonly leaseCacheMax: number
  readonly emit: (hint: Hint) => void
}

/** The tasks of one key, done one after the other on one row, with one swap. */
interface Group<Answer> {
  readonly key: string
  readonly tasks: Task<Answer>[]
  readonly indexes: number[]
  /** What is stored; undefined: to be looked up. */
  row: JobRow | null | undefined
  /** Whether `row` was read from the store in this run. */
  sure: boolean
  /** What each write that was tried would have meant, by its version. */
  readonly tried: Map<string, { readonly done: Done<Answer>[]; readonly from: JobRow | null }>
  /** The failure of a removal that may have happened. */
  removal: AskonceError | null
  /** The failure of the last write, if it may have happened. */
  doubt: AskonceError | null
  failures: number
  done: Done<Answer>[]
  error: AskonceError | null
  lost: boolean
}

/** Failed writes after which a change is given up: a store retries by itself what is worth it. */
const failuresMax = 3

/** Runs tasks against one store. */
export class Swapper {
  readonly #options: SwapperOptions
  readonly #locks = new KeyLocks()
  /** Rows of leases made here, oldest first. */
  readonly #leases = new Map<string, JobRow>()
  /** The soonest of what has become due and was not yet hinted at. */
  #dueInMs: number | null = null

  constructor(options: SwapperOptions) {
    this.#options = options
  }

  /** The job rows of these keys. */
  async load(keys: readonly string[]): Promise<Map<string, JobRow>> {
    const rows = new Map<string, JobRow>()
    if (keys.length === 0) return rows
    let loaded: readonly (Row | null)[]
    try {
      loaded = await this.#options.store.load(keys)
    } catch (error) {
      throw typed(error)
    }
    for (const row of loaded) if (row?.type === 'job') rows.set(row.key, row)
    return rows
  }

  /**
   * Runs the tasks; those of one key in their order, each seeing what the one before did.
   *
   * @throws StorageError if the store fails, or is contended; with `partial`, outcomes carry their errors instead
   */
  run<A>(
    tasks: readonly Task<A>[],
    options: RunOptions<A> & { readonly partial: true },
  ): Promise<{ now: number; outcomes: Outcome<A>[] }>
  run<A>(tasks: readonly Task<A>[], options?: RunOptions<A>): Promise<{ now: number; outcomes: Done<A>[] }>
  async run<A>(
    tasks: readonly Task<A>[],
    options: RunOptions<A> & { readonly partial?: boolean } = {},
  ): Promise<{ now: number; outcomes: Outcome<A>[] }> {
    const groups = this.#group(tasks)
    const lock = this.#locks.take(groups.keys())
    if (lock.ready !== null) await lock.ready
    try {
      if (options.remembered === true) this.#recall(groups.values())
      const now = await this.#rounds([...groups.values()], options)
      await this.#fill([...groups.values()], options)
      const outcomes = new Array<Outcome<A>>(tasks.length)
      for (const { indexes, done, error, lost } of groups.values()) {
        if (error !== null && options.partial !== true) throw error
        indexes.forEach((index, i) => {
          outcomes[index] = error === null ? done[i]! : { error, lost }
        })
      }
      return { now, outcomes }
    } finally {
      lock.release()
    }
  }

  #group<A>(tasks: readonly Task<A>[]): Map<string, Group<A>> {
    const groups = new Map<string, Group<A>>()
    tasks.forEach((task, index) => {
      const group = groups.get(task.key)
      if (group !== undefined) {
        group.tasks.push(task)
        group.indexes.push(index)
        return
      }
      groups.set(task.key, {
        key: task.key,
        tasks: [task],
        indexes: [index],
        row: task.assume,
        sure: false,
        tried: new Map(),
        removal: null,
        doubt: null,
        failures: 0,
        done: [],
        error: null,
        lost: false,
      })
    })
    return groups
  }

  #recall(groups: Iterable<Group<unknown>>): void {
    for (const group of groups) {
      const row = this.#leases.get(group.key)
      if (row !== undefined) group.row = row
    }
  }

  async #rounds<A>(groups: readonly Group<A>[], options: RunOptions<A>): Promise<number> {
    const { clock, random } = this.#options
    const rounds = options.rounds ?? limits.swapRoundsMax
    let open: readonly Group<A>[] = groups
    let now = clock.now()
    for (let round = 0; open.length > 0; ) {
      await pause(clock, random, round)
      const lookedAt = clock.now()
      if (!(await this.#look(open))) break
      now = clock.now()
      const changing: Group<A>[] = []
      const changes: Change[] = []
      const again: Group<A>[] = []
      for (const group of open) {
        if (this.#isOwn(group, now)) continue
        // Whether it was this run that removed the row can't be known: a removal leaves no version to tell by.
        if (group.row === null && group.removal !== null) group.error = group.removal
        const change = group.error === null ? decide(group, now) : null
        if (change !== null) {
          changing.push(group)
          changes.push(change)
        } else if (group.error === null && isUnconfirmed(group, lookedAt, now) && options.believe !== true) {
          // No swap will confirm this answer, so it must not rest on an assumption.
          group.row = undefined
          again.push(group)
        }
      }
      if (changes.length === 0) {
        this.#flush()
      } else {
        again.push(...(await this.#swap(changing, changes, now)))
        round++
        if (round >= rounds) {
          await this.#conclude(again, now)
          break
        }
      }
      open = again
    }
    return now
  }

  /** Ends groups that have no round left; a write that may have been made is looked for once more. */
  async #conclude<A>(groups: readonly Group<A>[], now: number): Promise<void> {
    const doubtful = groups.filter(({ doubt }) => doubt !== null)
    await this.#look(doubtful)
    for (const group of groups) {
      if (this.#isOwn(group, now)) continue
      group.error ??= group.doubt
      group.lost = group.error === null
      group.error ??= contended()
    }
    this.#flush()
  }

  /** Loads what is not known; answers whether that could be done. */
  async #look<A>(open: readonly Group<A>[]): Promise<boolean> {
    const unknown = open.filter(({ row }) => row === undefined)
    if (unknown.length === 0) return true
    try {
      const rows = await this.load(unknown.map(({ key }) => key))
      for (const group of unknown) {
        group.row = rows.get(group.key) ?? null
        group.sure = true
        if (this.#leases.get(group.key)?.version !== group.row?.version) this.#leases.delete(group.key)
      }
      return true
    } catch (error) {
      for (const group of open) group.error ??= typed(error)
      return false
    }
  }

  /** Whether the row that is there is one that this run wrote, and was not told so. */
  #isOwn<A>(group: Group<A>, now: number): boolean {
    const row = group.row
    const own = row === null || row === undefined ? undefined : group.tried.get(row.version)
    if (own === undefined) return false
    group.done = own.done
    group.error = null
    this.#done(group, own.from, row ?? null, now)
    return true
  }

  /** Swaps; answers the groups that must start over. */
  async #swap<A>(groups: readonly Group<A>[], changes: readonly Change[], now: number): Promise<Group<A>[]> {
    let answers: readonly SwapAnswer[]
    try {
      answers = await this.#options.store.swap(changes)
    } catch (error) {
      answers = changes.map(() => ({ ok: false, error: typed(error) }))
    }
    const again: Group<A>[] = []
    groups.forEach((group, i) => {
      const answer = answers[i]!
      const change = changes[i]!
      if (answer.ok) {
        const stored = answer.row ?? change.to
        this.#done(group, change.from as JobRow | null, stored as JobRow | null, now)
        return
      }
      this.#leases.delete(group.key)
      if (answer.error !== undefined) {
        const error = typed(answer.error)
        if (change.to === null) group.removal = error
        group.doubt = error
        group.row = undefined
        if (++group.failures === failuresMax || !isRetryable(error)) group.error = error
        // Only a StorageError leaves open whether it was made; it is looked for before it is given up.
        if (error instanceof StorageError) again.push(group)
        return
      }
      group.doubt = null
      group.row = answer.row?.type === 'hold' ? undefined : answer.row
      group.sure = group.row !== undefined
      if (!this.#isOwn(group, now)) again.push(group)
    })
    this.#flush()
    return again
  }

  #done<A>(group: Group<A>, from: JobRow | null, to: JobRow | null, now: number): void {
    group.row = to
    this.#leases.delete(group.key)
    if (to?.record.state === 'processing') this.#remember(to)
    const hint = hintAt(from?.record ?? null, to?.record ?? null, now)
    if (hint?.type === 'due') this.#dueInMs = Math.min(this.#dueInMs ?? hint.inMs, hint.inMs)
    else if (hint !== null) this.#options.emit(hint)
    const outboxInMs = outboxIn(to?.record ?? null, now)
    if (outboxInMs !== null) this.#options.emit({ type: 'outbox', inMs: outboxInMs })
  }

  /** Sends one hint for all that has become due together. */
  #flush(): void {
    if (this.#dueInMs === null) return
    const inMs = this.#dueInMs
    this.#dueInMs = null
    this.#options.emit({ type: 'due', inMs })
  }

  #remember(row: JobRow): void {
    const { leaseCacheMax } = this.#options
    if (leaseCacheMax === 0) return
    this.#leases.set(row.key, row)
    if (this.#leases.size <= leaseCacheMax) return
    for (const key of this.#leases.keys()) {
      this.#leases.delete(key)
      break
    }
  }

  /** Gets the payloads that the store keeps apart, of what the caller has leased. */
  async #fill<A>(groups: readonly Group<A>[], { leased }: RunOptions<A>): Promise<void> {
    const { store } = this.#options
    if (store.fill === undefined || leased === undefined) return
    const held = groups.filter(
      ({ row, done, error }) =>
        error === null && row?.record.state === 'processing' && done.some(({ answer }) => leased(answer)),
    )
    if (held.length === 0) return
    let rows: readonly (JobRow | AskonceError)[]
    try {
      rows = await store.fill(held.map(({ row }) => row!))
    } catch (error) {
      for (const group of held) group.error = typed(error)
      return
    }
    held.forEach((group, i) => {
      const row = rows[i]!
      if (row instanceof AskonceError) {
        group.error = row
        return
      }
      const filled = row.record
      if (isTerminal(filled)) return
      group.done = group.done.map((done) =>
        done.record === null || isTerminal(done.record)
          ? done
          : { ...done, record: { ...done.record, payload: filled.payload } },
      )
    })
  }
}

/** Whether an answer that changes nothing would rest on a row that was not read, or that ended since and may have been kept longer. */
function isUnconfirmed<A>({ row, sure }: Group<A>, lookedAt: number, now: number): boolean {
  if (!sure || row === undefined) return true
  return row !== null && forgottenFrom(row.record) > lookedAt && forgottenFrom(row.record) <= now
}

/** Lets the machine decide on a group's row; answers the swap that it takes, or null for none. */
function decide<A>(group: Group<A>, now: number): Change | null {
  const from = group.row ?? null
  const before = from === null ? null : living(from.record, now)
  let record = from === null ? null : from.record
  const done: Done<A>[] = []
  let forgotten = false
  for (const task of group.tasks) {
    const { record: after, answer } = task.apply(record, now)
    forgotten ||= answer === 'forgotten'
    done.push({ error: null, answer, record: after })
    record = after
  }
  group.done = done
  // A row past its end counts as none, but only a sweep removes it: reading must not cost a write.
  if (record === before && !forgotten) return null
  if (record === null) return { key: group.key, from, to: null }
  const to: JobRow = { type: 'job', key: group.key, version: newVersion(), record }
  group.tried.set(to.version, { done, from })
  return { key: group.key, from, to }
}

/** The hint at what a swap has changed. */
function hintAt(stored: JobRecord | null, to: JobRecord | null, now: number): Hint | null {
  const from = living(stored, now)
  if (to === null) {
    if (from === null) return null
    return { type: 'cancelled', id: from.spec.id, incarnation: from.spec.incarnation }
  }
  if (isTerminal(to)) {
    return from !== null && isTerminal(from) ? null : { type: 'settled', id: to.spec.id, record: to }
  }
  if (to.inline) return null
  // A lease is no news to workers, but for that of an inline run that has become theirs to watch.
  const news = to.state !== 'processing' || (from !== null && !isTerminal(from) && from.inline)
  return news ? { type: 'due', inMs: Math.max(0, to.at - now) } : null
}

/** Until a record's rows are to be delivered, ms; null if it has none, or they are being delivered. */
function outboxIn(record: JobRecord | null, now: number): number | null {
  if (record?.state !== 'completed' || record.outbox === undefined || record.outbox.generation !== null) return null
  return Math.max(0, record.outbox.at - now)
}

/** Lets the runs of one process come to one key one after the other: between themselves they need no swap that fails. */
class KeyLocks {
  readonly #tails = new Map<string, Promise<void>>()

  /** Queues up for all keys at once, so that two runs can't wait for each other. `ready` is null if nobody is before. */
  take(keys: Iterable<string>): { ready: Promise<unknown> | null; release: () => void } {
    const mine = [...keys]
    const before: Promise<void>[] = []
    let end!: () => void
    const turn = new Promise<void>((resolve) => {
      end = resolve
    })
    for (const key of mine) {
      const tail = this.#tails.get(key)
      if (tail !== undefined) before.push(tail)
      this.#tails.set(key, turn)
    }
    const release = (): void => {
      for (const key of mine) if (this.#tails.get(key) === turn) this.#tails.delete(key)
      end()
    }
    return { ready: before.length === 0 ? null : Promise.all(before), release }
  }
}

// Unique by the random part among processes and threads, by the count within one.
const versionPrefix = randomBytes(12).toString('base64url')
let versions = 0

/** A version that no write had before. */
export function newVersion(): string {
  return `${versionPrefix}${(versions++).toString(36)}`
}

/** Waits before a round: not before the first two, then ever longer up to 50 ms, with full jitter. */
export function pause(clock: Clock, random: () => number, round: number): Promise<void> | undefined {
  if (round < 2) return undefined
  const ms = random() * Math.min(50, 2 ** (round - 1))
  return new Promise((resolve) => void clock.timer(resolve, ms, true))
}

/** Other writers were faster in every round. */
export function contended(): StorageError {
  return new StorageError('the record is contended: other writers were faster each time. Try again later', {
    retryable: true,
  })
}

/** What is thrown for what a store threw. */
export function typed(error: unknown): AskonceError {
  return error instanceof AskonceError ? error : new StorageError('the store failed', { cause: error, retryable: true })
}

/** Whether the same change may succeed if it is tried again. */
export function isRetryable(error: unknown): boolean {
  const problem = typed(error)
  return problem instanceof StorageError && problem.retryable
}
