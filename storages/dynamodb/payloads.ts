/**
 * Values too large to be written again with each transition: items of their own, written before the record is. That is payloads; and
 * results whose record goes on changing, as it is refreshed or has rows to be delivered.
 *
 * Each has a key that was never used before, so that a record can't get another's. It carries a TTL of its own from the
 * beginning, for DynamoDB to collect for nothing what no record needs any more. As long as a record is open, whoever changes
 * it, or sweeps, puts that of its payload off in time; that of a result is its end, and put off by whoever puts that off.
 *
 * @module
 */

import type { Encoded, JobRecord } from '../../src/record.ts'
import { forgottenFrom, isTerminal } from '../../src/record.ts'
import { forgettableFrom } from '../../src/record-store.ts'
import { newVersion } from '../../src/record-swapper.ts'
import type { Calls } from './calls.ts'
import { ConditionFalse } from './calls.ts'
import { PRESENT } from './conditions.ts'
import type { Items, StoredRow } from './items.ts'
import { resultOf, ttlOf } from './items.ts'
import type { Layout } from './layout.ts'
import type { Requests } from './requests.ts'
import { ttlAttribute } from './schema.ts'
import type { StoredValue } from './values.ts'
import { bytesOf, expanded } from './values.ts'

/** A TTL is put off when that wins a day. */
const refreshSeconds = 86_400

/** Results of more bytes than this get an item of their own, where payloads may be larger in the record. */
const resultBytesMax = 2_048

/** Where a row's result lies, if not in the record's item. */
type ResultPlace = Pick<StoredRow, 'resultKey' | 'resultUntil'>

export interface PayloadOptions {
  readonly calls: Calls
  readonly requests: Requests
  readonly items: Items
  readonly layout: Layout
  /** Payloads of more bytes than this get an item of their own. */
  readonly inlineBytesMax: number
  /** How long an item is kept that nobody puts off, ms. */
  readonly retentionMs: number
  /** Whether an item is removed as soon as its record has ended, rather than left to DynamoDB. */
  readonly remove: boolean
  readonly now: () => number
}

/** The payloads and results kept apart of one namespace. */
export class Payloads {
  readonly #options: PayloadOptions
  readonly #removals = new Set<Promise<unknown>>()

  constructor(options: PayloadOptions) {
    this.#options = options
  }

  /** Whether it is to have an item of its own. */
  isLarge(payload: Encoded): boolean {
    return bytesOf(payload) > this.#options.inlineBytesMax
  }

  /** Writes it; answers what the row must tell of it, or null if compression has made it small enough for the record. */
  async write(record: JobRecord, payload: Encoded): Promise<{ payloadKey: string; payloadUntil: number } | null> {
    const { items, inlineBytesMax } = this.#options
    const stored = await items.value(payload, 'payload')
    if (bytesOf(stored.value) <= inlineBytesMax) return null
    const payloadUntil = this.#until(record)
    return { payloadKey: await this.#write(record, stored, payloadUntil), payloadUntil }
  }

  /**
   * Where the result of a record lies that takes the place of `from`: in the item that it has, or one that is written now. Nowhere
   * if it is in the record's item: it is small, or not to be written again.
   */
  async placeResult(from: StoredRow | null, record: JobRecord): Promise<ResultPlace> {
    const result = resultOf(record)
    if (result === null) return {}
    const end = endOfResult(record)
    const { resultKey } = from ?? {}
    // What is handed on keeps its item. Its value tells nothing: that of a row that was not filled in is '', and so may a new one be.
    if (from !== null && resultKey !== undefined && !isNewResult(from.record, record)) {
      return { resultKey, resultUntil: await this.#keepResult(resultKey, from.resultUntil ?? 0, end) }
    }
    const changes = !isTerminal(record) || (record.state === 'completed' && record.outbox !== undefined)
    const { items, inlineBytesMax } = this.#options
    const bytesMax = Math.min(inlineBytesMax, resultBytesMax)
    if (!changes || bytesOf(result) <= bytesMax) return {}
    // Another process may compress what it stores, and this one not.
    const stored = await items.value(result, 'result', from !== null)
    if (bytesOf(stored.value) <= bytesMax) return {}
    const resultUntil = ttlOf(end)
    return { resultKey: await this.#write(record, stored, resultUntil), resultUntil }
  }

  async #write(record: JobRecord, { value, packing }: StoredValue, until: number): Promise<string> {
    const { calls, requests, layout, now } = this.#options
    const key = layout.payload(newVersion())
    const attributes = {
      p: value,
      ...(packing === '' ? {} : { y: packing }),
      o: layout.job(record.spec.id),
      c: now(),
      [ttlAttribute]: until,
    }
    await calls.send('write a payload', () => requests.put(requests.entities.payload, key, attributes, null))
    return key
  }

  /** The value of an item. */
  expand(item: Record<string, unknown>, field: string): Promise<Encoded> {
    return expanded(item['p'] as Encoded, String(item['y'] ?? ''), field)
  }

  /** Puts the TTL of a row's payload off, where the record needs it longer. Answers until when it is kept then, seconds. */
  async keep(row: StoredRow, record: JobRecord): Promise<number | undefined> {
    const { payloadKey, payloadUntil = 0 } = row
    if (payloadKey === undefined) return undefined
    const until = this.#until(record)
    if (until - payloadUntil < refreshSeconds) return payloadUntil
    // If it is gone, whoever claims the record will say so.
    return (await this.#putOff(payloadKey, until)) ? until : payloadUntil
  }

  /** Puts the TTL of a result off where it is kept longer: by a day more, for it may be again soon. */
  async #keepResult(key: string, until: number, end: number): Promise<number> {
    if (ttlOf(end) <= until) return until
    const later = ttlOf(end) + refreshSeconds
    return (await this.#putOff(key, later)) ? later : until
  }

  /** Sets a TTL; answers whether there is anything that it was set for. */
  async #putOff(key: string, until: number): Promise<boolean> {
    const { calls, requests } = this.#options
    const answer = await calls.send('keep a payload', () =>
      requests.update(requests.entities.payload, key, { [ttlAttribute]: until }, PRESENT),
    )
    return !(answer instanceof ConditionFalse)
  }

  /** What is kept apart of a row and of none of the others is removed, if that is wanted. */
  unneeded(row: StoredRow, others: readonly (StoredRow | null | undefined)[]): void {
    if (!this.#options.remove) return
    for (const key of [row.payloadKey, row.resultKey]) {
      if (key === undefined) continue
      if (!others.some((other) => key === other?.payloadKey || key === other?.resultKey)) this.drop(key)
    }
  }

  /** Removes a payload or result; nobody waits for it, and what fails is collected later. */
  drop(payloadKey: string): Promise<boolean> {
    const { calls, requests } = this.#options
    const removal = calls
      .send('remove a payload', () => requests.delete(requests.entities.payload, payloadKey, null))
      .then(
        () => true,
        () => false,
      )
      .finally(() => this.#removals.delete(removal))
    this.#removals.add(removal)
    return removal
  }

  /** Resolves when nothing is under way. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#removals)
  }

  #until(record: JobRecord): number {
    const { now, retentionMs } = this.#options
    const end = Math.min(forgettableFrom(record) ?? 0, now() + 10 * 365.25 * 86_400_000)
    return Math.ceil(Math.max(now() + retentionMs, record.at + retentionMs, end) / 1000)
  }
}

/** Whether the result of `to` is that of the run which has just ended, rather than one that `from` has or keeps. */
function isNewResult(from: JobRecord, to: JobRecord): boolean {
  return to.state === 'completed' && to.missed === undefined && !isTerminal(from)
}

/** Until when a result can be read, ms. */
function endOfResult(record: JobRecord): number {
  return isTerminal(record) ? forgottenFrom(record) : (record.kept?.until ?? 0)
}
