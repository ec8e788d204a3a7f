/**
 * Refreshes that bring no result: what was there before is there again, until its own TTL ends.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete, fail, release, retry } from '../../src/record.ts'
import { assertEncoded, claimId, expectAbsent, expectState, finish, item, lease, read, settleOne } from './items.ts'
import { ask, assertKept, expectRestored, readKept, refresh, refreshing } from './refreshed.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

export const refreshInVainCases: readonly Case[] = [
  {
    name: 'refresh: in vain by a failure, the old result is back, with the error and its own TTL',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const failed = await refreshing(rig, handle, 'failed')
      assert.equal(await settleOne(other, failed.job, fail('no', longMs / 9)), 'settled')
      const missed = { reason: 'error', error: 'no' } as const
      const record = await expectRestored(handle, failed.before, missed)
      assert.deepEqual([record.generation, record.attempts], [failed.job.generation, 1])
      assert.equal(record.spec.incarnation, failed.job.spec.incarnation, 'it is the new run that is told of')
      assert.equal(await settleOne(handle, failed.job, fail('no', longMs / 9)), 'settled', 'its reply was lost')
      for (const verdict of [complete('late', longMs), release(0)]) {
        assert.equal(await settleOne(handle, failed.job, verdict), 'stale', 'another verdict')
      }
      assert.deepEqual(await read(other, 'failed'), record)

      const { before } = await refreshing(rig, handle, 'used up', { maxAttempts: 2 })
      const first = await expectState(handle, 'used up', 'processing')
      await settleOne(other, first, retry('first', 0))
      const second = await claimId(rig, other, 'used up')
      const bytes = new Uint8Array([0, 255])
      assert.equal(await settleOne(other, second, retry(bytes, 0)), 'settled')
      const { missed: why } = await expectState(handle, 'used up', 'completed')
      assertEncoded(why?.error, bytes, 'the last attempt’s error')
      await expectRestored(handle, before, { reason: 'error', error: why!.error })
      assert.equal(await settleOne(handle, second, retry(bytes, 0)), 'settled', 'its reply was lost')
      const found = await ask(rig, handle, 'used up')
      assert.deepEqual([found.outcome, found.record.state], ['exists', 'completed'])
    },
  },
  {
    name: 'refresh: in vain because its leases ran out, the old result is back, told of by the claim',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const named = await refreshing(rig, handle, 'named', { maxAttempts: 1 }, rig.shortMs)
      const met = await refreshing(rig, handle, 'met', { maxAttempts: 1 }, rig.shortMs)
      await rig.waitUntil(other, Math.max(named.job.at, met.job.at) + rig.graceMs)
      const byName = await other.claim({ ...lease(rig), limit: 5, ids: ['named'] })
      const exhausted = [...byName.exhausted]
      await rig.until('the other is told of', async () => {
        const claim = await other.claim({ ...lease(rig), limit: 5 })
        assert.deepEqual(claim.jobs, [])
        exhausted.push(...claim.exhausted)
        return exhausted.length >= 2
      })
      for (const [index, { before, job }] of [named, met].entries()) {
        const record = await expectRestored(handle, before, { reason: 'exhausted', error: null })
        assert.deepEqual([record.generation, record.attempts], [null, 1])
        assert.deepEqual(exhausted[index], record, 'as it is told')
        assert.equal(await settleOne(handle, job, complete('much too late', longMs)), 'stale')
        assert.equal(await settleOne(handle, job, fail('much too late', longMs)), 'stale')
      }
    },
  },
  {
    name: 'refresh: cancelled, the old result is back',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const queued = await refresh(rig, handle, 'queued')
      const failing = await refreshing(rig, handle, 'failing')
      await settleOne(handle, failing.job, retry('oh', 0))
      const running = await refreshing(rig, handle, 'processing')
      const ids = ['queued', 'failing', 'processing']
      assert.deepEqual(await other.cancel(ids), ['cancelled', 'cancelled', 'processing'])
      for (const before of [queued, failing.before]) {
        const record = await expectRestored(handle, before, { reason: 'cancelled', error: null })
        assert.equal(record.generation, null)
      }
      await readKept(handle, running.before, 'not cancelled')
      assert.equal(await settleOne(handle, failing.job, retry('oh', 0)), 'stale')
      assert.deepEqual(await other.cancel(ids), ['completed', 'completed', 'processing'], 'once more')
      const none = await handle.claim({ ...lease(rig), limit: 5, ids: ['queued', 'failing'] })
      assert.deepEqual(none.jobs, [], 'the payload never runs')
    },
  },
  {
    name: 'refresh: when the old result’s TTL ends meanwhile, it is gone, and the run goes on as any other',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const keptMs = 10 * rig.shortMs
      const names = ['asked', 'failed', 'cancelled', 'completed', 'leased']
      for (const id of names) await finish(rig, handle, id, 'old', keptMs)
      const items = names.map((id) => item(rig, id, { refresh: true }))
      const begun = (await handle.enqueue(items)).answers
      const kept = begun.every(({ record }) => 'kept' in record)
      if (!kept && !rig.virtual) return rig.note('ends meanwhile: this machine is too slow to tell')
      assert.ok(kept)
      const { jobs } = await handle.claim({ ...lease(rig), limit: 9, ids: ['failed', 'completed'] })
      await rig.wait(other, keptMs)
      const { now, records } = await other.get(names)
      for (const record of records) {
        assert.ok(record?.state === 'queued' || record?.state === 'processing', 'the run goes on')
        assert.ok(record.kept === undefined || record.kept.until <= now)
      }
      await other.sweep(100)
      const asked = await ask(rig, other, 'asked')
      assert.deepEqual([asked.outcome, asked.leased, asked.record.state], ['exists', false, 'queued'])
      const leased = await ask(rig, other, 'leased', { lease: lease(rig) })
      assert.deepEqual(
        [leased.outcome, leased.leased],
        ['exists', true],
        'what is due is leased, for no result is there',
      )
      assert.deepEqual(await other.cancel(['cancelled']), ['cancelled'])
      await expectAbsent(rig, handle, 'cancelled')
      for (const job of jobs) {
        const verdict = job.spec.id === 'failed' ? fail('no', longMs) : complete('new', longMs)
        assert.equal(await settleOne(other, job, verdict), 'settled')
      }
      assert.equal((await expectState(handle, 'failed', 'failed')).error, 'no')
      assert.equal((await expectState(handle, 'completed', 'completed')).result, 'new')
    },
  },
  {
    name: 'refresh: one millisecond before its end the old result answers, at its end it does not',
    async run(rig) {
      if (!rig.virtual) return rig.note('single milliseconds: time is real')
      const handle = await rig.open()
      const { ttlResolutionMs } = rig.traits
      for (const ttlMs of [1_000, 1_501]) {
        const [id, restored] = [`asked ${ttlMs}`, `restored ${ttlMs}`]
        for (const one of [id, restored]) await finish(rig, handle, one, 'old', ttlMs)
        await handle.enqueue([id, restored].map((one) => item(rig, one, { refresh: true })))
        await settleOne(handle, await claimId(rig, handle, restored), fail('no', longMs))
        const end = (await rig.now(handle)) + ttlMs
        await rig.waitUntil(handle, end - ttlResolutionMs)
        assert.equal((await ask(rig, handle, id, { lease: lease(rig) })).leased, false, 'the old result answers')
        assert.equal((await expectState(handle, restored, 'completed')).result, 'old')
        await rig.waitUntil(handle, end + ttlResolutionMs - 1)
        assert.equal((await ask(rig, handle, id, { lease: lease(rig) })).leased, true, 'nothing answers: it is run')
        await expectAbsent(rig, handle, restored)
      }
    },
  },
  {
    name: 'refresh: again and again: the newest result is kept, and one that was missed is tried anew',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await refresh(rig, handle, 'a')
      await settleOne(handle, await claimId(rig, handle, 'a'), complete('second', longMs))
      const second = await expectState(other, 'a', 'completed')
      await ask(rig, other, 'a', { refresh: true })
      await settleOne(handle, await claimId(rig, handle, 'a'), fail('no', longMs))
      await expectRestored(other, second, { reason: 'error', error: 'no' })
      await other.touch([{ id: 'a', ttlMs: 7 * longMs }])
      const touched = await expectState(handle, 'a', 'completed')
      assert.ok(touched.at > second.at, 'what is back may be kept longer')
      assert.deepEqual(touched.missed, { reason: 'error', error: 'no' }, 'and still says why')
      const answer = await ask(rig, handle, 'a', { refresh: true })
      assert.equal(answer.outcome, 'created')
      assertKept(answer.record, touched, 'kept once more')
      await settleOne(other, await claimId(rig, other, 'a'), complete('third', longMs))
      const third = await expectState(handle, 'a', 'completed')
      assert.equal(third.result, 'third')
      assert.ok(!('missed' in third))
    },
  },
]
