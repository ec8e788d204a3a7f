/**
 * Outboxes on a store of rows: ending the leases of those that were delivered, and leasing those that are due.
 *
 * @module
 */

import type { Clock } from './clock.ts'
import type { CollectOutcome, DeliverOutcome, ForgetOutcome, Step } from './machine.ts'
import { collectableFrom, living, step } from './machine.ts'
import type { CompletedRecord, JobRecord } from './record.ts'
import { DueReader } from './record-due.ts'
import type { RecordStore } from './record-store.ts'
import type { Swapper, Task } from './record-swapper.ts'
import type { CollectAnswer, CollectRequest, Delivery } from './storage.ts'

/** Rounds for a row that was changed meanwhile: mostly another relay has it, and there are others. */
const collectRounds = 2

interface OutboxesOptions {
  readonly store: RecordStore
  readonly clock: Clock
  readonly graceMs: number
  readonly swapper: Swapper
}

/** From when on a delivery of the row may begin, ms since 1970; null if it has nothing to deliver. */
export function deliverableFrom(record: JobRecord, graceMs: number): number | null {
  return record.state === 'completed' && record.outbox !== undefined ? collectableFrom(record.outbox, graceMs) : null
}

/** Ends leases of outboxes. */
export async function endDeliveries(
  { swapper }: OutboxesOptions,
  items: readonly Delivery[],
): Promise<readonly DeliverOutcome[]> {
  const tasks = items.map(({ id, generation, rows, delayMs }): Task<DeliverOutcome> => {
    return { key: id, apply: (record, now) => step(record, { type: 'deliver', generation, rows, delayMs }, now) }
  })
  return (await swapper.run(tasks)).outcomes.map(({ answer }) => answer)
}

/** Leases outboxes that are due. */
export async function collect(
  { store, clock, graceMs, swapper }: OutboxesOptions,
  { generation, leaseMs, limit }: CollectRequest,
): Promise<CollectAnswer> {
  const due = new DueReader(store, clock, 'deliverable')
  const records: CompletedRecord[] = []
  const apply = (record: JobRecord | null, now: number): Step<CollectOutcome | ForgetOutcome> => {
    // What was given up is freed on the way: it would hide what can be delivered behind it until a sweep comes by.
    if (record !== null && living(record, now) === null) return step(record, { type: 'forget' }, now)
    return step(record, { type: 'collect', generation, leaseMs, graceMs }, now)
  }
  let problem: unknown = null
  while (records.length < limit && problem === null) {
    const items = await due.next(limit - records.length)
    if (items.length === 0) break
    const tasks = items.map((item): Task<CollectOutcome | ForgetOutcome> => {
      return typeof item === 'string' ? { key: item, apply } : { key: item.key, apply, assume: item }
    })
    const { outcomes } = await swapper.run(tasks, { rounds: collectRounds, partial: true, believe: true })
    for (const { answer, record, error, lost } of outcomes) {
      if (error !== null && !lost) problem ??= error
      else if (answer === 'collected') records.push(record as CompletedRecord)
    }
  }
  // Leases that were made must be told of: without that they would have to run out.
  if (problem !== null && records.length === 0) throw problem
  const now = clock.now()
  // The leases just made may end before anything that the store had found by then.
  const ends = records.map((record) => deliverableFrom(record, graceMs) ?? Number.POSITIVE_INFINITY)
  const nextAt = due.left ? now : due.nextAt === null ? null : Math.min(due.nextAt, ...ends)
  return { now, records, nextInMs: nextAt === null ? null : Math.max(0, nextAt - now) }
}
