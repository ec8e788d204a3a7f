/**
 * Many callers at once: exactly one wins what only one may have.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { begin, enqueueNew, expectState, item, lease, settlement, settleOne } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

const callers = 200

/** Handles on one namespace, over both Storage objects. */
async function crowd(rig: Rig): Promise<(caller: number) => StorageHandle> {
  const handles = [...(await rig.pair()), ...(await rig.pair())]
  return (caller) => handles[caller % handles.length]!
}

function count<T>(values: readonly T[], wanted: T): number {
  return values.filter((value) => value === wanted).length
}

function numbers(length: number): number[] {
  return Array.from({ length }, (_, index) => index)
}

export const concurrencyCases: readonly Case[] = [
  {
    name: `concurrency: of ${callers} callers that enqueue one id, exactly one creates it`,
    async run(rig) {
      const handle = await crowd(rig)
      const answers = await Promise.all(
        numbers(callers).map(async (caller) => {
          const { answers } = await handle(caller).enqueue([item(rig, 'one', { payload: `of caller ${caller}` })])
          return answers[0]!
        }),
      )
      const outcomes = answers.map(({ outcome }) => outcome)
      assert.equal(count(outcomes, 'created'), 1)
      assert.equal(count(outcomes, 'exists'), callers - 1)
      const incarnations = new Set(answers.map(({ record }) => record.spec.incarnation))
      assert.equal(incarnations.size, 1, 'all are answered one record')
      const { jobs } = await handle(0).claim({ ...lease(rig), limit: 1, ids: ['one'] })
      assert.equal(jobs[0]?.payload, `of caller ${outcomes.indexOf('created')}`, 'the creator’s payload')
    },
  },
  {
    name: `concurrency: of ${callers} callers that run one id inline, exactly one gets the lease`,
    async run(rig) {
      const handle = await crowd(rig)
      const answers = await Promise.all(
        numbers(callers).map(async (caller) => {
          const { answers } = await handle(caller).enqueue([item(rig, 'one', { lease: lease(rig) })])
          return answers[0]!
        }),
      )
      const leased = answers.map(({ outcome, leased }) => `${outcome} ${leased}`)
      assert.equal(count(leased, 'created true'), 1)
      assert.equal(count(leased, 'exists false'), callers - 1)
      assert.equal((await expectState(handle(0), 'one', 'processing')).attempts, 1)
    },
  },
  {
    name: `concurrency: ${callers} callers that enqueue 20 ids each: every id is created once`,
    async run(rig) {
      const handle = await crowd(rig)
      const ids = numbers(20).map((index) => `id ${index}`)
      const created = new Map<string, number>()
      await Promise.all(
        numbers(callers).map(async (caller) => {
          const order = ids.map((_, index) => ids[(index + caller) % ids.length]!)
          const { answers } = await handle(caller).enqueue(order.map((id) => item(rig, id)))
          for (const [index, { outcome, record }] of answers.entries()) {
            assert.equal(record.spec.id, order[index], 'answers in the items’ order')
            if (outcome === 'created') created.set(order[index]!, (created.get(order[index]!) ?? 0) + 1)
          }
        }),
      )
      assert.deepEqual(
        ids.map((id) => created.get(id)),
        ids.map(() => 1),
      )
    },
  },
  {
    name: `concurrency: ${callers} claims at once, no job twice, none lost`,
    async run(rig) {
      const handle = await crowd(rig)
      const ids = numbers(callers / 2).map((index) => `id ${index}`)
      await enqueueNew(rig, handle(0), ids)
      const found: string[] = []
      const claim = async (caller: number) => {
        const { jobs } = await handle(caller).claim({ ...lease(rig), limit: 1 + (caller % 3) })
        for (const { spec, attempts } of jobs) {
          assert.equal(attempts, 1, `${spec.id} was claimed once`)
          found.push(spec.id)
        }
      }
      await Promise.all(numbers(callers).map(claim))
      await rig.until('all jobs are claimed', async () => {
        if (found.length < ids.length) await claim(0)
        return found.length >= ids.length
      })
      assert.deepEqual(found.toSorted(), ids.toSorted())
    },
  },
  {
    name: 'concurrency: of many claims that name one id, one gets it; of many takeovers, too',
    async run(rig) {
      const handle = await crowd(rig)
      await enqueueNew(rig, handle(0), ['a'], { maxAttempts: 10 })
      for (let round = 1; round <= 3; round++) {
        const jobs = await Promise.all(
          numbers(50).map(async (caller) => {
            const { jobs } = await handle(caller).claim({ ...lease(rig, longMs), limit: 1, ids: ['a'] })
            return jobs
          }),
        )
        const [job, ...more] = jobs.flat()
        assert.equal(more.length, 0, 'one owner')
        assert.equal(job?.attempts, round)
        // The owner's lease is cut short; then all want it again.
        await handle(round).extend([{ id: 'a', generation: job.generation, leaseMs: rig.shortMs }])
        const { at } = await expectState(handle(0), 'a', 'processing')
        await rig.waitUntil(handle(0), at + rig.graceMs)
      }
    },
  },
  {
    name: 'concurrency: cancel against claim: cancelled only what is never leased',
    async run(rig) {
      const handle = await crowd(rig)
      const ids = numbers(60).map((index) => `id ${index}`)
      await enqueueNew(rig, handle(0), ids)
      const outcomes = new Map<string, string>()
      const claimed = new Set<string>()
      const claim = async (ids: readonly string[], caller: number) => {
        const { jobs } = await handle(caller).claim({ ...lease(rig), limit: ids.length, ids })
        for (const { spec } of jobs) claimed.add(spec.id)
      }
      await Promise.all(
        ids.flatMap((id, index) => {
          const cancel = async () => {
            const [outcome] = await handle(index + 1).cancel([id])
            outcomes.set(id, outcome!)
          }
          return index % 2 === 0 ? [cancel(), claim([id], index)] : [claim([id], index), cancel()]
        }),
      )
      for (const id of ids) {
        assert.equal(outcomes.get(id), claimed.has(id) ? 'processing' : 'cancelled', id)
      }
      const { records } = await handle(0).get(ids)
      for (const [index, id] of ids.entries()) {
        assert.equal(records[index]?.state ?? null, claimed.has(id) ? 'processing' : null, id)
      }
    },
  },
  {
    name: 'concurrency: settle against takeover: one of them wins, and the loser changes nothing',
    async run(rig) {
      const handle = await crowd(rig)
      const ids = numbers(30).map((index) => `id ${index}`)
      await enqueueNew(rig, handle(0), ids)
      const { jobs } = await handle(0).claim({ ...lease(rig, rig.shortMs), limit: ids.length, ids })
      assert.equal(jobs.length, ids.length)
      await rig.waitUntil(handle(0), Math.max(...jobs.map(({ at }) => at)) + rig.graceMs)
      const taken = new Map<string, string>()
      const settled = new Map<string, string>()
      await Promise.all(
        jobs.flatMap((job, index) => {
          const { id } = job.spec
          const settle = async () => {
            settled.set(id, await settleOne(handle(index), job, complete('the first owner’s', longMs)))
          }
          const take = async () => {
            const answer = await handle(index + 1).claim({ ...lease(rig), limit: 1, ids: [id] })
            for (const { generation } of answer.jobs) taken.set(id, generation)
          }
          return index % 2 === 0 ? [settle(), take()] : [take(), settle()]
        }),
      )
      const { records } = await handle(0).get(ids)
      for (const [index, id] of ids.entries()) {
        const record = records[index]
        if (taken.has(id)) {
          assert.equal(settled.get(id), 'stale', `${id} was taken over`)
          assert.equal(record?.generation, taken.get(id))
          assert.equal(record?.state, 'processing')
        } else {
          assert.equal(settled.get(id), 'settled', `${id} was not taken over`)
          assert.equal(record?.state, 'completed')
        }
      }
    },
  },
  {
    name: 'concurrency: one lease settled by many with different verdicts ends once',
    async run(rig) {
      const handle = await crowd(rig)
      const job = await begin(rig, handle(0), 'a')
      const answers = await Promise.all(
        numbers(50).map((caller) => {
          const verdict = caller % 2 === 0 ? complete('x', longMs) : retry('oh', longMs)
          return settleOne(handle(caller), job, verdict)
        }),
      )
      const record = (await handle(0).get(['a'])).records[0]
      const winners = record?.state === 'completed' ? 0 : 1
      for (const [caller, answer] of answers.entries()) {
        assert.equal(answer, caller % 2 === winners ? 'settled' : 'stale', `caller ${caller}`)
      }
    },
  },
  {
    name: 'concurrency: workers and producers at once: every job is done once',
    async run(rig) {
      const handle = await crowd(rig)
      const ids = numbers(300).map((index) => `id ${index}`)
      const done: string[] = []
      const produce = async (producer: number) => {
        for (let from = 0; from < ids.length; from += 30) {
          await handle(producer).enqueue(ids.slice(from, from + 30).map((id) => item(rig, id)))
        }
      }
      const work = async (worker: number) => {
        let request = { ...lease(rig), limit: 5 }
        let { jobs } = await handle(worker).claim(request)
        await rig.until('every job is done', async () => {
          request = { ...lease(rig), limit: 5 }
          const settlements = jobs.map((job) => settlement(job, complete(`by ${worker}`, longMs)))
          const { answers, claim } = await handle(worker).settle(settlements, request)
          for (const [index, answer] of answers.entries()) {
            assert.equal(answer, 'settled')
            done.push(jobs[index]!.spec.id)
          }
          jobs = claim!.jobs
          return jobs.length === 0 && done.length >= ids.length
        })
      }
      await Promise.all([produce(0), produce(1), produce(2), work(3), work(4), work(5), work(6)])
      assert.equal(done.length, ids.length)
      assert.deepEqual(done.toSorted(), ids.toSorted())
    },
  },
]
