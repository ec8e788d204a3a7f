/**
 * Claims on a store of rows. Claims for whatever is due that come while one is under way share the next look: one hint
 * request serves them all, and no two claims of a process ever fight for one row.
 *
 * @module
 */

import type { Clock } from './clock.ts'
import { limits } from './limits.ts'
import type { ClaimOutcome, Step } from './machine.ts'
import { step } from './machine.ts'
import type { JobRecord, ProcessingRecord } from './record.ts'
import { DueReader } from './record-due.ts'
import type { HoldKeeper } from './record-hold.ts'
import type { JobRow, RecordStore } from './record-store.ts'
import { claimableFrom } from './record-store.ts'
import type { Outcome, Swapper, Task } from './record-swapper.ts'
import type { ClaimAnswer, ClaimRequest } from './storage.ts'

/** Rounds for a row that was changed meanwhile: mostly another has it, and there are others. */
const claimRounds = 2

interface DueClaimsOptions {
  readonly store: RecordStore
  readonly clock: Clock
  readonly graceMs: number
  readonly swapper: Swapper
  readonly hold: HoldKeeper
}

/** A claim that waits for, or gets, its jobs. */
interface Wish {
  readonly request: ClaimRequest
  readonly jobs: ProcessingRecord[]
  readonly exhausted: JobRecord[]
  readonly resolve: (answer: ClaimAnswer) => void
  readonly reject: (error: unknown) => void
}

/** Claims of one namespace. */
export class DueClaims {
  readonly #options: DueClaimsOptions
  #waiting: Wish[] = []
  #busy = false
  /** Whether the last look found something. */
  #found = false

  constructor(options: DueClaimsOptions) {
    this.#options = options
  }

  /** Leases whatever is due. */
  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, jobs: [], exhausted: [], resolve, reject })
      if (!this.#busy) void this.#serve()
    })
  }

  /** Leases those of these ids that are due. */
  async claimIds(request: ClaimRequest, ids: readonly string[]): Promise<ClaimAnswer> {
    const { swapper, hold, clock, graceMs } = this.#options
    const heldUntil = await hold.until()
    const jobs: ProcessingRecord[] = []
    const exhausted: JobRecord[] = []
    const left = [...new Set(ids)]
    const { generation, leaseMs } = request
    const apply = (record: JobRecord | null, now: number): Step<ClaimOutcome> => {
      // A lease got before the hold began is answered as it was: this is that call once more, its reply lost.
      const mine = record?.state === 'processing' && record.generation === generation
      if (heldUntil > now && !mine) return { record, answer: 'refused' }
      return step(record, { type: 'claim', generation, leaseMs, graceMs }, now)
    }
    while (left.length > 0 && jobs.length < request.limit) {
      const tasks = left.splice(0, request.limit - jobs.length).map((key) => ({ key, apply }))
      const error = tally((await swapper.run(tasks, { partial: true, leased })).outcomes, jobs, exhausted)
      // Leases that were made must be told of, whatever became of the others; they can be asked for again.
      if (error !== null && jobs.length === 0 && exhausted.length === 0) throw error
      if (error !== null) break
    }
    return { now: clock.now(), jobs, exhausted, nextInMs: null, heldForMs: Math.max(0, heldUntil - clock.now()) }
  }

  async #serve(): Promise<void> {
    this.#busy = true
    try {
      while (this.#waiting.length > 0) {
        const wishes = this.#next()
        try {
          await this.#claimFor(wishes)
        } catch (error) {
          for (const { reject } of wishes) reject(error)
        }
      }
    } finally {
      this.#busy = false
    }
  }

  /** The longest-waiting wishes, as many as one look can serve. */
  #next(): Wish[] {
    let sum = 0
    let count = 0
    while (count < this.#waiting.length) {
      sum += this.#waiting[count]!.request.limit
      if (count > 0 && sum > limits.callItemsMax) break
      count++
    }
    return this.#waiting.splice(0, count)
  }

  async #claimFor(wishes: readonly Wish[]): Promise<void> {
    const { store, clock, hold, graceMs } = this.#options
    const due = new DueReader(store, clock, 'claimable')
    let problem: unknown = null
    let heldUntil = 0
    let heldBack = false
    let open = [...wishes]
    const wanted = () => open.reduce((sum, { request, jobs }) => sum + request.limit - jobs.length, 0)
    try {
      heldUntil = hold.remembered() ?? 0
      // A namespace that is known to be held needs no look; one that is not known to be is looked at meanwhile.
      const looking = heldUntil > clock.now() ? [] : due.next(wanted())
      // An idle queue's looks find nothing; where a hold may be noticed late, they need not ask for one each time.
      const idle = hold.cached && !this.#found
      const [until, first] = idle ? [null, await looking] : await Promise.all([hold.until(), looking])
      this.#found = first.length > 0
      heldUntil = until ?? (this.#found ? await hold.until() : heldUntil)
      let items = heldUntil > clock.now() ? [] : first
      heldBack = items.length < first.length
      while (items.length > 0 && problem === null) {
        problem = await this.#lease(items, open)
        open = open.filter(({ request, jobs }) => jobs.length < request.limit)
        items = open.length === 0 ? [] : await due.next(wanted())
      }
    } catch (error) {
      problem = error
    }
    const now = clock.now()
    const ends = wishes.flatMap(({ jobs }) =>
      jobs.map((job) => claimableFrom(job, graceMs) ?? Number.POSITIVE_INFINITY),
    )
    // Where the store can't tell what comes next, the ends of the leases just made say nothing about the rest.
    const nextAt = due.left || heldBack ? now : due.nextAt === null ? null : Math.min(due.nextAt, ...ends)
    const nextInMs = nextAt === null ? null : Math.max(0, nextAt - now)
    const heldForMs = Math.max(0, heldUntil - now)
    for (const { jobs, exhausted, resolve, reject } of wishes) {
      // Leases that were made must be told of: without that they would have to run out.
      if (problem !== null && jobs.length === 0 && exhausted.length === 0) reject(problem)
      else resolve({ now, jobs, exhausted, nextInMs, heldForMs })
    }
  }

  /** Tries these rows, the first for the first wish; answers the first problem. */
  async #lease(items: readonly (string | JobRow)[], wishes: readonly Wish[]): Promise<unknown> {
    const { swapper, graceMs } = this.#options
    const owners: Wish[] = []
    for (const wish of wishes) {
      for (let i = wish.jobs.length; i < wish.request.limit && owners.length < items.length; i++) owners.push(wish)
    }
    const tasks = items.map((item, i): Task<ClaimOutcome> => {
      const { generation, leaseMs } = owners[i]!.request
      const apply = (record: JobRecord | null, now: number): Step<ClaimOutcome> => {
        // A wrong hint must not bring a worker what only its own caller may run.
        if (record !== null && claimableFrom(record, graceMs) === null) return { record, answer: 'refused' }
        return step(record, { type: 'claim', generation, leaseMs, graceMs }, now)
      }
      return typeof item === 'string' ? { key: item, apply } : { key: item.key, apply, assume: item }
    })
    const { outcomes } = await swapper.run(tasks, { rounds: claimRounds, partial: true, leased, believe: true })
    let problem: unknown = null
    for (let i = 0; i < outcomes.length; i++) {
      problem ??= tally([outcomes[i]!], owners[i]!.jobs, owners[i]!.exhausted)
    }
    return problem
  }
}

function leased(answer: ClaimOutcome): boolean {
  return answer === 'leased'
}

/** Sorts outcomes; answers the first problem that is not mere contention. */
function tally(outcomes: readonly Outcome<ClaimOutcome>[], jobs: ProcessingRecord[], exhausted: JobRecord[]): unknown {
  let problem: unknown = null
  for (const { answer, record, error, lost } of outcomes) {
    if (error !== null) {
      if (!lost) problem ??= error
    } else if (record !== null) {
      if (answer === 'leased') jobs.push(record as ProcessingRecord)
      else if (answer === 'exhausted') exhausted.push(record)
    }
  }
  return problem
}
