/**
 * `sweep` and what it leaves: nothing of what is past its end, all of what is not.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete, fail, release, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { claimIds, enqueueNew, expectState, finish, item, lease, settlement } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** Sweeps until nothing is found, and expects that this ends. */
async function sweepAll(handle: StorageHandle, limit: number): Promise<void> {
  for (let round = 0; round < 1_000; round++) {
    const swept = await handle.sweep(limit)
    assert.ok(Number.isInteger(swept) && swept >= 0 && swept <= limit, `sweep(${limit}) answered ${swept}`)
    if (swept === 0) return
  }
  assert.fail('sweep finds something again and again')
}

/** Records told of by stats, as far as they are told. */
async function recordsLeft(rig: Rig, handle: StorageHandle): Promise<number> {
  const stats = await handle.stats()
  let sum = 0
  const unknown: string[] = []
  for (const state of ['queued', 'processing', 'failing', 'completed', 'failed'] as const) {
    const count = stats[state]
    if (count === null) unknown.push(state)
    else sum += count
  }
  if (unknown.length > 0) rig.note(`what is left in the states ${unknown.join(', ')}: stats does not tell`)
  return sum
}

function idsOf(kind: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${kind} ${index}`)
}

export const sweepCases: readonly Case[] = [
  {
    name: 'sweep: of N expired, N cancelled and N retried jobs nothing stays behind',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const count = 50
      const [completed, failed, exhausted, retried, cancelled, released, inline] = [
        'completed',
        'failed',
        'exhausted',
        'retried',
        'cancelled',
        'released',
        'inline',
      ].map((kind) => idsOf(kind, count)) as [string[], string[], string[], string[], string[], string[], string[]]
      const [givenUp, refreshed] = [idsOf('given up', count), idsOf('refreshed', count)]
      const { shortMs } = rig
      await enqueueNew(rig, handle, [...completed, ...failed, ...retried, ...released, ...givenUp, ...refreshed])
      await enqueueNew(rig, handle, exhausted, { maxAttempts: 1, failureTTL: shortMs })
      await enqueueNew(rig, handle, cancelled, { delayMs: longMs })
      await handle.enqueue(inline.map((id) => item(rig, id, { resultTTL: shortMs, lease: lease(rig, shortMs) })))
      await claimIds(rig, handle, exhausted, shortMs)
      const done = await claimIds(rig, handle, completed)
      await handle.settle(
        done.map((job) => settlement(job, complete('x', shortMs))),
        null,
      )
      const posted = await claimIds(rig, handle, givenUp)
      const marks = givenUp.map((id) => ({ id, name: 'mail', token: 'x' }))
      assert.deepEqual(await handle.mark(marks), Array(count).fill('marked'))
      await handle.settle(
        posted.map((job) => settlement(job, complete('x', 1, { rows: 'rows', ttlMs: shortMs }))),
        null,
      )
      await other.deliver([], { ...lease(rig, longMs), limit: count / 2 })
      for (const verdict of [complete('x', 10 * shortMs), complete('y', shortMs)]) {
        const done = await claimIds(rig, handle, refreshed)
        await handle.settle(
          done.map((job) => settlement(job, verdict)),
          null,
        )
        if (verdict.kind !== 'complete' || verdict.result !== 'x') continue
        await handle.enqueue(refreshed.map((id) => item(rig, id, { refresh: true })))
      }
      const failures = await claimIds(rig, handle, failed)
      await handle.settle(
        failures.map((job) => settlement(job, fail('x', shortMs))),
        null,
      )
      const back = await claimIds(rig, handle, released)
      await handle.settle(
        back.map((job) => settlement(job, release(longMs))),
        null,
      )
      for (let round = 0; round < 2; round++) {
        const jobs = await claimIds(rig, handle, retried)
        await handle.settle(
          jobs.map((job) => settlement(job, retry('x', 0))),
          null,
        )
      }
      const last = await claimIds(rig, handle, retried)
      await other.settle(
        last.map((job) => settlement(job, complete('x', shortMs))),
        null,
      )
      assert.deepEqual(await other.cancel([...cancelled, ...released]), Array(2 * count).fill('cancelled'))
      await rig.wait(handle, 2 * shortMs + rig.graceMs)
      const { exhausted: ended } = await other.claim({ ...lease(rig), limit: count, ids: exhausted })
      assert.equal(ended.length, count)
      await rig.wait(handle, shortMs)

      await sweepAll(other, 1_000)
      await rig.until('nothing is left', async () => (await recordsLeft(rig, handle)) === 0)
      const all = [completed, failed, exhausted, retried, cancelled, released, inline, givenUp, refreshed].flat()
      const { records } = await handle.get(all)
      assert.deepEqual(records, Array(all.length).fill(null))
    },
  },
  {
    name: 'sweep: keeps to its limit, and frees nothing that lives',
    async run(rig) {
      const handle = await rig.open()
      const { shortMs } = rig
      const dead = idsOf('dead', 10)
      await enqueueNew(rig, handle, dead)
      const jobs = await claimIds(rig, handle, dead)
      await handle.settle(
        jobs.map((job) => settlement(job, complete('x', shortMs))),
        null,
      )
      await enqueueNew(rig, handle, ['queued'], { resultTTL: 1, failureTTL: 1 })
      await enqueueNew(rig, handle, ['delayed'], { resultTTL: 1, failureTTL: 1, delayMs: longMs })
      await enqueueNew(rig, handle, ['lease over'], { resultTTL: 1, failureTTL: 1 })
      await claimIds(rig, handle, ['lease over'], 1)
      await handle.enqueue([item(rig, 'inline', { lease: lease(rig, 1) })])
      await finish(rig, handle, 'completed', 'kept')
      await rig.wait(handle, 2 * shortMs)
      const first = await handle.sweep(3)
      assert.ok(first <= 3, `sweep(3) freed ${first}`)
      await sweepAll(handle, 3)
      await expectState(handle, 'queued', 'queued')
      await expectState(handle, 'delayed', 'queued')
      await expectState(handle, 'lease over', 'processing')
      await expectState(handle, 'inline', 'processing')
      assert.equal((await expectState(handle, 'completed', 'completed')).result, 'kept')
      assert.deepEqual((await handle.get(dead)).records, Array(10).fill(null))
    },
  },
  {
    name: 'sweep: an id that was forgotten and enqueued anew is not swept away with its past',
    async run(rig) {
      const handle = await rig.open()
      await finish(rig, handle, 'a', 'old', rig.shortMs)
      await rig.wait(handle, rig.shortMs)
      await enqueueNew(rig, handle, ['a'])
      await sweepAll(handle, 100)
      await expectState(handle, 'a', 'queued')
      await claimIds(rig, handle, ['a'])
      await sweepAll(handle, 100)
      await expectState(handle, 'a', 'processing')
    },
  },
  {
    name: 'sweep: of an empty namespace is 0',
    async run(rig) {
      const handle = await rig.open()
      assert.equal(await handle.sweep(100), 0)
    },
  },
]
