/**
 * Reading rows: consistently, in batches, and with the results that have items of their own.
 *
 * @module
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../src/clock.ts'
import { AskonceError, SerializationError } from '../../src/errors.ts'
import type { JobRecord } from '../../src/record.ts'
import { isTerminal, keptAt } from '../../src/record.ts'
import type { JobRow, Row } from '../../src/record-store.ts'
import { unmarshalled } from './attribute-values.ts'
import type { Calls } from './calls.ts'
import type { Attributes, Items, StoredRow } from './items.ts'
import { intact, withResult } from './items.ts'
import type { Layout } from './layout.ts'
import type { Payloads } from './payloads.ts'
import type { Key, Requests } from './requests.ts'

/** Keys that one BatchGetItem takes. */
const batchGetMax = 100

type Item = Record<string, AttributeValue>

interface RowsOptions {
  readonly calls: Calls
  readonly requests: Requests
  readonly items: Items
  readonly layout: Layout
  readonly payloads: Payloads
  readonly clock: Clock
  /** Told of damage. */
  readonly warn: (code: string, message: string) => void
}

/** The rows of one namespace. */
export class Rows {
  readonly #options: RowsOptions

  constructor(options: RowsOptions) {
    this.#options = options
  }

  /** The rows of these keys, in their order; null where there is none. */
  async load(keys: readonly string[]): Promise<readonly (Row | null)[]> {
    const { layout } = this.#options
    const partitions = keys.map((key) => (key === '' ? layout.hold : layout.job(key)))
    const found = await this.items(partitions)
    return this.#whole(await Promise.all(keys.map((key, index) => this.#bare(key, found.get(partitions[index]!)))))
  }

  /** The jobs of these keys, for which the index has entries; damaged ones are left out, and told of. */
  async sought(keys: readonly string[], results: boolean): Promise<Map<string, StoredRow>> {
    const { items, layout, warn } = this.#options
    const found = await this.items(keys.map((key) => layout.job(key)))
    const rows = await Promise.all(
      keys.map((key) => {
        const item = found.get(layout.job(key))
        return item === undefined ? undefined : intact(items.row(key, item), warn)
      }),
    )
    const bare = rows.filter((row) => row !== undefined)
    const whole = results ? await this.#whole(bare) : bare
    return new Map(whole.filter((row) => row?.type === 'job').map((row) => [row.key, row] as const))
  }

  /** The row of one item that is at hand. */
  async row(key: string, item: Attributes | null | undefined): Promise<Row | null> {
    return (await this.#whole([await this.#bare(key, item)]))[0]!
  }

  /** Rows with their payloads; an error instead of each whose payload is gone or damaged. */
  async fill(rows: readonly StoredRow[]): Promise<readonly (JobRow | AskonceError)[]> {
    const keys = rows.filter(isApart).map(({ payloadKey }) => payloadKey!)
    if (keys.length === 0) return rows
    const found = await this.items(keys)
    return Promise.all(
      rows.map(async (row) => {
        if (!isApart(row)) return row
        const item = found.get(row.payloadKey!)
        if (item === undefined) return new SerializationError('payload', 'is gone: its item was removed from the table')
        try {
          const payload = await this.#options.payloads.expand(item, 'payload')
          return { ...row, record: { ...row.record, payload } as JobRecord }
        } catch (error) {
          if (error instanceof AskonceError) return error
          throw error
        }
      }),
    )
  }

  /** Items by their partition keys, consistently. */
  async items(partitions: readonly string[]): Promise<Map<string, Attributes>> {
    const { calls, requests } = this.#options
    const found = new Map<string, Attributes>()
    const add = (wire: Item) => {
      const item = unmarshalled(wire)
      found.set(requests.partitionOf(item), item)
    }
    if (partitions.length === 1) {
      const answer = (await calls.send('read an item', () => requests.get(partitions[0]!))) as { Item?: Item }
      if (answer.Item !== undefined) add(answer.Item)
      return found
    }
    const batches: string[][] = []
    const unique = [...new Set(partitions)]
    for (let from = 0; from < unique.length; from += batchGetMax) batches.push(unique.slice(from, from + batchGetMax))
    await Promise.all(
      batches.map(async (batch) => {
        let keys: readonly Key[] = batch.map((partition) => requests.key(partition))
        // What did not fit into an answer, or was throttled, is left over.
        for (let tries = 0; keys.length > 0; tries++) {
          if (tries > 0) await calls.backOff(tries)
          const answer = (await calls.send('read items', () => requests.batchGet(keys))) as {
            Responses?: Record<string, Item[]>
            UnprocessedKeys?: Record<string, { Keys?: Key[] }>
          }
          for (const items of Object.values(answer.Responses ?? {})) items.forEach(add)
          keys = Object.values(answer.UnprocessedKeys ?? {}).flatMap(({ Keys = [] }) => Keys)
        }
      }),
    )
    return found
  }

  async #bare(key: string, item: Attributes | null | undefined): Promise<Row | null> {
    if (item === undefined || item === null) return null
    if (key !== '') return this.#options.items.row(key, item)
    return { type: 'hold', key: '', version: String(item['w']), heldUntil: Number(item['h']) }
  }

  /** Rows with the results that have items of their own. */
  async #whole<R extends Row>(rows: readonly (R | null)[]): Promise<(R | Row | null)[]> {
    const keys = rows.map((row) => this.#resultKey(row)).filter((key) => key !== null)
    if (keys.length === 0) return [...rows]
    const found = await this.items(keys)
    return Promise.all(
      rows.map(async (row) => {
        const key = this.#resultKey(row)
        if (key === null) return row
        const item = found.get(key)
        const stored = row as Row as StoredRow
        return item === undefined
          ? this.#again(stored)
          : withResult(stored, await this.#options.payloads.expand(item, 'result'))
      }),
    )
  }

  /** The key of the result that a row lacks; null if it lacks none that can still be read. */
  #resultKey(row: Row | null): string | null {
    const { record, resultKey } = (row ?? {}) as Partial<StoredRow>
    if (record === undefined || resultKey === undefined) return null
    // What is kept beyond its end may have been collected.
    const ended = !isTerminal(record) && keptAt(record, this.#options.clock.now()) === null
    return ended ? null : resultKey
  }

  /** A row whose result is gone: it has become another, with which the result went; or somebody removed that. */
  async #again(row: StoredRow): Promise<Row | null> {
    const partition = this.#options.layout.job(row.key)
    const now = await this.#bare(row.key, (await this.items([partition])).get(partition))
    if (now?.version === row.version) return withResult(row, null)
    return (await this.#whole([now]))[0]!
  }
}

function isApart(row: StoredRow): boolean {
  return row.payloadKey !== undefined && !isTerminal(row.record) && row.record.payload === ''
}
