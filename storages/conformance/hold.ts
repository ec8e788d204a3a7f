/**
 * `hold`: a held namespace leases nothing, and takes everything else.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { begin, claimId, enqueueNew, expectState, item, lease, settlement, settleOne } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** Until the hold ends, as stats and claim tell it, ms. */
async function heldForMs(rig: Rig, handle: StorageHandle): Promise<number> {
  const { heldForMs } = await handle.stats()
  const claim = await handle.claim({ ...lease(rig), limit: 1, ids: ['nothing'] })
  assert.ok(Math.abs(claim.heldForMs - heldForMs) < 5_000, 'stats and claim tell the same')
  return claim.heldForMs
}

function assertAbout(actual: number, expected: number, what: string): void {
  assert.ok(
    actual <= expected && actual > expected - 60_000,
    `${what}: ${actual} ms, expected ${expected} or just below`,
  )
}

export const holdCases: readonly Case[] = [
  {
    name: 'hold: nothing is leased in a held namespace, by no kind of claim',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['a', 'b'])
      const job = await claimId(rig, handle, 'b')
      await handle.hold(longMs)
      for (const ids of [undefined, ['a']]) {
        const request = { ...lease(rig), limit: 5 }
        const { jobs, heldForMs } = await other.claim(ids === undefined ? request : { ...request, ids })
        assert.deepEqual(jobs, [])
        assertAbout(heldForMs, longMs, 'heldForMs')
      }
      const settled = await other.settle([settlement(job, complete('x', longMs))], { ...lease(rig), limit: 5 })
      assert.deepEqual(settled.answers, ['settled'], 'what runs may end')
      assert.deepEqual(settled.claim?.jobs, [])
      assertAbout(settled.claim!.heldForMs, longMs, 'heldForMs')
      const record = await expectState(handle, 'a', 'queued')
      assert.equal(record.attempts, 0)
    },
  },
  {
    name: 'hold: everything but leasing goes on',
    async run(rig) {
      const handle = await rig.open()
      const job = await begin(rig, handle, 'a')
      await handle.hold(longMs)
      await enqueueNew(rig, handle, ['b'])
      assert.deepEqual(await handle.extend([{ id: 'a', generation: job.generation, leaseMs: longMs }]), ['extended'])
      assert.equal(await settleOne(handle, job, complete('x', longMs)), 'settled')
      assert.deepEqual(await handle.touch([{ id: 'a', ttlMs: longMs }]), ['updated'])
      assert.deepEqual(await handle.cancel(['b']), ['cancelled'])
    },
  },
  {
    name: 'hold: an inline run made meanwhile is queued, seen by no worker, and may be claimed by name afterwards',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await handle.hold(longMs)
      const one = item(rig, 'a', { lease: lease(rig) })
      for (const round of ['first', 'again']) {
        const [answer] = (await other.enqueue([one])).answers
        assert.equal(answer?.outcome, 'created', round)
        assert.equal(answer.leased, false, round)
      }
      const record = await expectState(handle, 'a', 'queued')
      assert.equal(record.inline, true)
      assert.equal(record.attempts, 0)
      const [second] = (await other.enqueue([item(rig, 'a', { lease: lease(rig) })])).answers
      assert.deepEqual([second?.outcome, second?.leased], ['exists', false], 'a second caller gets no lease either')
      assert.equal((await expectState(handle, 'a', 'queued')).inline, true)
      await handle.hold(0)
      assert.deepEqual((await handle.claim({ ...lease(rig), limit: 5 })).jobs, [], 'it is no worker’s')
    },
  },
  {
    name: 'hold: an inline run made meanwhile is due when the hold ends by itself',
    async run(rig) {
      const handle = await rig.open()
      await handle.hold(rig.shortMs)
      const [answer] = (await handle.enqueue([item(rig, 'a', { lease: lease(rig) })])).answers
      if (answer?.leased) return rig.note('the hold was over too soon: this machine is too slow to tell')
      await rig.wait(handle, rig.shortMs)
      const job = await claimId(rig, handle, 'a')
      assert.equal(job.attempts, 1)
      assert.equal(job.inline, true)
    },
  },
  {
    name: 'hold: ends by itself, and 0 ends it at once',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['a', 'b'])
      await handle.hold(rig.shortMs)
      await rig.wait(other, rig.shortMs)
      assert.equal(await heldForMs(rig, other), 0)
      await claimId(rig, other, 'a')
      await handle.hold(longMs)
      assertAbout(await heldForMs(rig, other), longMs, 'held')
      await other.hold(0)
      assert.equal(await heldForMs(rig, handle), 0)
      await claimId(rig, handle, 'b')
      await other.hold(0)
      assert.equal(await heldForMs(rig, handle), 0, 'ending no hold is fine')
    },
  },
  {
    name: 'hold: the later end counts: a shorter hold never shortens one, a longer one lengthens it',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await handle.hold(longMs)
      await other.hold(1)
      assertAbout(await heldForMs(rig, handle), longMs, 'after a shorter one')
      await other.hold(3 * longMs)
      assertAbout(await heldForMs(rig, handle), 3 * longMs, 'after a longer one')
    },
  },
  {
    name: 'hold: jobs that became due meanwhile are all there afterwards',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a'])
      await handle.hold(longMs)
      await enqueueNew(rig, handle, ['b'], { delayMs: rig.shortMs })
      await rig.wait(handle, rig.shortMs)
      assert.deepEqual((await handle.claim({ ...lease(rig), limit: 5 })).jobs, [])
      await handle.hold(0)
      const found: string[] = []
      await rig.until('both are claimed', async () => {
        const { jobs } = await handle.claim({ ...lease(rig), limit: 5 })
        found.push(...jobs.map(({ spec }) => spec.id))
        return found.length >= 2
      })
      assert.deepEqual(found.toSorted(), ['a', 'b'])
    },
  },
]
