/**
 * Rows as items, and items as rows; and what an update has to change of an item.
 *
 * @module
 */

import { SerializationError, TooLargeError } from '../../src/errors.ts'
import type { Encoded, JobRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import { packRecord, unpackRecord } from '../../src/record-codec.ts'
import type { DueKind, JobRow } from '../../src/record-store.ts'
import { claimableFrom, deliverableFrom, forgettableFrom } from '../../src/record-store.ts'
import type { Layout } from './layout.ts'
import { shardOf } from './layout.ts'
import { ttlAttribute } from './schema.ts'
import type { StoredValue } from './values.ts'
import { bytesOf, compressed, expanded } from './values.ts'

/** An item's attributes, by the names of the entity `job`, keys of the table left out. */
export interface Attributes {
  readonly [name: string]: unknown
}

/** A job's row, and what only this storage knows of it. */
export interface StoredRow extends JobRow {
  /** Key of the item that has the payload; the record's is '' then, unless it was filled in. */
  readonly payloadKey?: string
  /** Until when that item is kept at least, seconds since 1970. */
  readonly payloadUntil?: number
  /** Key of the item that has the result, or what is kept of one; the record's is '' then, unless it was filled in. */
  readonly resultKey?: string
  /** Until when that item is kept at least, seconds since 1970. */
  readonly resultUntil?: number
  /** Which values are stored compressed: for each its field's letter, then how. */
  readonly packings?: string
  /** What it was looked for as, if it was: how that ends tells how many others look there. */
  readonly sought?: DueKind
}

/** How items are made. */
export interface ItemTerms {
  readonly layout: Layout
  readonly graceMs: number
  /** Shards that are written to. */
  readonly shards: () => number
  readonly dueIsText: boolean
  /** Values of at least so many bytes are compressed; null: none are. */
  readonly compressFromBytes: number | null
  /** Bytes that a value may have as it is stored. */
  readonly valueBytesMax: number
}

/** How long DynamoDB leaves an item that is past its end, seconds: its clock and ours need not agree on the moment. */
const collectAfterSeconds = 3_600

/** The fields that hold values, and how errors call them. */
const valueFields = { p: 'payload', r: 'result', e: 'error', R: 'result', E: 'error', o: 'outbox' } as const
type ValueField = keyof typeof valueFields
const valueNames = Object.keys(valueFields) as ValueField[]

/** Makes items of rows and rows of items. */
export class Items {
  readonly #terms: ItemTerms

  constructor(terms: ItemTerms) {
    this.#terms = terms
  }

  /** The attributes of a new item. Payload and result are in it unless a key tells where else they are. */
  async attributes(row: StoredRow): Promise<Attributes> {
    const packed = withoutApart(row)
    const { record } = row
    const packings = await this.#pack(packed, isTerminal(record) ? null : resultOf(record))
    return { ...packed, ...this.#beside(row, packings) }
  }

  /**
   * A value as it is to be stored.
   *
   * @param stored - whether it was before, by another process maybe: if it is too large as it is, it is compressed
   * @throws TooLargeError
   */
  async value(value: Encoded, field: string, stored = false): Promise<StoredValue> {
    const { compressFromBytes, valueBytesMax } = this.#terms
    const fromBytes = compressFromBytes ?? (stored ? valueBytesMax + 1 : Number.POSITIVE_INFINITY)
    const small = await compressed(value, fromBytes)
    const bytes = bytesOf(small.value)
    if (bytes > valueBytesMax) throw new TooLargeError(field, bytes, valueBytesMax)
    return small
  }

  /**
   * What an update has to set, and to remove (undefined), for the item of `from` to be that of `to`. Both are of one job: the
   * payload is as it was.
   */
  async changes(from: StoredRow, to: StoredRow): Promise<Attributes> {
    const before = shape(from)
    const after = shape(to)
    const values: { [name: string]: unknown } = {}
    let kept = ''
    for (const field of valueNames) {
      if (after[field] === undefined) continue
      if (after[field] === before[field]) kept += packingOf(from, field)
      else values[field] = after[field]
    }
    const added = await this.#pack(values, resultOf(from.record))
    const old = this.#beside(from, from.packings ?? '')
    const now = this.#beside(to, kept + added)
    const changes: { [name: string]: unknown } = {}
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      if (after[name] !== before[name]) changes[name] = values[name] ?? after[name]
    }
    for (const [name, value] of Object.entries(now)) if (value !== old[name]) changes[name] = value
    return changes
  }

  /** Turns these fields into what is stored of them, one of which was before; answers how. */
  async #pack(packed: { [name: string]: unknown }, before: Encoded | null): Promise<string> {
    let packings = ''
    for (const field of valueNames) {
      const value = packed[field] as Encoded | undefined
      if (value === undefined) continue
      const stored = await this.value(value, valueFields[field], value === before)
      packed[field] = stored.value
      if (stored.packing !== '') packings += field + stored.packing
    }
    return packings
  }

  /** What an item has besides the record. */
  #beside(row: StoredRow, packings: string): { [name: string]: unknown } {
    const { layout, graceMs, shards, dueIsText } = this.#terms
    const { record, version, payloadKey, payloadUntil, resultKey, resultUntil } = row
    const claimable = claimableFrom(record, graceMs)
    const due = claimable ?? deliverableFrom(record, graceMs)
    const end = forgettableFrom(record)
    const open = !isTerminal(record)
    const shard = due === null ? 0 : shardOf(record.spec.id, shards())
    return {
      w: version,
      y: packings === '' ? undefined : packings,
      q: open ? payloadKey : undefined,
      u: open ? payloadUntil : undefined,
      Q: resultKey,
      V: resultUntil,
      shard: due === null ? undefined : claimable === null ? layout.outboxShard(shard) : layout.shard(shard),
      due: due === null ? undefined : dueKey(due, dueIsText),
      [ttlAttribute]: end === null ? undefined : ttlOf(end),
    }
  }

  /**
   * The row of an item.
   *
   * @param attributes - by the names of the entity
   * @param hinted - whether the index told of it, which has neither payload nor error
   * @throws SerializationError if it is damaged
   */
  async row(id: string, attributes: Attributes, hinted = false): Promise<StoredRow> {
    const packed: { [name: string]: unknown } = { i: id }
    for (const name of recordFields) if (attributes[name] !== undefined) packed[name] = attributes[name]
    const packings = typeof attributes['y'] === 'string' ? attributes['y'] : ''
    const { q: payloadKey, u: payloadUntil, Q: resultKey, V: resultUntil } = attributes as ApartAttributes
    const open = packed['s'] !== 'c' && packed['s'] !== 'f'
    if (open && (hinted || payloadKey !== undefined)) packed['p'] = ''
    if (resultKey !== undefined) packed[open ? 'R' : 'r'] = ''
    if (hinted && packed['s'] === 'r') packed['e'] = ''
    if (!hinted) {
      for (let index = 0; index < packings.length; index += 2) {
        const field = packings[index] as ValueField
        if (packed[field] === undefined) continue
        packed[field] = await expanded(packed[field] as Encoded, packings[index + 1]!, valueFields[field])
      }
    }
    return {
      type: 'job',
      key: id,
      version: String(attributes['w']),
      record: unpackRecord(packed),
      ...(payloadKey === undefined ? {} : { payloadKey }),
      ...(payloadUntil === undefined ? {} : { payloadUntil }),
      ...(resultKey === undefined ? {} : { resultKey }),
      ...(resultUntil === undefined ? {} : { resultUntil }),
      ...(packings === '' ? {} : { packings }),
    }
  }
}

/** What an item tells of values that are kept apart. */
interface ApartAttributes {
  readonly q?: string
  readonly u?: number
  readonly Q?: string
  readonly V?: number
}

/** A row's record, without the values that are kept apart. */
function withoutApart({ record, payloadKey, resultKey }: StoredRow): { [name: string]: unknown } {
  const packed: { [name: string]: unknown } = { ...packRecord(record) }
  delete packed['i']
  if (payloadKey !== undefined) delete packed['p']
  if (resultKey !== undefined) delete packed[isTerminal(record) ? 'r' : 'R']
  return packed
}

/** The same, its payload as '': whatever is stored of that stays as long as the record is open. */
function shape(row: StoredRow): { [name: string]: unknown } {
  const packed = withoutApart(row)
  if (packed['p'] !== undefined) packed['p'] = ''
  return packed
}

/** How a field of a row is stored, with its letter; '' if as it is. */
function packingOf(row: StoredRow, field: ValueField): string {
  const { packings = '' } = row
  const index = packings.indexOf(field)
  return index < 0 ? '' : packings.slice(index, index + 2)
}

/** The record's own fields, those of the second format last. */
const recordFields = 'vsndcmkKatglprexzbTRZMEoOGAU'.split('')

/** Whether an entry of the index tells all that a claim must know of the record: of those of the first format it does. */
export function isWholeEntry(entry: Attributes): boolean {
  return typeof entry['w'] === 'string' && entry['s'] !== undefined && entry['v'] !== 2
}

/** Whether {@link FREE} lets another record take the place of this one. */
export function isFree(record: JobRecord, now: number): boolean {
  return isTerminal(record) && record.at <= now && packRecord(record).v === 1
}

/** The result that a record has, or keeps of the run before; null if there is none, or it was lost. */
export function resultOf(record: JobRecord): Encoded | null {
  if (isTerminal(record)) return record.state === 'completed' ? record.result : null
  return record.kept?.result ?? null
}

/** The same row with that result. */
export function withResult(row: StoredRow, result: Encoded | null): StoredRow {
  const { record } = row
  if (record.state === 'completed') return { ...row, record: { ...record, result } }
  if (isTerminal(record) || record.kept === undefined) return row
  return { ...row, record: { ...record, kept: { ...record.kept, result } } }
}

/** A time as the index sorts it. */
export function dueKey(ms: number, isText: boolean): number | string {
  return isText ? String(Math.max(0, ms)).padStart(16, '0') : ms
}

/** The TTL attribute of what is past its end from then on. */
export function ttlOf(end: number): number {
  return Math.ceil(end / 1000) + collectAfterSeconds
}

/** The latest second up to which DynamoDB would collect what is past its end at `now`, if it were prompt and patient. */
export function collectableUntil(now: number): number {
  return Math.floor(now / 1000) + collectAfterSeconds
}

/** The row, or undefined if it is damaged; that is told. */
export async function intact(
  row: Promise<StoredRow>,
  warn: (code: string, message: string) => void,
): Promise<StoredRow | undefined> {
  try {
    return await row
  } catch (error) {
    if (!(error instanceof SerializationError)) throw error
    warn('dynamodb_damaged', `a record was left out: ${error.message}`)
    return undefined
  }
}
