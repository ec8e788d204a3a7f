/**
 * Inline refreshes: an `enqueue` with a lease that runs a result anew in the caller's own process.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { ProcessingRecord } from '../../src/record.ts'
import { complete, fail, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import type { ItemOptions } from './items.ts'
import { claimId, expectAbsent, expectState, finish, item, lease, settleOne } from './items.ts'
import { ask, assertKept, expectRestored, readKept } from './refreshed.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** A refresh that its caller runs. */
function run(rig: Rig, handle: StorageHandle, id: string, leaseMs = longMs, options: ItemOptions = {}) {
  return ask(rig, handle, id, { ...options, refresh: true, lease: lease(rig, leaseMs) })
}

async function expectNoWork(rig: Rig, handle: StorageHandle, what: string): Promise<void> {
  const { jobs, exhausted } = await handle.claim({ ...lease(rig), limit: 10 })
  assert.deepEqual([jobs, exhausted], [[], []], `${what}: workers must not see it`)
}

export const refreshInlineCases: readonly Case[] = [
  {
    name: 'refresh inline: begins under the caller’s lease, hidden from workers; the old result answers others',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const before = await expectState(handle, 'a', 'completed')
      const { outcome, leased, record } = await run(rig, other, 'a', longMs, { payload: 'new payload' })
      assert.deepEqual([outcome, leased, record.state, record.attempts], ['created', true, 'processing', 1])
      assert.ok(record.state === 'processing')
      assert.deepEqual([record.payload, record.inline], ['new payload', true])
      await expectNoWork(rig, handle, 'running')
      for (const options of [{}, { lease: lease(rig) }]) {
        const answer = await ask(rig, handle, 'a', options)
        assert.deepEqual([answer.outcome, answer.leased], ['exists', false])
        assertKept(answer.record, before, 'asked for')
      }
      assert.equal((await expectState(handle, 'a', 'processing')).inline, true, 'nobody counts on the new run')
      const second = await run(rig, handle, 'a')
      assert.deepEqual([second.outcome, second.leased], ['exists', false], 'a second refresh waits')
      assert.equal(await settleOne(other, record, complete('new', longMs)), 'settled')
      assert.equal((await expectState(handle, 'a', 'completed')).result, 'new')
    },
  },
  {
    name: 'refresh inline: the same again (its reply was lost) holds the same lease',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const one = item(rig, 'a', { refresh: true, lease: lease(rig) })
      for (const handles of [handle, other, handle]) {
        const [answer] = (await handles.enqueue([one])).answers
        assert.deepEqual([answer?.outcome, answer?.leased, answer?.record.attempts], ['created', true, 1])
      }
    },
  },
  {
    name: 'refresh inline: of 100 callers exactly one runs it',
    async run(rig) {
      const handles = [...(await rig.pair()), ...(await rig.pair())]
      await finish(rig, handles[0]!, 'a', 'old')
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, caller) => run(rig, handles[caller % handles.length]!, 'a')),
      )
      assert.equal(answers.filter(({ outcome, leased }) => outcome === 'created' && leased).length, 1)
      assert.equal(answers.filter(({ leased }) => leased).length, 1)
      assert.equal((await expectState(handles[1]!, 'a', 'processing')).attempts, 1)
    },
  },
  {
    name: 'refresh inline: its own retry, and in vain: the old result is there all the while',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const before = await expectState(handle, 'a', 'completed')
      const first = (await run(rig, handle, 'a')).record as ProcessingRecord
      assert.equal(await settleOne(handle, first, retry('oh', 0)), 'settled')
      assert.equal((await readKept(other, before, 'failing')).inline, true)
      await expectNoWork(rig, other, 'failing')
      const second = await claimId(rig, handle, 'a')
      assert.deepEqual([second.inline, second.attempts], [true, 2])
      assert.equal(await settleOne(handle, second, fail('no', longMs)), 'settled')
      await expectRestored(other, before, { reason: 'error', error: 'no' })
    },
  },
  {
    name: 'refresh inline: when its runner dies, the next refresh takes it over, and one who does not refresh does not',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const before = await expectState(handle, 'a', 'completed')
      const dead = (await run(rig, handle, 'a', rig.shortMs)).record as ProcessingRecord
      await rig.waitUntil(other, dead.at + rig.graceMs)
      const plain = await ask(rig, other, 'a', { lease: lease(rig) })
      assert.deepEqual([plain.outcome, plain.leased], ['exists', false])
      assertKept(plain.record, before, 'its lease over')
      await expectNoWork(rig, other, 'its lease over')
      const next = await run(rig, other, 'a')
      assert.deepEqual([next.outcome, next.leased, next.record.attempts], ['exists', true, 2])
      assert.equal(await settleOne(handle, dead, complete('late', longMs)), 'stale')
      await readKept(handle, before, 'taken over')
    },
  },
  {
    name: 'refresh inline: attempts used up, the next refresh begins anew, the old result kept once more',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const before = await expectState(handle, 'a', 'completed')
      const dead = (await run(rig, handle, 'a', rig.shortMs, { maxAttempts: 1 })).record as ProcessingRecord
      await rig.waitUntil(other, dead.at + rig.graceMs)
      const next = await run(rig, other, 'a', longMs, { payload: 'of the second' })
      assert.deepEqual([next.outcome, next.leased, next.record.attempts], ['created', true, 1])
      assert.ok(next.record.state === 'processing')
      assert.equal(next.record.payload, 'of the second')
      await readKept(handle, before, 'begun anew')
      assert.equal(await settleOne(handle, dead, complete('late', longMs)), 'stale')
      assert.equal(await settleOne(other, next.record, complete('new', longMs)), 'settled')
    },
  },
  {
    name: 'refresh inline: a refresh that asks for no lease makes it visible to workers',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const dead = (await run(rig, handle, 'a', rig.shortMs)).record as ProcessingRecord
      const asked = await ask(rig, other, 'a', { refresh: true })
      assert.deepEqual([asked.outcome, asked.leased], ['exists', false])
      assert.equal((await expectState(handle, 'a', 'processing')).inline, false)
      await rig.waitUntil(other, dead.at + rig.graceMs)
      await rig.until('a worker has it', async () => (await other.claim({ ...lease(rig), limit: 1 })).jobs.length === 1)
    },
  },
  {
    name: 'refresh inline: in a held queue it is made queued, and hidden; the old result answers',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      const before = await expectState(handle, 'a', 'completed')
      await handle.hold(longMs)
      const { outcome, leased } = await run(rig, other, 'a')
      assert.deepEqual([outcome, leased], ['created', false])
      const record = await readKept(handle, before, 'held')
      assert.deepEqual([record.state, record.inline, record.attempts], ['queued', true, 0])
      await handle.hold(0)
      await expectNoWork(rig, handle, 'after the hold')
    },
  },
  {
    name: 'refresh inline: nobody asking again, it is forgotten, but not before the result that it keeps',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const keptMs = 12 * rig.shortMs
      await finish(rig, handle, 'a', 'old', keptMs)
      const answer = await run(rig, handle, 'a', rig.shortMs, { resultTTL: rig.shortMs })
      const record = answer.record as ProcessingRecord
      if (record.kept === undefined && !rig.virtual) return rig.note('ends: this machine is too slow to tell')
      const until = record.kept!.until
      const tolerance = rig.traits.ttlResolutionMs - 1
      await rig.until('it is forgotten', async () => {
        const { now, records } = await other.get(['a'])
        if (now < until - tolerance) assert.equal(records[0]?.state, 'processing', `${until - now} ms before its end`)
        if (now >= Math.max(until, record.at + rig.shortMs) + tolerance) assert.equal(records[0], null, 'past its end')
        return records[0] === null
      })
      await expectAbsent(rig, other, 'a')
      assert.equal(await settleOne(handle, record, complete('much too late', longMs)), 'stale')
    },
  },
]
