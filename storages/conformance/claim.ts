/**
 * `claim`: leases what is due, in order, and counts the attempt.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { JobRecord } from '../../src/record.ts'
import { complete, release, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import {
  begin,
  claimId,
  claimIds,
  enqueueNew,
  expectState,
  item,
  lease,
  payloadOf,
  settlement,
  settleOne,
} from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

function idsOf(records: readonly JobRecord[]): string[] {
  return records.map(({ spec }) => spec.id)
}

/** Claims until so many jobs have come: a storage that orders approximately may find them bit by bit. */
async function claimAll(rig: Rig, handle: StorageHandle, count: number): Promise<string[]> {
  const found: string[] = []
  await rig.until(`${count} jobs are claimed`, async () => {
    const { jobs } = await handle.claim({ ...lease(rig), limit: count - found.length })
    found.push(...idsOf(jobs))
    return found.length >= count
  })
  return found
}

export const claimCases: readonly Case[] = [
  {
    name: 'claim: leases a due job with its payload, and counts the attempt',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['a'])
      const request = { ...lease(rig), limit: 1, ids: ['a'] }
      const { now, jobs, exhausted, heldForMs } = await other.claim(request)
      const [job] = jobs
      assert.ok(job)
      assert.equal(job.state, 'processing')
      assert.equal(job.payload, payloadOf('a'))
      assert.equal(job.attempts, 1)
      assert.equal(job.generation, request.generation)
      assert.ok(Math.abs(job.at - now - longMs) < rig.traits.ttlResolutionMs, 'the lease ends `leaseMs` from now')
      assert.deepEqual(exhausted, [])
      assert.equal(heldForMs, 0)
      assert.equal((await expectState(handle, 'a', 'processing')).generation, request.generation)
    },
  },
  {
    name: 'claim: without ids takes whatever is due, up to the limit, and nothing twice',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const ids = ['a', 'b', 'c', 'd', 'e']
      await enqueueNew(rig, handle, ids)
      const first = await other.claim({ ...lease(rig), limit: 2 })
      assert.ok(first.jobs.length <= 2, 'no more than the limit')
      if (rig.traits.ordering === 'fifo') assert.equal(first.jobs.length, 2)
      const rest = await claimAll(rig, handle, ids.length - first.jobs.length)
      assert.deepEqual([...idsOf(first.jobs), ...rest].toSorted(), ids)
      const none = await other.claim({ ...lease(rig), limit: 10 })
      assert.deepEqual(none.jobs, [], 'all are under lease')
    },
  },
  {
    name: 'claim: comes by `at`, then order of arrival, where the trait `ordering` says so',
    async run(rig) {
      if (rig.traits.ordering !== 'fifo')
        return rig.note(`the order of claims: traits.ordering is ${rig.traits.ordering}`)
      const handle = await rig.open()
      const ids = Array.from({ length: 30 }, (_, index) => `id ${(index * 7) % 30}`)
      await enqueueNew(rig, handle, ids.slice(0, 10))
      for (const id of ids.slice(10, 20)) await enqueueNew(rig, handle, [id])
      await enqueueNew(rig, handle, ids.slice(20))
      const found = await claimAll(rig, handle, ids.length)
      assert.deepEqual(found, ids, 'in order of arrival')

      const timed = await rig.open('timed')
      const delays = [3, 1, 4, 0, 5, 2].map((delay) => delay * rig.traits.ttlResolutionMs)
      const items = delays.map((delayMs) => item(rig, `after ${delayMs}`, { delayMs }))
      const { answers } = await timed.enqueue(items)
      await rig.waitUntil(timed, Math.max(...answers.map(({ record }) => record.at)))
      const { jobs } = await timed.claim({ ...lease(rig), limit: 10 })
      assert.deepEqual(
        idsOf(jobs),
        delays.toSorted((a, b) => a - b).map((delayMs) => `after ${delayMs}`),
      )
    },
  },
  {
    name: 'claim: naming ids takes these alone, whatever else is due',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['a', 'b', 'c', 'd'])
      await enqueueNew(rig, handle, ['later'], { delayMs: longMs })
      const { jobs } = await other.claim({ ...lease(rig), limit: 10, ids: ['d', 'unknown', 'later', 'b'] })
      assert.deepEqual(idsOf(jobs).toSorted(), ['b', 'd'])
      const limited = await other.claim({ ...lease(rig), limit: 1, ids: ['a', 'c'] })
      assert.equal(limited.jobs.length, 1, 'the limit counts here too')
      const none = await other.claim({ ...lease(rig), limit: 10, ids: [] })
      assert.deepEqual(none.jobs, [], 'no ids, no jobs')
    },
  },
  {
    name: 'claim: an id named several times is answered once',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a', 'b'])
      const { jobs } = await handle.claim({ ...lease(rig), limit: 10, ids: ['a', 'b', 'a', 'a'] })
      assert.deepEqual(idsOf(jobs).toSorted(), ['a', 'b'])
      assert.equal(jobs[0]?.attempts, 1)
    },
  },
  {
    name: 'claim: the same one again (its reply was lost) answers the same lease, the attempt counted once',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['a', 'b'])
      const request = { ...lease(rig), limit: 2, ids: ['a', 'b'] }
      const first = await handle.claim(request)
      const again = await other.claim(request)
      assert.deepEqual(idsOf(again.jobs).toSorted(), ['a', 'b'])
      for (const job of again.jobs) {
        assert.equal(job.attempts, 1)
        assert.equal(job.payload, payloadOf(job.spec.id))
        const before = first.jobs.find(({ spec }) => spec.id === job.spec.id)
        assert.equal(job.at, before?.at, 'the lease is not longer for it')
      }
    },
  },
  {
    name: 'claim: a live lease is left alone; one that is over is taken over',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await begin(rig, handle, 'live')
      const dead = await begin(rig, handle, 'dead', rig.shortMs)
      await rig.waitUntil(other, dead.at + rig.graceMs)
      const named = await other.claim({ ...lease(rig), limit: 10, ids: ['live'] })
      assert.deepEqual(named.jobs, [], 'a live lease')
      const [id] = await claimAll(rig, other, 1)
      assert.equal(id, 'dead')
      const record = await expectState(handle, 'dead', 'processing')
      assert.equal(record.attempts, 2, 'a crash costs an attempt')
      assert.notEqual(record.generation, dead.generation)
      assert.deepEqual((await other.claim({ ...lease(rig), limit: 10 })).jobs, [], 'nothing else')
    },
  },
  {
    name: 'claim: attempts used up, it is settled as failed and answered as exhausted',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const options = { maxAttempts: 2, failureTTL: 2_000_000 }
      await enqueueNew(rig, handle, ['named', 'found'], options)
      for (let attempt = 1; attempt <= 2; attempt++) {
        const jobs = await claimIds(rig, handle, ['named', 'found'], rig.shortMs)
        assert.deepEqual(
          jobs.map((job) => job.attempts),
          [attempt, attempt],
        )
        await rig.waitUntil(handle, Math.max(...jobs.map(({ at }) => at)) + rig.graceMs)
      }
      const named = await other.claim({ ...lease(rig), limit: 1, ids: ['named'] })
      assert.deepEqual(named.jobs, [])
      assert.deepEqual(idsOf(named.exhausted), ['named'])
      let found: readonly JobRecord[] = []
      await rig.until('the exhausted job is found', async () => {
        const { jobs, exhausted } = await other.claim({ ...lease(rig), limit: 10 })
        assert.deepEqual(jobs, [], 'nothing is leased beyond maxAttempts')
        found = exhausted
        return exhausted.length > 0
      })
      assert.deepEqual(idsOf(found), ['found'])
      for (const id of ['named', 'found']) {
        const record = await expectState(handle, id, 'failed')
        assert.equal(record.reason, 'exhausted')
        assert.equal(record.error, null)
        assert.equal(record.generation, null)
        assert.equal(record.attempts, 2)
        const keptMs = record.at - record.settledAt
        assert.ok(Math.abs(keptMs - 2_000_000) < rig.traits.ttlResolutionMs, `kept for failureTTL, not ${keptMs}`)
      }
      const after = await other.claim({ ...lease(rig), limit: 10 })
      assert.deepEqual([...after.jobs, ...after.exhausted], [], 'told once')
    },
  },
  {
    name: 'claim: exhausted jobs in front do not hide those behind them',
    async run(rig) {
      const handle = await rig.open()
      const ids = Array.from({ length: 20 }, (_, index) => `used up ${index}`)
      await enqueueNew(rig, handle, ids, { maxAttempts: 1 })
      const jobs = await claimIds(rig, handle, ids, rig.shortMs)
      await rig.waitUntil(handle, Math.max(...jobs.map(({ at }) => at)) + rig.graceMs)
      await enqueueNew(rig, handle, ['good'])
      const seen: string[] = []
      const exhausted: string[] = []
      await rig.until('all have come', async () => {
        const answer = await handle.claim({ ...lease(rig), limit: 1 })
        seen.push(...idsOf(answer.jobs))
        exhausted.push(...idsOf(answer.exhausted))
        return seen.length + exhausted.length >= 21
      })
      assert.deepEqual(seen, ['good'])
      assert.deepEqual(exhausted.toSorted(), ids.toSorted())
    },
  },
  {
    name: 'claim: nextInMs, where told, is never later than the next due record, and never 0 for nothing',
    async run(rig) {
      const handle = await rig.open()
      const within = async (most: number, what: string) => {
        for (const ids of [undefined, [], ['absent']]) {
          const { nextInMs } = await handle.claim({ ...lease(rig), limit: 10, ...(ids === undefined ? {} : { ids }) })
          if (nextInMs === null) continue
          const how = ids === undefined ? what : `${what}, claiming ${ids.length} ids`
          assert.ok(nextInMs > 0, `${how}: nextInMs is ${nextInMs}, nothing is due`)
          assert.ok(nextInMs <= most, `${how}: nextInMs is ${nextInMs}, over ${most}`)
        }
      }
      const later = Array.from({ length: 8 }, (_, index) => `later ${index}`)
      await enqueueNew(rig, handle, later, { delayMs: longMs })
      await within(longMs, 'a delayed job')
      await begin(rig, handle, 'leased', longMs / 2)
      await within(longMs / 2 + rig.graceMs, 'a lease that may run out')
      const job = await begin(rig, handle, 'failing')
      await settleOne(handle, job, retry('oh', longMs / 4))
      await within(longMs / 4, 'a retry')
      const inline = item(rig, 'inline', { lease: lease(rig, rig.shortMs) })
      const [answer] = (await handle.enqueue([inline])).answers
      await rig.waitUntil(handle, answer!.record.at + rig.graceMs)
      await within(longMs / 4, 'an inline run that is over, which is not for workers')
      await enqueueNew(rig, handle, ['one', 'two'])
      const limited = await handle.claim({ ...lease(rig), limit: 1 })
      if (limited.jobs.length === 1 && rig.traits.ordering === 'fifo' && limited.nextInMs !== null) {
        assert.equal(limited.nextInMs, 0, 'another is due already')
      }
    },
  },
  {
    name: 'claim: a retry or a release brings the job back, with its payload, when its delay is over',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const retried = await begin(rig, handle, 'retried')
      const released = await begin(rig, handle, 'released')
      const verdicts = [settlement(retried, retry('first error', 0)), settlement(released, release(0))]
      await handle.settle(verdicts, null)
      const found = await claimAll(rig, other, 2)
      assert.deepEqual(found.toSorted(), ['released', 'retried'])
      const again = await expectState(other, 'retried', 'processing')
      assert.equal(again.attempts, 2)
      assert.equal((await expectState(other, 'released', 'processing')).attempts, 1, 'a release costs no attempt')
    },
  },
  {
    name: 'claim: what has ended is never claimed',
    async run(rig) {
      const handle = await rig.open()
      const job = await begin(rig, handle, 'done', rig.shortMs)
      await settleOne(handle, job, complete('done', longMs))
      await rig.waitUntil(handle, job.at + rig.graceMs)
      for (const ids of [undefined, ['done']]) {
        const request = { ...lease(rig), limit: 10 }
        const { jobs, exhausted } = await handle.claim(ids === undefined ? request : { ...request, ids })
        assert.deepEqual([...jobs, ...exhausted], [])
      }
      await enqueueNew(rig, handle, ['other'])
      await claimId(rig, handle, 'other')
    },
  },
]
