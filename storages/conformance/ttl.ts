/**
 * TTLs: a record that has ended is there until its TTL ends, exact to `ttlResolutionMs`, and then nowhere.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { limits } from '../../src/limits.ts'
import type { ProcessingRecord } from '../../src/record.ts'
import { complete, fail, release } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import {
  begin,
  claimIds,
  enqueueNew,
  expectAbsent,
  expectState,
  finish,
  item,
  lease,
  settlement,
  settleOne,
} from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** Reads until the record is gone, and expects it to be there before its end and gone after it. */
async function watchItEnd(rig: Rig, handle: StorageHandle, id: string, at: number): Promise<void> {
  const { ttlResolutionMs } = rig.traits
  await rig.until(`the TTL of ${id} ends`, async () => {
    const { now, records } = await handle.get([id])
    const record = records[0]!
    if (now < at - ttlResolutionMs + 1) assert.ok(record, `${at - now} ms before its end the record must be there`)
    if (now >= at + ttlResolutionMs - 1) assert.equal(record, null, `${now - at} ms after its end it must be gone`)
    return record === null
  })
}

type OnTheAbsent = (
  rig: Rig,
  handle: StorageHandle,
  job: ProcessingRecord,
) => Promise<[answer: unknown, expected: unknown]>

/** What each operation answers to an id that has come and gone; `job` is the lease that it had. */
const onTheAbsent: Readonly<Record<string, OnTheAbsent>> = {
  get: async (_, handle, { spec }) => [(await handle.get([spec.id])).records, [null]],
  cancel: async (_, handle, { spec }) => [await handle.cancel([spec.id]), ['not_found']],
  touch: async (_, handle, { spec }) => [await handle.touch([{ id: spec.id, ttlMs: longMs }]), ['not_found']],
  extend: async (_, handle, { spec, generation }) => {
    return [await handle.extend([{ id: spec.id, generation, leaseMs: longMs }]), ['stale']]
  },
  'settle: complete': async (_, handle, job) => [await settleOne(handle, job, complete('old', longMs)), 'stale'],
  'settle: fail': async (_, handle, job) => [await settleOne(handle, job, fail('old', longMs)), 'stale'],
  'settle: release': async (_, handle, job) => [await settleOne(handle, job, release(0)), 'stale'],
  mark: async (_, handle, { spec }) => [await handle.mark([{ id: spec.id, name: 'n', token: 't' }]), ['not_found']],
  deliver: async (_, handle, { spec, generation }) => {
    const item = { id: spec.id, generation, rows: null, delayMs: 0 }
    return [(await handle.deliver([item], null)).answers, ['stale']]
  },
  refresh: async (rig, handle, { spec }) => {
    const { outcome, record } = (await handle.enqueue([item(rig, spec.id, { refresh: true, delayMs: longMs })]))
      .answers[0]!
    return [
      { outcome, state: record.state, kept: 'kept' in record },
      { outcome: 'created', state: 'queued', kept: false },
    ]
  },
  claim: async (rig, handle, { spec }) => {
    const { jobs, exhausted } = await handle.claim({ ...lease(rig), limit: 1, ids: [spec.id] })
    return [[...jobs, ...exhausted], []]
  },
  'claim by the lease it had': async (_, handle, { spec, generation }) => {
    const { jobs, exhausted } = await handle.claim({ generation, leaseMs: longMs, limit: 1, ids: [spec.id] })
    return [[...jobs, ...exhausted], []]
  },
  enqueue: async (rig, handle, { spec }) => {
    const again = item(rig, spec.id, { fingerprint: 'new', rejectMismatch: true })
    const { outcome, mismatch, record } = (await handle.enqueue([again])).answers[0]!
    return [
      { outcome, mismatch, state: record.state, attempts: record.attempts },
      { outcome: 'created', mismatch: false, state: 'queued', attempts: 0 },
    ]
  },
  'enqueue with a lease': async (rig, handle, { spec }) => {
    const { outcome, leased, record } = (await handle.enqueue([item(rig, spec.id, { lease: lease(rig) })])).answers[0]!
    return [
      { outcome, leased, state: record.state, attempts: record.attempts },
      { outcome: 'created', leased: true, state: 'processing', attempts: 1 },
    ]
  },
}

export const ttlCases: readonly Case[] = [
  {
    name: 'ttl: a result is there to the end of its TTL, and not after it',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'completed', 'x', rig.shortMs)
      await settleOne(handle, await begin(rig, handle, 'failed'), fail('x', rig.shortMs))
      const { now, records } = await other.get(['completed', 'failed'])
      for (const [index, id] of ['completed', 'failed'].entries()) {
        const at = records[index]?.at ?? now
        await watchItEnd(rig, other, id, at)
      }
    },
  },
  {
    name: 'ttl: one millisecond before its end it is there, at its end it is gone',
    async run(rig) {
      if (!rig.virtual) return rig.note('single milliseconds: time is real')
      const handle = await rig.open()
      const { ttlResolutionMs } = rig.traits
      for (const ttlMs of [1, 2, 999, 1_000, 1_500, 60_001]) {
        const id = `${ttlMs} ms`
        await finish(rig, handle, id, 'x', ttlMs)
        const { at } = await expectState(handle, id, 'completed')
        const now = await rig.now(handle)
        assert.ok(Math.abs(at - now - ttlMs) < ttlResolutionMs)
        await rig.waitUntil(handle, at - ttlResolutionMs)
        if (ttlMs >= ttlResolutionMs) await expectState(handle, id, 'completed')
        await rig.waitUntil(handle, at + ttlResolutionMs - 1)
        await expectAbsent(rig, handle, id)
      }
    },
  },
  {
    name: 'ttl: what is past its end is absent for every operation, and its id free',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const names = Object.keys(onTheAbsent)
      for (const [kind, verdict] of [
        ['completed', complete('old', rig.shortMs)],
        ['failed', fail('old', rig.shortMs)],
      ] as const) {
        // Each operation has an id of its own: the first that meets it must not take it for alive.
        const ids = names.map((name) => `${kind}: ${name}`)
        await enqueueNew(rig, handle, ids)
        const jobs = await claimIds(rig, handle, ids)
        await handle.settle(
          jobs.map((job) => settlement(job, verdict)),
          null,
        )
        await rig.wait(other, rig.shortMs)
        for (const [index, name] of names.entries()) {
          const [answer, expected] = await onTheAbsent[name]!(rig, other, jobs[index]!)
          assert.deepEqual(answer, expected, `${name} on what ${kind} and is past its end`)
        }
        const claimed: string[] = []
        // A storage whose order is approximate may show what is due a look late; it must not show more than that.
        for (let look = 0; look < 50 && claimed.length === 0; look++) {
          const any = await other.claim({ ...lease(rig), limit: 10 })
          claimed.push(...[...any.jobs, ...any.exhausted].map(({ spec }) => spec.id))
        }
        assert.deepEqual(claimed, [`${kind}: enqueue`], 'the one that was enqueued anew')
        await expectAbsent(rig, other, ids[0]!)
      }
    },
  },
  {
    name: 'ttl: of one id never touches another',
    async run(rig) {
      const handle = await rig.open()
      const ids = ['a', 'b', 'c', 'd']
      await enqueueNew(rig, handle, ids)
      const [a, b, c, d] = await claimIds(rig, handle, ids)
      await handle.settle(
        [
          settlement(a!, complete('a', rig.shortMs)),
          settlement(b!, complete('b', longMs)),
          settlement(c!, fail('c', rig.shortMs)),
          settlement(d!, fail('d', 2 * longMs)),
        ],
        null,
      )
      const before = (await handle.get(['b', 'd'])).records
      await enqueueNew(rig, handle, ['queued'])
      await handle.touch([{ id: 'a', ttlMs: rig.shortMs }])
      await rig.wait(handle, rig.shortMs)
      await handle.sweep(100)
      assert.deepEqual((await handle.get(['a', 'c'])).records, [null, null])
      assert.deepEqual((await handle.get(['b', 'd'])).records, before, 'as they were, `at` included')
      await expectState(handle, 'queued', 'queued')
    },
  },
  {
    name: 'ttl: an enqueue that finds a result does not make it last longer',
    async run(rig) {
      const handle = await rig.open()
      await finish(rig, handle, 'a', 'x', longMs)
      const { at } = await expectState(handle, 'a', 'completed')
      await handle.enqueue([item(rig, 'a', { resultTTL: 9 * longMs }), item(rig, 'a', { lease: lease(rig) })])
      assert.equal((await expectState(handle, 'a', 'completed')).at, at)
    },
  },
  {
    name: 'ttl: open jobs have none: they outlast resultTTL and failureTTL',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['queued', 'processing'], { resultTTL: 1, failureTTL: 1 })
      await claimIds(rig, handle, ['processing'])
      await rig.wait(handle, rig.shortMs)
      await handle.sweep(100)
      await expectState(handle, 'queued', 'queued')
      await expectState(handle, 'processing', 'processing')
    },
  },
  {
    name: 'ttl: beyond 2^31 ms and up to a hundred years, delays and leases too',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (const ms of [2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1, limits.durationMsMax]) {
        const tolerance = rig.traits.ttlResolutionMs + 60_000
        const assertAt = async (id: string) => {
          const { now, records } = await other.get([id])
          const left = (records[0]?.at ?? 0) - now
          assert.ok(
            left <= ms + rig.traits.ttlResolutionMs && left > ms - tolerance,
            `${id}: ${left} ms are left of ${ms}`,
          )
        }
        await finish(rig, handle, `ttl ${ms}`, 'x', ms, { resultTTL: ms, failureTTL: ms })
        await assertAt(`ttl ${ms}`)
        assert.deepEqual(await handle.touch([{ id: `ttl ${ms}`, ttlMs: ms }]), ['updated'])
        await assertAt(`ttl ${ms}`)
        await enqueueNew(rig, handle, [`delay ${ms}`], { delayMs: ms })
        await assertAt(`delay ${ms}`)
        await begin(rig, handle, `lease ${ms}`, ms)
        await assertAt(`lease ${ms}`)
        await rig.calm()
        assert.equal((await handle.claim({ ...lease(rig), limit: 10 })).jobs.length, 0, 'nothing of it is due')
        await expectState(other, `ttl ${ms}`, 'completed')
      }
    },
  },
]
