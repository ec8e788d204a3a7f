/**
 * A namespace in Redis on a virtual time, and what the machine says is in it: every call is made to both, and what they
 * answer and leave behind compared. As time stands still while a call runs, both must agree to the millisecond.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { Answers, Command } from '../../src/machine.ts'
import { living, step } from '../../src/machine.ts'
import type { JobRecord, Outbox, Verdict } from '../../src/record.ts'
import { complete, fail, isTerminal, release, retry } from '../../src/record.ts'
import type { ClaimAnswer, ClaimRequest, EnqueueItem, StorageHandle } from '../../src/storage.ts'
import type { Seeded } from '../support/seeded.ts'
import type { VirtualTime } from './virtual-client.ts'

/** Every script that does what a command of the machine says. */
export const operations = [
  'enqueue',
  'claim',
  'claimThese',
  'settle',
  'extend',
  'cancel',
  'touch',
  'mark',
  'deliver',
  'get',
] as const

export type Operation = (typeof operations)[number]

/** Random calls to Redis and to the machine. */
export class ScriptModel {
  readonly #handle: StorageHandle
  readonly #time: VirtualTime
  readonly #random: Seeded
  readonly #ids: readonly string[]
  readonly #records = new Map<string, JobRecord>()
  #held = 0
  #tokens = 0

  constructor(handle: StorageHandle, time: VirtualTime, random: Seeded) {
    this.#handle = handle
    this.#time = time
    this.#random = random
    this.#ids = ['a', 'ü\n{b}', 'c', 'd'.repeat(1_024)]
  }

  /** One call of the operation with random arguments. */
  async call(operation: Operation): Promise<void> {
    switch (operation) {
      case 'enqueue':
        return this.#enqueue()
      case 'claim':
        return this.#claim(this.#wish(), (request) => this.#handle.claim(request))
      case 'claimThese':
        return this.#claim({ ...this.#wish(), ids: this.#some(() => this.#id()) }, (request) =>
          this.#handle.claim(request),
        )
      case 'settle':
        return this.#settle()
      case 'extend': {
        const items = this.#some(() => ({ ...this.#lease(), leaseMs: this.#duration() }))
        const answers = await this.#handle.extend(items)
        for (const [index, { id, ...lease }] of items.entries()) {
          this.#step(id, { type: 'extend', ...lease }, answers[index])
        }
        return this.#compare()
      }
      case 'cancel': {
        const ids = this.#some(() => this.#id())
        const answers = await this.#handle.cancel(ids)
        for (const [index, id] of ids.entries()) this.#step(id, { type: 'cancel' }, answers[index])
        return this.#compare()
      }
      case 'touch': {
        const items = this.#some(() => ({ id: this.#id(), ttlMs: this.#duration() }))
        const answers = await this.#handle.touch(items)
        for (const [index, { id, ttlMs }] of items.entries()) this.#step(id, { type: 'touch', ttlMs }, answers[index])
        return this.#compare()
      }
      case 'mark': {
        const names = ['mail', 'mai', 'm'.repeat(64)]
        const items = this.#some(() => ({
          id: this.#id(),
          name: this.#random.pick(names),
          token: this.#random.pick(['one', 'two', 't'.repeat(64)]),
        }))
        const answers = await this.#handle.mark(items)
        for (const [index, { id, ...mark }] of items.entries())
          this.#step(id, { type: 'mark', ...mark }, answers[index])
        return this.#compare()
      }
      case 'deliver':
        return this.#deliver()
      case 'get':
        return this.#compare()
    }
  }

  /** Lets time pass, often to the very moment at which something ends; or changes the hold. */
  async pass(): Promise<void> {
    const random = this.#random
    if (random.chance(0.2)) {
      const ms = random.chance(0.5) ? 0 : 1 + random.below(40)
      await this.#handle.hold(ms)
      this.#held = ms === 0 ? 0 : Math.max(this.#held, this.#now + ms)
      return
    }
    const times = [...this.#records.values()].flatMap((record) => [
      record.at,
      'kept' in record && record.kept !== undefined ? record.kept.until : record.at,
      ...('outbox' in record && record.outbox !== undefined ? [record.outbox.at, record.outbox.until] : []),
    ])
    const ends = times.map((at) => at - this.#now).filter((ms) => ms > 0)
    const aim = ends.length === 0 ? 1 : random.pick(ends)
    this.#time.advance(Math.max(1, random.pick([aim, aim - 1, 1 + random.below(30)])))
  }

  get #now(): number {
    return this.#time.now
  }

  /** One transition of the machine; expects the script's answer. */
  #step<C extends Command>(id: string, command: C, answer: Answers[C['type']] | undefined): void {
    const before = this.#records.get(id) ?? null
    const { record, answer: expected } = step(before, command, this.#now)
    assert.deepEqual(answer, expected, `${command.type} of ${id}, which is ${before?.state ?? 'nowhere'}`)
    if (record === null) this.#records.delete(id)
    else this.#records.set(id, record)
  }

  async #enqueue(): Promise<void> {
    const items = this.#some(() => this.#item())
    const { now, answers } = await this.#handle.enqueue(items)
    assert.equal(now, this.#now)
    const heldMs = Math.max(0, this.#held - now)
    for (const [index, item] of items.entries()) {
      const { spec, payload, delayMs, rejectMismatch, lease, refresh = false } = item
      const held = lease !== null && heldMs > 0
      const { record, ...outcome } = answers[index] as (typeof answers)[number]
      const { id } = spec
      const before = this.#records.get(id)
      // A lease that was got before the hold is answered as it was.
      const own = before?.state === 'processing' && before.generation === lease?.generation
      const terms = lease === null || (held && !own) ? null : { ...lease, graceMs: 0 }
      const ms = held ? Math.max(delayMs, heldMs) : delayMs
      const inline = lease !== null
      this.#step(
        id,
        { type: 'enqueue', spec, payload, delayMs: ms, rejectMismatch, lease: terms, inline, refresh },
        outcome,
      )
      this.#same(record, this.#records.get(id) as JobRecord, outcome.leased ? 'holder' : 'reader', id)
    }
    await this.#compare()
  }

  async #claim(request: ClaimRequest, call: (request: ClaimRequest) => Promise<ClaimAnswer>): Promise<void> {
    const { generation, leaseMs, limit, ids } = request
    const answer = await call(request)
    assert.equal(answer.now, this.#now)
    assert.equal(answer.heldForMs, Math.max(0, this.#held - this.#now))
    const named = ids === undefined ? null : [...new Set(ids)]
    const has = (id: string) => {
      const record = this.#records.get(id)
      return record?.state === 'processing' && record.generation === generation
    }
    const due = this.#due(named)
    const told = [...answer.jobs, ...answer.exhausted].map(({ spec }) => spec.id)
    for (const id of told) assert.ok(due.includes(id) || has(id), `${id} is not due`)
    if (named === null)
      assert.deepEqual(
        told.map((id) => this.#at(id)).toSorted(),
        due.slice(0, told.length).map((id) => this.#at(id)),
      )
    for (const [jobs, outcome] of [
      [answer.jobs, 'leased'],
      [answer.exhausted, 'exhausted'],
    ] as const) {
      for (const job of jobs) {
        const { id } = job.spec
        this.#step(id, { type: 'claim', generation, leaseMs, graceMs: 0 }, outcome)
        this.#same(job, this.#records.get(id) as JobRecord, 'holder', id)
      }
    }
    assert.ok(answer.jobs.length <= limit)
    if (answer.jobs.length < limit) assert.deepEqual(this.#due(named), [], 'something due was left')
    if (answer.nextInMs !== null && answer.heldForMs === 0) {
      const next = [...this.#records.values()].filter((record) => !isTerminal(record) && !record.inline)
      assert.equal(answer.nextInMs, Math.max(0, Math.min(...next.map(({ at }) => at)) - this.#now))
    }
    await this.#compare()
  }

  async #settle(): Promise<void> {
    const items = this.#some(() => ({ ...this.#lease(), verdict: this.#verdict() }))
    const apply = (answers: readonly unknown[]) => {
      for (const [index, { id, ...rest }] of items.entries()) {
        this.#step(id, { type: 'settle', ...rest }, answers[index] as 'settled')
      }
    }
    if (this.#random.chance(0.5)) {
      apply((await this.#handle.settle(items, null)).answers)
      return this.#compare()
    }
    await this.#claim(this.#wish(), async (request) => {
      const { answers, claim } = await this.#handle.settle(items, request)
      apply(answers)
      return claim as ClaimAnswer
    })
  }

  async #deliver(): Promise<void> {
    const random = this.#random
    const items = this.#some(() => {
      const id = this.#idWhere(({ spec }) => this.#box(spec.id)?.generation != null)
      const generation = this.#box(id)?.generation
      return {
        id,
        generation: generation && random.chance(0.85) ? generation : this.#token(),
        rows: random.chance(0.5) ? null : 'ü left',
        delayMs: random.chance(0.5) ? 0 : this.#duration(),
      }
    })
    const request = random.chance(0.7) ? this.#wish() : null
    const { answers, collected } = await this.#handle.deliver(items, request)
    for (const [index, { id, ...rest }] of items.entries()) this.#step(id, { type: 'deliver', ...rest }, answers[index])
    if (request === null || collected === null) return this.#compare()
    const { generation, leaseMs, limit } = request
    assert.equal(collected.now, this.#now)
    const due = () => this.#ids.filter((id) => (this.#box(id)?.at ?? Number.POSITIVE_INFINITY) <= this.#now)
    const expected = due()
      .map((id) => this.#box(id)?.at as number)
      .toSorted()
    const told = collected.records.map(({ spec }) => this.#box(spec.id)?.at)
    assert.deepEqual(told, expected.slice(0, limit), 'the earliest, in their order')
    for (const record of collected.records) {
      const { id } = record.spec
      this.#step(id, { type: 'collect', generation, leaseMs, graceMs: 0 }, 'collected')
      this.#same(record, this.#records.get(id) as JobRecord, 'relay', id)
    }
    const next = this.#ids.flatMap((id) => this.#box(id)?.at ?? [])
    if (next.length > 0) assert.ok((collected.nextInMs as number) <= Math.max(0, Math.min(...next) - this.#now))
    if (due().length === 0 && collected.records.length < limit) assert.notEqual(collected.nextInMs, 0)
    await this.#compare()
  }

  #box(id: string): Outbox | null {
    const record = living(this.#records.get(id) ?? null, this.#now)
    return record?.state === 'completed' ? (record.outbox ?? null) : null
  }

  /** Reads every record. */
  async #compare(): Promise<void> {
    const { now, records } = await this.#handle.get(this.#ids)
    assert.equal(now, this.#now)
    for (const [index, id] of this.#ids.entries()) {
      const expected = living(this.#records.get(id) ?? null, now)
      const record = records[index] as JobRecord | null
      if (expected === null) {
        assert.equal(record, null, `${id} is gone`)
        this.#records.delete(id)
      } else this.#same(record, expected, 'reader', id)
    }
  }

  /** Readers see no payload; who holds a lease need not see the result that is kept; relays see no result. */
  #same(record: JobRecord | null, expected: JobRecord, whose: 'reader' | 'holder' | 'relay', id: string): void {
    if (record?.state !== expected.state) assert.deepEqual(record, expected, id)
    const left: Record<string, unknown> = {}
    if (!isTerminal(expected)) {
      if (whose === 'reader') left['payload'] = expected.payload
      const { kept } = expected
      // Past its end it counts no more, and Redis may have dropped it.
      if (kept !== undefined && (kept.until <= this.#now || whose === 'holder')) left['kept'] = kept
    }
    if (whose === 'relay' && expected.state === 'completed') left['result'] = expected.result
    assert.deepEqual({ ...record, ...left }, expected, id)
  }

  /** What a claim may take, by `at`. */
  #due(named: readonly string[] | null): string[] {
    if (this.#held > this.#now) return []
    return [...this.#records.values()]
      .filter((record) => !isTerminal(record) && living(record, this.#now) !== null && record.at <= this.#now)
      .filter((record) => (named === null ? !('inline' in record && record.inline) : named.includes(record.spec.id)))
      .sort((a, b) => a.at - b.at)
      .map(({ spec }) => spec.id)
  }

  #at(id: string): number {
    return (this.#records.get(id) as JobRecord).at
  }

  #some<T>(make: () => T): T[] {
    return Array.from({ length: this.#random.pick([0, 1, 1, 1, 2, 3, 6]) }, make)
  }

  #id(): string {
    return this.#random.pick(this.#ids)
  }

  /** Mostly one whose record is such. */
  #idWhere(test: (record: JobRecord) => boolean): string {
    const ids = [...this.#records.values()].filter(test).map(({ spec }) => spec.id)
    return ids.length > 0 && this.#random.chance(0.7) ? this.#random.pick(ids) : this.#id()
  }

  /** Some are longer than the place that is kept free for them. */
  #token(): string {
    return `${this.#random.chance(0.1) ? 'long '.repeat(8) : ''}token ${this.#tokens++}`
  }

  #duration(): number {
    return this.#random.chance(0.3) ? 1 + this.#random.below(60) : 60_000
  }

  #wish(): ClaimRequest {
    return { generation: this.#token(), leaseMs: this.#duration(), limit: 1 + this.#random.below(4) }
  }

  /** An id, mostly with its present or last lease. */
  #lease(): { id: string; generation: string } {
    const id = this.#idWhere((record) => record.state === 'processing')
    const generation = this.#records.get(id)?.generation
    return { id, generation: generation && this.#random.chance(0.85) ? generation : this.#token() }
  }

  #verdict(): Verdict {
    const random = this.#random
    const text = random.pick(['', 'text', 'ü'.repeat(600), new Uint8Array([0, 128, 255])])
    const delayMs = random.chance(0.5) ? 0 : this.#duration()
    return random.pick([
      complete(text, this.#duration()),
      complete(text, this.#duration(), { rows: random.pick(['', 'ü rows']), ttlMs: this.#duration() }),
      fail(text, this.#duration()),
      retry(text, delayMs),
      retry(text, delayMs),
      release(delayMs),
    ])
  }

  #item(): EnqueueItem {
    const random = this.#random
    const id = this.#id()
    const known = this.#records.get(id)
    const incarnation = known !== undefined && random.chance(0.2) ? known.spec.incarnation : this.#token()
    const inline = random.chance(0.4)
    const own = random.chance(0.2) ? known?.generation : undefined
    return {
      spec: {
        id,
        incarnation,
        fingerprint: random.pick(['', 'one', 'two']),
        maxAttempts: random.pick([1, 1, 2, 3, 1_000_000]),
        resultTTL: this.#duration(),
        failureTTL: this.#duration(),
      },
      payload: random.pick(['', 'text', 'ü'.repeat(600), new Uint8Array([0, 128, 255])]),
      delayMs: inline || random.chance(0.5) ? 0 : this.#duration(),
      rejectMismatch: random.chance(0.3),
      lease: inline ? { generation: own ?? this.#token(), leaseMs: this.#duration() } : null,
      wait: random.chance(0.4),
      refresh: random.chance(0.5),
    }
  }
}
