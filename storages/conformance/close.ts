/**
 * `close`: the end of one handle, and of nothing else.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { assertEncoded, begin, claimId, enqueueNew, expectState, item, lease, settlement } from './items.ts'
import { readKept, refresh } from './refreshed.ts'
import { collect, collectId, deliver, post, readOutbox } from './relays.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** Every operation that answers a promise. */
function operations(rig: Rig, handle: StorageHandle): Record<string, () => Promise<unknown>> {
  return {
    enqueue: () => handle.enqueue([item(rig, 'after close')]),
    'enqueue of nothing': () => handle.enqueue([]),
    claim: () => handle.claim({ ...lease(rig), limit: 1 }),
    'claim of an id': () => handle.claim({ ...lease(rig), limit: 1, ids: ['a'] }),
    extend: () => handle.extend([{ id: 'a', ...lease(rig) }]),
    settle: () => handle.settle([{ id: 'a', generation: 'x', verdict: complete('x', longMs) }], null),
    'settle and claim': () => handle.settle([], { ...lease(rig), limit: 1 }),
    cancel: () => handle.cancel(['a']),
    touch: () => handle.touch([{ id: 'a', ttlMs: longMs }]),
    mark: () => handle.mark([{ id: 'a', name: 'mail', token: 'x' }]),
    deliver: () => handle.deliver([{ id: 'a', generation: 'x', rows: null, delayMs: 0 }], null),
    'deliver and collect': () => handle.deliver([], { ...lease(rig), limit: 1 }),
    get: () => handle.get(['a']),
    sweep: () => handle.sweep(10),
    hold: () => handle.hold(longMs),
    stats: () => handle.stats(),
  }
}

/** Expects StorageClosedError, told by its name and code: the class may come from another copy of the package. */
async function expectClosed(name: string, run: () => unknown): Promise<void> {
  try {
    await run()
  } catch (error) {
    const { name: type, code } = error as { name?: unknown; code?: unknown }
    assert.deepEqual(
      { type, code },
      { type: 'StorageClosedError', code: 'ASKONCE_STORAGE_CLOSED' },
      `${name} after close`,
    )
    return
  }
  assert.fail(`${name} after close must reject with StorageClosedError, and went through`)
}

export const closeCases: readonly Case[] = [
  {
    name: 'close: afterwards every operation rejects with StorageClosedError, and changes nothing',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['a'])
      await handle.close()
      for (const [name, run] of Object.entries(operations(rig, handle))) await expectClosed(name, run)
      const { records } = await other.get(['a', 'after close'])
      assert.equal(records[0]?.state, 'queued')
      assert.equal(records[1], null)
      assert.equal((await other.stats()).heldForMs, 0)
    },
  },
  {
    name: 'close: operations reject by a promise, never by a throw',
    async run(rig) {
      const handle = await rig.open()
      await handle.close()
      for (const [name, run] of Object.entries(operations(rig, handle))) {
        let promise: Promise<unknown>
        try {
          promise = run()
        } catch {
          assert.fail(`${name} after close threw: it must reject`)
        }
        await assert.rejects(promise)
      }
    },
  },
  {
    name: 'close: watching a closed handle throws StorageClosedError, or hears nothing',
    async run(rig) {
      const handle = await rig.open()
      const other = await rig.open()
      await handle.close()
      const heard: unknown[] = []
      try {
        handle.watch((hint) => heard.push(hint))
      } catch (error) {
        await expectClosed('watch', () => Promise.reject(error))
      }
      await enqueueNew(rig, other, ['a'])
      await rig.calm()
      assert.deepEqual(heard, [])
    },
  },
  {
    name: 'close: twice, also at the same time, is harmless',
    async run(rig) {
      const handle = await rig.open()
      await Promise.all([handle.close(), handle.close()])
      await handle.close()
    },
  },
  {
    name: 'close: other handles of the namespace, and of others, live on',
    async run(rig) {
      const handle = await rig.open()
      const [same, shared] = await rig.pair()
      const elsewhere = await rig.open('elsewhere')
      await enqueueNew(rig, handle, ['a', 'b', 'c'])
      await handle.close()
      assert.equal((await claimId(rig, same, 'a')).attempts, 1)
      assert.equal((await claimId(rig, shared, 'b')).attempts, 1)
      await enqueueNew(rig, elsewhere, ['a'])
      await same.close()
      await claimId(rig, shared, 'c')
      await claimId(rig, elsewhere, 'a')
    },
  },
  {
    name: 'close: all handles closed, the same storage opens again, with its records',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['queued'])
      const job = await begin(rig, handle, 'processing')
      await handle.close()
      const again = await rig.open()
      await expectState(again, 'queued', 'queued')
      const { answers } = await again.settle([settlement(job, complete('x', longMs))], null)
      assert.deepEqual(answers, ['settled'], 'a lease outlives its handle')
    },
  },
  {
    name: 'close: operations that run at the time end first',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a'])
      const running = Promise.all([
        handle.enqueue([item(rig, 'b')]),
        handle.claim({ ...lease(rig), limit: 1, ids: ['a'] }),
        handle.get(['a']),
        handle.sweep(10),
        handle.stats(),
      ])
      const closing = handle.close()
      const [enqueued, claimed] = await running
      await closing
      assert.equal(enqueued.answers[0]?.outcome, 'created')
      assert.equal(claimed.jobs.length, 1)
      const again = await rig.open()
      await expectState(again, 'b', 'queued')
      await expectState(again, 'a', 'processing')
    },
  },
  {
    name: 'close: records of a durable storage outlive the Storage object',
    async run(rig) {
      if (!rig.traits.durable) return rig.note('survival: traits.durable is false')
      if (rig.options.createShared === undefined) return rig.note('survival: there is no createShared')
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['queued'], { payload: new Uint8Array([0, 255, 10, 13]) })
      const job = await begin(rig, handle, 'processing')
      const before = await refresh(rig, handle, 'refreshing')
      await post(rig, handle, 'posted', new Uint8Array([0, 255]))
      await post(rig, handle, 'collected')
      await handle.mark([{ id: 'posted', name: 'mail', token: 'x' }])
      await rig.until('a relay has a lease', async () => {
        const { records } = await collect(rig, handle, 2)
        const mine = records.filter(({ spec }) => spec.id === 'posted')
        for (const record of mine) assert.equal(await deliver(handle, record, record.outbox!.rows), 'delivered')
        return (await readOutbox(handle, 'collected')).generation !== null
      })
      const leased = await expectState(handle, 'collected', 'completed')
      await handle.close()
      const after = await rig.open('conformance', await rig.other())
      const { payload } = await claimId(rig, after, 'queued')
      assert.deepEqual([...(payload as Uint8Array)], [0, 255, 10, 13])
      const record = await expectState(after, 'processing', 'processing')
      assert.equal(record.generation, job.generation)
      await readKept(after, before, 'afterwards')
      assertEncoded((await readOutbox(after, 'posted')).rows, new Uint8Array([0, 255]), 'rows')
      assert.deepEqual(await after.mark([{ id: 'posted', name: 'mail', token: 'y' }]), ['taken'])
      assert.deepEqual(await expectState(after, 'collected', 'completed'), leased)
      assert.equal(await deliver(after, leased), 'delivered', 'a relay’s lease outlives its handle')
      assert.equal((await collectId(rig, after, 'posted')).spec.marks, 'mail=x\n')
    },
  },
]
