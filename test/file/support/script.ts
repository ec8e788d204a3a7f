/**
 * A small history of jobs, run on a storage that may die at any moment, with notes of what was acknowledged; and the judge
 * that says, from what is there afterwards, whether anything acknowledged is missing.
 */

import assert from 'node:assert/strict'
import type { JobRecord, Verdict } from '../../../src/record.ts'
import { complete, fail, release, retry } from '../../../src/record.ts'
import type { EnqueueItem, StorageHandle } from '../../../src/storage.ts'
import type { Seeded } from '../../support/seeded.ts'

const hour = 3_600_000

/** What is known of one id: what was acknowledged, and what was asked for since and may have happened. */
export interface Known {
  acknowledged: string
  possible: Set<string>
}

/** Notes of a history, by id. */
export type Notes = Map<string, Known>

/** A payload of many bytes, so that logs grow fast. */
function payloadOf(id: string): string {
  return `payload of ${id} `.repeat(600)
}

function itemOf(id: string, incarnation: string, maxAttempts = 5): EnqueueItem {
  return {
    spec: { id, incarnation, fingerprint: '', maxAttempts, resultTTL: hour, failureTTL: hour },
    payload: payloadOf(id),
    delayMs: 0,
    rejectMismatch: false,
    lease: null,
    wait: false,
  }
}

/** What matters of a record. */
interface Picture {
  readonly state: 'open' | 'completed' | 'failed'
  /** Its result or error. */
  readonly value?: string
  /** The result that it keeps while it is refreshed. */
  readonly kept?: string
  /** Rows to be delivered. */
  readonly rows?: string
  readonly marked?: boolean
}

function describe(picture: Picture | null): string {
  if (picture === null) return 'absent'
  const { state, value, kept, rows, marked = false } = picture
  const parts = [state, value ?? '', kept === undefined ? '' : `keeps ${kept}`, rows ?? '', marked ? 'marked' : '']
  return parts.filter((part) => part !== '').join(', ')
}

/** Notes an attempt; the function returned notes that it was acknowledged. */
function attempt(notes: Notes, id: string, picture: Picture | null): () => void {
  const outcome = describe(picture)
  const known = notes.get(id) ?? { acknowledged: 'absent', possible: new Set<string>() }
  known.possible.add(outcome)
  notes.set(id, known)
  return () => {
    known.acknowledged = outcome
    known.possible.clear()
  }
}

/** What is there of an id. */
function pictureOf(id: string, record: JobRecord | null): Picture | null {
  if (record === null) return null
  const marked = record.spec.marks !== undefined
  if (record.state === 'failed') return { state: 'failed', value: String(record.error), marked }
  if (record.state === 'completed') {
    const { result, outbox } = record
    const picture = { state: 'completed', value: String(result), marked } as const
    return outbox === undefined ? picture : { ...picture, rows: String(outbox.rows) }
  }
  assert.equal(record.payload, payloadOf(id), `payload of ${id}`)
  return record.kept === undefined
    ? { state: 'open', marked }
    : { state: 'open', kept: String(record.kept.result), marked }
}

/** Expects what was acknowledged, or may have happened since. */
function expectNoted(notes: Notes, id: string, picture: Picture | null): void {
  const { acknowledged, possible } = notes.get(id) ?? { acknowledged: 'absent', possible: new Set() }
  const found = describe(picture)
  assert.ok(
    found === acknowledged || possible.has(found),
    `${id} was acknowledged as ${acknowledged}${possible.size > 0 ? `, may be ${[...possible].join(' or ')}` : ''}; is ${found}`,
  )
}

/** A run of the script. */
class Script {
  readonly #handle: StorageHandle
  readonly #notes: Notes
  readonly #random: Seeded
  readonly #name: string
  readonly #ids: string[] = []
  #tokens = 0

  constructor(handle: StorageHandle, notes: Notes, random: Seeded, name: string) {
    this.#handle = handle
    this.#notes = notes
    this.#random = random
    this.#name = name
  }

  async run(): Promise<void> {
    const random = this.#random
    for (let round = 0; round < 10; round++) {
      const ids = Array.from({ length: 1 + random.below(4) }, (_, index) => `${this.#name}/${round}/${index}`)
      this.#ids.push(...ids)
      await this.#enqueue(ids)
      if (random.chance(0.3)) await this.#cancel(random.pick(ids))
      if (random.chance(0.5)) await this.#mark(random.pick(this.#ids))
      if (random.chance(0.8)) await this.#refresh()
      await this.#work(1 + random.below(5))
      if (random.chance(0.5)) await this.#deliver()
    }
  }

  #token(): string {
    return `${this.#name}-${this.#tokens++}`
  }

  /** What a record is, which must be what was noted. */
  #see(record: JobRecord): Picture {
    const { id } = record.spec
    const picture = pictureOf(id, record) as Picture
    expectNoted(this.#notes, id, picture)
    return picture
  }

  async #enqueue(ids: readonly string[]): Promise<void> {
    const enqueued = ids.map((id) => attempt(this.#notes, id, { state: 'open' }))
    await this.#handle.enqueue(ids.map((id) => itemOf(id, this.#token())))
    for (const acknowledge of enqueued) acknowledge()
  }

  async #cancel(id: string): Promise<void> {
    const cancelled = attempt(this.#notes, id, null)
    const [answer] = await this.#handle.cancel([id])
    if (answer === 'cancelled') cancelled()
  }

  async #mark(id: string): Promise<void> {
    const [record = null] = (await this.#handle.get([id])).records
    if (record === null) return
    const marked = attempt(this.#notes, id, { ...this.#see(record), marked: true })
    const [answer] = await this.#handle.mark([{ id, name: 'effect', token: this.#token() }])
    assert.ok(answer === 'marked' || answer === 'taken', `mark of ${id}, which lives: ${answer}`)
    marked()
  }

  async #refresh(): Promise<void> {
    const { records } = await this.#handle.get(this.#ids)
    const done = records.filter((record) => record?.state === 'completed' && record.outbox === undefined)
    if (done.length === 0) return
    const record = this.#random.pick(done) as JobRecord
    const { id } = record.spec
    const { value = '' } = this.#see(record)
    const refreshed = attempt(this.#notes, id, { state: 'open', kept: value })
    const { answers } = await this.#handle.enqueue([{ ...itemOf(id, this.#token()), refresh: true }])
    assert.equal(answers[0]?.outcome, 'created')
    refreshed()
  }

  async #work(limit: number): Promise<void> {
    const { jobs } = await this.#handle.claim({ generation: this.#token(), leaseMs: 30_000, limit })
    for (const job of jobs) {
      const { id, incarnation } = job.spec
      const open = this.#see(job)
      const { kept, ...rest } = open
      const value = `result of ${id}, ${incarnation}`
      const error = `error of ${id}`
      const rows = `rows of ${id}`
      const [verdict, picture] = this.#random.pick<() => [Verdict, Picture]>([
        () => [complete(value, hour), { ...rest, state: 'completed', value }],
        () => [complete(value, hour), { ...rest, state: 'completed', value }],
        () => [complete(value, hour, { rows, ttlMs: hour }), { ...rest, state: 'completed', value, rows }],
        () => [
          fail(error, hour),
          kept === undefined
            ? { ...rest, state: 'failed', value: error }
            : { ...rest, state: 'completed', value: kept },
        ],
        () => [retry(error, hour), open],
        () => [release(0), open],
      ])()
      const settled = attempt(this.#notes, id, picture)
      const { answers } = await this.#handle.settle([{ id, generation: job.generation, verdict }], null)
      assert.equal(answers[0], 'settled', `settle of ${id}, whose lease lives`)
      settled()
    }
  }

  async #deliver(): Promise<void> {
    const generation = this.#token()
    const { collected } = await this.#handle.deliver([], { generation, leaseMs: 30_000, limit: 2 })
    const delivered: (() => void)[] = []
    const deliveries = (collected?.records ?? []).map((record) => {
      const { id } = record.spec
      const { rows: _, ...rest } = this.#see(record)
      const rows = this.#random.chance(0.5) ? null : `left of ${id}`
      delivered.push(attempt(this.#notes, id, rows === null ? rest : { ...rest, rows }))
      return { id, generation, rows, delayMs: 0 }
    })
    const { answers } = await this.#handle.deliver(deliveries, null)
    for (const answer of answers) assert.equal(answer, 'delivered')
    for (const acknowledge of delivered) acknowledge()
  }
}

/** Runs a history of some 60 calls until it ends or the storage dies. Deterministic by its seed. */
export function runScript(handle: StorageHandle, notes: Notes, random: Seeded, name: string): Promise<void> {
  return new Script(handle, notes, random, name).run()
}

async function look(handle: StorageHandle, id: string): Promise<Picture | null> {
  const { records } = await handle.get([id])
  return pictureOf(id, records[0] ?? null)
}

/** Expects all that was acknowledged, and nothing that was never asked for. */
export async function judge(handle: StorageHandle, notes: Notes): Promise<void> {
  for (const id of notes.keys()) expectNoted(notes, id, await look(handle, id))
}

/** Expects that every id can be used and finished: nothing is stuck. Leases of the dead must have ended before. */
export async function finishAll(handle: StorageHandle, notes: Notes, name: string): Promise<void> {
  const ids = [...notes.keys()]
  await handle.enqueue(ids.map((id, index) => itemOf(id, `${name}-again-${index}`)))
  for (;;) {
    const { jobs, exhausted } = await handle.claim({ generation: `${name}-last`, leaseMs: 30_000, limit: 1_000 })
    if (jobs.length === 0 && exhausted.length === 0) break
    const settlements = jobs.map((job) => ({
      id: job.spec.id,
      generation: job.generation,
      verdict: complete('finished', hour),
    }))
    const { answers } = await handle.settle(settlements, null)
    assert.deepEqual(new Set(answers), new Set(settlements.length > 0 ? ['settled'] : []))
  }
  for (const id of ids) assert.notEqual(await look(handle, id), null, `${id} was enqueued again`)
  for (;;) {
    const generation = `${name}-last`
    const { collected } = await handle.deliver([], { generation, leaseMs: 30_000, limit: 1_000 })
    if (collected === null || collected.records.length === 0) break
    const deliveries = collected.records.map(({ spec: { id } }) => ({ id, generation, rows: null, delayMs: 0 }))
    const { answers } = await handle.deliver(deliveries, null)
    assert.deepEqual(new Set(answers), new Set(['delivered']))
  }
  const { queued, processing } = await handle.stats()
  assert.deepEqual({ queued, processing }, { queued: 0, processing: 0 }, 'nothing is left open')
}

/** Everything that two processes must agree on. */
export async function stateOf(handle: StorageHandle, notes: Notes): Promise<unknown> {
  return (await handle.get([...notes.keys()])).records
}
