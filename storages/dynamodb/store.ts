/**
 * One namespace of a table as a store of rows: one item per record, each change one conditional write.
 *
 * @module
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { Entity } from 'dynamodb-toolbox/entity'
import type { Clock } from '../../src/clock.ts'
import type { AskonceError } from '../../src/errors.ts'
import { StorageError } from '../../src/errors.ts'
import type { JobRecord, OpenRecord } from '../../src/record.ts'
import { forgottenFrom, isTerminal } from '../../src/record.ts'
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
import type { Condition } from './conditions.ts'
import { ABSENT, FREE, UNCHANGED } from './conditions.ts'
import type { Entry } from './due-pages.ts'
import { DuePages, Outdated } from './due-pages.ts'
import type { Items, StoredRow } from './items.ts'
import { intact, isFree, isWholeEntry, resultOf, withResult } from './items.ts'
import type { Layout } from './layout.ts'
import type { Payloads } from './payloads.ts'
import type { Requests } from './requests.ts'
import type { Rows } from './rows.ts'
import type { Shards } from './shards.ts'
import type { Sweeper } from './sweeper.ts'

/** Looks into the index for one page of what is due. */
const looksMax = 10

type Item = Record<string, AttributeValue>

/** What the index is for. */
type Lane = Exclude<DueKind, 'forgettable'>

interface IndexEntry extends Entry {
  /** The row, where the index has enough of it. */
  readonly row: StoredRow | null
}

export interface StoreOptions {
  readonly calls: Calls
  readonly requests: Requests
  readonly items: Items
  readonly layout: Layout
  readonly payloads: Payloads
  readonly rows: Rows
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
  readonly #outdated = new Outdated()
  readonly #pages: { readonly [lane in Lane]: DuePages<IndexEntry> }

  constructor(options: StoreOptions) {
    this.#options = options
    const { random, lookaheadMs } = options
    const pages = (lane: Lane) =>
      new DuePages<IndexEntry>({
        read: (shard, until, limit) => this.#readShard(lane, shard, until, limit),
        random,
        lookaheadMs,
        outdated: this.#outdated,
      })
    this.#pages = { claimable: pages('claimable'), deliverable: pages('deliverable') }
  }

  load(keys: readonly string[]): Promise<readonly (Row | null)[]> {
    return this.#options.rows.load(keys)
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
      if (row?.type === 'job' && !isFree(row.record, clock.now())) there.set(row.key, row)
    }
    return there
  }

  async due(limit: number, now: number, kind: DueKind): Promise<DueAnswer> {
    const { shards, sweeper } = this.#options
    if (kind === 'forgettable') return { items: await sweeper.find(limit, now), nextAt: null }
    for (let looks = 1; ; looks++) {
      const { entries, nextAt } = await this.#pages[kind].find(limit, now, await shards.read())
      const items = await this.#rowsOf(entries, now, kind)
      // Entries of what is gone may hide others; by now they are known to be outdated.
      if (items.length > 0 || entries.length === 0 || looks === looksMax) return { items, nextAt }
    }
  }

  /** The rows that entries of the index tell of: as they are there, or looked up where that is not enough. */
  async #rowsOf(entries: readonly IndexEntry[], now: number, kind: Lane): Promise<StoredRow[]> {
    const { rows } = this.#options
    const keys = entries.filter(({ row }) => row === null).map(({ key }) => key)
    // Who delivers needs the rows of the outbox; the result of who exhausts a job may be that which is kept.
    const found = keys.length === 0 ? new Map<string, StoredRow>() : await rows.sought(keys, kind === 'claimable')
    const past: StoredRow[] = []
    const sought: StoredRow[] = []
    for (const { key, version, row: whole } of entries) {
      const row = whole ?? found.get(key)
      if (version !== null && row?.version !== version) this.#outdated.add(version)
      if (row === undefined) continue
      if (forgottenFrom(row.record) <= now) past.push(row)
      else sought.push({ ...row, sought: kind })
    }
    // Rows that were given up leave their entries behind, at the head, until DynamoDB has collected them.
    await Promise.allSettled(past.map((row) => this.#remove(row)))
    return sought
  }

  fill(rows: readonly JobRow[]): Promise<readonly (JobRow | AskonceError)[]> {
    return this.#options.rows.fill(rows as readonly StoredRow[])
  }

  watch(listener: HintListener): () => void {
    return this.#options.watch(listener)
  }

  async close(): Promise<void> {
    await this.#options.payloads.idle()
    await this.#options.closed()
  }

  #swap(change: Change): Promise<SwapAnswer> {
    if (change.key === '') return this.#swapHold(change)
    const from = change.from as StoredRow | null
    const to = change.to as StoredRow | null
    if (to === null) return this.#remove(from!)
    return from !== null && isSameJob(from.record, to.record) ? this.#update(from, to) : this.#create(from, to)
  }

  /** A record is made: where there is none, or one that is past its end; or in place of one that is refreshed. */
  async #create(from: StoredRow | null, to: StoredRow): Promise<SwapAnswer> {
    const { clock, items, payloads, requests } = this.#options
    const { payload } = to.record as OpenRecord
    const result = await payloads.placeResult(from, to.record)
    const written = payloads.isLarge(payload) ? await payloads.write(to.record, payload) : null
    const row: StoredRow = { ...to, ...result, ...written }
    const attributes = await items.attributes(row)
    const condition = from === null ? FREE(clock.now()) : UNCHANGED(from.version)
    const answer = await this.#write(from, row, (partition) =>
      requests.put(requests.entities.job, partition, attributes, condition),
    )
    if (!answer.ok) return answer
    const packings = attributes['y'] as string | undefined
    return { ok: true, row: packings === undefined ? row : ({ ...row, packings } as StoredRow) }
  }

  async #update(from: StoredRow, to: StoredRow): Promise<SwapAnswer> {
    const { items, payloads, requests, counters } = this.#options
    const open = !isTerminal(to.record)
    const payloadUntil = open ? await payloads.keep(from, to.record) : undefined
    const row: StoredRow = {
      ...to,
      ...(open && from.payloadKey !== undefined ? { payloadKey: from.payloadKey } : {}),
      ...(payloadUntil === undefined ? {} : { payloadUntil }),
      ...(await payloads.placeResult(from, to.record)),
    }
    const changes = await items.changes(from, row)
    const answer = await this.#write(from, row, (partition) =>
      requests.update(requests.entities.job, partition, changes, UNCHANGED(from.version)),
    )
    if (from.sought !== undefined && from.sought !== 'forgettable') {
      const lost = !answer.ok && answer.error === undefined
      if (lost && from.sought === 'claimable') counters.claimsLost++
      this.#pages[from.sought].tried(lost)
    }
    return answer
  }

  #remove(from: StoredRow): Promise<SwapAnswer> {
    const { requests } = this.#options
    return this.#write(from, null, (partition) =>
      requests.delete(requests.entities.job, partition, UNCHANGED(from.version)),
    )
  }

  /** Makes a write of a job's item; what is kept apart and needed by nobody then is seen to. */
  async #write(
    from: StoredRow | null,
    to: StoredRow | null,
    make: (partition: string) => unknown,
  ): Promise<SwapAnswer> {
    const { payloads } = this.#options
    const answer = await this.#send(from, to, make)
    if (answer.ok) {
      if (from !== null) payloads.unneeded(from, [to])
    } else if (answer.error === undefined && to !== null) {
      // What may be a record's is left: the write may have been made, its answer lost, and others gone on from there.
      payloads.unneeded(to, [from, answer.row as StoredRow | null | undefined])
    }
    return answer
  }

  /** Sends a write of a job's item; answers how it went, with the row that is there now where that is known. */
  async #send(from: StoredRow | null, to: StoredRow | null, make: (partition: string) => unknown): Promise<SwapAnswer> {
    const { calls, layout, items, rows, counters } = this.#options
    const key = (from ?? to!).key
    const partition = layout.job(key)
    const answer = await calls.send<{ Attributes?: Item }>('write a record', () => make(partition))
    if (!(answer instanceof ConditionFalse)) {
      if (from !== null) this.#outdated.add(from.version)
      if (to === null || answer.Attributes === undefined) return { ok: true }
      const row = await items.row(key, unmarshalled(answer.Attributes))
      return { ok: true, row: row.resultKey === undefined ? row : withResult(row, resultOf(to.record)) }
    }
    const item = answer.item ?? (await rows.items([partition])).get(partition)
    const row = (await rows.row(key, item)) as StoredRow | null
    if (to !== null && row?.version === to.version) {
      // The SDK repeated a request whose answer was lost.
      counters.recognised++
      return { ok: true, row }
    }
    counters.conflicts++
    if (from !== null) this.#outdated.add(from.version)
    if (to === null && row === null && answer.repeated) {
      return {
        ok: false,
        error: new StorageError('a record is gone, and it can’t be told by whom: an answer was lost'),
      }
    }
    return { ok: false, row }
  }

  async #swapHold({ from, to }: Change): Promise<SwapAnswer> {
    const { calls, requests, layout, rows, counters } = this.#options
    const entity: Entity = requests.entities.hold
    const condition: Condition = from === null ? ABSENT : UNCHANGED(from.version)
    const answer = await calls.send('hold the queue', () => {
      if (to === null) return requests.delete(entity, layout.hold, condition)
      const { version, heldUntil } = to as HoldRow
      return requests.put(entity, layout.hold, { w: version, h: heldUntil }, condition)
    })
    if (!(answer instanceof ConditionFalse)) return { ok: true }
    const item = answer.item ?? (await rows.items([layout.hold])).get(layout.hold)
    const row = await rows.row('', item)
    if (to !== null && row?.version === to.version) {
      counters.recognised++
      return { ok: true }
    }
    return { ok: false, row }
  }

  async #readShard(kind: Lane, shard: number, until: number, limit: number): Promise<readonly IndexEntry[]> {
    const { calls, requests, layout, items, dueName, warn } = this.#options
    const partition = kind === 'claimable' ? layout.shard(shard) : layout.outboxShard(shard)
    const answer = (await calls.send('look for due records', () => requests.due(partition, until, limit))) as {
      Items?: Item[]
    }
    const entries: IndexEntry[] = []
    for (const wire of answer.Items ?? []) {
      const item = unmarshalled(wire)
      const key = layout.id(requests.partitionOf(item))
      if (key === null) continue
      const version = typeof item['w'] === 'string' ? item['w'] : null
      const row = isWholeEntry(item) && kind === 'claimable' ? await intact(items.row(key, item, true), warn) : null
      // One damaged record must not keep all others from being found.
      if (row !== undefined) entries.push({ key, due: Number(item[dueName]), version, row })
    }
    return entries
  }
}

/** Whether a record has become another of the same run, whose payload is as it was. */
function isSameJob(from: JobRecord, to: JobRecord): boolean {
  const { incarnation, createdAt } = from.spec
  if (to.spec.incarnation !== incarnation || to.spec.createdAt !== createdAt) return false
  return isTerminal(to) || !isTerminal(from)
}
