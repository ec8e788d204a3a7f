/**
 * Every state that an id can be in, and how it gets there: the rows of the crossed cases.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { JobRecord, ProcessingRecord, Verdict } from '../../src/record.ts'
import { complete, fail, release, retry } from '../../src/record.ts'
import type { Checked } from './checked.ts'
import type { ItemOptions } from './items.ts'
import { item, lease, settlement } from './items.ts'
import { longMs } from './rig.ts'

/** A state, and what brings ids into it. */
export interface StartingState {
  readonly name: string
  /** What `get` then says; null for nothing. */
  readonly state: JobRecord['state'] | null
  readonly make: (checked: Checked, ids: readonly string[]) => Promise<void>
}

async function queue(checked: Checked, ids: readonly string[], options: ItemOptions = {}): Promise<void> {
  await checked.enqueue(ids.map((id) => item(checked.rig, id, options)))
}

async function queueInline(
  checked: Checked,
  ids: readonly string[],
  leaseMs: number,
  options: ItemOptions = {},
): Promise<ProcessingRecord[]> {
  const items = ids.map((id) => item(checked.rig, id, { ...options, lease: lease(checked.rig, leaseMs) }))
  const { answers } = await checked.enqueue(items)
  return answers.map(({ record }) => record as ProcessingRecord)
}

async function claim(checked: Checked, ids: readonly string[], leaseMs = longMs): Promise<readonly ProcessingRecord[]> {
  const { jobs } = await checked.claim({ ...lease(checked.rig, leaseMs), limit: ids.length, ids })
  assert.equal(jobs.length, ids.length, 'every id is leased')
  return jobs
}

async function settle(checked: Checked, jobs: readonly ProcessingRecord[], verdict: Verdict): Promise<void> {
  await checked.settle(jobs.map((job) => settlement(job, verdict)))
}

/** Brings ids to a lease's end by a verdict. */
async function ended(checked: Checked, ids: readonly string[], verdict: Verdict, options?: ItemOptions): Promise<void> {
  await queue(checked, ids, options)
  await settle(checked, await claim(checked, ids), verdict)
}

/** Waits until what was made short is over. */
async function pass(checked: Checked, ids: readonly string[], extraMs = 0): Promise<void> {
  const ends = ids.map((id) => checked.record(id)?.at ?? 0)
  await checked.rig.waitUntil(checked.handle, Math.max(...ends) + extraMs)
}

/** Completes ids, and has them run anew. */
async function refresh(
  checked: Checked,
  ids: readonly string[],
  options: ItemOptions = {},
  keptMs = longMs,
): Promise<void> {
  await ended(checked, ids, complete('old', keptMs))
  await queue(checked, ids, { ...options, refresh: true })
}

/** The same, and leases them. */
async function refreshing(
  checked: Checked,
  ids: readonly string[],
  options: ItemOptions = {},
  leaseMs = longMs,
): Promise<readonly ProcessingRecord[]> {
  await refresh(checked, ids, options)
  return claim(checked, ids, leaseMs)
}

/** Completes ids with rows to deliver. */
function post(checked: Checked, ids: readonly string[], ttlMs = longMs, outboxMs = longMs): Promise<void> {
  return ended(checked, ids, complete('yes', ttlMs, { rows: 'rows', ttlMs: outboxMs }))
}

/** Completes ids with rows to deliver, and leases these. */
async function collect(checked: Checked, ids: readonly string[], leaseMs = longMs): Promise<string> {
  await post(checked, ids)
  const request = { ...lease(checked.rig, leaseMs), limit: ids.length }
  const left = new Set(ids)
  // Where the order is approximate, a look may miss some.
  await checked.rig.until('every outbox is leased', async () => {
    const { collected } = await checked.deliver([], { ...request, limit: left.size })
    for (const { spec } of collected!.records) left.delete(spec.id)
    return left.size === 0
  })
  return request.generation
}

/** All of them. */
export const startingStates: readonly StartingState[] = [
  { name: 'absent', state: null, make: async () => {} },
  {
    name: 'absent, once cancelled',
    state: null,
    make: async (checked, ids) => {
      await queue(checked, ids)
      await checked.cancel(ids)
    },
  },
  { name: 'queued, due', state: 'queued', make: (checked, ids) => queue(checked, ids) },
  { name: 'queued, delayed', state: 'queued', make: (checked, ids) => queue(checked, ids, { delayMs: longMs }) },
  {
    name: 'queued, its delay over',
    state: 'queued',
    make: async (checked, ids) => {
      await queue(checked, ids, { delayMs: checked.rig.shortMs })
      await pass(checked, ids)
    },
  },
  {
    name: 'queued, its payload not digested',
    state: 'queued',
    make: (checked, ids) => queue(checked, ids, { fingerprint: '' }),
  },
  { name: 'released, due', state: 'queued', make: (checked, ids) => ended(checked, ids, release(0)) },
  { name: 'released, for later', state: 'queued', make: (checked, ids) => ended(checked, ids, release(longMs)) },
  {
    name: 'processing, lease lives',
    state: 'processing',
    make: async (checked, ids) => {
      await queue(checked, ids)
      await claim(checked, ids)
    },
  },
  {
    name: 'processing, lease over',
    state: 'processing',
    make: async (checked, ids) => {
      await queue(checked, ids)
      await claim(checked, ids, checked.rig.shortMs)
      await pass(checked, ids, checked.rig.graceMs)
    },
  },
  {
    name: 'processing, lease over, attempts used up',
    state: 'processing',
    make: async (checked, ids) => {
      await queue(checked, ids, { maxAttempts: 1 })
      await claim(checked, ids, checked.rig.shortMs)
      await pass(checked, ids, checked.rig.graceMs)
    },
  },
  {
    name: 'processing, taken over',
    state: 'processing',
    make: async (checked, ids) => {
      await queue(checked, ids)
      await claim(checked, ids, checked.rig.shortMs)
      await pass(checked, ids, checked.rig.graceMs)
      await claim(checked, ids)
    },
  },
  { name: 'failing, due', state: 'failing', make: (checked, ids) => ended(checked, ids, retry('oh', 0)) },
  { name: 'failing, for later', state: 'failing', make: (checked, ids) => ended(checked, ids, retry('oh', longMs)) },
  { name: 'completed', state: 'completed', make: (checked, ids) => ended(checked, ids, complete('yes', longMs)) },
  {
    name: 'completed, its TTL over',
    state: null,
    make: async (checked, ids) => {
      await ended(checked, ids, complete('yes', checked.rig.shortMs))
      await pass(checked, ids)
    },
  },
  { name: 'failed', state: 'failed', make: (checked, ids) => ended(checked, ids, fail('no', longMs)) },
  {
    name: 'failed by its last retry',
    state: 'failed',
    make: (checked, ids) => ended(checked, ids, retry('no', 0), { maxAttempts: 1 }),
  },
  {
    name: 'failed, its TTL over',
    state: null,
    make: async (checked, ids) => {
      await ended(checked, ids, fail('no', checked.rig.shortMs))
      await pass(checked, ids)
    },
  },
  {
    name: 'failed, exhausted',
    state: 'failed',
    make: async (checked, ids) => {
      await queue(checked, ids, { maxAttempts: 1 })
      await claim(checked, ids, checked.rig.shortMs)
      await pass(checked, ids, checked.rig.graceMs)
      await checked.claim({ ...lease(checked.rig), limit: ids.length, ids })
    },
  },
  {
    name: 'inline, lease lives',
    state: 'processing',
    make: async (checked, ids) => void (await queueInline(checked, ids, longMs)),
  },
  {
    name: 'inline, lease over',
    state: 'processing',
    make: async (checked, ids) => {
      await queueInline(checked, ids, checked.rig.shortMs)
      await pass(checked, ids, checked.rig.graceMs)
    },
  },
  {
    name: 'inline, lease over, attempts used up',
    state: 'processing',
    make: async (checked, ids) => {
      await queueInline(checked, ids, checked.rig.shortMs, { maxAttempts: 1 })
      await pass(checked, ids, checked.rig.graceMs)
    },
  },
  {
    name: 'inline, forgotten a resultTTL after its lease',
    state: null,
    make: async (checked, ids) => {
      const { shortMs } = checked.rig
      await queueInline(checked, ids, shortMs, { resultTTL: shortMs })
      await pass(checked, ids, shortMs)
    },
  },
  {
    name: 'inline, made visible by an enqueue',
    state: 'processing',
    make: async (checked, ids) => {
      await queueInline(checked, ids, checked.rig.shortMs)
      await queue(checked, ids)
      await pass(checked, ids, checked.rig.graceMs)
    },
  },
  {
    name: 'inline, released',
    state: 'queued',
    make: async (checked, ids) => settle(checked, await queueInline(checked, ids, longMs), release(0)),
  },
  {
    name: 'inline, failing',
    state: 'failing',
    make: async (checked, ids) => settle(checked, await queueInline(checked, ids, longMs), retry('oh', 0)),
  },
  {
    name: 'inline, failing, for later',
    state: 'failing',
    make: async (checked, ids) => settle(checked, await queueInline(checked, ids, longMs), retry('oh', longMs)),
  },
  {
    name: 'inline, completed',
    state: 'completed',
    make: async (checked, ids) => settle(checked, await queueInline(checked, ids, longMs), complete('yes', longMs)),
  },
  {
    name: 'inline, made while the queue was held',
    state: 'queued',
    make: async (checked, ids) => {
      await checked.hold(longMs)
      await queueInline(checked, ids, longMs)
      await checked.hold(0)
    },
  },
  { name: 'refreshing, queued', state: 'queued', make: refresh },
  {
    name: 'refreshing, processing',
    state: 'processing',
    make: async (checked, ids) => void (await refreshing(checked, ids)),
  },
  {
    name: 'refreshing, processing, lease over, attempts used up',
    state: 'processing',
    make: async (checked, ids) => {
      await refreshing(checked, ids, { maxAttempts: 1 }, checked.rig.shortMs)
      await pass(checked, ids, checked.rig.graceMs)
    },
  },
  {
    name: 'refreshing, failing, due',
    state: 'failing',
    make: async (checked, ids) => settle(checked, await refreshing(checked, ids), retry('oh', 0)),
  },
  {
    name: 'refreshing, inline, its lease over',
    state: 'processing',
    make: async (checked, ids) => {
      await ended(checked, ids, complete('old', longMs))
      await queueInline(checked, ids, checked.rig.shortMs, { refresh: true })
      await pass(checked, ids, checked.rig.graceMs)
    },
  },
  {
    name: 'refreshing, what was kept is past its end',
    state: 'queued',
    make: async (checked, ids) => {
      // Long enough for the refresh to find it, where time is real.
      const keptMs = checked.rig.virtual ? checked.rig.shortMs : 10 * checked.rig.shortMs
      await refresh(checked, ids, {}, keptMs)
      await checked.rig.wait(checked.handle, keptMs)
    },
  },
  {
    name: 'refreshed in vain',
    state: 'completed',
    make: async (checked, ids) => settle(checked, await refreshing(checked, ids), fail('no', longMs)),
  },
  {
    name: 'refreshed, cancelled',
    state: 'completed',
    make: async (checked, ids) => {
      await refresh(checked, ids)
      await checked.cancel(ids)
    },
  },
  { name: 'completed, its rows to be delivered', state: 'completed', make: (checked, ids) => post(checked, ids) },
  {
    name: 'completed, its TTL over, its rows to be delivered',
    state: 'completed',
    make: async (checked, ids) => {
      await post(checked, ids, checked.rig.shortMs)
      await pass(checked, ids)
    },
  },
  {
    name: 'completed, its rows given up',
    state: null,
    make: async (checked, ids) => {
      const { shortMs } = checked.rig
      await post(checked, ids, 1, shortMs)
      await checked.rig.wait(checked.handle, shortMs)
    },
  },
  {
    name: 'completed, its rows being delivered',
    state: 'completed',
    make: async (checked, ids) => void (await collect(checked, ids)),
  },
  {
    name: 'completed, the lease of its rows over',
    state: 'completed',
    make: async (checked, ids) => {
      const { shortMs, graceMs } = checked.rig
      await collect(checked, ids, shortMs)
      await checked.rig.wait(checked.handle, shortMs + graceMs)
    },
  },
  {
    name: 'completed, a part of its rows delivered',
    state: 'completed',
    make: async (checked, ids) => {
      const generation = await collect(checked, ids)
      await checked.deliver(ids.map((id) => ({ id, generation, rows: 'rest', delayMs: longMs })))
    },
  },
  {
    name: 'marked, processing',
    state: 'processing',
    make: async (checked, ids) => {
      await queue(checked, ids)
      await checked.mark(ids.map((id) => ({ id, name: 'mail', token: 'first' })))
      await claim(checked, ids)
    },
  },
  {
    name: 'marked, completed',
    state: 'completed',
    make: async (checked, ids) => {
      await ended(checked, ids, complete('yes', longMs))
      await checked.mark(ids.map((id) => ({ id, name: 'mail', token: 'first' })))
    },
  },
]
