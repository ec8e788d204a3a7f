/**
 * Namespaces: each its own world; the same name, the same world.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { limits } from '../../src/limits.ts'
import { complete } from '../../src/record.ts'
import type { Hint } from '../../src/storage.ts'
import { claimId, enqueueNew, expectAbsent, expectState, finish, item, lease, read, settleOne } from './items.ts'
import { collectId, deliver, expectNoRows, post } from './relays.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

const names: readonly string[] = [
  'a',
  'A',
  'aa',
  'a:b',
  'a:',
  ':a',
  ':',
  '{a}',
  '{b}a',
  '}{',
  'a/b',
  '/',
  '.',
  '..',
  '../a',
  '*',
  'a*',
  '?',
  '%2F',
  '__proto__',
  'constructor',
  ' ',
  'a ',
  '\n',
  '\0',
  "it's",
  '"',
  'caf\u00e9',
  'cafe\u0301',
  '😀',
  'CON',
  'x'.repeat(limits.nameBytesMax),
  `${'x'.repeat(limits.nameBytesMax - 1)}y`,
  '😀'.repeat(limits.nameBytesMax / 4),
]

export const namespaceCases: readonly Case[] = [
  {
    name: 'namespaces: any name, each its own records',
    async run(rig) {
      const handles = await Promise.all(names.map((name) => rig.open(name)))
      for (const [index, handle] of handles.entries()) {
        await enqueueNew(rig, handle, ['job'], { payload: `job of ${index}` })
      }
      for (const [index, handle] of handles.entries()) {
        const job = await claimId(rig, handle, 'job')
        assert.equal(job.payload, `job of ${index}`, JSON.stringify(names[index]))
        assert.equal(await settleOne(handle, job, complete(`result of ${index}`, longMs)), 'settled')
      }
      const other = await rig.other()
      for (const [index, name] of names.entries()) {
        const again = await rig.open(name, other)
        assert.equal((await expectState(again, 'job', 'completed')).result, `result of ${index}`, JSON.stringify(name))
      }
    },
  },
  {
    name: 'namespaces: name and id never run together',
    async run(rig) {
      const pairs = [
        ['a', 'b:c'],
        ['a:b', 'c'],
        ['a:b:c', 'd'],
        ['a', 'b/c'],
        ['a/b', 'c'],
        ['a', '\0b'],
        ['a\0', 'b'],
        ['ab', 'c'],
        ['a', 'bc'],
        ['{a}', 'b'],
        ['a', '}b'],
      ] as const
      for (const [name, id] of pairs) await enqueueNew(rig, await rig.open(name), [id], { payload: `${name} + ${id}` })
      for (const [name, id] of pairs) {
        assert.equal((await claimId(rig, await rig.open(name), id)).payload, `${name} + ${id}`)
      }
    },
  },
  {
    name: 'namespaces: claims, cancels, sweeps and counts stay within',
    async run(rig) {
      const one = await rig.open('one')
      const two = await rig.open('two', await rig.other())
      await enqueueNew(rig, one, ['a', 'b'])
      assert.deepEqual((await two.claim({ ...lease(rig), limit: 10 })).jobs, [])
      assert.deepEqual((await two.claim({ ...lease(rig), limit: 10, ids: ['a', 'b'] })).jobs, [])
      await expectAbsent(rig, two, 'a')
      await expectState(one, 'a', 'queued')
      await finish(rig, one, 'done', 'x', rig.shortMs)
      await finish(rig, two, 'done', 'y', longMs)
      await rig.wait(one, rig.shortMs)
      await one.sweep(100)
      await two.sweep(100)
      assert.equal((await expectState(two, 'done', 'completed')).result, 'y')
      assert.equal(await read(one, 'done'), null)
      const { queued } = await two.stats()
      assert.ok(queued === null || queued === 0, `${queued} queued in the other namespace`)
    },
  },
  {
    name: 'namespaces: a lease of one is nothing in another',
    async run(rig) {
      const one = await rig.open('one')
      const two = await rig.open('two')
      const generation = rig.token('generation')
      for (const handle of [one, two]) await enqueueNew(rig, handle, ['a'])
      await one.claim({ generation, leaseMs: longMs, limit: 1, ids: ['a'] })
      const { answers } = await two.settle([{ id: 'a', generation, verdict: complete('x', longMs) }], null)
      assert.deepEqual(answers, ['stale'])
      await expectState(two, 'a', 'queued')
    },
  },
  {
    name: 'namespaces: outboxes, marks and refreshes stay within',
    async run(rig) {
      const one = await rig.open('one')
      const two = await rig.open('two', await rig.other())
      await post(rig, one, 'a')
      await expectNoRows(rig, two, 'of another namespace')
      await finish(rig, two, 'a', 'x')
      const mail = { id: 'a', name: 'mail', token: 'mine' }
      assert.deepEqual(await one.mark([mail]), ['marked'])
      assert.deepEqual(await two.mark([{ ...mail, token: 'yours' }]), ['marked'])
      const leased = await collectId(rig, one, 'a')
      assert.equal(await deliver(two, leased), 'stale')
      await two.enqueue([item(rig, 'a', { refresh: true })])
      assert.equal((await expectState(one, 'a', 'completed')).outbox?.generation, leased.outbox?.generation)
      assert.equal(await deliver(one, leased), 'delivered')
      assert.equal((await expectState(two, 'a', 'queued')).kept?.result, 'x')
    },
  },
  {
    name: 'namespaces: a hold holds its own alone',
    async run(rig) {
      const one = await rig.open('one')
      const two = await rig.open('two')
      await enqueueNew(rig, two, ['a'])
      await one.hold(longMs)
      assert.equal((await two.stats()).heldForMs, 0)
      await claimId(rig, two, 'a')
      await two.hold(longMs)
      await two.hold(0)
      assert.ok((await one.stats()).heldForMs > 0, 'ending another’s hold does not end this one')
    },
  },
  {
    name: 'namespaces: hints stay within',
    async run(rig) {
      if (!rig.traits.push) return rig.note('hints: traits.push is false')
      const one = await rig.open('one')
      const two = await rig.open('two')
      const ones: Hint[] = []
      const twos: Hint[] = []
      one.watch((hint) => ones.push(hint))
      two.watch((hint) => twos.push(hint))
      let round = 0
      await rig.until('the hints arrive where they belong', async () => {
        const id = `id ${round++}`
        await enqueueNew(rig, one, [id, `${id} too`], { wait: true })
        await settleOne(one, await claimId(rig, one, id), complete('x', longMs))
        await one.cancel([`${id} too`])
        return new Set(ones.map(({ type }) => type)).size >= 3
      })
      await rig.calm()
      const foreign = twos.filter(({ type }) => type !== 'warning')
      assert.deepEqual(foreign, [], 'hints of another namespace')
    },
  },
  {
    name: 'namespaces: the same name opened twice is the same records',
    async run(rig) {
      const [one, other] = await rig.pair('same')
      const two = await rig.open('same')
      await enqueueNew(rig, one, ['a', 'b'])
      assert.equal((await claimId(rig, two, 'a')).attempts, 1)
      assert.equal((await claimId(rig, other, 'b')).attempts, 1)
      await one.hold(longMs)
      assert.ok((await two.stats()).heldForMs > 0)
      assert.ok((await other.stats()).heldForMs > 0)
    },
  },
]
