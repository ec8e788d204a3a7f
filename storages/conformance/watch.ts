/**
 * `watch`: hints. They may be lost, doubled, late or needless; a storage that says it pushes must send them all the same.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete, fail, retry } from '../../src/record.ts'
import type { Hint, StorageHandle } from '../../src/storage.ts'
import { begin, claimId, enqueueNew, item, lease, settleOne } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** Collects hints. */
function collect(handle: StorageHandle): { hints: Hint[]; unwatch: () => void } {
  const hints: Hint[] = []
  const unwatch = handle.watch((hint) => hints.push(hint))
  assert.equal(typeof unwatch, 'function', 'watch returns the function that ends it')
  return { hints, unwatch }
}

/** Does something again and again, with a new id each, until a hint tells of it: hints may be lost. */
async function hinted(
  rig: Rig,
  hints: readonly Hint[],
  what: string,
  act: (id: string) => Promise<unknown>,
  tells: (hint: Hint, id: string) => boolean,
): Promise<{ hint: Hint; id: string }> {
  for (let round = 0; round < 3; round++) {
    const id = `${what} ${round}`
    const seen = hints.length
    await act(id)
    let hint: Hint | undefined
    try {
      await rig.until(`a hint of ${what} arrives`, () => {
        hint = hints.slice(seen).find((hint) => tells(hint, id))
        return hint !== undefined
      })
    } catch (error) {
      if (round === 2) throw error
    }
    if (hint !== undefined) return { hint, id }
  }
  assert.fail('unreachable')
}

/** Whether hints are to be expected at all. */
function pushes(rig: Rig): boolean {
  if (!rig.traits.push) rig.note('whether hints arrive: traits.push is false')
  return rig.traits.push
}

export const watchCases: readonly Case[] = [
  {
    name: 'watch: tells of what becomes due',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { hints } = collect(other)
      if (!pushes(rig)) return
      const due = (hint: Hint) => hint.type === 'due'
      await hinted(rig, hints, 'an enqueue', (id) => enqueueNew(rig, handle, [id]), due)
      const delay = (id: string) => enqueueNew(rig, handle, [id], { delayMs: longMs })
      const { hint } = await hinted(
        rig,
        hints,
        'a delayed enqueue',
        delay,
        (hint) => hint.type === 'due' && hint.inMs > 0,
      )
      assert.ok(hint.type === 'due' && hint.inMs <= longMs, 'not later than it is due')
      const giveBack = async (id: string) => {
        await settleOne(handle, await begin(rig, handle, id), retry('oh', 0))
      }
      await hinted(rig, hints, 'a retry', giveBack, due)
    },
  },
  {
    name: 'watch: tells of what has ended, to those that wait for it',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { hints } = collect(other)
      if (!pushes(rig)) return
      for (const verdict of [complete('the result', longMs), fail('the error', longMs)]) {
        const act = async (id: string) => {
          await enqueueNew(rig, other, [id], { wait: true })
          await settleOne(handle, await claimId(rig, handle, id), verdict)
        }
        const settled = (hint: Hint, id: string) => hint.type === 'settled' && hint.id === id
        const { hint, id } = await hinted(rig, hints, verdict.kind, act, settled)
        if (hint.type === 'settled' && hint.record !== undefined) {
          const { records } = await other.get([id])
          assert.deepEqual(hint.record, records[0], 'a record that comes along is the record')
        }
      }
      const joined = async (id: string) => {
        await enqueueNew(rig, handle, [id])
        await other.enqueue([item(rig, id, { wait: true })])
        await settleOne(handle, await claimId(rig, handle, id), complete('x', longMs))
      }
      await hinted(rig, hints, 'one that was there', joined, (hint, id) => hint.type === 'settled' && hint.id === id)
    },
  },
  {
    name: 'watch: tells of exhausted jobs, as of all that have ended',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { hints } = collect(other)
      if (!pushes(rig)) return
      const act = async (id: string) => {
        await enqueueNew(rig, other, [id], { wait: true, maxAttempts: 1 })
        const job = await claimId(rig, handle, id, rig.shortMs)
        await rig.waitUntil(handle, job.at + rig.graceMs)
        const { exhausted } = await handle.claim({ ...lease(rig), limit: 1, ids: [id] })
        assert.equal(exhausted.length, 1)
      }
      await hinted(rig, hints, 'an exhausted job', act, (hint, id) => hint.type === 'settled' && hint.id === id)
    },
  },
  {
    name: 'watch: tells of what was cancelled, and of which life of the id',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { hints } = collect(other)
      if (!pushes(rig)) return
      const incarnations = new Map<string, string>()
      const act = async (id: string) => {
        const one = item(rig, id, { wait: true })
        incarnations.set(id, one.spec.incarnation)
        await other.enqueue([one])
        assert.deepEqual(await handle.cancel([id]), ['cancelled'])
      }
      const cancelled = (hint: Hint, id: string) => hint.type === 'cancelled' && hint.id === id
      const { hint, id } = await hinted(rig, hints, 'a cancel', act, cancelled)
      assert.equal(hint.type === 'cancelled' && hint.incarnation, incarnations.get(id))
    },
  },
  {
    name: 'watch: every listener is told, on every handle, until it has unwatched',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const one = collect(handle)
      const two = collect(handle)
      const far = collect(other)
      if (!pushes(rig)) return
      for (const { hints } of [one, two, far]) {
        await hinted(
          rig,
          hints,
          'an enqueue',
          (id) => enqueueNew(rig, handle, [`${id} ${rig.token()}`]),
          () => true,
        )
      }
      two.unwatch()
      await rig.calm()
      const silent = two.hints.length
      const act = (id: string) => enqueueNew(rig, other, [`${id} later ${rig.token()}`])
      await hinted(rig, one.hints, 'an enqueue', act, () => true)
      await hinted(rig, far.hints, 'an enqueue', act, () => true)
      assert.equal(two.hints.length, silent, 'no hints after unwatch')
      two.unwatch()
    },
  },
  {
    name: 'watch: the same listener watching twice ends once at a time',
    async run(rig) {
      const handle = await rig.open()
      const hints: Hint[] = []
      const listener = (hint: Hint) => void hints.push(hint)
      const first = handle.watch(listener)
      const second = handle.watch(listener)
      first()
      if (pushes(rig))
        await hinted(
          rig,
          hints,
          'an enqueue',
          (id) => enqueueNew(rig, handle, [id]),
          () => true,
        )
      second()
      await rig.calm()
      const silent = hints.length
      await enqueueNew(rig, handle, ['after'])
      await rig.calm()
      assert.equal(hints.length, silent)
    },
  },
  {
    name: 'watch: a closed handle’s listeners hear no more, others go on',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const closing = await rig.open()
      const { hints, unwatch } = collect(closing)
      const control = collect(other)
      await enqueueNew(rig, handle, ['before'])
      await closing.close()
      const silent = hints.length
      const act = (id: string) => enqueueNew(rig, handle, [id])
      if (pushes(rig)) await hinted(rig, control.hints, 'an enqueue', act, () => true)
      else await enqueueNew(rig, handle, ['after'])
      await rig.calm()
      assert.equal(hints.length, silent, 'no hints after close')
      unwatch()
    },
  },
]
