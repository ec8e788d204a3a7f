/**
 * Payloads too large to be written again with each transition: items of their own, written before the record is.
 *
 * Each has a key that was never used before, so that a record can't get another's. It carries a TTL of its own from the
 * beginning, for DynamoDB to collect for nothing what no record needs any more; as long as a record is open, whoever changes
 * it, or sweeps, puts that TTL off in time.
 *
 * @module
 */

import type { AskonceError } from '../../src/errors.ts'
import { SerializationError } from '../../src/errors.ts'
import type { Encoded, JobRecord } from '../../src/record.ts'
import { forgettableFrom } from '../../src/record-store.ts'
import { newVersion } from '../../src/record-swapper.ts'
import type { Calls } from './calls.ts'
import { ConditionFalse } from './calls.ts'
import { PRESENT } from './conditions.ts'
import type { Items, StoredRow } from './items.ts'
import type { Layout } from './layout.ts'
import type { Requests } from './requests.ts'
import { ttlAttribute } from './schema.ts'
import { bytesOf, expanded } from './values.ts'

/** A TTL is put off when that wins a day. */
const refreshSeconds = 86_400

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

/** The payloads of one namespace. */
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
    const { calls, requests, items, layout, inlineBytesMax, now } = this.#options
    const { value, packing } = await items.value(payload, 'payload')
    if (bytesOf(value) <= inlineBytesMax) return null
    const payloadKey = layout.payload(newVersion())
    const payloadUntil = this.#until(record)
    const attributes = {
      p: value,
      ...(packing === '' ? {} : { y: packing }),
      o: layout.job(record.spec.id),
      c: now(),
      [ttlAttribute]: payloadUntil,
    }
    await calls.send('write a payload', () => requests.put(requests.entities.payload, payloadKey, attributes, null))
    return { payloadKey, payloadUntil }
  }

  /** Reads payloads by their keys, in their order; an error for each that is gone or damaged. */
  async read(
    keys: readonly string[],
    load: (keys: readonly string[]) => Promise<Map<string, Record<string, unknown>>>,
  ): Promise<readonly (Encoded | AskonceError)[]> {
    const found = await load(keys)
    return Promise.all(
      keys.map(async (key) => {
        const item = found.get(key)
        if (item === undefined) return new SerializationError('payload', 'is gone: its item was removed from the table')
        try {
          return await expanded(item['p'] as Encoded, String(item['y'] ?? ''), 'payload')
        } catch (error) {
          return error as SerializationError
        }
      }),
    )
  }

  /** Puts the TTL of a row's payload off, where the record needs it longer. Answers until when it is kept then, seconds. */
  async keep(row: StoredRow, record: JobRecord): Promise<number | undefined> {
    const { calls, requests } = this.#options
    const { payloadKey, payloadUntil = 0 } = row
    if (payloadKey === undefined) return undefined
    const until = this.#until(record)
    if (until - payloadUntil < refreshSeconds) return payloadUntil
    const answer = await calls.send('keep a payload', () =>
      requests.update(requests.entities.payload, payloadKey, { [ttlAttribute]: until }, PRESENT),
    )
    // It is gone; whoever claims the record will say so.
    return answer instanceof ConditionFalse ? payloadUntil : until
  }

  /** The payload's record has ended. */
  done(row: StoredRow): void {
    if (this.#options.remove && row.payloadKey !== undefined) this.drop(row.payloadKey)
  }

  /** Removes a payload; nobody waits for it, and what fails is collected later. */
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
