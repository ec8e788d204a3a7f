/**
 * Fencing: whoever lost a lease changes nothing any more, however late and however often it tries.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { ProcessingRecord } from '../../src/record.ts'
import { complete, fail, release, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { begin, claimId, enqueueNew, expectAbsent, expectState, finish, item, lease, settleOne } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

const verdicts = [complete('stale result', longMs), fail('stale', longMs), retry('stale', 0), release(0)]

/** Expects that a lease is good for nothing, and that trying changes nothing. */
async function expectStale(handle: StorageHandle, job: ProcessingRecord): Promise<void> {
  const { id } = job.spec
  const before = (await handle.get([id])).records
  for (const verdict of verdicts) {
    assert.equal(await settleOne(handle, job, verdict), 'stale', `${verdict.kind} by a lost lease`)
  }
  assert.deepEqual(await handle.extend([{ id, generation: job.generation, leaseMs: longMs }]), ['stale'])
  assert.deepEqual((await handle.get([id])).records, before, 'a lost lease changes nothing')
}

/** A lease that ran out, and the one that took the job over. */
async function takenOver(rig: Rig, handle: StorageHandle, other: StorageHandle, id: string) {
  const lost = await begin(rig, handle, id, rig.shortMs)
  await rig.waitUntil(other, lost.at + rig.graceMs)
  return { lost, owner: await claimId(rig, other, id) }
}

export const fencingCases: readonly Case[] = [
  {
    name: 'fencing: a lease taken over is stale while the new owner works, and after it completed',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { lost, owner } = await takenOver(rig, handle, other, 'a')
      await expectStale(handle, lost)
      assert.equal(await settleOne(other, owner, complete('the owner’s', longMs)), 'settled')
      await expectStale(handle, lost)
      assert.equal((await expectState(handle, 'a', 'completed')).result, 'the owner’s')
    },
  },
  {
    name: 'fencing: a lease taken over is stale after the new owner failed, retried or released',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (const verdict of [fail('owner’s', longMs), retry('owner’s', longMs), release(longMs)]) {
        const { lost, owner } = await takenOver(rig, handle, other, verdict.kind)
        assert.equal(await settleOne(other, owner, verdict), 'settled')
        await expectStale(handle, lost)
      }
    },
  },
  {
    name: 'fencing: a released lease is stale once another has claimed the job',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const first = await begin(rig, handle, 'a')
      await settleOne(handle, first, release(0))
      const second = await claimId(rig, other, 'a')
      await expectStale(handle, first)
      assert.equal(await settleOne(other, second, complete('second', longMs)), 'settled')
      await expectStale(handle, first)
    },
  },
  {
    name: 'fencing: a lease of an earlier life of the id is stale in the next',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const first = await begin(rig, handle, 'a', rig.shortMs)
      await settleOne(handle, first, complete('first life', rig.shortMs))
      const gone = (await rig.now(other)) + rig.shortMs
      await rig.waitUntil(other, gone)
      await expectStale(handle, first)
      await expectAbsent(rig, other, 'a')
      await enqueueNew(rig, other, ['a'])
      await expectStale(handle, first)
      const second = await claimId(rig, other, 'a')
      assert.equal(second.attempts, 1, 'attempts begin anew')
      await expectStale(handle, first)
      assert.equal(await settleOne(other, second, complete('second life', longMs)), 'settled')
      await expectStale(handle, first)
    },
  },
  {
    name: 'fencing: a cancelled id enqueued anew is out of an old lease’s reach',
    async run(rig) {
      const handle = await rig.open()
      const first = await begin(rig, handle, 'a')
      await settleOne(handle, first, retry('oh', 0))
      assert.deepEqual(await handle.cancel(['a']), ['cancelled'])
      for (const verdict of verdicts) assert.equal(await settleOne(handle, first, verdict), 'stale')
      await enqueueNew(rig, handle, ['a'])
      for (const verdict of verdicts) assert.equal(await settleOne(handle, first, verdict), 'stale')
      assert.equal((await expectState(handle, 'a', 'queued')).attempts, 0)
    },
  },
  {
    name: 'fencing: a generation is good for its own id alone, though a claim’s jobs share it',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a', 'b'])
      const shared = lease(rig)
      const { jobs } = await handle.claim({ ...shared, limit: 1, ids: ['a'] })
      assert.equal(jobs.length, 1)
      const settle = [{ id: 'b', generation: shared.generation, verdict: complete('x', longMs) }]
      assert.deepEqual((await handle.settle(settle, null)).answers, ['stale'])
      await expectState(handle, 'b', 'queued')
    },
  },
  {
    name: 'fencing: settling creates nothing: an unknown id stays unknown',
    async run(rig) {
      const handle = await rig.open()
      for (const verdict of verdicts) {
        const { answers } = await handle.settle([{ id: 'never', generation: rig.token(), verdict }], null)
        assert.deepEqual(answers, ['stale'])
      }
      assert.deepEqual(await handle.extend([{ id: 'never', ...lease(rig) }]), ['stale'])
      await expectAbsent(rig, handle, 'never')
      await enqueueNew(rig, handle, ['never'])
    },
  },
  {
    name: 'fencing: an incarnation tells one life of an id from the next',
    async run(rig) {
      const handle = await rig.open()
      const first = item(rig, 'a')
      await handle.enqueue([first])
      await handle.cancel(['a'])
      await enqueueNew(rig, handle, ['a'])
      const [answer] = (await handle.enqueue([first])).answers
      assert.equal(answer?.outcome, 'exists', 'a late repetition of the first enqueue finds the second’s record')
      await finish(rig, handle, 'b', 'x')
      const { records } = await handle.get(['a', 'b'])
      assert.notEqual(records[0]?.spec.incarnation, records[1]?.spec.incarnation)
    },
  },
]
