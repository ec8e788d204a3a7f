/**
 * `extend`: renews leases, and only one's own.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { release } from '../../src/record.ts'
import { begin, claimId, claimIds, enqueueNew, expectState, finish, lease, settleOne } from './items.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

export const extendCases: readonly Case[] = [
  {
    name: 'extend: counts the lease from now, longer or shorter',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { generation } = await begin(rig, handle, 'a', longMs)
      for (const leaseMs of [3 * longMs, longMs / 2]) {
        const before = await rig.now(other)
        assert.deepEqual(await other.extend([{ id: 'a', generation, leaseMs }]), ['extended'])
        const { at, attempts } = await expectState(handle, 'a', 'processing')
        const after = await rig.now(other)
        const [least, most] = [before + leaseMs, after + leaseMs]
        const tolerance = rig.traits.ttlResolutionMs - 1
        const ok = at >= least - tolerance && at <= most + tolerance
        assert.ok(ok, `the lease should end from ${least} to ${most}, ends at ${at}`)
        assert.equal(attempts, 1)
      }
    },
  },
  {
    name: 'extend: a lease that is renewed in time is not taken over',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { generation, at } = await begin(rig, handle, 'a', rig.shortMs)
      assert.deepEqual(await handle.extend([{ id: 'a', generation, leaseMs: longMs }]), ['extended'])
      await rig.waitUntil(other, at + rig.graceMs)
      assert.deepEqual((await other.claim({ ...lease(rig), limit: 1 })).jobs, [])
      assert.deepEqual((await other.claim({ ...lease(rig), limit: 1, ids: ['a'] })).jobs, [])
    },
  },
  {
    name: 'extend: a lease that is over but was not taken lives on',
    async run(rig) {
      const handle = await rig.open()
      const { generation, at } = await begin(rig, handle, 'a', rig.shortMs)
      await rig.waitUntil(handle, at)
      assert.deepEqual(await handle.extend([{ id: 'a', generation, leaseMs: longMs }]), ['extended'])
      assert.deepEqual((await handle.claim({ ...lease(rig), limit: 1, ids: ['a'] })).jobs, [])
    },
  },
  {
    name: 'extend: answers stale to any other than the present lease, and changes nothing',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const old = await begin(rig, handle, 'taken', rig.shortMs)
      await rig.waitUntil(handle, old.at + rig.graceMs)
      const taken = await claimId(rig, other, 'taken')
      const released = await begin(rig, handle, 'released')
      await settleOne(handle, released, release(0))
      await enqueueNew(rig, handle, ['queued'])
      await finish(rig, handle, 'done', 'result')
      const items = ['taken', 'released', 'queued', 'done', 'unknown'].map((id) => {
        const generation = id === 'released' ? released.generation : old.generation
        return { id, generation, leaseMs: 5 * longMs }
      })
      assert.deepEqual(await handle.extend(items), Array(5).fill('stale'))
      assert.equal((await expectState(handle, 'taken', 'processing')).at, taken.at)
      await expectState(handle, 'released', 'queued')
      await expectState(handle, 'queued', 'queued')
      await expectState(handle, 'done', 'completed')
    },
  },
  {
    name: 'extend: several in one call, answers in their order; none, none',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a', 'b'])
      const [a, b] = await claimIds(rig, handle, ['a', 'b'])
      const answers = await handle.extend([
        { id: 'b', generation: b!.generation, leaseMs: longMs },
        { id: 'a', generation: 'another', leaseMs: longMs },
        { id: 'a', generation: a!.generation, leaseMs: longMs },
        { id: 'c', generation: a!.generation, leaseMs: longMs },
        { id: 'a', generation: a!.generation, leaseMs: longMs },
      ])
      assert.deepEqual(answers, ['extended', 'stale', 'extended', 'stale', 'extended'])
      assert.deepEqual(await handle.extend([]), [])
    },
  },
]
