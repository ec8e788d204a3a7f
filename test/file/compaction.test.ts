/** Compaction: beside writers that don't stop, bounded on disk, finished by whoever is left. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { complete } from '../../src/record.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { nodeFileSystem } from '../../storages/file/file-system.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { typescript } from '../support/typescript.ts'
import { bytesIn, gated, namesIn, onlyFolder, promptFileSystem, systemError } from './support/faulty-fs.ts'
import { enqueue, item, names, states, token, turns, until, warningsOf, work } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

function newestEpoch(basePath: string): number {
  return Math.max(...namesIn(onlyFolder(basePath)).map((name) => Number.parseInt(name, 10)))
}

t.test('appending while two other processes compact, thousands of times', { timeout: 240_000 }, async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const handle = await new FileStorage({ basePath, durability: 'os' }).open('q')
  const other = await new FileStorage({ basePath, durability: 'os' }).open('q')
  const warnings = [warningsOf(handle), warningsOf(other)]
  const file = fileURLToPath(new URL('support/compactor.ts', import.meta.url))
  const compactors = [1, 2].map(() => {
    return spawn(process.execPath, [...typescript, file, basePath, 'q', '1500'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
  })
  let running = compactors.length
  let made = 0
  for (const compactor of compactors) {
    compactor.stdout.on('data', (text: Buffer) => {
      made += Number(text)
    })
    void once(compactor, 'close').then(() => running--)
  }
  const acknowledged: string[] = []
  const results = new Map<string, string>()
  for (let round = 0; running > 0; round++) {
    const id = `job-${round}`
    await enqueue(round % 2 === 0 ? handle : other, [id])
    acknowledged.push(id)
    const { jobs } = await (round % 3 === 0 ? other : handle).claim({ generation: token(), leaseMs: 60_000, limit: 1 })
    if (jobs[0]?.spec.id !== id) t.fail(`round ${round}: claimed ${jobs[0]?.spec.id}`)
    const verdict = complete(`result ${round}`, 3_600_000)
    // A window of the last hundred stays; so compaction has something to write, but not ever more.
    const settlement = { id, generation: jobs[0]?.generation ?? '', verdict }
    const { answers } = await (round % 5 === 0 ? handle : other).settle([settlement], null)
    if (answers[0] !== 'settled') t.fail(`round ${round}: ${answers[0]}`)
    results.set(id, `result ${round}`)
    if (round >= 100) {
      const [answer] = await handle.touch([{ id: `job-${round - 100}`, ttlMs: 1 }])
      if (answer !== 'updated') t.fail(`round ${round}: the job of a hundred rounds ago is ${answer}`)
      results.delete(`job-${round - 100}`)
    }
  }
  t.strictSame(warnings, [[], []], 'nobody saw anything amiss')
  t.strictSame(
    compactors.map(({ exitCode }) => exitCode),
    [0, 0],
  )
  t.ok(made >= 1_500, `${made} compactions were made, the newest epoch is ${newestEpoch(basePath)}`)
  t.ok(acknowledged.length > 500, `${acknowledged.length} jobs went through meanwhile`)
  const fresh = await new FileStorage({ basePath }).open('q')
  for (const seen of [fresh, handle, other]) {
    const { records } = await seen.get([...results.keys()])
    const found = records.map((record) => (record?.state === 'completed' ? record.result : record?.state))
    t.strictSame(found, [...results.values()])
  }
  for (const open of [fresh, handle, other]) await open.close()
})

t.test('disk use and memory follow what lives', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const clock = new VirtualClock()
  const slack = 256 * 1024
  const settings = { basePath, durability: 'os', clock, compactionSlackBytes: slack } as const
  const storage = new FileStorage(settings, promptFileSystem)
  const handle = await storage.open('q')
  let most = 0
  for (let round = 0; round < 60; round++) {
    const ids = names(`job-${round}`, 500)
    await handle.enqueue(ids.map((id) => item(id, 'p'.repeat(300), 1_000)))
    await work(handle, 500, 1_000)
    await clock.advance(1_000)
    while ((await handle.sweep(1_000)) > 0) await turns(1)
    await turns(10)
    most = Math.max(most, bytesIn(onlyFolder(basePath)))
  }
  const lived = 500 * 900
  t.ok(most < 2 * (slack + 3 * lived), `at most ${most} bytes on disk, of 30,000 jobs with 300 bytes`)
  const { queued, completed } = await handle.stats()
  t.strictSame({ queued, completed }, { queued: 0, completed: 0 })
  for (let round = 0; round < 4; round++) {
    await handle.enqueue(names(`bulk-${round}`, 1_000).map((id) => item(id, 'p'.repeat(1_000))))
  }
  await turns(10)
  for (let round = 0; round < 4; round++) await handle.cancel(names(`bulk-${round}`, 1_000))
  await until('compaction has ended', async () => {
    await handle.sweep(1)
    return bytesIn(onlyFolder(basePath)) < 11 * 1024 * 1024
  })
  await handle.close()
})

t.test('a full disk is freed of what has ended, though no call writes any more', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const clock = new VirtualClock()
  let room = Number.POSITIVE_INFINITY
  let isNextLogTooMuch = false
  const limited = gated((call, _, bytes) => {
    if (call === 'openLog' && isNextLogTooMuch) room = bytesIn(onlyFolder(basePath))
    if (call !== 'append' && call !== 'writeAtomically') return
    if (bytesIn(onlyFolder(basePath)) + (bytes?.length ?? 0) > room) throw systemError('ENOSPC', call)
  }, promptFileSystem)
  let write = (): void => {}
  const writing = new Promise<void>((resolve) => {
    write = resolve
  })
  const fs = {
    ...limited,
    writeAtomically: (...given: [string, Buffer]) => writing.then(() => limited.writeAtomically(...given)),
  }
  const settings = { basePath, durability: 'os', compactionSlackBytes: 65_536, clock } as const
  const handle = await new FileStorage(settings, fs).open('q')
  await handle.enqueue(names('job', 60).map((id) => item(id, 'p', 1_000)))
  const { jobs } = await handle.claim({ generation: token(), leaseMs: 1_000, limit: 60 })
  const verdict = complete('x'.repeat(2_000), 1_000)
  await handle.settle(
    jobs.map(({ spec, generation }) => ({ id: spec.id, generation, verdict })),
    null,
  )
  await clock.advance(950)
  while (newestEpoch(basePath) < 2) {
    await enqueue(handle, ['other'], 'x'.repeat(5_000))
    await handle.cancel(['other'])
  }
  room = 0
  await t.rejects(enqueue(handle, ['refused']), /ENOSPC/, 'nothing can be removed yet: that has been tried')
  room = Number.POSITIVE_INFINITY
  write()
  await until('there is a snapshot', () => namesIn(onlyFolder(basePath)).length === 3)
  isNextLogTooMuch = true
  await clock.advance(60)
  for (let round = 0; round < 20; round++) {
    await handle.sweep(1_000)
    await turns(20)
    await clock.advance(100)
    isNextLogTooMuch = false
  }
  t.ok(bytesIn(onlyFolder(basePath)) < 8_000, `${bytesIn(onlyFolder(basePath))} of ${room} bytes are taken`)
  await handle.close()
})

t.test('a handful of files, whatever happens', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const settings = { basePath, durability: 'os', compactionSlackBytes: 65_536 } as const
  const handle = await new FileStorage(settings, promptFileSystem).open('q')
  for (let round = 0; round < 200; round++) {
    await enqueue(handle, [`job-${round}`], 'x'.repeat(5_000))
    await work(handle, 1)
    const files = namesIn(onlyFolder(basePath))
    if (files.length > 6) t.fail(`round ${round}: ${files.join(' ')}`)
  }
  await handle.close()
  const files = namesIn(onlyFolder(basePath))
  t.ok(newestEpoch(basePath) > 4, `it was compacted ${newestEpoch(basePath) - 1} times`)
  t.equal(files.length, 4, `two epochs are kept: ${files.join(' ')}`)
})

t.test('a process that dies of making the snapshot is followed by another', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const clock = new VirtualClock()
  const settings = { basePath, durability: 'os', compactionSlackBytes: 65_536, clock } as const
  const never = { ...nodeFileSystem, writeAtomically: () => new Promise<void>(() => {}) }
  const dead = await new FileStorage(settings, never).open('q')
  const alive = await new FileStorage(settings).open('q')
  const snapshots = () => namesIn(onlyFolder(basePath)).filter((name) => name.endsWith('.snap'))
  const churn = async (handle: typeof dead, prefix: string) => {
    for (const id of names(prefix, 60)) {
      await enqueue(handle, [id], 'x'.repeat(2_000))
      await handle.cancel([id])
    }
  }
  await enqueue(dead, ['kept'])
  await churn(dead, 'a')
  t.equal(newestEpoch(basePath), 2, 'the log was sealed')
  await churn(alive, 'b')
  t.strictSame(snapshots(), [], 'the other may still be at it')
  for (let round = 0; round < 40 && snapshots().length === 0; round++) {
    await clock.advance(1_000)
    await churn(alive, `c-${round}`)
    await turns(10)
  }
  t.not(snapshots().length, 0, 'after a while it counts as dead')
  t.strictSame(await states(alive, ['kept']), ['queued'])
  await alive.close()
})

t.test('a process that slept through many epochs wakes up in the newest', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const sleeper = await new FileStorage({ basePath, durability: 'os' }).open('q')
  await enqueue(sleeper, ['early'])
  const busy = await new FileStorage({ basePath, durability: 'os', compactionSlackBytes: 65_536 }).open('q')
  for (let round = 0; newestEpoch(basePath) < 6; round++) {
    await enqueue(busy, [`job-${round}`], 'x'.repeat(5_000))
    await work(busy, 1)
    await turns(5)
  }
  t.notOk(namesIn(onlyFolder(basePath)).includes('0000000001.log'), 'its log is gone')
  t.strictSame(await states(sleeper, ['early']), ['completed'])
  t.strictSame(await enqueue(sleeper, ['early', 'late']), ['exists', 'created'])
  t.strictSame(await states(busy, ['late']), ['queued'])
  t.notOk(namesIn(onlyFolder(basePath)).includes('0000000001.log'), 'nor made again')
  await sleeper.close()
  await busy.close()
})
