/**
 * Rows as items, and items as rows; and what an update has to change of an item.
 *
 * @module
 */

import { SerializationError, TooLargeError } from '../../src/errors.ts'
import type { Encoded } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import { packRecord, unpackRecord } from '../../src/record-codec.ts'
import type { JobRow } from '../../src/record-store.ts'
import { claimableFrom, forgettableFrom } from '../../src/record-store.ts'
import type { Layout } from './layout.ts'
import { shardOf } from './layout.ts'
import { ttlAttribute } from './schema.ts'
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
  /** Which values are stored compressed: for each its field's letter, then how. */
  readonly packings?: string
  /** Read from the index: it may be outdated, and has neither payload nor error. */
  readonly hinted?: boolean
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
const valueFields = { p: 'payload', r: 'result', e: 'error' } as const
type ValueField = keyof typeof valueFields

/** Makes items of rows and rows of items. */
export class Items {
  readonly #terms: ItemTerms

  constructor(terms: ItemTerms) {
    this.#terms = terms
  }

  /** The attributes of a new item. The payload is in it unless `payloadKey` tells where else it is. */
  async attributes(row: StoredRow): Promise<Attributes> {
    const packed: { [name: string]: unknown } = { ...packRecord(row.record) }
    delete packed['i']
    if (row.payloadKey !== undefined) delete packed['p']
    const packings = await this.#pack(packed, ['p', 'r', 'e'])
    return { ...packed, ...this.#beside(row, packings) }
  }

  /** A value as it is to be stored. */
  async value(value: Encoded, field: string) {
    const { compressFromBytes, valueBytesMax } = this.#terms
    const stored =
      compressFromBytes === null ? ({ value, packing: '' } as const) : await compressed(value, compressFromBytes)
    const bytes = bytesOf(stored.value)
    if (bytes > valueBytesMax) throw new TooLargeError(field, bytes, valueBytesMax)
    return stored
  }

  /**
   * What an update has to set, and to remove (undefined), for the item of `from` to be that of `to`. Both are of one
   * incarnation: what that fixes, the payload included, is as it was.
   */
  async changes(from: StoredRow, to: StoredRow): Promise<Attributes> {
    const before = shape(from)
    const after = shape(to)
    const values: { [name: string]: unknown } = {}
    let kept = ''
    for (const field of ['p', 'r', 'e'] as const) {
      if (after[field] === undefined) continue
      if (after[field] === before[field]) kept += packingOf(from, field)
      else values[field] = after[field]
    }
    const added = await this.#pack(values, ['r', 'e'])
    const old = this.#beside(from, from.packings ?? '')
    const now = this.#beside(to, kept + added)
    const changes: { [name: string]: unknown } = {}
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
      if (after[name] !== before[name]) changes[name] = values[name] ?? after[name]
    }
    for (const [name, value] of Object.entries(now)) if (value !== old[name]) changes[name] = value
    return changes
  }

  /** Turns these fields into what is stored of them; answers how. */
  async #pack(packed: { [name: string]: unknown }, fields: readonly ValueField[]): Promise<string> {
    let packings = ''
    for (const field of fields) {
      if (packed[field] === undefined) continue
      const stored = await this.value(packed[field] as Encoded, valueFields[field])
      packed[field] = stored.value
      if (stored.packing !== '') packings += field + stored.packing
    }
    return packings
  }

  /** What an item has besides the record. */
  #beside(row: StoredRow, packings: string): { [name: string]: unknown } {
    const { layout, graceMs, shards, dueIsText } = this.#terms
    const { record, version, payloadKey, payloadUntil } = row
    const due = claimableFrom(record, graceMs)
    const end = forgettableFrom(record)
    const open = !isTerminal(record)
    return {
      w: version,
      y: packings === '' ? undefined : packings,
      q: open ? payloadKey : undefined,
      u: open ? payloadUntil : undefined,
      shard: due === null ? undefined : layout.shard(shardOf(record.spec.id, shards())),
      due: due === null ? undefined : dueKey(due, dueIsText),
      [ttlAttribute]: end === null ? undefined : Math.ceil(end / 1000) + collectAfterSeconds,
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
    const payloadKey = attributes['q'] as string | undefined
    const open = packed['s'] !== 'c' && packed['s'] !== 'f'
    if (open && (hinted || payloadKey !== undefined)) packed['p'] = ''
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
      ...(attributes['u'] === undefined ? {} : { payloadUntil: attributes['u'] as number }),
      ...(packings === '' ? {} : { packings }),
      ...(hinted ? { hinted } : {}),
    }
  }
}

/** A row's record, its payload as '': whatever is stored of that stays as long as the record is open. */
function shape(row: StoredRow): { [name: string]: unknown } {
  const packed: { [name: string]: unknown } = { ...packRecord(row.record) }
  delete packed['i']
  if (packed['p'] !== undefined) packed['p'] = ''
  if (row.payloadKey !== undefined) delete packed['p']
  return packed
}

/** How a field of a row is stored, with its letter; '' if as it is. */
function packingOf(row: StoredRow, field: ValueField): string {
  const { packings = '' } = row
  const index = packings.indexOf(field)
  return index < 0 ? '' : packings.slice(index, index + 2)
}

/** The record's own fields. */
const recordFields = 'vsndcmkKatglprexz'.split('')

/** A time as the index sorts it. */
export function dueKey(ms: number, isText: boolean): number | string {
  return isText ? String(Math.max(0, ms)).padStart(16, '0') : ms
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
