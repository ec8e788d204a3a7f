/**
 * One namespace of a table as a store of rows: one item per record, each change one conditional write.
 *
 * @module
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { Entity } from 'dynamodb-toolbox/entity'
import type { Condition } from 'dynamodb-toolbox/entity/actions/parseCondition'
import type { Clock } from '../../src/clock.ts'
import { AskonceError, StorageError } from '../../src/errors.ts'
import type { JobRecord, OpenRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type {
  Change,
  DueAnswer,
  DueKind,
  HoldRow,
  JobRow,
  RecordStore,
  Row,
  SwapAnswer,
} from '../../src/record-store.ts'
import type { HintListener } from '../../src/storage.ts'
import { unmarshalled } from './attribute-values.ts'
import type { Calls, DynamoDBCounters } from './calls.ts'
import { ConditionFalse } from './calls.ts'
import { ABSENT, FREE, UNCHANGED } from './conditions.ts'
import type { Entry } from './due-pages.ts'
import { DuePages } from './due-pages.ts'
import type { Attributes, Items, StoredRow } from './items.ts'
import { intact } from './items.ts'
import type { Layout } from './layout.ts'
import type { Payloads } from './payloads.ts'
import type { Key, Requests } from './requests.ts'
import type { Shards } from './shards.ts'
import type { Sweeper } from './sweeper.ts'

/** Keys that one BatchGetItem takes. */
const batchGetMax = 100

type Item = Record<string, AttributeValue>

interface IndexEntry extends Entry {
  /** The whole row, where the index has it. */
  readonly row: StoredRow | null
}

export interface StoreOptions {
  readonly calls: Calls
  readonly requests: Requests
  readonly items: Items
  readonly layout: Layout
  readonly payloads: Payloads
  readonly shards: Shards
  readonly sweeper: Sweeper
  readonly clock: Clock
  readonly graceMs: number
  readonly lookaheadMs: number
  readonly random: () => number
  readonly counters: DynamoDBCounters
  readonly dueName: string
  /** Told of damage. */
  readonly warn: (code: string, message: string) => void
  /** The hook for wake-ups from outside. */
  readonly watch: (listener: HintListener) => () => void
  readonly closed: () => Promise<void>
}

/** The store of one namespace. */
export class DynamoDBStore implements RecordStore {
  readonly #options: StoreOptions
  readonly #pages: DuePages<IndexEntry>

  constructor(options: StoreOptions) {
    this.#options = options
    const { random, lookaheadMs } = options
    this.#pages = new DuePages({
      read: (shard, until, limit) => this.#readShard(shard, until, limit),
      random,
      lookaheadMs,
    })
  }

  async load(keys: readonly string[]): Promise<readonly (Row | null)[]> {
    const { layout } = this.#options
    const partitions = keys.map((key) => (key === '' ? layout.hold : layout.job(key)))
    const found = await this.#items(partitions)
    return Promise.all(keys.map((key, index) => this.#row(key, found.get(partitions[index]!))))
  }

  async swap(changes: readonly Change[]): Promise<readonly SwapAnswer[]> {
    const there = await this.#lookFirst(changes)
    const swap = (change: Change): Promise<SwapAnswer> => {
      const row = there.get(change.key)
      return row === undefined ? this.#swap(change) : Promise.resolve({ ok: false, row })
    }
    return Promise.all(changes.map((change) => swap(change).catch((error) => ({ ok: false, error }) as const)))
  }

  /** Writing a large payload costs more than a look whether it is needed at all: the rows that stand in the way of some. */
  async #lookFirst(changes: readonly Change[]): Promise<Map<string, JobRow>> {
    const { payloads, clock } = this.#options
    const there = new Map<string, JobRow>()
    const large = changes.filter(
      ({ from, to }) =>
        from === null && to?.type === 'job' && !isTerminal(to.record) && payloads.isLarge(to.record.payload),
    )
    if (large.length === 0) return there
    for (const row of await this.load(large.map(({ key }) => key))) {
      if (row?.type === 'job' && !isPast(row.record, clock.now())) there.set(row.key, row)
    }
    return there
  }

  async due(limit: number, now: number, kind: DueKind): Promise<DueAnswer> {
    const { shards, sweeper } = this.#options
    if (kind === 'forgettable') return { items: await sweeper.find(limit, now), nextAt: null }
    const { entries, nextAt } = await this.#pages.find(limit, now, await shards.read())
    return { items: entries.map(({ key, row }) => row ?? key), nextAt }
  }

  async fill(rows: readonly JobRow[]): Promise<readonly (JobRow | AskonceError)[]> {
    const apart = (rows as readonly StoredRow[]).filter(isApart)
    if (apart.length === 0) return rows
    const keys = apart.map(({ payloadKey }) => payloadKey!)
    const payloads = await this.#options.payloads.read(keys, (partitions) => this.#items(partitions))
    const filled = new Map(apart.map((row, index) => [row, payloads[index]] as const))
    return (rows as readonly StoredRow[]).map((row) => {
      const payload = filled.get(row)
      if (payload === undefined) return row
      if (payload instanceof AskonceError) return payload
      return { ...row, record: { ...row.record, payload } as JobRecord }
    })
  }

  watch(listener: HintListener): () => void {
    return this.#options.watch(listener)
  }

  async close(): Promise<void> {
    await this.#options.payloads.idle()
    await this.#options.closed()
  }

  /** Items by their partition keys, consistently. */
  async #items(partitions: readonly string[]): Promise<Map<string, Attributes>> {
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

  async #row(key: string, item: Attributes | null | undefined): Promise<Row | null> {
    if (item === undefined || item === null) return null
    if (key !== '') return this.#options.items.row(key, item)
    return { type: 'hold', key: '', version: String(item['w']), heldUntil: Number(item['h']) }
  }

  #swap(change: Change): Promise<SwapAnswer> {
    if (change.key === '') return this.#swapHold(change)
    const from = change.from as StoredRow | null
    const to = change.to as StoredRow | null
    if (to === null) return this.#remove(from!)
    // The machine hands the spec on as it is for as long as the record is the same one.
    if (from?.record.spec === to.record.spec) return this.#update(from, to)
    return this.#create(from, to)
  }

  /** A record is made, where there is none or one that is past its end. */
  async #create(from: StoredRow | null, to: StoredRow): Promise<SwapAnswer> {
    const { clock, items, payloads, requests } = this.#options
    let row = to
    const { payload } = to.record as OpenRecord
    let apart: string | null = null
    if (payloads.isLarge(payload)) {
      const written = await payloads.write(to.record, payload)
      if (written !== null) {
        apart = written.payloadKey
        row = { ...to, ...written }
      }
    }
    const attributes = await items.attributes(row)
    const condition = from === null ? FREE(clock.now()) : UNCHANGED(from.version)
    const answer = await this.#write(from, row, (partition) =>
      requests.put(requests.entities.job, partition, attributes, condition),
    )
    if (answer.ok) {
      if (from !== null) payloads.done(from)
      const packings = attributes['y'] as string | undefined
      return { ok: true, row: packings === undefined ? row : ({ ...row, packings } as StoredRow) }
    }
    // A payload that may be a record's is left: the write may have been made, its answer lost, and others gone on from there.
    const taken = answer.error !== undefined || (answer.row as StoredRow | null | undefined)?.payloadKey === apart
    if (apart !== null && !taken) payloads.done(row)
    return answer
  }

  async #update(from: StoredRow, to: StoredRow): Promise<SwapAnswer> {
    const { items, payloads, requests, counters } = this.#options
    const open = !isTerminal(to.record)
    const payloadUntil = open ? await payloads.keep(from, to.record) : undefined
    const row: StoredRow = {
      ...to,
      ...(open && from.payloadKey !== undefined ? { payloadKey: from.payloadKey } : {}),
      ...(payloadUntil === undefined ? {} : { payloadUntil }),
    }
    const changes = await items.changes(from, row)
    const answer = await this.#write(from, row, (partition) =>
      requests.update(requests.entities.job, partition, changes, UNCHANGED(from.version)),
    )
    if (from.hinted) {
      const lost = !answer.ok && answer.error === undefined
      if (lost) counters.claimsLost++
      this.#pages.tried(lost)
    }
    if (answer.ok && !open) payloads.done(from)
    return answer
  }

  async #remove(from: StoredRow): Promise<SwapAnswer> {
    const { payloads, requests } = this.#options
    const answer = await this.#write(from, null, (partition) =>
      requests.delete(requests.entities.job, partition, UNCHANGED(from.version)),
    )
    if (answer.ok) payloads.done(from)
    return answer
  }

  /** Sends a write of a job's item; answers how it went, with the row that is there now where that is known. */
  async #write(
    from: StoredRow | null,
    to: StoredRow | null,
    make: (partition: string) => unknown,
  ): Promise<SwapAnswer> {
    const { calls, layout, items, counters } = this.#options
    const key = (from ?? to!).key
    const partition = layout.job(key)
    const answer = await calls.send<{ Attributes?: Item }>('write a record', () => make(partition))
    if (!(answer instanceof ConditionFalse)) {
      if (from !== null) this.#pages.outdated.add(from.version)
      if (to === null || answer.Attributes === undefined) return { ok: true }
      return { ok: true, row: await items.row(key, unmarshalled(answer.Attributes)) }
    }
    const item = answer.item ?? (await this.#items([partition])).get(partition)
    const row = (await this.#row(key, item)) as StoredRow | null
    if (to !== null && row?.version === to.version) {
      // The SDK repeated a request whose answer was lost.
      counters.recognised++
      return { ok: true, row }
    }
    counters.conflicts++
    if (from !== null) this.#pages.outdated.add(from.version)
    if (to === null && row === null && answer.repeated) {
      return {
        ok: false,
        error: new StorageError('a record is gone, and it can’t be told by whom: an answer was lost'),
      }
    }
    return { ok: false, row }
  }

  async #swapHold({ from, to }: Change): Promise<SwapAnswer> {
    const { calls, requests, layout, counters } = this.#options
    const entity: Entity = requests.entities.hold
    const condition: Condition = from === null ? ABSENT : UNCHANGED(from.version)
    const answer = await calls.send('hold the queue', () => {
      if (to === null) return requests.delete(entity, layout.hold, condition)
      const { version, heldUntil } = to as HoldRow
      return requests.put(entity, layout.hold, { w: version, h: heldUntil }, condition)
    })
    if (!(answer instanceof ConditionFalse)) return { ok: true }
    const item = answer.item ?? (await this.#items([layout.hold])).get(layout.hold)
    const row = await this.#row('', item)
    if (to !== null && row?.version === to.version) {
      counters.recognised++
      return { ok: true }
    }
    return { ok: false, row }
  }

  async #readShard(shard: number, until: number, limit: number): Promise<readonly IndexEntry[]> {
    const { calls, requests, layout, items, dueName, warn } = this.#options
    const answer = (await calls.send('look for due records', () =>
      requests.due(layout.shard(shard), until, limit),
    )) as {
      Items?: Item[]
    }
    const entries: IndexEntry[] = []
    for (const wire of answer.Items ?? []) {
      const item = unmarshalled(wire)
      const key = layout.id(requests.partitionOf(item))
      if (key === null) continue
      const version = typeof item['w'] === 'string' ? item['w'] : null
      // An index of the user's own may have the keys alone.
      const row = version !== null && item['s'] !== undefined ? await intact(items.row(key, item, true), warn) : null
      // One damaged record must not keep all others from being found.
      if (row !== undefined) entries.push({ key, due: Number(item[dueName]), version, row })
    }
    return entries
  }
}

function isApart(row: StoredRow): boolean {
  return row.payloadKey !== undefined && !isTerminal(row.record) && row.record.payload === ''
}

/** Whether a record is one that {@link FREE} lets another take the place of. */
function isPast(record: JobRecord, now: number): boolean {
  return isTerminal(record) && record.at <= now
}
