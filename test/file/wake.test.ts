/** Other processes' doings are noticed: by watching, and by looking where watching fails. */

import type { Test } from 'tap'
import t from 'tap'
import { complete } from '../../src/record.ts'
import type { Hint } from '../../src/storage.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { nodeFileSystem } from '../../storages/file/file-system.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { gated, systemError } from './support/faulty-fs.ts'
import { enqueue, hour, item, token, turns, until, warningsOf } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

/** Two storages on one folder, as two processes have it; the second has a clock that stands still: it cannot poll. */
async function pair(t: Test, fs = nodeFileSystem) {
  const { path: basePath, remove } = tempFolder()
  const clock = new VirtualClock(Date.now())
  const mine = await new FileStorage({ basePath }).open('q')
  const theirs = await new FileStorage({ basePath, clock }, fs).open('q')
  t.teardown(async () => {
    await mine.close()
    await theirs.close()
    remove()
  })
  return { mine, theirs, clock }
}

t.test('an enqueue, a completion, a cancellation in one process wake another', async (t) => {
  const { mine, theirs } = await pair(t)
  const hints: Hint[] = []
  theirs.watch((hint) => hints.push(hint))
  const has = (type: Hint['type']) => () => hints.some((hint) => hint.type === type)
  await enqueue(mine, ['a'])
  await until('it is due', has('due'))
  const { jobs } = await mine.claim({ generation: token(), leaseMs: 1_000, limit: 1 })
  const generation = jobs[0]?.generation ?? ''
  await mine.settle([{ id: 'a', generation, verdict: complete('r', hour) }], null)
  await until('it is settled', has('settled'))
  t.match(
    hints.find((hint) => hint.type === 'settled'),
    { id: 'a' },
  )
  await enqueue(mine, ['b'])
  await mine.cancel(['b'])
  await until('it is cancelled', has('cancelled'))
  hints.length = 0
  await mine.enqueue([{ ...item('c'), delayMs: 5_000 }])
  await until('it will be due', has('due'))
  const due = hints.find((hint) => hint.type === 'due')
  t.ok(due?.type === 'due' && due.inMs > 0, 'later')
})

t.test('a record that may not be on disk yet is not handed out by a hint', async (t) => {
  const { mine, theirs } = await pair(t)
  const hints: Hint[] = []
  theirs.watch((hint) => hints.push(hint))
  await enqueue(mine, ['a'])
  const { jobs } = await mine.claim({ generation: token(), leaseMs: 1_000, limit: 1 })
  const own: Hint[] = []
  mine.watch((hint) => own.push(hint))
  await mine.settle([{ id: 'a', generation: jobs[0]?.generation ?? '', verdict: complete('r', hour) }], null)
  t.match(own, [{ type: 'settled', record: { state: 'completed', result: 'r' } }], 'one that is on disk is')
  await until('it is settled', () => hints.some((hint) => hint.type === 'settled'))
  const seen = hints.find((hint) => hint.type === 'settled')
  t.notOk(seen?.type === 'settled' && seen.record !== undefined)
  t.match((await theirs.get(['a'])).records, [{ state: 'completed', result: 'r' }])
})

t.test('where a folder cannot be watched it is looked at, every 50 ms', async (t) => {
  const fs = gated((call) => {
    if (call === 'watch') throw systemError('ENOSPC', 'inotify_add_watch')
  })
  const { mine, theirs, clock } = await pair(t, fs)
  const hints: Hint[] = []
  theirs.watch((hint) => hints.push(hint))
  t.match(hints, [{ type: 'warning', code: 'FILE_NOT_WATCHED' }])
  await enqueue(mine, ['a'])
  await turns(20)
  t.equal(hints.length, 1, 'nothing tells')
  await clock.advance(50)
  await turns(20)
  t.match(hints[1], { type: 'due' })
})

t.test('a watch that breaks, and one that is deaf', async (t) => {
  let fail: ((error: unknown) => void) | null = null
  const fs = {
    ...nodeFileSystem,
    watch: (_path: string, _changed: () => void, failed: (error: unknown) => void) => {
      fail = failed
      return { close: () => {} }
    },
  }
  const { mine, theirs, clock } = await pair(t, fs)
  const hints: Hint[] = []
  theirs.watch((hint) => hints.push(hint))
  const seenAfter = async (ms: number) => {
    hints.length = 0
    await enqueue(mine, [token()])
    await clock.advance(ms)
    await turns(20)
    return hints.some((hint) => hint.type === 'due')
  }
  for (let round = 0; round < 3; round++) t.ok(await seenAfter(1_000), 'it is looked at every second in any case')
  await clock.advance(1_000)
  t.ok(await seenAfter(50), 'a deaf watch is not relied on')
  const broken = fail as ((error: unknown) => void) | null
  broken?.(systemError('EMFILE', 'read'))
  t.match(hints.at(-1), { type: 'warning', code: 'FILE_NOT_WATCHED' })
  t.ok(await seenAfter(50))
})

t.test('watching ends with the last listener, and with the handle', async (t) => {
  let watches = 0
  const fs = {
    ...nodeFileSystem,
    watch: () => {
      watches++
      return { close: () => void watches-- }
    },
  }
  const { theirs, clock } = await pair(t, fs)
  t.equal(watches, 0, 'nobody listens: nothing is watched')
  const first = theirs.watch(() => {})
  const second = theirs.watch(() => {})
  t.equal(watches, 1)
  first()
  first()
  t.equal(watches, 1)
  second()
  t.equal(watches, 0)
  t.equal(clock.pending.all, 0, 'no timer is left')
  warningsOf(theirs)
  t.equal(watches, 1)
  t.equal(clock.pending.ref, 0, 'no timer keeps a process alive')
  await theirs.close()
  t.equal(watches, 0)
  t.equal(clock.pending.all, 0)
})
