/**
 * Collecting what is past its end. DynamoDB does that by itself, for nothing, where TTL is switched on for the table; so a sweep
 * there only puts off the TTLs of payloads whose records wait long. Where it is not (another service with the same interface,
 * or forgotten), a sweep scans the table, some pages at a time.
 *
 * @module
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import type { Clock } from '../../src/clock.ts'
import { isTerminal } from '../../src/record.ts'
import type { JobRow } from '../../src/record-store.ts'
import { newVersion } from '../../src/record-swapper.ts'
import { unmarshalled } from './attribute-values.ts'
import type { Calls } from './calls.ts'
import { ConditionFalse } from './calls.ts'
import { UNCHANGED } from './conditions.ts'
import type { Attributes, Items, StoredRow } from './items.ts'
import { collectableUntil, intact } from './items.ts'
import type { Layout } from './layout.ts'
import type { Payloads } from './payloads.ts'
import type { Key, Requests } from './requests.ts'
import type { Shards } from './shards.ts'

/** A payload that no record has claimed for its own within this time, ms, is an orphan. */
const orphanAfterMs = 3_600_000

/** Records due for longer than this may need their payloads' TTLs put off, ms. */
const backlogMs = 86_400_000

/** Items looked at in one page, and pages in one sweep. */
const pageItems = 1_000
const pagesMax = 4

type Item = Record<string, AttributeValue>

export interface SweeperOptions {
  readonly calls: Calls
  readonly requests: Requests
  readonly items: Items
  readonly layout: Layout
  readonly payloads: Payloads
  readonly shards: Shards
  readonly clock: Clock
  /** Told of damage. */
  readonly warn: (code: string, message: string) => void
  /** Whether the table is scanned. */
  readonly scan: () => Promise<boolean>
}

/** Finds what can be collected in one namespace. */
export class Sweeper {
  readonly #options: SweeperOptions
  #scanKey: Key | undefined
  #backlogKey: Key | undefined
  #backlogShard = 0

  constructor(options: SweeperOptions) {
    this.#options = options
  }

  /** Records that are past their end. Orphaned payloads are removed at once. */
  async find(limit: number, now: number): Promise<JobRow[]> {
    await this.#keepBacklog(now)
    if (!(await this.#options.scan())) return []
    const { calls, requests, layout, items, warn } = this.#options
    const rows: JobRow[] = []
    for (let page = 0; page < pagesMax && rows.length < limit; page++) {
      const answer = (await calls.send('look for what is past its end', () =>
        requests.scan({
          prefix: layout.all,
          ttlUntil: collectableUntil(now),
          payloads: layout.payloads,
          writtenUntil: now - orphanAfterMs,
          limit: Math.min(pageItems, Math.max(1, limit - rows.length) * 10),
          startKey: this.#scanKey,
        }),
      )) as { Items?: Item[]; LastEvaluatedKey?: Key }
      const owned = new Map<string, Attributes>()
      for (const wire of answer.Items ?? []) {
        const item = unmarshalled(wire)
        const partition = requests.partitionOf(item)
        const id = layout.id(partition)
        if (id !== null) {
          const row = await intact(items.row(id, item), warn)
          if (row !== undefined) rows.push(row)
        } else if (partition.startsWith(layout.payloads)) owned.set(partition, item)
      }
      await this.#removeOrphans(owned)
      // With more than was asked for, the page is read again once the first of it are gone.
      if (rows.length <= limit) this.#scanKey = answer.LastEvaluatedKey
      if (this.#scanKey === undefined) break
    }
    return rows.slice(0, limit)
  }

  /** Removes those payloads and results whose record is gone, needs them no more, or has others. */
  async #removeOrphans(found: ReadonlyMap<string, Attributes>): Promise<void> {
    const { calls, requests, payloads } = this.#options
    await Promise.all(
      [...found].map(async ([partition, { o: owner }]) => {
        const answer = (await calls.send('read a record', () => requests.get(String(owner)))) as { Item?: Item }
        const { q, Q } = answer.Item ?? {}
        if (q?.S !== partition && Q?.S !== partition) await payloads.drop(partition)
      }),
    )
  }

  /** Puts off the TTLs of payloads whose records have long been due: nobody claims them, but somebody may yet. */
  async #keepBacklog(now: number): Promise<void> {
    const { calls, requests, layout, items, shards, warn } = this.#options
    const count = await shards.read()
    const shard = this.#backlogShard % count
    const startKey = this.#backlogKey
    const answer = (await calls.send('look for records that wait long', () =>
      requests.due(layout.shard(shard), now - backlogMs, 100, startKey),
    )) as { Items?: Item[]; LastEvaluatedKey?: Key }
    this.#backlogKey = answer.LastEvaluatedKey
    if (this.#backlogKey === undefined) this.#backlogShard = (shard + 1) % count
    for (const wire of answer.Items ?? []) {
      const item = unmarshalled(wire)
      const id = layout.id(requests.partitionOf(item))
      if (id === null || item['q'] === undefined || item['w'] === undefined) continue
      const row = await intact(items.row(id, item, true), warn)
      if (row !== undefined) await this.#keep(row)
    }
  }

  async #keep(row: StoredRow): Promise<void> {
    const { calls, requests, layout, payloads } = this.#options
    if (isTerminal(row.record)) return
    const until = await payloads.keep(row, row.record)
    if (until === undefined || until === row.payloadUntil) return
    const answer = await calls.send('keep a payload', () =>
      requests.update(
        requests.entities.job,
        layout.job(row.key),
        { w: newVersion(), u: until },
        UNCHANGED(row.version),
      ),
    )
    // Somebody has changed the record meanwhile, and seen to its payload.
    if (answer instanceof ConditionFalse) return
  }
}
