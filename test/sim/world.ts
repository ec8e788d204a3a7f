/**
 * One simulated world: a storage, some processes that use it, and the oracles that watch. All of it comes from one seed.
 *
 * @module
 */

import type { JobRecord, Verdict } from '../../src/record.ts'
import { forgottenFrom, isTerminal } from '../../src/record.ts'
import type { Row } from '../../src/record-store.ts'
import { fromRecordStore } from '../../src/record-store.ts'
import type { ClaimAnswer, ClaimRequest, Settlement, Storage, StorageHandle } from '../../src/storage.ts'
import type { FaultKind, Faults } from '../../storages/conformance/testing/faults.ts'
import { noFaults } from '../../storages/conformance/testing/faults.ts'
import { faultyRecordStore } from '../../storages/conformance/testing/faulty-record-store.ts'
import type { Call, CallObserver } from '../../storages/conformance/testing/faulty-storage.ts'
import { faultyStorage } from '../../storages/conformance/testing/faulty-storage.ts'
import type { RecordOracle } from '../../storages/conformance/testing/record-checker.ts'
import { RecordChecker } from '../../storages/conformance/testing/record-checker.ts'
import { Seeded } from '../../storages/conformance/testing/seeded.ts'
import { leaseKey } from '../../storages/conformance/testing/tokens-sent.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { Ledger } from './ledger.ts'
import { SimProcess } from './process.ts'
import { Rows, rowTraits } from './rows.ts'
import { Scheduler } from './scheduler.ts'
import type { Setting, Tier, Weather } from './setting.ts'
import { drawSetting } from './setting.ts'

/** A promise that the simulation watches. */
export type Oracle =
  | RecordOracle
  /** Callers are told what is so. */
  | 'answers'
  /** A cancelled job is gone, and its payload does not run. */
  | 'cancel'
  /** While the queue is held nothing is leased; workers get no inline runs. */
  | 'claims'
  /** A handler is called once a lease, with the payload that was asked for, and its verdict is what is stored. */
  | 'handlers'
  /** Once faults stop, every job ends, every caller is answered, every stop comes to its end. */
  | 'liveness'
  /** No wait is longer than its time-out. */
  | 'time-outs'
  /** A lease that has ended aborts its handler's signal. */
  | 'signals'
  /** Without faults no lease runs out and no call fails. */
  | 'calm'
  /** Without faults an idle worker takes what is due, and a waiter is answered, long before a poll would see to it. */
  | 'promptness'
  /** Nothing stays: no timer of a stopped queue, no record past its end. */
  | 'leftovers'
  /** What is thrown is typed; nothing is rejected without a listener. */
  | 'errors'

/** A broken promise. */
export interface Violation {
  readonly oracle: Oracle
  readonly message: string
}

/** How long after the faults have stopped everything must be at its end, ms of virtual time. */
export const boundMs = 120_000
/** Without faults, what must happen at once may take this long, ms. */
const promptMs = 60

export class World {
  readonly random: Seeded
  readonly scheduler: Scheduler
  readonly setting: Setting
  readonly ledger: Ledger
  readonly checker: RecordChecker
  readonly processes: SimProcess[] = []
  readonly faultCounts: { [kind in FaultKind | 'crash' | 'stall' | 'jump']?: number } = {}
  /** The weather now: every network reads it at each call. */
  readonly faults: Faults
  /** Processes so far. */
  born = 0
  violation: Violation | null = null
  /** Whether things still go wrong, and clients still ask. */
  stormy = true
  /** Calls made by clients so far. */
  calls = 0
  /** Of all that happened, in order: the same for the same seed. */
  hash = 0x811c9dc5
  heldUntil = 0
  readonly #memory: MemoryStorage
  readonly #rows: Rows
  readonly #mirror = new Map<string, JobRecord>()
  readonly #trace: ((line: string) => void) | null
  #audit: StorageHandle | null = null

  constructor(seed: number, given: { weather?: Weather; tier?: Tier; trace?: (line: string) => void } = {}) {
    this.random = new Seeded(seed)
    this.setting = drawSetting(this.random, given)
    this.#trace = given.trace ?? null
    this.scheduler = new Scheduler(this.random)
    this.faults = { ...this.setting.faults }
    const { graceMs, skewMs, tier } = this.setting
    this.ledger = new Ledger(tier === 'memory' ? 0 : 2 * skewMs)
    this.checker = new RecordChecker({ graceMs, fail: (oracle, message) => this.fail(oracle, message) })
    this.#memory = new MemoryStorage({ clock: this.scheduler.clock(this.scheduler.nobody, false) })
    this.#rows = new Rows(graceMs, tier === 'pushing rows')
  }

  get now(): number {
    return this.scheduler.now
  }

  get calm(): boolean {
    return this.setting.weather === 'calm'
  }

  /** A promise is broken: the first one counts, and ends the run. */
  fail(oracle: Oracle, message: string): void {
    this.violation ??= { oracle, message }
    this.say(() => `VIOLATION of ${oracle}: ${message}`)
    this.scheduler.stop()
  }

  /** Tells a trace, and mixes what happened into the hash. */
  say(line: () => string): void {
    this.#trace?.(`${String(this.now - 1_700_000_000_000).padStart(7)} ${line()}`)
  }

  mix(value: number): void {
    this.hash = Math.imul(this.hash ^ value, 0x01000193) >>> 0
  }

  count(kind: FaultKind | 'crash' | 'stall' | 'jump'): void {
    this.faultCounts[kind] = (this.faultCounts[kind] ?? 0) + 1
  }

  /** The storage as a process sees it. */
  storageFor(process: SimProcess): Storage {
    const shared = {
      clock: process.wireClock,
      wire: this.scheduler.clock(this.scheduler.nobody, false),
      random: this.random.next,
      faults: this.faults,
      onFault: (kind: FaultKind) => this.count(kind),
    }
    if (this.setting.tier === 'memory') {
      return faultyStorage(process.leaving(this.#memory), { ...shared, observer: this.#observer(process) })
    }
    const { graceMs, createFirst, leaseCacheMax, holdCacheMs, tier } = this.setting
    const storage = fromRecordStore({
      traits: rowTraits(tier === 'pushing rows'),
      clock: process.clock,
      random: this.random.next,
      graceMs,
      createFirst,
      leaseCacheMax,
      holdCacheMs,
      open: async () => faultyRecordStore(this.#rows.store(this.#rowObserver(process)), shared),
    })
    const still = { ...shared, faults: noFaults, observer: this.#observer(process) }
    return faultyStorage(process.leaving(storage), still)
  }

  #observer(process: SimProcess): CallObserver {
    const sentAt = new WeakMap<Call, number>()
    const memory = this.setting.tier === 'memory'
    return {
      sent: (call) => {
        sentAt.set(call, this.now)
        this.checker.sent(call)
      },
      ...(memory ? { made: (call: Call, answer: unknown) => this.#made(call, answer) } : {}),
      replied: (call, answer) => {
        this.mix(this.now)
        this.say(() => `${process.name} ${call.operation} answered ${JSON.stringify(answer)?.slice(0, 300)}`)
        this.#believe(process, call, answer, sentAt.get(call) as number)
      },
    }
  }

  /** What its owner now believes of a lease. */
  #believe(process: SimProcess, { operation, args }: Call, answer: any, sentAt: number): void {
    const believe = (id: string, generation: string, leaseMs: number): void => {
      this.checker.believed(id, generation, sentAt + leaseMs)
      process.believes(id, generation, sentAt + leaseMs)
    }
    const claimed = (request: ClaimRequest, claim: ClaimAnswer | null): void => {
      for (const { spec, generation } of claim?.jobs ?? []) believe(spec.id, generation, request.leaseMs)
    }
    if (operation === 'claim') claimed(args[0] as ClaimRequest, answer)
    else if (operation === 'settle') claimed(args[1] as ClaimRequest, answer.claim)
    else if (operation === 'extend') {
      const items = args[0] as readonly { id: string; generation: string; leaseMs: number }[]
      items.forEach(({ id, generation, leaseMs }, index) => {
        if (answer[index] === 'extended') believe(id, generation, leaseMs)
      })
    } else if (operation === 'enqueue') {
      const items = args[0] as readonly { lease: { leaseMs: number } | null }[]
      items.forEach(({ lease }, index) => {
        const { leased, record } = answer.answers[index]
        if (leased) believe(record.spec.id, record.generation, lease!.leaseMs)
      })
    }
  }

  /** Memory did a call: what of it changed? */
  #made(call: Call, answer: unknown): void {
    const { operation, args } = call
    if (operation === 'open' || operation === 'close') return
    this.say(() => `  made ${operation} ${JSON.stringify(args).slice(0, 300)}`)
    const claim =
      operation === 'claim'
        ? (answer as ClaimAnswer)
        : operation === 'settle'
          ? (answer as { claim: ClaimAnswer | null }).claim
          : null
    if (claim !== null) this.#judgeClaim(operation === 'claim' ? args[0] : args[1], claim)
    if (operation === 'settle' && claim !== null) this.#settledFirst(args[0] as readonly Settlement[], claim)
    if (operation === 'hold') {
      const [ms] = args as [number]
      this.heldUntil = ms === 0 ? 0 : Math.max(this.heldUntil, this.now + ms)
    }
    void this.#compare()
  }

  #judgeClaim(asked: unknown, claim: ClaimAnswer): void {
    const { ids, generation } = asked as ClaimRequest
    for (const job of claim.jobs) {
      const before = this.#mirror.get(job.spec.id)
      const again = before?.state === 'processing' && before.generation === generation
      if (this.heldUntil > this.now && !again) this.fail('claims', `'${job.spec.id}': leased while the queue is held`)
      if (ids === undefined && job.inline) this.fail('claims', `'${job.spec.id}': an inline run was given to a worker`)
    }
  }

  /** A call that settles and claims may do two things to one record: they are looked at one by one. */
  #settledFirst(items: readonly Settlement[], claim: ClaimAnswer): void {
    const claimed = new Set([...claim.jobs, ...claim.exhausted].map(({ spec }) => spec.id))
    for (const { id, generation, verdict } of items) {
      const before = this.#mirror.get(id)
      if (!claimed.has(id) || before?.state !== 'processing' || before.generation !== generation) continue
      const between = openAfter(before, verdict, this.now)
      if (between !== null) this.#changed(id, between, { lo: this.now, hi: this.now })
    }
  }

  /** Reads all that is stored, and has the checker look at what is new. */
  async #compare(): Promise<void> {
    const { ids } = this.setting
    this.#audit ??= await this.#memory.open('sim')
    const { records } = await this.#audit.get(ids)
    const decided = { lo: this.now, hi: this.now }
    for (let index = 0; index < ids.length; index++) {
      this.#changed(ids[index] as string, records[index] ?? null, decided)
    }
  }

  #rowObserver(process: SimProcess): (key: string, before: Row | null, after: Row | null) => void {
    return (key, _before, after) => {
      if (key === '' || after?.type === 'hold') return
      // The change was decided before its request travelled, by a clock that may have jumped since.
      const { skewMs, faults } = this.setting
      const hi = process.clock.now() + 2 * skewMs
      const lo = hi - 4 * skewMs - 2 * Math.max(faults.slowMs, faults.latencyMs)
      this.#changed(key, after === null ? null : after.record, { lo, hi })
    }
  }

  #changed(id: string, after: JobRecord | null, decided: { lo: number; hi: number }): void {
    const before = this.#mirror.get(id) ?? null
    if (before === after) return
    this.checker.changed(id, before, after, decided, this.now)
    // What is past its end goes without anybody's doing.
    const forgotten = after === null && before !== null && forgottenFrom(before) <= decided.lo
    const life = forgotten ? null : this.ledger.changed(id, before, after, this.now)
    this.mix(this.now)
    this.mix(id.charCodeAt(0) * 16 + (after === null ? 0 : after.state.length))
    this.mix(after?.at ?? 0)
    this.say(() => `    '${id}' ${before?.state ?? 'absent'} -> ${after === null ? 'absent' : showRecord(after)}`)
    if (after === null) this.#mirror.delete(id)
    else this.#mirror.set(id, after)
    if (after !== null && isTerminal(after)) this.#judgeVerdict(id, before, after)
    if (this.calm) this.#judgeCalm(id, before, after)
    if (this.calm && life !== null) this.#mustAnswerSoon(id)
    if (this.calm && after !== null) this.#mustStartSoon(after)
  }

  #judgeVerdict(id: string, before: JobRecord | null, after: JobRecord): void {
    if (after.state !== 'completed' || before?.state !== 'processing') return
    const run = after.generation === null ? undefined : this.ledger.runs.get(leaseKey(id, after.generation))
    if (run?.returned !== after.result) this.fail('handlers', `'${id}': completed with what no handler answered`)
  }

  #judgeCalm(id: string, before: JobRecord | null, after: JobRecord | null): void {
    for (const [other, record] of this.#mirror) {
      if (record.state === 'processing' && record.at <= this.now) this.fail('calm', `'${other}': its lease ran out`)
    }
    if (before?.state !== 'processing' || after?.state !== 'processing') return
    if (before.generation !== after.generation) this.fail('calm', `'${id}': its lease was taken over`)
  }

  /** Without faults whoever waits for the id is answered long before a poll. */
  #mustAnswerSoon(id: string): void {
    if (this.setting.tier !== 'memory') return
    const from = this.now - promptMs / 2
    this.scheduler.schedule(this.scheduler.nobody, promptMs, () => {
      for (const process of this.processes) process.mustHaveAnswered(id, from)
    })
  }

  /** Without faults an idle worker begins what is due long before a poll. */
  #mustStartSoon(record: JobRecord): void {
    if (this.setting.tier !== 'memory' || isTerminal(record) || record.inline || record.state === 'processing') return
    const dueAt = Math.max(record.at, this.now)
    if (dueAt - this.now > boundMs) return
    const { scheduler } = this
    scheduler.schedule(scheduler.nobody, dueAt - this.now + promptMs, () => {
      if (this.#mirror.get(record.spec.id) !== record || this.heldUntil > dueAt) return
      const idle = this.processes.find((process) => process.idleSince(dueAt - promptMs))
      if (idle !== undefined)
        this.fail('promptness', `'${record.spec.id}': due for ${promptMs} ms, and ${idle.name} is idle`)
    })
  }

  /** Records that live and have not ended. */
  get open(): JobRecord[] {
    return [...this.#mirror.values()].filter((record) => {
      if (isTerminal(record)) return false
      return !record.inline || record.at + record.spec.resultTTL + this.setting.graceMs > this.now
    })
  }

  /** Another process in place of one that crashed, or a first one. */
  spawn(slot: number): void {
    this.processes[slot] = new SimProcess(this, slot)
    this.processes[slot].begin()
  }

  /** All that the storage still has. */
  async remains(): Promise<string[]> {
    if (this.setting.tier === 'memory') {
      const handle = await this.#memory.open('sim')
      await handle.sweep(1_000)
      const { queued, processing, failing, completed, failed } = await handle.stats()
      const left = { queued, processing, failing, completed, failed }
      return Object.entries(left).flatMap(([state, count]) => (count === 0 ? [] : [`${count} ${state}`]))
    }
    const storage = fromRecordStore({
      traits: rowTraits(false),
      clock: this.scheduler.clock(this.scheduler.nobody, false),
      open: async () => this.#rows.store(() => {}),
    })
    const handle = await storage.open('sim')
    await handle.sweep(1_000)
    await handle.hold(0)
    return [...this.#rows.rows.values()].map((row) => (row.type === 'hold' ? 'a hold' : showRecord(row.record)))
  }
}

/** What a settlement makes of a lease if that can be claimed again at once; null if it can't. */
function openAfter(before: JobRecord & { state: 'processing' }, verdict: Verdict, now: number): JobRecord | null {
  if (verdict.kind === 'release') {
    return { ...before, state: 'queued', attempts: before.attempts - 1, at: now + verdict.delayMs }
  }
  if (verdict.kind === 'retry' && before.attempts < before.spec.maxAttempts) {
    return { ...before, state: 'failing', error: verdict.error, at: now + verdict.delayMs }
  }
  return null
}

function showRecord(record: JobRecord): string {
  const inline = !isTerminal(record) && record.inline ? ' inline' : ''
  const { state, attempts, spec, at } = record
  return `${state}${inline} ${attempts}/${spec.maxAttempts} until ${at - 1_700_000_000_000} of ${spec.incarnation.slice(-6)}`
}
