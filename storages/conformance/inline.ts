/**
 * Inline runs: records made by `enqueue` with a lease, hidden from workers until somebody counts on them.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { ProcessingRecord } from '../../src/record.ts'
import { complete, release, retry } from '../../src/record.ts'
import type { EnqueueAnswer, StorageHandle } from '../../src/storage.ts'
import type { ItemOptions } from './items.ts'
import { claimId, enqueueNew, expectAbsent, expectState, item, lease, payloadOf, settleOne } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** An inline caller's enqueue. */
async function ask(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  leaseMs = longMs,
  options: ItemOptions = {},
): Promise<EnqueueAnswer> {
  const { answers } = await handle.enqueue([item(rig, id, { ...options, lease: lease(rig, leaseMs) })])
  return answers[0]!
}

/** An inline caller that got the lease. */
async function run(
  rig: Rig,
  handle: StorageHandle,
  id: string,
  leaseMs = longMs,
  options: ItemOptions = {},
): Promise<ProcessingRecord> {
  const answer = await ask(rig, handle, id, leaseMs, options)
  assert.equal(answer.leased, true, `enqueue of ${id} with a lease leases it`)
  return answer.record as ProcessingRecord
}

async function expectNoWork(rig: Rig, handle: StorageHandle, what: string): Promise<void> {
  const { jobs, exhausted } = await handle.claim({ ...lease(rig), limit: 10 })
  const ids = [...jobs, ...exhausted].map(({ spec }) => spec.id)
  assert.deepEqual(ids, [], `${what}: workers must not see it`)
}

/** Claims without naming ids until the job comes. */
async function expectWork(rig: Rig, handle: StorageHandle, id: string): Promise<ProcessingRecord> {
  const found: ProcessingRecord[] = []
  await rig.until(`a worker finds ${id}`, async () => {
    found.push(...(await handle.claim({ ...lease(rig), limit: 10 })).jobs)
    return found.length > 0
  })
  assert.deepEqual(
    found.map(({ spec }) => spec.id),
    [id],
  )
  return found[0]!
}

export const inlineCases: readonly Case[] = [
  {
    name: 'inline: enqueue with a lease creates the record under that lease, attempt counted',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const terms = lease(rig)
      const { now, answers } = await handle.enqueue([item(rig, 'a', { lease: terms })])
      const { outcome, leased, record } = answers[0]!
      assert.deepEqual([outcome, leased, record.state], ['created', true, 'processing'])
      assert.ok(record.state === 'processing')
      assert.equal(record.generation, terms.generation)
      assert.equal(record.attempts, 1)
      assert.equal(record.inline, true)
      assert.equal(record.payload, payloadOf('a'))
      assert.ok(Math.abs(record.at - now - longMs) < rig.traits.ttlResolutionMs, 'the lease ends `leaseMs` from now')
      const second = await ask(rig, other, 'a')
      assert.deepEqual([second.outcome, second.leased], ['exists', false], 'the second caller waits')
      assert.equal(await settleOne(handle, record, complete('result', longMs)), 'settled')
      const third = await ask(rig, other, 'a')
      assert.equal(third.record.state === 'completed' && third.record.result, 'result')
    },
  },
  {
    name: 'inline: workers do not see it, running, failing, released or with its lease over',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await run(rig, handle, 'running')
      await expectNoWork(rig, other, 'running')
      await settleOne(handle, await run(rig, handle, 'failing'), retry('oh', 0))
      await expectNoWork(rig, other, 'failing')
      await settleOne(handle, await run(rig, handle, 'released'), release(0))
      await expectNoWork(rig, other, 'released')
      const over = await run(rig, handle, 'over', rig.shortMs)
      await rig.waitUntil(other, over.at + rig.graceMs)
      await expectNoWork(rig, other, 'its lease over')
      const usedUp = await run(rig, handle, 'used up', rig.shortMs, { maxAttempts: 1 })
      await rig.waitUntil(other, usedUp.at + rig.graceMs)
      await expectNoWork(rig, other, 'attempts used up')
    },
  },
  {
    name: 'inline: when its lease is over, a claim by name takes it over; it stays inline',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const first = await run(rig, handle, 'a', rig.shortMs)
      await rig.waitUntil(other, first.at + rig.graceMs)
      const second = await claimId(rig, other, 'a')
      assert.equal(second.attempts, 2)
      assert.equal(second.inline, true)
      assert.equal(second.payload, payloadOf('a'))
      assert.equal(await settleOne(handle, first, complete('late', longMs)), 'stale')
      assert.equal(await settleOne(other, second, retry('oh', 0)), 'settled')
      assert.equal((await expectState(handle, 'a', 'failing')).inline, true)
      assert.equal((await claimId(rig, handle, 'a')).attempts, 3, 'its own retry, by name')
    },
  },
  {
    name: 'inline: when its lease is over, the next enqueue with a lease takes it over',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const first = await run(rig, handle, 'a', rig.shortMs)
      await rig.waitUntil(other, first.at + rig.graceMs)
      const answer = await ask(rig, other, 'a', longMs, { payload: 'the second caller’s' })
      assert.deepEqual([answer.outcome, answer.leased, answer.record.attempts], ['exists', true, 2])
      assert.equal(
        answer.record.state === 'processing' && answer.record.payload,
        payloadOf('a'),
        'the first one’s payload',
      )
      assert.equal(await settleOne(handle, first, complete('late', longMs)), 'stale')
    },
  },
  {
    name: 'inline: enqueue with a lease takes any job that is due, a queued one too, which stays visible',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['due'])
      await enqueueNew(rig, handle, ['later'], { delayMs: longMs })
      const due = await ask(rig, other, 'due', rig.shortMs)
      assert.deepEqual([due.outcome, due.leased, due.record.attempts], ['exists', true, 1])
      assert.equal(due.record.state === 'processing' && due.record.inline, false)
      const later = await ask(rig, other, 'later')
      assert.deepEqual([later.outcome, later.leased, later.record.state], ['exists', false, 'queued'])
      await rig.waitUntil(handle, due.record.at + rig.graceMs)
      assert.equal((await expectWork(rig, handle, 'due')).attempts, 2, 'workers recover it')
    },
  },
  {
    name: 'inline: a plain enqueue of the id makes it visible to workers, in every state',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const over = await run(rig, handle, 'over', rig.shortMs)
      const [answer] = (await other.enqueue([item(rig, 'over')])).answers
      assert.deepEqual([answer?.outcome, answer?.leased], ['exists', false])
      assert.equal((await expectState(handle, 'over', 'processing')).inline, false)
      await rig.waitUntil(other, over.at + rig.graceMs)
      assert.equal((await expectWork(rig, other, 'over')).attempts, 2)

      await settleOne(handle, await run(rig, handle, 'failing'), retry('oh', 0))
      await other.enqueue([item(rig, 'failing')])
      await expectWork(rig, other, 'failing')
      await settleOne(handle, await run(rig, handle, 'released'), release(0))
      await other.enqueue([item(rig, 'released')])
      await expectWork(rig, other, 'released')
    },
  },
  {
    name: 'inline: nobody asking again, it is forgotten a resultTTL after its lease, and its id free',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { shortMs, graceMs } = rig
      const job = await run(rig, handle, 'a', shortMs, { resultTTL: shortMs + graceMs })
      const end = job.at + shortMs + graceMs
      await rig.until('it is forgotten', async () => {
        const { now, records } = await other.get(['a'])
        const tolerance = rig.traits.ttlResolutionMs - 1
        if (now < end - tolerance) assert.equal(records[0]?.state, 'processing', 'kept for resultTTL after its lease')
        if (now >= end + tolerance) assert.equal(records[0], null, 'forgotten after it')
        return records[0] === null
      })
      await expectAbsent(rig, other, 'a')
      assert.equal(await settleOne(handle, job, complete('much too late', longMs)), 'stale')
      assert.deepEqual(await handle.extend([{ id: 'a', generation: job.generation, leaseMs: longMs }]), ['stale'])
      const again = await ask(rig, other, 'a')
      assert.deepEqual([again.outcome, again.leased, again.record.attempts], ['created', true, 1])
    },
  },
  {
    name: 'inline: made visible, it is never forgotten unrun',
    async run(rig) {
      const handle = await rig.open()
      await run(rig, handle, 'a', rig.shortMs, { resultTTL: 10 * rig.shortMs })
      await handle.enqueue([item(rig, 'a')])
      const record = await expectState(handle, 'a', 'processing')
      await rig.waitUntil(handle, record.at + 11 * rig.shortMs)
      await handle.sweep(100)
      await expectState(handle, 'a', 'processing')
      await expectWork(rig, handle, 'a')
    },
  },
  {
    name: 'inline: attempts used up, the next that asks settles it as failed and is told so',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (const id of ['asked', 'claimed']) {
        const job = await run(rig, handle, id, rig.shortMs, { maxAttempts: 1 })
        await rig.waitUntil(other, job.at + rig.graceMs)
      }
      const answer = await ask(rig, other, 'asked')
      assert.deepEqual([answer.outcome, answer.leased, answer.record.state], ['exists', false, 'failed'])
      assert.equal(answer.record.state === 'failed' && answer.record.reason, 'exhausted')
      const { jobs, exhausted } = await other.claim({ ...lease(rig), limit: 1, ids: ['claimed'] })
      assert.deepEqual(jobs, [])
      assert.equal(exhausted[0]?.state, 'failed')
      assert.equal((await expectState(handle, 'claimed', 'failed')).reason, 'exhausted')
    },
  },
  {
    name: 'inline: the same enqueue again (its reply was lost) holds the same lease, also of a job that was there',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['there'])
      const one = item(rig, 'there', { lease: lease(rig) })
      for (const round of ['first', 'again']) {
        const [answer] = (await other.enqueue([one])).answers
        assert.deepEqual([answer?.outcome, answer?.leased, answer?.record.attempts], ['exists', true, 1], round)
      }
    },
  },
  {
    name: 'inline: cancel leaves a running one alone, and removes a waiting one',
    async run(rig) {
      const handle = await rig.open()
      const job = await run(rig, handle, 'a')
      assert.deepEqual(await handle.cancel(['a']), ['processing'])
      await settleOne(handle, job, retry('oh', longMs))
      assert.deepEqual(await handle.cancel(['a']), ['cancelled'])
      await expectAbsent(rig, handle, 'a')
    },
  },
]
