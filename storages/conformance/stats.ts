/**
 * `stats`: counts by state, where the storage can tell.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete, fail, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { begin, enqueueNew, finish, item, settleOne } from './items.ts'
import { refresh, refreshing } from './refreshed.ts'
import { collect, post } from './relays.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

const states = ['queued', 'processing', 'failing', 'completed', 'failed'] as const

async function expectCounts(rig: Rig, handle: StorageHandle, counts: readonly number[], when: string): Promise<void> {
  const stats = await handle.stats()
  const silent = states.filter((state) => stats[state] === null)
  if (silent.length > 0) rig.note(`counts ${when} of ${silent.join(', ')}: stats does not tell`)
  const told = states.map((state, index) => stats[state] ?? counts[index])
  assert.deepEqual(told, counts, `${states.join(', ')} ${when}`)
  assert.equal(stats.heldForMs, 0)
}

export const statsCases: readonly Case[] = [
  {
    name: 'stats: counts each state, and follows every change',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await expectCounts(rig, handle, [0, 0, 0, 0, 0], 'at first')
      await enqueueNew(rig, handle, ['q1', 'q2'])
      await enqueueNew(rig, handle, ['q3'], { delayMs: longMs })
      const p = await begin(rig, handle, 'p')
      await settleOne(handle, await begin(rig, handle, 'f'), retry('oh', longMs))
      for (const id of ['c1', 'c2', 'c3', 'c4']) await finish(rig, handle, id, 'x')
      await settleOne(handle, await begin(rig, handle, 'x'), fail('no', longMs))
      await expectCounts(rig, other, [3, 1, 1, 4, 1], 'with some of each')
      await other.cancel(['q1', 'f'])
      await other.settle([{ id: 'p', generation: p.generation, verdict: complete('x', longMs) }], null)
      await expectCounts(rig, handle, [2, 0, 0, 5, 1], 'after changes')
    },
  },
  {
    name: 'stats: counts what is refreshed, posted or marked by its state, as any other',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (const id of ['queued', 'in vain']) await refresh(rig, handle, id)
      await refreshing(rig, handle, 'processing')
      await settleOne(handle, (await refreshing(rig, handle, 'failing')).job, retry('oh', longMs))
      for (const id of ['posted', 'collected']) await post(rig, handle, id)
      await collect(rig, handle, 1)
      await handle.mark(['queued', 'posted'].map((id) => ({ id, name: 'mail', token: 'x' })))
      await expectCounts(rig, other, [2, 1, 1, 2, 0], 'with some of each')
      await other.cancel(['in vain'])
      await expectCounts(rig, handle, [1, 1, 1, 3, 0], 'after a refresh in vain')
      await other.enqueue([item(rig, 'in vain', { refresh: true })])
      await expectCounts(rig, handle, [2, 1, 1, 2, 0], 'after another')
    },
  },
  {
    name: 'stats: tells how long the hold lasts',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await handle.hold(longMs)
      const { heldForMs } = await other.stats()
      assert.ok(heldForMs > longMs - 60_000 && heldForMs <= longMs, `held for ${heldForMs}`)
    },
  },
]
