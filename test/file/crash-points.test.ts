/** The process dies between any two calls on the file system, or in the middle of one. */

import assert from 'node:assert/strict'
import t from 'tap'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { Seeded } from '../support/seeded.ts'
import { crashing, namesIn, onlyFolder, VolatileDisk } from './support/faulty-fs.ts'
import type { Notes } from './support/script.ts'
import { finishAll, judge, runScript, stateOf } from './support/script.ts'
import { tempFolder } from './support/temp.ts'

const slack = 64 * 1024
const seed = 7

/** Runs the script until the storage dies; everything that failed must have failed of that. */
async function runUntilCrash(
  storage: FileStorage,
  notes: Notes,
  name: string,
  crashed: () => boolean,
  scriptSeed = seed,
): Promise<void> {
  try {
    const handle = await storage.open('q')
    await runScript(handle, notes, new Seeded(scriptSeed), name)
    await handle.close()
  } catch (error) {
    if (!crashed()) throw error
  }
}

async function callsOf(durability: 'fsync' | 'os'): Promise<number> {
  const { path, remove } = tempFolder(true)
  const { fs, calls } = crashing(null)
  const storage = new FileStorage({ basePath: path, durability, compactionSlackBytes: slack }, fs)
  await runUntilCrash(storage, new Map(), 'a', () => false)
  remove()
  return calls()
}

for (const durability of ['fsync', 'os'] as const) {
  t.test(`${durability}: a crash at each call, then a new process; and one that was there all the time`, async (t) => {
    const calls = await callsOf(durability)
    t.ok(calls > 40, `the script makes ${calls} calls that change something`)
    let compacted = 0
    for (let call = 1; call <= calls; call++) {
      for (const part of [0, 0.5, 1]) {
        const { path, remove } = tempFolder(true)
        const clock = new VirtualClock()
        const settings = { basePath: path, durability, compactionSlackBytes: slack, clock }
        const { fs, crashed } = crashing({ call, part })
        const notes: Notes = new Map()
        try {
          const witness = await new FileStorage(settings).open('q')
          await runUntilCrash(new FileStorage(settings, fs), notes, 'a', crashed)
          const fresh = await new FileStorage(settings).open('q')
          await judge(fresh, notes)
          assert.deepEqual(await stateOf(witness, notes), await stateOf(fresh, notes), 'two processes, one state')
          await clock.advance(60_000)
          await finishAll(fresh, notes, 'b')
          // And on: what the dead left must not stop the next compaction.
          await runScript(witness, new Map(), new Seeded(seed), 'c')
          assert.deepEqual(
            await stateOf(witness, notes),
            await stateOf(fresh, notes),
            'two processes, one state at last',
          )
          await witness.close()
          await fresh.close()
          if (namesIn(onlyFolder(path)).some((name) => name.endsWith('.snap'))) compacted++
        } catch (error) {
          t.fail(`crash at call ${call} of ${calls}, part ${part}`, { error })
          return
        } finally {
          remove()
        }
      }
    }
    t.equal(compacted, calls * 3, 'nothing acknowledged is lost, nothing is stuck, and the next compaction went well')
  })
}

t.test('a crash during the recovery from a crash', async (t) => {
  const random = new Seeded()
  const calls = await callsOf('fsync')
  for (let round = 0; round < 150; round++) {
    const { path, remove } = tempFolder(true)
    const clock = new VirtualClock()
    const settings = { basePath: path, durability: 'fsync', compactionSlackBytes: slack, clock } as const
    const notes: Notes = new Map()
    try {
      for (const name of ['a', 'b', 'c']) {
        const { fs, crashed } = crashing({ call: 1 + random.below(calls), part: random.next() })
        await runUntilCrash(new FileStorage(settings, fs), notes, name, crashed, random.below(1_000))
      }
      const fresh = await new FileStorage(settings).open('q')
      await judge(fresh, notes)
      await clock.advance(60_000)
      await finishAll(fresh, notes, 'd')
      await fresh.close()
    } catch (error) {
      t.fail(`round ${round}; replay with ASKONCE_SEED=${random.seed}`, { error })
      return
    } finally {
      remove()
    }
  }
  t.pass('nothing acknowledged is lost')
})

t.test('fsync: the power goes at any moment', async (t) => {
  const random = new Seeded()
  const calls = await callsOf('fsync')
  for (let round = 0; round < 300; round++) {
    const { path, remove } = tempFolder(true)
    const keep = tempFolder(true)
    const clock = new VirtualClock()
    const notes: Notes = new Map()
    const disk = new VolatileDisk(keep.path)
    try {
      for (const name of ['a', 'b', 'c']) {
        const { fs, crashed } = crashing({ call: 1 + random.below(calls + 10), part: random.next() }, disk.fs)
        const settings = { basePath: path, durability: 'fsync', compactionSlackBytes: slack, clock } as const
        const storage = new FileStorage(settings, fs)
        await runUntilCrash(storage, notes, name, crashed, random.below(1_000))
        disk.cutPower(random.next)
        const handle = await new FileStorage(settings).open('q')
        await judge(handle, notes)
        await handle.close()
        disk.settle()
      }
    } catch (error) {
      t.fail(`round ${round}; replay with ASKONCE_SEED=${random.seed}`, { error })
      return
    } finally {
      remove()
      keep.remove()
    }
  }
  t.pass('nothing acknowledged is lost')
})
