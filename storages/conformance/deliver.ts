/**
 * `deliver`: leases outboxes to relays, one at a time, and ends these leases.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { Encoded } from '../../src/record.ts'
import { complete } from '../../src/record.ts'
import type { Hint } from '../../src/storage.ts'
import {
  assertAfter,
  assertEncoded,
  begin,
  enqueueNew,
  expectState,
  lease,
  read,
  settlement,
  settleOne,
} from './items.ts'
import { collect, collectId, collectIds, deliver, expectNoRows, post, readOutbox } from './relays.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

export const deliverCases: readonly Case[] = [
  {
    name: 'deliver: rows are written with the completion, for one relay at a time',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const job = await begin(rig, handle, 'a')
      let before = await rig.now(handle)
      const verdict = complete('the result', longMs, { rows: 'the rows', ttlMs: 5_000_000 })
      assert.equal(await settleOne(handle, job, verdict), 'settled')
      const posted = await expectState(other, 'a', 'completed')
      let span: [number, number] = [before, await rig.now(handle)]
      assert.equal(posted.result, 'the result')
      const { rows, generation, attempts, at, until } = posted.outbox!
      assert.deepEqual([rows, generation, attempts], ['the rows', null, 0])
      assertAfter(rig, at, span, 0, 'outbox.at')
      assertAfter(rig, until, span, 5_000_000, 'outbox.until')

      before = await rig.now(handle)
      const leased = await collectId(rig, other, 'a')
      span = [before, await rig.now(handle)]
      assert.equal(leased.state, 'completed')
      assert.equal(leased.outbox?.rows, 'the rows')
      assert.equal(leased.outbox.attempts, 1)
      assertAfter(rig, leased.outbox.at, span, longMs, 'the lease’s end')
      assert.equal(leased.outbox.until, until)
      for (const one of [handle, other]) await expectNoRows(rig, one, 'leased')
      const read = await expectState(handle, 'a', 'completed')
      assert.deepEqual(read, { ...posted, outbox: leased.outbox }, 'nothing else changed')
    },
  },
  {
    name: 'deliver: what is left of a delivery waits for its delay, and is collected then',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await post(rig, handle, 'later')
      await post(rig, handle, 'soon')
      const { until } = await readOutbox(handle, 'soon')
      const [later, soon] = await collectIds(rig, handle, ['later', 'soon'])
      const before = await rig.now(handle)
      assert.equal(await deliver(other, later!, 'what is left', longMs), 'delivered')
      const bytes = new Uint8Array([0, 255, 10])
      assert.equal(await deliver(other, soon!, bytes, rig.shortMs), 'delivered')
      const span: [number, number] = [before, await rig.now(handle)]
      const left = await readOutbox(handle, 'later')
      assert.deepEqual([left.rows, left.generation, left.attempts], ['what is left', null, 1])
      assertAfter(rig, left.at, span, longMs, 'outbox.at')
      if (rig.virtual) await expectNoRows(rig, other, 'backing off')
      await rig.wait(handle, rig.shortMs)
      const again = await collectId(rig, other, 'soon')
      assertEncoded(again.outbox?.rows, bytes, 'what was left')
      assert.equal(again.outbox?.attempts, 2)
      assert.equal(again.outbox.until, until, 'it is not kept longer for that')
      assert.equal(await deliver(handle, again), 'delivered')
    },
  },
  {
    name: 'deliver: fencing: a relay that lost its lease delivers nothing more',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await post(rig, handle, 'a')
      const first = await collectId(rig, handle, 'a', rig.shortMs)
      await rig.waitUntil(other, first.outbox!.at + rig.graceMs)
      const second = await collectId(rig, other, 'a')
      assert.equal(second.outbox?.attempts, 2)
      const before = await read(handle, 'a')
      assert.equal(await deliver(handle, first), 'stale')
      assert.equal(await deliver(handle, first, 'rest', 0), 'stale')
      const strange = { id: 'a', generation: rig.token('never was'), rows: null, delayMs: 0 }
      const job = { ...strange, generation: second.generation! }
      const unknown = { ...strange, id: 'unknown' }
      const { answers } = await other.deliver([strange, job, unknown], null)
      assert.deepEqual(answers, ['stale', 'stale', 'stale'], 'a stranger, the job’s own lease, an unknown id')
      assert.deepEqual(await read(other, 'a'), before, 'nothing changed')
      const lease = { id: 'a', generation: second.outbox.generation! }
      assert.deepEqual(await handle.extend([{ ...lease, leaseMs: longMs }]), ['stale'], 'it is no lease of a job')
      const settled = await handle.settle([{ ...lease, verdict: complete('x', longMs) }], null)
      assert.deepEqual(settled.answers, ['stale'])
      assert.equal(await deliver(other, second), 'delivered')
      assert.equal(await deliver(other, second), 'stale', 'once more: it carries no mark of its own')
    },
  },
  {
    name: 'deliver: a lease that is over but was not taken may still deliver',
    async run(rig) {
      const handle = await rig.open()
      await post(rig, handle, 'all')
      await post(rig, handle, 'part')
      const [all, part] = await collectIds(rig, handle, ['all', 'part'], rig.shortMs)
      await rig.waitUntil(handle, Math.max(all!.outbox!.at, part!.outbox!.at) + rig.graceMs)
      assert.equal(await deliver(handle, all!), 'delivered')
      assert.equal(await deliver(handle, part!, 'rest', longMs), 'delivered')
      await expectNoRows(rig, handle, 'delivered, or waiting')
    },
  },
  {
    name: 'deliver: the same wish again (its reply was lost) counts the attempt once',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await post(rig, handle, 'a')
      const request = { ...lease(rig), limit: 5 }
      await rig.until('the outbox is leased', async () => {
        const { collected } = await handle.deliver([], request)
        return collected!.records.length === 1
      })
      const before = await readOutbox(handle, 'a')
      const again = (await other.deliver([], request)).collected!
      for (const { outbox } of again.records) assert.deepEqual(outbox, before, 'if it is told again, as it was')
      assert.deepEqual(await readOutbox(handle, 'a'), before)
    },
  },
  {
    name: 'deliver: nothing that claims do, and not stopped by a hold',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await post(rig, handle, 'a')
      assert.deepEqual((await other.claim({ ...lease(rig), limit: 5 })).jobs, [], 'no job for workers')
      assert.deepEqual((await other.claim({ ...lease(rig), limit: 5, ids: ['a'] })).jobs, [], 'nor by its id')
      await enqueueNew(rig, handle, ['queued'])
      await handle.hold(longMs)
      const leased = await collectId(rig, other, 'a')
      assert.equal(await deliver(other, leased, 'rest'), 'delivered')
      assert.equal(await deliver(handle, await collectId(rig, handle, 'a')), 'delivered')
      assert.equal((await expectState(handle, 'queued', 'queued')).attempts, 0, 'relays take no jobs')
    },
  },
  {
    name: 'deliver: those that were given up stand in nobody’s way',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { shortMs } = rig
      for (const id of ['dead 1', 'dead 2', 'dead 3']) {
        await post(rig, handle, id, undefined, { ttlMs: shortMs, outboxMs: shortMs })
      }
      const late = await begin(rig, handle, 'dead, its relay too')
      await settleOne(handle, late, complete('x', 2 * shortMs, { rows: 'rows', ttlMs: 2 * shortMs }))
      await rig.until('a relay has one of them, or it is too late', async () => {
        const { records } = await collect(rig, other, 10, shortMs)
        return records.length > 0 || (await read(handle, 'dead, its relay too')) === null
      })
      await rig.wait(handle, 2 * shortMs + rig.graceMs)
      const { records, nextInMs } = await collect(rig, other)
      assert.deepEqual(records, [], 'all are given up')
      assert.notEqual(nextInMs, 0, 'a relay that trusts it would spin')
      await post(rig, handle, 'alive')
      await rig.until('the one that lives is found', async () => {
        const { records } = await collect(rig, other, 1)
        assert.ok(records.every(({ spec }) => spec.id === 'alive'))
        return records.length === 1
      })
      assert.notEqual((await collect(rig, other)).nextInMs, 0, 'a relay that trusts it would spin')
    },
  },
  {
    name: 'deliver: the earliest first, up to the limit, and nothing twice',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const ids = ['c', 'a', 'e', 'b', 'd']
      for (const id of ids) {
        await post(rig, handle, id)
        await rig.wait(handle, 2)
      }
      const found: string[] = []
      await rig.until('all are leased', async () => {
        const { records } = await collect(rig, other, 2)
        assert.ok(records.length <= 2, `${records.length} for a limit of 2`)
        found.push(...records.map(({ spec }) => spec.id))
        return found.length >= ids.length
      })
      if (rig.traits.ordering === 'fifo') assert.deepEqual(found, ids)
      else assert.deepEqual(found.toSorted(), ids.toSorted())
    },
  },
  {
    name: 'deliver: many relays at once: each outbox is leased once, none is lost',
    async run(rig) {
      const handles = [...(await rig.pair()), ...(await rig.pair())]
      const ids = Array.from({ length: 60 }, (_, index) => `id ${index}`)
      await enqueueNew(rig, handles[0]!, ids)
      const { jobs } = await handles[0]!.claim({ ...lease(rig), limit: ids.length, ids })
      const settlements = jobs.map((job) => {
        return settlement(job, complete('x', longMs, { rows: `rows of ${job.spec.id}`, ttlMs: longMs }))
      })
      await handles[0]!.settle(settlements, null)
      const delivered: string[] = []
      const relay = async (index: number) => {
        const { records } = await collect(rig, handles[index % handles.length]!, 1 + (index % 5))
        const deliveries = records.map(({ spec, outbox }) => {
          assert.deepEqual([outbox?.rows, outbox?.attempts], [`rows of ${spec.id}`, 1])
          return { id: spec.id, generation: outbox!.generation!, rows: null, delayMs: 0 }
        })
        const { answers } = await handles[(index + 1) % handles.length]!.deliver(deliveries, null)
        for (const [at, answer] of answers.entries()) {
          assert.equal(answer, 'delivered')
          delivered.push(deliveries[at]!.id)
        }
      }
      await Promise.all(Array.from({ length: 30 }, (_, index) => relay(index)))
      await rig.until('all are delivered', async () => {
        if (delivered.length < ids.length) await relay(4)
        return delivered.length >= ids.length
      })
      assert.deepEqual(delivered.toSorted(), ids.toSorted())
      await expectNoRows(rig, handles[1]!, 'delivered')
    },
  },
  {
    name: 'deliver: several deliveries in one call, answers in their order, then the wish; none, none',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (const id of ['a', 'b', 'c']) await post(rig, handle, id)
      const [a, b, c] = await collectIds(rig, handle, ['a', 'b', 'c'])
      const of = (record: typeof a, rows: Encoded | null, delayMs = 0) => {
        return { id: record!.spec.id, generation: record!.outbox!.generation!, rows, delayMs }
      }
      const items = [of(c, 'rest'), { ...of(a, null), generation: 'x' }, of(b, null), of(a, '', longMs), of(b, null)]
      const request = { ...lease(rig), limit: 10 }
      const { answers, collected } = await other.deliver(items, request)
      assert.deepEqual(answers, ['delivered', 'stale', 'delivered', 'delivered', 'stale'])
      const found = collected!.records.map(({ spec, outbox }) => [spec.id, outbox?.rows, outbox?.generation])
      const expected = ['c', 'rest', request.generation]
      if (rig.traits.ordering === 'fifo') assert.deepEqual(found, [expected], 'what is due again at once')
      else for (const one of found) assert.deepEqual(one, expected)
      assert.deepEqual(await handle.deliver([], null), { answers: [], collected: null })
    },
  },
  {
    name: 'deliver: nextInMs, where told, is never later than the next one is due, and never 0 for nothing',
    async run(rig) {
      const handle = await rig.open()
      assert.notEqual((await collect(rig, handle)).nextInMs, 0, 'nothing at all')
      await post(rig, handle, 'a')
      const leased = await collectId(rig, handle, 'a')
      const during = (await collect(rig, handle)).nextInMs
      assert.ok(during === null || (during > 0 && during <= longMs + rig.graceMs), `leased: ${during}`)
      await deliver(handle, leased, 'rest', longMs / 2)
      const after = (await collect(rig, handle)).nextInMs
      assert.ok(after === null || (after > 0 && after <= longMs / 2), `backing off: ${after}`)
      await post(rig, handle, 'b')
      await post(rig, handle, 'c')
      await rig.until('one of two is leased', async () => {
        const { records, nextInMs } = await collect(rig, handle, 1)
        if (records.length === 0) return false
        assert.ok(nextInMs === null || nextInMs === 0 || rig.traits.ordering !== 'fifo', `another is due: ${nextInMs}`)
        return true
      })
    },
  },
  {
    name: 'deliver: hints tell relays of new rows, and of those left for later',
    async run(rig) {
      if (!rig.traits.push) return rig.note('hints: traits.push is false')
      const [handle, other] = await rig.pair()
      const hints: Hint[] = []
      other.watch((hint) => hints.push(hint))
      let round = 0
      const hinted = async (what: string, act: (id: string) => Promise<unknown>, tells: (inMs: number) => boolean) => {
        await rig.until(`a hint of ${what} arrives`, async () => {
          // Hints may be lost: another try, but not before this one has had a chance.
          if (round % 20 === 0) {
            // As a relay does: it has asked, and waits for more.
            await collect(rig, other)
            await act(`${what} ${round}`)
          }
          round++
          return hints.some((hint) => hint.type === 'outbox' && tells(hint.inMs))
        })
        round = 0
        hints.length = 0
      }
      await hinted(
        'a completion',
        (id) => post(rig, handle, id),
        () => true,
      )
      const leave = async (id: string) => {
        await post(rig, handle, id)
        for (const record of (await collect(rig, handle)).records) await deliver(handle, record, 'rest', longMs)
      }
      await hinted('a rest', leave, (inMs) => inMs > 0 && inMs <= longMs)
    },
  },
]
