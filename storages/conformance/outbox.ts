/**
 * Outboxes: rows that are written with a completion, and kept with its record until they are delivered or given up.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { limits } from '../../src/limits.ts'
import type { Encoded } from '../../src/record.ts'
import { complete, fail, retry } from '../../src/record.ts'
import {
  assertEncoded,
  begin,
  claimId,
  enqueueNew,
  expectAbsent,
  expectState,
  item,
  lease,
  read,
  settleOne,
} from './items.ts'
import { collectId, collectIds, deliver, expectNoRows, post, readOutbox } from './relays.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

const largeBytes = limits.outboxBytesMax

const samples: Readonly<Record<string, Encoded>> = {
  'empty text': '',
  'no bytes': new Uint8Array(0),
  JSON: '[{"name":"mail","payload":{"to":"a@b","text":"\\u0000 \\n 😀"}}]',
  'every byte': Uint8Array.from({ length: 256 }, (_, index) => index),
  'large text': 'x'.repeat(largeBytes),
  'large text that JSON escapes': '"'.repeat(largeBytes),
  'large text of three bytes a character': '€'.repeat(Math.floor(largeBytes / 3)),
  'many bytes': Uint8Array.from({ length: largeBytes }, (_, index) => (index * 7919) >> 3),
}

export const outboxCases: readonly Case[] = [
  {
    name: 'outbox: only a completion that counts writes rows, and once',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const verdict = complete('x', longMs, { rows: 'rows', ttlMs: longMs })
      const job = await begin(rig, handle, 'a')
      assert.equal(await settleOne(handle, { ...job, generation: 'another' }, verdict), 'stale')
      await expectNoRows(rig, other, 'stale')
      assert.equal(await settleOne(handle, job, verdict), 'settled')
      assert.equal(await settleOne(other, job, verdict), 'settled', 'its reply was lost')
      assert.equal((await readOutbox(handle, 'a')).attempts, 0)
      const leased = await collectId(rig, handle, 'a')
      assert.equal(await settleOne(other, job, verdict), 'settled', 'its reply was lost for long')
      assert.equal((await readOutbox(handle, 'a')).generation, leased.outbox?.generation)
      assert.equal(await deliver(handle, leased), 'delivered')
      assert.equal(await settleOne(other, job, verdict), 'settled', 'its reply was lost for very long')
      await expectNoRows(rig, other, 'delivered before')
      const plain = await begin(rig, handle, 'plain')
      await settleOne(handle, plain, complete('x', longMs))
      assert.ok(!('outbox' in (await expectState(other, 'plain', 'completed'))))
      await settleOne(handle, await begin(rig, handle, 'failed'), fail('no', longMs))
      await expectNoRows(rig, other, 'without rows')
    },
  },
  {
    name: 'outbox: delivered, the rows are gone, and the record is as any other',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await post(rig, handle, 'a')
      const { outbox: _, ...before } = await expectState(handle, 'a', 'completed')
      assert.equal(await deliver(other, await collectId(rig, handle, 'a')), 'delivered')
      const after = await expectState(handle, 'a', 'completed')
      assert.deepEqual(after, before)
      await expectNoRows(rig, other, 'delivered')
    },
  },
  {
    name: 'outbox: nothing that is done to its record loses rows',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await post(rig, handle, 'a')
      const before = await readOutbox(handle, 'a')
      const asked = await other.enqueue([
        item(rig, 'a'),
        item(rig, 'a', { lease: lease(rig) }),
        item(rig, 'a', { payload: 'other', fingerprint: 'other' }),
      ])
      for (const { outcome, leased, record } of asked.answers) {
        assert.deepEqual([outcome, leased, record.state], ['exists', false, 'completed'])
      }
      assert.deepEqual(await other.cancel(['a']), ['completed'])
      assert.deepEqual(await other.mark([{ id: 'a', name: 'mail', token: 't' }]), ['marked'])
      for (const ttlMs of [9 * longMs, 1]) assert.deepEqual(await other.touch([{ id: 'a', ttlMs }]), ['updated'])
      await rig.wait(handle, rig.shortMs)
      await handle.sweep(100)
      assert.deepEqual(await readOutbox(handle, 'a'), before)
      const leased = await collectId(rig, handle, 'a')
      assert.equal(leased.outbox?.rows, 'rows of a')
      await other.touch([{ id: 'a', ttlMs: longMs }])
      assert.equal(await deliver(handle, leased), 'delivered', 'nor does it cost the relay its lease')
    },
  },
  {
    name: 'outbox: its record outlasts its TTL until the rows are delivered, and is gone then',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { shortMs } = rig
      for (const id of ['all', 'part']) await post(rig, handle, id, undefined, { ttlMs: shortMs })
      await rig.wait(handle, 2 * shortMs)
      await other.sweep(100)
      for (const id of ['all', 'part']) {
        assert.equal((await expectState(handle, id, 'completed')).result, `result of ${id}`)
        const [found] = (await other.enqueue([item(rig, id)])).answers
        assert.equal(found?.outcome, 'exists', 'its id is not free')
      }
      const [all, part] = await collectIds(rig, other, ['all', 'part'])
      assert.equal(await deliver(handle, all!), 'delivered')
      assert.equal(await deliver(handle, part!, 'rest'), 'delivered')
      await expectAbsent(rig, other, 'all')
      await expectState(other, 'part', 'completed')
      assert.equal(await deliver(handle, await collectId(rig, other, 'part')), 'delivered')
      await expectAbsent(rig, other, 'part')
      await enqueueNew(rig, handle, ['all', 'part'])
      await handle.sweep(100)
      assert.equal((await claimId(rig, other, 'all')).attempts, 1, 'its id is free')
      await expectNoRows(rig, other, 'in the new life')
    },
  },
  {
    name: 'outbox: rows that nobody delivers are given up at their end, and their record with them',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const outboxMs = 3 * rig.shortMs
      await post(rig, handle, 'a', undefined, { ttlMs: rig.shortMs, outboxMs })
      const { until } = await readOutbox(handle, 'a')
      await rig.until('they are given up', async () => {
        const { now, records } = await other.get(['a'])
        const tolerance = rig.traits.ttlResolutionMs - 1
        if (now < until - tolerance) assert.equal(records[0]?.state, 'completed', `${until - now} ms before its end`)
        if (now >= until + tolerance) assert.equal(records[0], null, `${now - until} ms after its end`)
        return records[0] === null
      })
      await expectAbsent(rig, other, 'a')
      await expectNoRows(rig, other, 'given up')
      await enqueueNew(rig, handle, ['a'])
      await expectNoRows(rig, other, 'enqueued anew')
    },
  },
  {
    name: 'outbox: one millisecond before their end rows keep their record, at their end it is gone',
    async run(rig) {
      if (!rig.virtual) return rig.note('single milliseconds: time is real')
      const handle = await rig.open()
      const { ttlResolutionMs } = rig.traits
      for (const [ttlMs, outboxMs] of [
        [1, 1_500],
        [999, 1_000],
        [1_500, 2],
      ] as const) {
        const id = `${ttlMs} ms, rows ${outboxMs} ms`
        await post(rig, handle, id, 'rows', { ttlMs, outboxMs })
        const end = (await rig.now(handle)) + Math.max(ttlMs, outboxMs)
        await rig.waitUntil(handle, end - ttlResolutionMs)
        await expectState(handle, id, 'completed')
        await rig.waitUntil(handle, end + ttlResolutionMs - 1)
        await expectAbsent(rig, handle, id)
      }
    },
  },
  {
    name: 'outbox: inline runs and refreshes post rows like any other',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const verdict = complete('x', longMs, { rows: 'rows', ttlMs: longMs })
      const [inline] = (await handle.enqueue([item(rig, 'inline', { lease: lease(rig) })])).answers
      assert.ok(inline?.record.state === 'processing')
      assert.equal(await settleOne(handle, inline.record, verdict), 'settled')
      assert.equal(await deliver(other, await collectId(rig, other, 'inline')), 'delivered')
      await handle.enqueue([item(rig, 'inline', { refresh: true })])
      const job = await claimId(rig, handle, 'inline')
      await settleOne(handle, job, retry('oh', 0))
      await expectNoRows(rig, other, 'refreshing')
      assert.equal(await settleOne(other, await claimId(rig, other, 'inline'), verdict), 'settled')
      assert.equal((await collectId(rig, handle, 'inline')).outbox?.attempts, 1)
    },
  },
  {
    name: 'outbox: no refresh begins while rows are to be delivered',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await post(rig, handle, 'a')
      const before = await read(handle, 'a')
      const refused = await other.enqueue([
        item(rig, 'a', { refresh: true }),
        item(rig, 'a', { refresh: true, lease: lease(rig) }),
      ])
      for (const { outcome, leased, record } of refused.answers) {
        assert.deepEqual([outcome, leased, record.state], ['exists', false, 'completed'])
        assert.ok(record.state === 'completed' && record.outbox, 'the caller can see why')
      }
      assert.deepEqual(await read(handle, 'a'), before)
      assert.equal(await deliver(handle, await collectId(rig, other, 'a')), 'delivered')
      const [begun] = (await other.enqueue([item(rig, 'a', { refresh: true })])).answers
      assert.equal(begun?.outcome, 'created')
      assert.equal((await expectState(handle, 'a', 'queued')).kept?.result, 'result of a')
    },
  },
  {
    name: 'outbox: rows of any content, text and bytes, up to their bound',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (const [name, rows] of Object.entries(samples)) {
        await post(rig, handle, name, rows)
        assertEncoded((await readOutbox(other, name)).rows, rows, `read: ${name}`)
        const leased = await collectId(rig, other, name)
        assertEncoded(leased.outbox?.rows, rows, `collected: ${name}`)
        assert.equal(await deliver(other, leased, rows), 'delivered')
        const again = await collectId(rig, handle, name)
        assertEncoded(again.outbox?.rows, rows, `left: ${name}`)
        assert.equal(await deliver(handle, again), 'delivered')
      }
    },
  },
]
