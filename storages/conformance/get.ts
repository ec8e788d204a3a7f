/**
 * `get`: reads records, and the storage's time.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { complete, fail, retry } from '../../src/record.ts'
import { begin, enqueueNew, settleOne } from './items.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

export const getCases: readonly Case[] = [
  {
    name: 'get: each state with its own data, in the order asked, null for the unknown',
    async run(rig) {
      const [handle, other] = await rig.pair()
      await enqueueNew(rig, handle, ['queued'])
      const processing = await begin(rig, handle, 'processing')
      await settleOne(handle, await begin(rig, handle, 'failing'), retry('error 1', longMs))
      await settleOne(handle, await begin(rig, handle, 'completed'), complete('result', longMs))
      await settleOne(handle, await begin(rig, handle, 'failed'), fail('error 2', longMs))
      const ids = ['failed', 'unknown', 'completed', 'queued', 'failing', 'processing', 'queued']
      const { records } = await other.get(ids)
      assert.deepEqual(
        records.map((record) => record?.state ?? null),
        ['failed', null, 'completed', 'queued', 'failing', 'processing', 'queued'],
      )
      const [failed, , completed, queued, failing, running] = records
      assert.equal(failed?.state === 'failed' && failed.error, 'error 2')
      assert.equal(completed?.state === 'completed' && completed.result, 'result')
      assert.equal(queued?.spec.id, 'queued')
      assert.equal(failing?.state === 'failing' && failing.error, 'error 1')
      assert.equal(running?.generation, processing.generation)
    },
  },
  {
    name: 'get: changes nothing, however often',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, ['a'])
      const first = await handle.get(['a', 'b'])
      for (let round = 0; round < 5; round++) {
        const { records } = await handle.get(['a', 'b'])
        assert.deepEqual(records, first.records)
      }
      assert.equal((await handle.cancel(['b']))[0], 'not_found')
    },
  },
  {
    name: 'get: tells the storage’s time, which does not run backwards; no ids, no records',
    async run(rig) {
      const [handle, other] = await rig.pair()
      let last = 0
      for (const one of [handle, other, handle, other]) {
        const { now, records } = await one.get([])
        assert.deepEqual(records, [])
        // Two clients of one machine may differ by a rounding.
        assert.ok(now >= last - 1, `${now} after ${last}`)
        last = now
      }
      await enqueueNew(rig, handle, ['a'])
      await rig.wait(handle, rig.shortMs)
      const { now } = await other.get(['a'])
      assert.ok(now >= last + rig.shortMs - 1, 'time goes on')
    },
  },
  {
    name: 'get: what one handle was answered the other sees at once',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (let round = 0; round < 10; round++) {
        const id = `round ${round}`
        const [one, two] = round % 2 === 0 ? [handle, other] : [other, handle]
        const job = await begin(rig, one, id)
        assert.equal((await two.get([id])).records[0]?.generation, job.generation)
        assert.equal(await settleOne(two, job, complete(`result ${round}`, longMs)), 'settled')
        const record = (await one.get([id])).records[0]
        assert.equal(record?.state === 'completed' && record.result, `result ${round}`)
      }
    },
  },
]
