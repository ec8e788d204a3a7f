/**
 * `settle`: ends leases by their verdicts, once.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { Verdict } from '../../src/record.ts'
import { complete, fail, release, retry } from '../../src/record.ts'
import {
  assertAfter,
  begin,
  claimId,
  claimIds,
  enqueueNew,
  expectState,
  lease,
  payloadOf,
  settlement,
  settleOne,
} from './items.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

export const settleCases: readonly Case[] = [
  {
    name: 'settle: complete keeps the result for its TTL',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const job = await begin(rig, handle, 'a', longMs, { resultTTL: 1 })
      const before = await rig.now(handle)
      assert.equal(await settleOne(handle, job, complete('the result', 5_000_000)), 'settled')
      const record = await expectState(other, 'a', 'completed')
      const span: [number, number] = [before, await rig.now(handle)]
      assert.equal(record.result, 'the result')
      assert.equal(record.generation, job.generation)
      assert.equal(record.attempts, 1)
      assertAfter(rig, record.settledAt, span, 0, 'settledAt')
      assertAfter(rig, record.at, span, 5_000_000, 'at')
    },
  },
  {
    name: 'settle: fail keeps the error for its TTL',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const job = await begin(rig, handle, 'a', longMs, { failureTTL: 1 })
      const before = await rig.now(handle)
      assert.equal(await settleOne(handle, job, fail('the error', 5_000_000)), 'settled')
      const record = await expectState(other, 'a', 'failed')
      const span: [number, number] = [before, await rig.now(handle)]
      assert.equal(record.error, 'the error')
      assert.equal(record.reason, 'error')
      assert.equal(record.generation, job.generation)
      assertAfter(rig, record.at, span, 5_000_000, 'at')
    },
  },
  {
    name: 'settle: retry keeps the error, and fails the job with it when no attempt is left',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const first = await begin(rig, handle, 'a', longMs, { maxAttempts: 2, failureTTL: 3_000_000 })
      assert.equal(await settleOne(handle, first, retry('first error', 0)), 'settled')
      const failing = await expectState(other, 'a', 'failing')
      assert.equal(failing.error, 'first error')
      assert.equal(failing.attempts, 1)
      const second = await claimId(rig, other, 'a')
      assert.equal(second.attempts, 2)
      assert.equal(second.payload, payloadOf('a'))
      assert.equal(await settleOne(other, second, retry('second error', 0)), 'settled')
      const failed = await expectState(handle, 'a', 'failed')
      assert.equal(failed.error, 'second error')
      assert.equal(failed.reason, 'error')
      assert.equal(failed.attempts, 2)
      const keptMs = failed.at - failed.settledAt
      assert.ok(Math.abs(keptMs - 3_000_000) < rig.traits.ttlResolutionMs, `kept for failureTTL, not ${keptMs}`)
    },
  },
  {
    name: 'settle: retry and release wait for their delay',
    async run(rig) {
      const handle = await rig.open()
      for (const verdict of [retry('oh', longMs), release(longMs)]) {
        const job = await begin(rig, handle, verdict.kind)
        const before = await rig.now(handle)
        assert.equal(await settleOne(handle, job, verdict), 'settled')
        const record = await expectState(handle, verdict.kind, verdict.kind === 'retry' ? 'failing' : 'queued')
        assertAfter(rig, record.at, [before, await rig.now(handle)], longMs, 'at')
        const { jobs } = await handle.claim({ ...lease(rig), limit: 1, ids: [verdict.kind] })
        assert.deepEqual(jobs, [], 'not due yet')
      }
    },
  },
  {
    name: 'settle: release gives the attempt back, again and again',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a'], { maxAttempts: 1 })
      for (let round = 0; round < 5; round++) {
        const job = await claimId(rig, handle, 'a')
        assert.equal(job.attempts, 1)
        assert.equal(await settleOne(handle, job, release(0)), 'settled')
        const record = await expectState(handle, 'a', 'queued')
        assert.equal(record.attempts, 0)
        assert.equal(record.generation, job.generation)
      }
    },
  },
  {
    name: 'settle: the same again (its reply was lost) answers `settled` and changes nothing',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const verdicts: Record<string, Verdict> = {
        complete: complete('result', longMs),
        fail: fail('error', longMs),
        retry: retry('error', longMs),
        release: release(longMs),
      }
      for (const [id, verdict] of Object.entries(verdicts)) {
        const job = await begin(rig, handle, id)
        assert.equal(await settleOne(handle, job, verdict), 'settled')
        const { records } = await handle.get([id])
        assert.equal(await settleOne(other, job, verdict), 'settled', `${id} again`)
        assert.deepEqual((await handle.get([id])).records, records, `${id} again`)
      }
    },
  },
  {
    name: 'settle: another verdict of a lease that has ended is stale',
    async run(rig) {
      const handle = await rig.open()
      const done = await begin(rig, handle, 'done')
      await settleOne(handle, done, complete('result', longMs))
      for (const verdict of [fail('error', longMs), retry('error', 0), release(0)]) {
        assert.equal(await settleOne(handle, done, verdict), 'stale', verdict.kind)
      }
      assert.equal((await expectState(handle, 'done', 'completed')).result, 'result')
      const released = await begin(rig, handle, 'released')
      await settleOne(handle, released, release(longMs))
      for (const verdict of [complete('result', longMs), fail('error', longMs), retry('error', 0)]) {
        assert.equal(await settleOne(handle, released, verdict), 'stale', verdict.kind)
      }
      await expectState(handle, 'released', 'queued')
      const failing = await begin(rig, handle, 'failing')
      await settleOne(handle, failing, retry('error', longMs))
      for (const verdict of [complete('result', longMs), fail('other error', longMs), release(0)]) {
        assert.equal(await settleOne(handle, failing, verdict), 'stale', verdict.kind)
      }
      assert.equal((await expectState(handle, 'failing', 'failing')).error, 'error')
    },
  },
  {
    name: 'settle: several in one call, answers in their order; of one lease twice, too',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a', 'b', 'c'])
      const [a, b, c] = await claimIds(rig, handle, ['a', 'b', 'c'])
      const { answers, claim } = await handle.settle(
        [
          settlement(c!, complete('result of c', longMs)),
          settlement({ ...b!, generation: 'another' }, complete('no', longMs)),
          settlement(a!, fail('error of a', longMs)),
          { id: 'unknown', generation: a!.generation, verdict: release(0) },
          settlement(a!, complete('too late', longMs)),
          settlement(b!, release(0)),
          settlement(c!, complete('result of c', longMs)),
        ],
        null,
      )
      assert.deepEqual(answers, ['settled', 'stale', 'settled', 'stale', 'stale', 'settled', 'settled'])
      assert.equal(claim, null)
      assert.equal((await expectState(handle, 'a', 'failed')).error, 'error of a')
      await expectState(handle, 'b', 'queued')
      assert.equal((await expectState(handle, 'c', 'completed')).result, 'result of c')
      assert.deepEqual(await handle.settle([], null), { answers: [], claim: null })
    },
  },
  {
    name: 'settle: with a claim, settles first and then claims',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const job = await begin(rig, handle, 'a')
      const request = { ...lease(rig), limit: 1, ids: ['a'] }
      const { answers, claim } = await other.settle([settlement(job, retry('oh', 0))], request)
      assert.deepEqual(answers, ['settled'])
      assert.equal(claim?.jobs[0]?.attempts, 2)
      assert.equal(claim.jobs[0].generation, request.generation)
      await enqueueNew(rig, handle, ['b'])
      const only = await handle.settle([], { ...lease(rig), limit: 1, ids: ['b'] })
      assert.deepEqual(only.answers, [])
      assert.equal(only.claim?.jobs[0]?.spec.id, 'b')
      const whatever = await handle.settle([settlement(claim.jobs[0], complete('done', longMs))], {
        ...lease(rig),
        limit: 5,
      })
      assert.deepEqual(whatever.claim?.jobs, [], 'nothing else is due')
    },
  },
  {
    name: 'settle: a lease that is over but was not taken over may still settle',
    async run(rig) {
      const handle = await rig.open()
      const job = await begin(rig, handle, 'a', rig.shortMs)
      await rig.waitUntil(handle, job.at)
      assert.equal(await settleOne(handle, job, complete('late, but first', longMs)), 'settled')
      assert.equal((await expectState(handle, 'a', 'completed')).result, 'late, but first')
    },
  },
]
