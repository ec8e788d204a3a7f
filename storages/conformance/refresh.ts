/**
 * Refreshes: `enqueue` with `refresh` runs anew what has ended, and the result of the run before stays readable meanwhile, and
 * when the refresh was in vain.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { Encoded } from '../../src/record.ts'
import { complete, fail, release, retry } from '../../src/record.ts'
import type { Hint } from '../../src/storage.ts'
import {
  assertEncoded,
  begin,
  claimId,
  enqueueNew,
  expectState,
  finish,
  item,
  lease,
  payloadOf,
  read,
  settleOne,
} from './items.ts'
import { ask, assertKept, readKept, refresh, refreshing } from './refreshed.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

/** What the suite takes for a large result. */
const largeBytesMax = 1024 * 1024

export const refreshCases: readonly Case[] = [
  {
    name: 'refresh: of a completed id begins a new run, by the terms of the refresh',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old', longMs, { maxAttempts: 1, resultTTL: 1, failureTTL: 1 })
      const before = await expectState(handle, 'a', 'completed')
      const one = item(rig, 'a', {
        payload: 'new payload',
        fingerprint: 'new',
        maxAttempts: 7,
        resultTTL: 1,
        refresh: true,
      })
      const { now, answers } = await other.enqueue([one])
      const { outcome, leased, mismatch, record } = answers[0]!
      assert.deepEqual([outcome, leased, mismatch], ['created', false, false], 'another payload is no mismatch')
      assert.deepEqual([record.state, record.attempts, record.generation], ['queued', 0, null])
      assert.deepEqual({ ...record.spec, createdAt: 0 }, { ...one.spec, createdAt: 0 })
      assert.ok(Math.abs(record.spec.createdAt - now) < 1_000 + rig.traits.ttlResolutionMs, 'created now')
      assertKept(record, before, 'in the answer')
      const job = await claimId(rig, handle, 'a')
      assert.deepEqual([job.payload, job.attempts, job.inline], ['new payload', 1, false])
      assert.equal(await settleOne(handle, job, complete('new', 5_000_000)), 'settled')
      const after = await expectState(other, 'a', 'completed')
      assert.equal(after.result, 'new')
      assert.ok(Math.abs(after.at - after.settledAt - 5_000_000) < rig.traits.ttlResolutionMs, 'its own TTL')
      assert.ok(!('kept' in after) && !('missed' in after), 'nothing of the old one is left')
    },
  },
  {
    name: 'refresh: the old result is readable in every state of the new run',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const before = await refresh(rig, handle, 'a', { delayMs: rig.shortMs })
      assert.equal((await readKept(other, before, 'delayed')).state, 'queued')
      await rig.wait(handle, rig.shortMs)
      const first = await claimId(rig, other, 'a')
      assert.equal((await readKept(handle, before, 'processing')).state, 'processing')
      await handle.extend([{ id: 'a', generation: first.generation, leaseMs: 2 * longMs }])
      await readKept(other, before, 'extended')
      await settleOne(handle, first, release(0))
      assert.equal((await readKept(other, before, 'released')).state, 'queued')
      await settleOne(handle, await claimId(rig, handle, 'a'), retry('oh', 0))
      const failing = await readKept(other, before, 'failing')
      assert.equal(failing.state === 'failing' && failing.error, 'oh')
      await claimId(rig, other, 'a')
      await handle.mark([{ id: 'a', name: 'mail', token: 't' }])
      await handle.sweep(100)
      await readKept(other, before, 'in its second attempt, marked and swept')
    },
  },
  {
    name: 'refresh: who asks without it is answered by the old result, leases nothing, and changes nothing',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const before = await refresh(rig, handle, 'queued')
      const { before: running } = await refreshing(rig, handle, 'processing')
      const over = await refreshing(rig, handle, 'lease over', {}, rig.shortMs)
      await rig.waitUntil(other, over.job.at + rig.graceMs)
      for (const old of [before, running, over.before]) {
        const { id } = old.spec
        const unchanged = await read(handle, id)
        const asks = {
          plain: {},
          'with a lease': { lease: lease(rig) },
          'of another payload': { payload: 'other', fingerprint: 'other' },
          'of another payload, rejecting': { payload: 'other', fingerprint: 'other', rejectMismatch: true },
        }
        for (const [how, options] of Object.entries(asks)) {
          const { outcome, leased, mismatch, record } = await ask(rig, other, id, options)
          assert.deepEqual([outcome, leased, mismatch], ['exists', false, 'payload' in options], `${id}, ${how}`)
          assertKept(record, old, `${id}, ${how}`)
        }
        assert.deepEqual(await read(handle, id), unchanged, id)
      }
    },
  },
  {
    name: 'refresh: of what has not ended is a duplicate; of nothing, an ordinary enqueue; of a failure, a new run',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const created = await ask(rig, other, 'absent', { refresh: true })
      assert.deepEqual([created.outcome, created.record.state], ['created', 'queued'])
      assert.ok(!('kept' in created.record))
      await enqueueNew(rig, handle, ['queued'])
      const job = await begin(rig, handle, 'processing')
      await settleOne(handle, await begin(rig, handle, 'failing'), retry('oh', longMs))
      for (const id of ['queued', 'processing', 'failing']) {
        const before = await read(handle, id)
        const { outcome, leased, record } = await ask(rig, other, id, { refresh: true })
        assert.deepEqual([outcome, leased, record.spec.incarnation], ['exists', false, before?.spec.incarnation])
        assert.deepEqual(await read(handle, id), before, id)
      }
      const due = await ask(rig, other, 'queued', { refresh: true, lease: lease(rig) })
      assert.deepEqual([due.outcome, due.leased, due.record.attempts], ['exists', true, 1], 'with a lease, what is due')
      assert.equal(due.record.state === 'processing' && due.record.payload, payloadOf('queued'))
      assert.equal(await settleOne(handle, job, fail('no', longMs)), 'settled')
      const again = await ask(rig, other, 'processing', { refresh: true, payload: 'new' })
      assert.deepEqual([again.outcome, again.record.state, again.record.attempts], ['created', 'queued', 0])
      assert.ok(!('kept' in again.record), 'there is no result to keep')
      assert.equal((await claimId(rig, handle, 'processing')).payload, 'new')
    },
  },
  {
    name: 'refresh: with another payload, rejecting, leaves a result wholly alone',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const before = await read(handle, 'a')
      const options = { refresh: true, rejectMismatch: true, payload: 'other', fingerprint: 'other' }
      const { outcome, mismatch, record } = await ask(rig, other, 'a', options)
      assert.deepEqual([outcome, mismatch, record.state], ['exists', true, 'completed'])
      assert.deepEqual(await read(handle, 'a'), before)
    },
  },
  {
    name: 'refresh: the same again (its reply was lost) answers `created` again, whatever became of the run',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const one = item(rig, 'a', { refresh: true })
      const again = async (state: string) => {
        const before = await read(handle, 'a')
        const [answer] = (await other.enqueue([one])).answers
        assert.deepEqual([answer?.outcome, answer?.leased, answer?.record.state], ['created', false, state])
        assert.deepEqual(await read(handle, 'a'), before, 'nothing changed')
      }
      assert.equal((await handle.enqueue([one])).answers[0]?.outcome, 'created')
      await again('queued')
      const job = await claimId(rig, handle, 'a')
      await again('processing')
      await settleOne(handle, job, retry('oh', 0))
      await again('failing')
      await settleOne(handle, await claimId(rig, handle, 'a'), fail('no', longMs))
      await again('completed')
    },
  },
  {
    name: 'refresh: of 200 callers exactly one begins the new run',
    async run(rig) {
      const handles = [...(await rig.pair()), ...(await rig.pair())]
      await finish(rig, handles[0]!, 'a', 'old')
      const before = await expectState(handles[0]!, 'a', 'completed')
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, caller) => {
          const options = { refresh: caller % 4 !== 0, payload: `of caller ${caller}` }
          return ask(rig, handles[caller % handles.length]!, 'a', options)
        }),
      )
      const creators = answers.flatMap(({ outcome }, caller) => (outcome === 'created' ? [caller] : []))
      assert.equal(creators.length, 1)
      assert.notEqual(creators[0]! % 4, 0, 'who does not ask for it begins none')
      for (const { record } of answers) {
        if (record.state === 'completed') assert.equal(record.result, 'old')
        else assertKept(record, before, 'in every answer')
      }
      assert.equal((await claimId(rig, handles[1]!, 'a')).payload, `of caller ${creators[0]}`, 'the creator’s payload')
    },
  },
  {
    name: 'refresh: leases of the run before are stale in the new one',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const old = await begin(rig, handle, 'a')
      await settleOne(handle, old, complete('old', longMs))
      await ask(rig, handle, 'a', { refresh: true })
      const verdicts = [complete('stale', longMs), fail('stale', longMs), retry('stale', 0), release(0)]
      const expectStale = async () => {
        const before = await read(handle, 'a')
        for (const verdict of verdicts) assert.equal(await settleOne(other, old, verdict), 'stale', verdict.kind)
        assert.deepEqual(await other.extend([{ id: 'a', generation: old.generation, leaseMs: longMs }]), ['stale'])
        assert.deepEqual(await read(handle, 'a'), before)
      }
      await expectStale()
      const job = await claimId(rig, handle, 'a')
      await expectStale()
      await settleOne(handle, job, fail('no', longMs))
      await expectStale()
    },
  },
  {
    name: 'refresh: an open record has no TTL to set: what it keeps is left alone',
    async run(rig) {
      const handle = await rig.open()
      const before = await refresh(rig, handle, 'a')
      assert.deepEqual(await handle.touch([{ id: 'a', ttlMs: 1 }]), ['not_terminal'])
      await readKept(handle, before, 'after touch')
    },
  },
  {
    name: 'refresh: hints tell of the new run, and of its end in vain',
    async run(rig) {
      if (!rig.traits.push) return rig.note('hints: traits.push is false')
      const [handle, other] = await rig.pair()
      const hints: Hint[] = []
      other.watch((hint) => hints.push(hint))
      const hinted = async (what: string, act: (id: string) => Promise<unknown>, tells: (hint: Hint) => boolean) => {
        let round = 0
        await rig.until(`a hint of ${what} arrives`, async () => {
          // Hints may be lost: another try, but not before this one has had a chance.
          if (round % 20 === 0) await act(`${what} ${round}`)
          round++
          return hints.some(tells)
        })
      }
      const begun = async (id: string) => {
        await finish(rig, handle, id, 'old')
        await rig.calm()
        hints.length = 0
        await ask(rig, handle, id, { refresh: true })
      }
      await hinted('a refresh', begun, ({ type }) => type === 'due')
      const waitedFor = async (id: string) => {
        await finish(rig, handle, id, 'old')
        await rig.calm()
        hints.length = 0
        await ask(rig, other, id, { refresh: true, wait: true })
      }
      const settled = (hint: Hint) => hint.type === 'settled'
      const failed = async (id: string) => {
        await waitedFor(id)
        await settleOne(handle, await claimId(rig, handle, id), fail('no', longMs))
      }
      await hinted('a failure', failed, settled)
      const cancelled = async (id: string) => {
        await waitedFor(id)
        await handle.cancel([id])
      }
      await hinted('a cancelled one', cancelled, settled)
    },
  },
  {
    name: 'refresh: old results of any kind and size stay as they were',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const bytes = Math.min(rig.traits.payloadBytesMax, largeBytesMax)
      const results: Record<string, Encoded> = {
        'empty text': '',
        'no bytes': new Uint8Array(0),
        bytes: new Uint8Array([0, 128, 255]),
        'large text': '"€'.repeat(Math.floor(bytes / 4)),
        'many bytes': Uint8Array.from({ length: bytes }, (_, index) => (index * 7919) >> 3),
      }
      for (const [id, result] of Object.entries(results)) {
        const before = await refresh(rig, handle, id, { payload: result }, result)
        await readKept(other, before, `${id}, queued`)
        const job = await claimId(rig, other, id)
        assertEncoded(job.payload, result, `${id}: the payload beside it`)
        await settleOne(handle, job, retry('oh', 0))
        await readKept(other, before, `${id}, failing`)
        const { record } = await ask(rig, other, id)
        assertKept(record, before, `${id}, asked for`)
        await settleOne(handle, await claimId(rig, handle, id), fail(result.slice(0, 30_000), longMs))
        const { missed, result: back } = await expectState(other, id, 'completed')
        assertEncoded(back, result, `${id}: back`)
        assertEncoded(missed?.error, result.slice(0, 30_000), `${id}: the error beside it`)
      }
    },
  },
  {
    name: 'refresh: the new result is the new one, be it empty, however large the old one, and whether that has ended meanwhile',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const olds: Record<string, Encoded> = {
        small: 'old',
        large: 'x'.repeat(Math.min(rig.traits.payloadBytesMax, 5_000)),
      }
      const news: Record<string, Encoded> = { 'empty text': '', 'no bytes': new Uint8Array(0), 'some text': 'new' }
      for (const [old, oldResult] of Object.entries(olds)) {
        for (const [fresh, newResult] of Object.entries(news)) {
          for (const ended of [false, true]) {
            for (const named of [true, false]) {
              const id = `${fresh} after ${old}, ${ended ? 'ended' : 'good'}, ${named ? 'named' : 'due'}`
              await finish(rig, handle, id, oldResult, ended ? rig.shortMs : longMs)
              await ask(rig, handle, id, { refresh: true })
              if (ended) await rig.wait(handle, rig.shortMs)
              // Workers' claims may leave out what is kept; whoever settles then must not take that for a result.
              const terms = { ...lease(rig), limit: 1, ...(named ? { ids: [id] } : {}) }
              let job = (await handle.claim(terms)).jobs[0]
              await rig.until(`${id} is leased`, async () => {
                job ??= (await handle.claim(terms)).jobs[0]
                return job !== undefined
              })
              assert.equal(await settleOne(handle, job!, complete(newResult, longMs)), 'settled')
              assertEncoded((await expectState(other, id, 'completed')).result, newResult, id)
              assertEncoded((await expectState(handle, id, 'completed')).result, newResult, id)
            }
          }
        }
      }
    },
  },
]
