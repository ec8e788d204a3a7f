/**
 * `cancel`: removes what no worker holds, in one step.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete, fail, retry } from '../../src/record.ts'
import { begin, claimId, enqueueNew, expectAbsent, expectState, finish, item, lease, settleOne } from './items.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

export const cancelCases: readonly Case[] = [
  {
    name: 'cancel: a queued, delayed or failing job is gone at once, and its id free',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['queued'], { payload: 'old' })
      await enqueueNew(rig, handle, ['delayed'], { payload: 'old', delayMs: longMs })
      const failing = await begin(rig, handle, 'failing', longMs, { payload: 'old' })
      await settleOne(handle, failing, retry('oh', 0))
      const ids = ['queued', 'delayed', 'failing']
      assert.deepEqual(await other.cancel(ids), ['cancelled', 'cancelled', 'cancelled'])
      for (const id of ids) await expectAbsent(rig, handle, id)
      const any = await handle.claim({ ...lease(rig), limit: 10 })
      assert.deepEqual([...any.jobs, ...any.exhausted], [], 'the old payload never runs')
      await enqueueNew(rig, handle, ids, { payload: 'new' })
      for (const id of ids) {
        const job = await claimId(rig, other, id)
        assert.equal(job.payload, 'new')
        assert.equal(job.attempts, 1)
      }
    },
  },
  {
    name: 'cancel: a job under lease, live or over, is not touched',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const live = await begin(rig, handle, 'live')
      const over = await begin(rig, handle, 'over', rig.shortMs)
      await rig.waitUntil(other, over.at + rig.graceMs)
      assert.deepEqual(await other.cancel(['live', 'over']), ['processing', 'processing'])
      assert.equal(await settleOne(handle, live, complete('result', longMs)), 'settled')
      assert.equal((await claimId(rig, handle, 'over')).attempts, 2)
    },
  },
  {
    name: 'cancel: a job that has ended keeps its result or error',
    async run(rig) {
      const handle = await rig.open()
      await finish(rig, handle, 'completed', 'result')
      const job = await begin(rig, handle, 'failed')
      await settleOne(handle, job, fail('error', longMs))
      assert.deepEqual(await handle.cancel(['completed', 'failed']), ['completed', 'failed'])
      assert.equal((await expectState(handle, 'completed', 'completed')).result, 'result')
      assert.equal((await expectState(handle, 'failed', 'failed')).error, 'error')
    },
  },
  {
    name: 'cancel: several in one call, answers in their order; an id twice; none, none',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a', 'b', 'kept'])
      await begin(rig, handle, 'c')
      assert.deepEqual(await handle.cancel(['c', 'b', 'unknown', 'a', 'b']), [
        'processing',
        'cancelled',
        'not_found',
        'cancelled',
        'not_found',
      ])
      assert.deepEqual(await handle.cancel([]), [])
      await expectState(handle, 'kept', 'queued')
    },
  },
  {
    name: 'cancel: enqueued again at once, the new record has no trace of the old',
    async run(rig) {
      const handle = await rig.open()
      const job = await begin(rig, handle, 'a', longMs, { maxAttempts: 2, fingerprint: 'old' })
      await settleOne(handle, job, retry('old error', 0))
      await handle.cancel(['a'])
      const { answers } = await handle.enqueue([item(rig, 'a', { fingerprint: 'new', rejectMismatch: true })])
      assert.equal(answers[0]?.outcome, 'created')
      assert.equal(answers[0].mismatch, false)
      const record = await expectState(handle, 'a', 'queued')
      assert.equal(record.attempts, 0)
      assert.equal(record.generation, null)
      assert.equal(record.spec.maxAttempts, 3)
    },
  },
]
