/**
 * `touch`: sets how long an ended job is kept.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete, fail } from '../../src/record.ts'
import { begin, claimIds, enqueueNew, expectAbsent, expectState, finish, lease, read, settleOne } from './items.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

export const touchCases: readonly Case[] = [
  {
    name: 'touch: counts the TTL from now, longer or shorter, and changes nothing else',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'completed', 'result')
      const job = await begin(rig, handle, 'failed')
      await settleOne(handle, job, fail('error', longMs))
      for (const ttlMs of [7 * longMs, longMs / 3]) {
        for (const id of ['completed', 'failed']) {
          const old = await read(handle, id)
          const before = await rig.now(other)
          assert.deepEqual(await other.touch([{ id, ttlMs }]), ['updated'])
          const record = await read(handle, id)
          const after = await rig.now(other)
          const { at } = record!
          const tolerance = rig.traits.ttlResolutionMs - 1
          assert.ok(at >= before + ttlMs - tolerance && at <= after + ttlMs + tolerance, `${id}: at is now + ttlMs`)
          assert.deepEqual({ ...record, at: 0 }, { ...old, at: 0 })
        }
      }
    },
  },
  {
    name: 'touch: a longer TTL keeps, a shorter one forgets sooner',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['longer', 'shorter'])
      const [longer, shorter] = await claimIds(rig, handle, ['longer', 'shorter'])
      await settleOne(handle, shorter!, complete('b', longMs))
      const ttlMs = 10 * rig.shortMs
      await settleOne(handle, longer!, complete('a', ttlMs))
      const [touched] = await other.touch([{ id: 'longer', ttlMs: longMs }])
      if (touched === 'not_found' && !rig.virtual) return rig.note('a longer TTL: this machine is too slow to tell')
      assert.equal(touched, 'updated')
      assert.deepEqual(await other.touch([{ id: 'shorter', ttlMs: rig.shortMs }]), ['updated'])
      await rig.wait(handle, ttlMs)
      await handle.sweep(100)
      assert.equal((await expectState(handle, 'longer', 'completed')).result, 'a')
      await expectAbsent(rig, handle, 'shorter')
    },
  },
  {
    name: 'touch: an open job has no TTL to set',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['queued'])
      const processing = await begin(rig, handle, 'processing')
      const before = (await handle.get(['queued', 'processing'])).records
      const items = ['queued', 'processing'].map((id) => ({ id, ttlMs: 1 }))
      assert.deepEqual(await handle.touch(items), ['not_terminal', 'not_terminal'])
      assert.deepEqual((await handle.get(['queued', 'processing'])).records, before)
      assert.equal(await settleOne(handle, processing, complete('x', longMs)), 'settled')
    },
  },
  {
    name: 'touch: an exhausted job has no error to lose, and is kept longer',
    async run(rig) {
      const handle = await rig.open()
      const job = await begin(rig, handle, 'a', rig.shortMs, { maxAttempts: 1 })
      await rig.waitUntil(handle, job.at + rig.graceMs)
      const { exhausted } = await handle.claim({ ...lease(rig), limit: 1, ids: ['a'] })
      assert.equal(exhausted.length, 1)
      assert.deepEqual(await handle.touch([{ id: 'a', ttlMs: 9 * longMs }]), ['updated'])
    },
  },
  {
    name: 'touch: several in one call, answers in their order; none, none',
    async run(rig) {
      const handle = await rig.open()
      await finish(rig, handle, 'done', 'x')
      await enqueueNew(rig, handle, ['open'])
      const items = ['unknown', 'done', 'open', 'done'].map((id) => ({ id, ttlMs: longMs }))
      assert.deepEqual(await handle.touch(items), ['not_found', 'updated', 'not_terminal', 'updated'])
      assert.deepEqual(await handle.touch([]), [])
    },
  },
]
