/**
 * `enqueue`: the first of an id makes its record, every later one finds it.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { limits } from '../../src/limits.ts'
import { complete } from '../../src/record.ts'
import { begin, claimId, enqueueNew, expectState, item, lease, payloadOf, read, settleOne } from './items.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

export const enqueueCases: readonly Case[] = [
  {
    name: 'enqueue: makes a queued record with all that was given',
    async run(rig) {
      const handle = await rig.open()
      const one = item(rig, 'a', { maxAttempts: 7, resultTTL: 12_345_678, failureTTL: 87_654_321, fingerprint: 'f' })
      const { now, answers } = await handle.enqueue([one])
      const [answer] = answers
      assert.deepEqual(
        { outcome: answer?.outcome, leased: answer?.leased, mismatch: answer?.mismatch },
        { outcome: 'created', leased: false, mismatch: false },
      )
      const record = await expectState(handle, 'a', 'queued')
      assert.deepEqual({ ...record.spec, createdAt: 0 }, { ...one.spec, createdAt: 0 })
      assert.equal(record.attempts, 0)
      assert.equal(record.inline, false)
      assert.equal(record.generation, null)
      assert.ok(Math.abs(record.spec.createdAt - now) < rig.traits.ttlResolutionMs, 'createdAt is the answer’s `now`')
      assert.ok(Math.abs(record.at - now) < rig.traits.ttlResolutionMs, 'claimable from now')
    },
  },
  {
    name: 'enqueue: a delayed one is claimable `delayMs` later, not before',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['later'], { delayMs: longMs })
      const { now, answers } = await handle.enqueue([item(rig, 'soon', { delayMs: rig.shortMs })])
      const { at } = answers[0]!.record
      assert.ok(Math.abs(at - now - rig.shortMs) < rig.traits.ttlResolutionMs, 'at is now + delayMs')
      const early = await other.claim({ ...lease(rig), limit: 10 })
      if (early.now < at - rig.traits.ttlResolutionMs) assert.deepEqual(early.jobs, [], 'nothing is due yet')
      if (early.jobs.length > 0) return rig.note('claims before the delay’s end: this machine is too slow to tell')
      await rig.waitUntil(other, at)
      let jobs = (await other.claim({ ...lease(rig), limit: 10 })).jobs
      await rig.until('the delayed job is claimed', async () => {
        if (jobs.length === 0) jobs = (await other.claim({ ...lease(rig), limit: 10 })).jobs
        return jobs.length > 0
      })
      assert.deepEqual(
        jobs.map(({ spec }) => spec.id),
        ['soon'],
      )
    },
  },
  {
    name: 'enqueue: the first fixes payload, attempts and TTLs; later ones change nothing',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const [first] = await enqueueNew(rig, handle, ['a'], { maxAttempts: 2, resultTTL: 1_000_000, payload: 'first' })
      const again = item(rig, 'a', { maxAttempts: 9, resultTTL: 5, failureTTL: 5, payload: 'second', delayMs: longMs })
      const { answers } = await other.enqueue([again])
      assert.equal(answers[0]?.outcome, 'exists')
      const record = await expectState(handle, 'a', 'queued')
      assert.deepEqual(record.spec, first?.spec)
      assert.equal(record.at, first?.at, 'still due')
      assert.equal((await claimId(rig, handle, 'a')).payload, 'first')
    },
  },
  {
    name: 'enqueue: tells of another payload by the digests, and with rejectMismatch leaves the record wholly alone',
    async run(rig) {
      const handle = await rig.open()
      const first = item(rig, 'a', { fingerprint: 'one', lease: lease(rig) })
      await handle.enqueue([first, item(rig, 'undigested', { fingerprint: '' })])
      const { answers } = await handle.enqueue([
        item(rig, 'a', { fingerprint: 'two', rejectMismatch: true }),
        item(rig, 'a', { fingerprint: '', rejectMismatch: true }),
        item(rig, 'undigested', { fingerprint: 'two', rejectMismatch: true }),
        item(rig, 'a', { fingerprint: 'two' }),
      ])
      assert.deepEqual(
        answers.map(({ outcome, mismatch }) => `${outcome} ${mismatch}`),
        ['exists true', 'exists false', 'exists false', 'exists true'],
      )
      const rejecting = await rig.open('rejecting')
      await rejecting.enqueue([item(rig, 'a', { fingerprint: 'one', lease: lease(rig) })])
      await rejecting.enqueue([item(rig, 'a', { fingerprint: 'two', rejectMismatch: true })])
      assert.equal((await expectState(rejecting, 'a', 'processing')).inline, true, 'not made visible')
      assert.equal((await expectState(handle, 'a', 'processing')).inline, false, 'made visible')
    },
  },
  {
    name: 'enqueue: the same one again (its reply was lost) answers `created` again, whatever became of the record',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const plain = item(rig, 'plain')
      const inline = item(rig, 'inline', { lease: lease(rig) })
      const outcomes = async () =>
        (await other.enqueue([plain, inline])).answers.map(({ outcome, leased }) => `${outcome} ${leased}`)
      assert.deepEqual(await outcomes(), ['created false', 'created true'])
      assert.deepEqual(await outcomes(), ['created false', 'created true'])
      assert.equal((await expectState(handle, 'inline', 'processing')).attempts, 1, 'one attempt was counted')
      const job = await claimId(rig, handle, 'plain')
      assert.equal(job.attempts, 1, 'one record')
      assert.deepEqual(await outcomes(), ['created false', 'created true'])
      await settleOne(handle, job, complete('done', longMs))
      assert.deepEqual(await outcomes(), ['created false', 'created true'])
      assert.equal((await expectState(handle, 'plain', 'completed')).result, 'done')
    },
  },
  {
    name: 'enqueue: of a completed id answers its record with the result',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const job = await begin(rig, handle, 'a')
      await settleOne(handle, job, complete('the result', longMs))
      const [answer] = (await other.enqueue([item(rig, 'a')])).answers
      assert.equal(answer?.outcome, 'exists')
      assert.equal(answer.record.state === 'completed' && answer.record.result, 'the result')
    },
  },
  {
    name: 'enqueue: several in one call, answers in their order',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['c', 'a'])
      const ids = ['a', 'b', 'c', 'd', 'e']
      const { answers } = await other.enqueue(ids.map((id) => item(rig, id)))
      assert.deepEqual(
        answers.map(({ outcome, record }) => `${record.spec.id} ${outcome}`),
        ['a exists', 'b created', 'c exists', 'd created', 'e created'],
      )
    },
  },
  {
    name: 'enqueue: an id several times in one call is created by exactly the first',
    async run(rig) {
      const handle = await rig.open()
      const items = ['a', 'b', 'a', 'a', 'b'].map((id, index) => item(rig, id, { payload: `payload ${index}` }))
      const { answers } = await handle.enqueue(items)
      assert.deepEqual(
        answers.map(({ outcome }) => outcome),
        ['created', 'created', 'exists', 'exists', 'exists'],
      )
      assert.equal((await claimId(rig, handle, 'a')).payload, 'payload 0')
      assert.equal((await claimId(rig, handle, 'b')).payload, 'payload 1')
      const leased = await handle.enqueue(['c', 'c'].map((id) => item(rig, id, { lease: lease(rig) })))
      assert.deepEqual(
        leased.answers.map(({ outcome, leased }) => `${outcome} ${leased}`),
        ['created true', 'exists false'],
      )
    },
  },
  {
    name: 'enqueue: no items, no answers',
    async run(rig) {
      const handle = await rig.open()
      const { answers, now } = await handle.enqueue([])
      assert.deepEqual(answers, [])
      assert.equal(typeof now, 'number')
    },
  },
  {
    name: `enqueue: ${limits.callItemsMax} items in one call, and all operations on as many`,
    async run(rig) {
      const handle = await rig.open()
      const ids = Array.from({ length: limits.callItemsMax }, (_, index) => `id ${index}`)
      await enqueueNew(rig, handle, ids)
      const { jobs } = await handle.claim({ ...lease(rig), limit: ids.length, ids })
      assert.equal(jobs.length, ids.length)
      for (const job of jobs) assert.equal(job.payload, payloadOf(job.spec.id))
      const extended = await handle.extend(
        jobs.map(({ spec, generation }) => ({ id: spec.id, generation, leaseMs: longMs })),
      )
      assert.equal(extended.filter((outcome) => outcome === 'extended').length, ids.length)
      const settlements = jobs.map(({ spec, generation }) => {
        return { id: spec.id, generation, verdict: complete(`result of ${spec.id}`, longMs) }
      })
      const { answers } = await handle.settle(settlements, null)
      assert.equal(answers.filter((outcome) => outcome === 'settled').length, ids.length)
      const { records } = await handle.get(ids)
      for (const [index, record] of records.entries()) {
        assert.equal(record?.state === 'completed' && record.result, `result of ${ids[index]}`)
      }
      const touched = await handle.touch(ids.map((id) => ({ id, ttlMs: longMs })))
      assert.equal(touched.filter((outcome) => outcome === 'updated').length, ids.length)
      const cancelled = await handle.cancel(ids)
      assert.equal(cancelled.filter((outcome) => outcome === 'completed').length, ids.length)
      assert.equal(await read(handle, 'another'), null)
    },
  },
]
