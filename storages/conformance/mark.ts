/**
 * `mark`: an effect behind a record is begun by one caller.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { limits } from '../../src/limits.ts'
import type { JobRecord } from '../../src/record.ts'
import { complete, fail, release, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { begin, claimId, enqueueNew, expectState, finish, item, lease, read, settleOne } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** Marks one effect of one id, by a new token unless one is given. */
async function mark(rig: Rig, handle: StorageHandle, id: string, name: string, token = rig.token('mark')) {
  const answers = await handle.mark([{ id, name, token }])
  assert.equal(answers.length, 1, 'one answer per item')
  return answers[0]!
}

/** The record without what a mark may change of it. */
function unmarked(record: JobRecord | null): unknown {
  if (record === null) return null
  const { marks: _, ...spec } = record.spec
  return { ...record, spec }
}

/** Names that are alike. */
const names = ['mail', 'mai', 'ail', 'Mail', 'mail.', 'ma-il', 'ma_il', 'ma:il', 'm.il', '0', 'x'.repeat(64)]

export const markCases: readonly Case[] = [
  {
    name: 'mark: of 200 callers exactly one begins an effect',
    async run(rig) {
      const handles = [...(await rig.pair()), ...(await rig.pair())]
      await finish(rig, handles[0]!, 'a', 'x')
      const answers = await Promise.all(
        Array.from({ length: 200 }, (_, caller) => mark(rig, handles[caller % handles.length]!, 'a', 'mail')),
      )
      assert.equal(answers.filter((answer) => answer === 'marked').length, 1)
      assert.equal(answers.filter((answer) => answer === 'taken').length, 199)
    },
  },
  {
    name: 'mark: the same again (its reply was lost) is `marked`, another’s is `taken`, and neither changes anything',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'x')
      assert.equal(await mark(rig, handle, 'a', 'mail', 'mine'), 'marked')
      const before = await read(handle, 'a')
      assert.ok(before?.spec.marks?.includes('mine'), 'the record tells of it')
      for (const one of [handle, other]) {
        assert.equal(await mark(rig, one, 'a', 'mail', 'mine'), 'marked', 'once more')
        assert.equal(await mark(rig, one, 'a', 'mail', 'another'), 'taken')
        assert.equal(await mark(rig, one, 'a', 'mail', 'min'), 'taken', 'a shorter token is another')
      }
      assert.deepEqual(await read(other, 'a'), before)
    },
  },
  {
    name: 'mark: each name is its own, and each id',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (const id of ['a', 'b']) {
        await enqueueNew(rig, handle, [id])
        for (const name of names) assert.equal(await mark(rig, handle, id, name), 'marked', `${name} of ${id}`)
        for (const name of names) assert.equal(await mark(rig, other, id, name), 'taken', `${name} of ${id}`)
      }
    },
  },
  {
    name: 'mark: on a record in any state, of which nothing else changes',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['queued'])
      await enqueueNew(rig, handle, ['delayed'], { delayMs: longMs })
      await begin(rig, handle, 'processing')
      await handle.enqueue([item(rig, 'inline', { lease: lease(rig) })])
      for (const [id, verdict] of [
        ['failing', retry('oh', longMs)],
        ['released', release(longMs)],
        ['completed', complete('x', longMs)],
        ['posted', complete('x', longMs, { rows: 'rows', ttlMs: longMs })],
        ['failed', fail('no', longMs)],
      ] as const) {
        await settleOne(handle, await begin(rig, handle, id), verdict)
      }
      await finish(rig, handle, 'refreshing', 'old')
      await handle.enqueue([item(rig, 'refreshing', { refresh: true })])
      const ids = ['queued', 'delayed', 'processing', 'inline', 'failing', 'released', 'completed', 'posted']
      for (const id of [...ids, 'failed', 'refreshing']) {
        const before = await read(handle, id)
        assert.equal(await mark(rig, other, id, 'mail'), 'marked', id)
        assert.deepEqual(unmarked(await read(handle, id)), unmarked(before), id)
        assert.equal(await mark(rig, handle, id, 'mail'), 'taken', id)
      }
    },
  },
  {
    name: 'mark: stays through every attempt and the end, and stands in nobody’s way',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const first = await begin(rig, handle, 'a')
      assert.equal(await mark(rig, other, 'a', 'mail', 'mine'), 'marked')
      assert.deepEqual(await handle.extend([{ id: 'a', generation: first.generation, leaseMs: longMs }]), ['extended'])
      const taken = async (when: string) => assert.equal(await mark(rig, other, 'a', 'mail'), 'taken', when)
      await settleOne(handle, first, release(0))
      await taken('released')
      await settleOne(handle, await claimId(rig, handle, 'a'), retry('oh', 0))
      await taken('failing')
      const last = await claimId(rig, other, 'a')
      assert.equal(await settleOne(other, last, complete('x', longMs)), 'settled')
      await taken('completed')
      await handle.touch([{ id: 'a', ttlMs: longMs }])
      await handle.enqueue([item(rig, 'a'), item(rig, 'a', { lease: lease(rig) })])
      await taken('touched and asked for')
      assert.equal(await mark(rig, handle, 'a', 'mail', 'mine'), 'marked', 'its owner is still known')
      assert.equal((await expectState(handle, 'a', 'completed')).result, 'x')
    },
  },
  {
    name: 'mark: goes with its record: by its TTL, or cancelled',
    async run(rig) {
      const [handle, other] = await rig.pair()
      assert.equal(await mark(rig, handle, 'a', 'mail'), 'not_found', 'nothing is there yet')
      await finish(rig, handle, 'a', 'x', 20 * rig.shortMs)
      const marked = await mark(rig, handle, 'a', 'mail')
      if (marked === 'not_found' && !rig.virtual) return rig.note('ends: this machine is too slow to tell')
      assert.equal(marked, 'marked')
      await handle.touch([{ id: 'a', ttlMs: rig.shortMs }])
      await rig.wait(other, rig.shortMs)
      assert.equal(await mark(rig, other, 'a', 'mail'), 'not_found', 'its TTL has ended')
      await enqueueNew(rig, handle, ['a'])
      assert.equal(await mark(rig, other, 'a', 'mail'), 'marked', 'in a new life')
      assert.deepEqual(await handle.cancel(['a']), ['cancelled'])
      assert.equal(await mark(rig, other, 'a', 'mail'), 'not_found', 'it was cancelled')
      await enqueueNew(rig, handle, ['a'])
      assert.equal((await read(handle, 'a'))?.spec.marks ?? '', '')
      assert.equal(await mark(rig, other, 'a', 'mail'), 'marked', 'in yet another life')
    },
  },
  {
    name: 'mark: a refresh has effects of its own, which stay when it was in vain',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await finish(rig, handle, 'a', 'old')
      assert.equal(await mark(rig, handle, 'a', 'mail'), 'marked')
      await handle.enqueue([item(rig, 'a', { refresh: true })])
      assert.equal((await read(other, 'a'))?.spec.marks ?? '', '')
      assert.equal(await mark(rig, other, 'a', 'mail'), 'marked', 'of the new run')
      await settleOne(handle, await claimId(rig, handle, 'a'), fail('no', longMs))
      assert.equal((await expectState(other, 'a', 'completed')).result, 'old')
      assert.equal(await mark(rig, other, 'a', 'mail'), 'taken', 'it was begun in the run that failed')
    },
  },
  {
    name: 'mark: a record that has no room for another says `full`, and still tells of those it has',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['a'])
      const token = 't'.repeat(200)
      let marked = 0
      let answer: string = 'marked'
      for (let count = 0; count < 40 && answer === 'marked'; count++) {
        answer = await mark(rig, handle, 'a', `effect-${count}`, token)
        if (answer === 'marked') marked++
      }
      assert.equal(answer, 'full')
      const before = await read(other, 'a')
      const { marks = '' } = before!.spec
      assert.ok(marks.length <= limits.marksCharsMax && marks.length > limits.marksCharsMax - 300, `${marks.length}`)
      assert.equal(await mark(rig, other, 'a', `effect-${marked}`, token), 'full', 'again')
      assert.deepEqual(await read(other, 'a'), before, 'nothing changed')
      assert.equal(await mark(rig, other, 'a', 'effect-0', token), 'marked', 'its own')
      assert.equal(await mark(rig, other, 'a', 'effect-0'), 'taken')
      const room = limits.marksCharsMax - marks.length
      assert.equal(await mark(rig, handle, 'a', 'x', 't'.repeat(room - 3)), 'marked', 'what just fits')
      assert.equal(await mark(rig, handle, 'a', 'y', 't'), 'full')
      await claimId(rig, other, 'a')
    },
  },
  {
    name: 'mark: several in one call, answers in their order; a name twice; none, none',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a', 'b'])
      const items = [
        { id: 'unknown', name: 'mail', token: 't1' },
        { id: 'b', name: 'mail', token: 't2' },
        { id: 'a', name: 'mail', token: 't3' },
        { id: 'b', name: 'mail', token: 't4' },
        { id: 'b', name: 'bill', token: 't5' },
        { id: 'b', name: 'mail', token: 't2' },
      ]
      const answers = ['not_found', 'marked', 'marked', 'taken', 'marked', 'marked']
      assert.deepEqual(await handle.mark(items), answers)
      assert.deepEqual(await handle.mark([]), [])
    },
  },
]
