/** Files that were damaged: what is damaged is named, all else survives. */

import { appendFileSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { nodeFileSystem } from '../../storages/file/file-system.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { LineBuffer } from '../../storages/file/lines.ts'
import { namesIn, onlyFolder, promptFileSystem } from './support/faulty-fs.ts'
import { enqueue, item, names, states, turns, until, warningsOf, work } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

/** A folder with ten queued jobs in one log. */
async function tenJobs(t: Test) {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const ids = names('job', 10)
  const handle = await new FileStorage({ basePath }).open('q')
  for (const id of ids) await enqueue(handle, [id])
  await handle.close()
  return { basePath, ids, log: path.join(onlyFolder(basePath), '0000000001.log') }
}

/** Opens anew: the states of the ids, and what was warned of. */
async function reopen(t: Test, basePath: string, ids: readonly string[]) {
  const handle = await new FileStorage({ basePath }).open('q')
  t.teardown(() => handle.close())
  const warnings = warningsOf(handle)
  await turns()
  return { handle, warnings, states: await states(handle, ids) }
}

t.test('a torn tail is passed over, and does not spoil what is appended after it', async (t) => {
  const { basePath, ids, log } = await tenJobs(t)
  truncateSync(log, readFileSync(log).length - 20)
  const first = await reopen(t, basePath, ids)
  t.strictSame(first.states, [...ids.slice(0, 9).map(() => 'queued'), 'absent'])
  t.strictSame(first.warnings, [], 'an unfinished line may be just being written')
  t.strictSame(await enqueue(first.handle, ['job-9', 'more']), ['created', 'created'])
  const second = await reopen(t, basePath, [...ids, 'more'])
  t.strictSame(new Set(second.states), new Set(['queued']))
  t.equal(second.warnings.length, 1, 'the torn line alone is damage')
  t.match(second.warnings[0], { code: 'FILE_DAMAGED', detail: { path: log, id: 'job-9' } })
  t.match(second.warnings[0]?.message, /"job-9"/, 'it is named')
})

t.test('a line that lacks nothing but its newline never counts, not even when the next append ends it', async (t) => {
  const { basePath, ids, log } = await tenJobs(t)
  const ghost = new LineBuffer(1)
  ghost.add('K\t1700000000000\tjob-1\tnonce')
  appendFileSync(log, ghost.bytes.subarray(0, ghost.length - 1))
  const { handle, states: found } = await reopen(t, basePath, ids)
  t.strictSame(new Set(found), new Set(['queued']), 'it may be just being written')
  t.strictSame(await enqueue(handle, ['job-1', 'more']), ['exists', 'created'])
  const second = await reopen(t, basePath, [...ids, 'more'])
  t.strictSame(new Set(second.states), new Set(['queued']), 'what was answered stays so')
  t.match(second.warnings, [{ code: 'FILE_DAMAGED' }])
})

t.test('a flipped byte costs the line it is in, wherever it is', async (t) => {
  const { basePath, ids, log } = await tenJobs(t)
  const whole = readFileSync(log)
  let lineStart = 0
  for (;;) {
    const lineEnd = whole.indexOf(0x0a, lineStart)
    if (lineEnd < 0) break
    for (const at of [lineStart, lineStart + 5, (lineStart + lineEnd) >> 1, lineEnd - 1]) {
      if (at < lineStart || at >= lineEnd) continue
      const damaged = Buffer.from(whole)
      damaged[at] = (damaged[at] as number) ^ 0x01
      writeFileSync(log, damaged)
      const handle = await new FileStorage({ basePath, durability: 'os' }).open('q')
      const warnings = warningsOf(handle)
      await turns()
      const missing = (await states(handle, ids)).filter((state) => state === 'absent').length
      const text = whole.toString('utf8', lineStart, lineEnd)
      if (missing !== (text.includes('\tjob-') ? 1 : 0)) t.fail(`byte ${at}: ${missing} jobs are missing`)
      if (warnings.length !== 1) t.fail(`byte ${at}: ${warnings.length} warnings`)
      await handle.close()
    }
    lineStart = lineEnd + 1
  }
  t.pass('each costs one line, and is named')
})

t.test('a newline that was flipped glues two lines: both are named, the others survive', async (t) => {
  const { basePath, ids, log } = await tenJobs(t)
  const bytes = readFileSync(log)
  const job4 = bytes.indexOf('\tjob-4\t')
  bytes[bytes.indexOf(0x0a, job4)] = 0x20
  // Between two appends there are two newlines: both must go.
  bytes[bytes.indexOf(0x0a, job4)] = 0x20
  writeFileSync(log, bytes)
  const { states: found, warnings } = await reopen(t, basePath, ids)
  t.strictSame(
    found,
    ids.map((id) => (id === 'job-4' || id === 'job-5' ? 'absent' : 'queued')),
  )
  t.equal(warnings.length, 1)
})

t.test('garbage lines, zeros, and lines of another file', async (t) => {
  const { basePath, ids, log } = await tenJobs(t)
  const foreign = new LineBuffer(7)
  foreign.add('K\t1700000000000\tjob-1\tnonce')
  appendFileSync(log, 'garbage\n\0\0\0\0\0\0\0\0\0\0\n')
  appendFileSync(log, foreign.bytes)
  appendFileSync(log, Buffer.from([0xff, 0xfe, 0x0a, 0x0a, 0x0a, 0x80]))
  const { handle, states: found, warnings } = await reopen(t, basePath, ids)
  t.strictSame(new Set(found), new Set(['queued']), 'a line that belongs to another file cancels nothing')
  t.equal(warnings.length, 4)
  t.strictSame(await enqueue(handle, ['more']), ['created'])
  t.strictSame((await work(handle, 20)).length, 11)
})

t.test('a line of this format that says nothing known is named, too', async (t) => {
  const { basePath, ids, log } = await tenJobs(t)
  const lines = new LineBuffer(1)
  for (const text of ['E\t1\tjob-x', 'Q', 'S\tnow\tjob-1\tg\tc\t1\t', 'H\telse\t1']) lines.add(text)
  appendFileSync(log, lines.bytes)
  const { states: found, warnings } = await reopen(t, basePath, ids)
  t.strictSame(new Set(found), new Set(['queued']))
  t.equal(warnings.length, 4)
})

t.test('a log of zero length', async (t) => {
  const { basePath, ids, log } = await tenJobs(t)
  truncateSync(log, 0)
  const { handle, states: found, warnings } = await reopen(t, basePath, ids)
  t.strictSame(new Set(found), new Set(['absent']))
  t.match(warnings, [{ code: 'FILE_LOG_EMPTY', detail: { path: log } }], 'no silent drop')
  t.strictSame(await enqueue(handle, ids.slice(0, 1)), ['created'])
})

t.test('the log is cut short, or replaced, while it is open', async (t) => {
  const { basePath, ids, log } = await tenJobs(t)
  const { handle, warnings } = await reopen(t, basePath, ids)
  const whole = readFileSync(log)
  truncateSync(log, whole.indexOf('\tjob-5\t') - 24)
  const cut = await states(handle, ids)
  t.strictSame(
    cut,
    ids.map((_, index) => (index < 5 ? 'queued' : 'absent')),
    'what is there counts, for all processes',
  )
  rmSync(log)
  writeFileSync(log, whole, { mode: 0o600 })
  t.strictSame(new Set(await states(handle, ids)), new Set(['queued']))
  t.ok(warnings.filter(({ code }) => code === 'FILE_LOG_REPLACED').length >= 2, 'each is told of')
})

/** A folder in which ten jobs are in a snapshot and five more in the log after it. */
async function compacted(t: Test) {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const clock = new VirtualClock()
  const settings = { basePath, durability: 'os', compactionSlackBytes: 65_536, clock } as const
  const handle = await new FileStorage(settings, promptFileSystem).open('q')
  const ids = names('job', 10)
  await enqueue(handle, ids)
  const folder = onlyFolder(basePath)
  const snapshots = () => namesIn(folder).filter((name) => name.endsWith('.snap'))
  for (let n = 0; snapshots().length === 0; n++) {
    await handle.enqueue([{ ...item(`noise-${n}`, 'n'.repeat(5_000)), delayMs: 1 }])
    await handle.cancel([`noise-${n}`])
    await turns()
  }
  await turns(20)
  await enqueue(handle, names('late', 5))
  await handle.close()
  const [snapshot = ''] = snapshots()
  return { basePath, folder, clock, ids: [...ids, ...names('late', 5)], snapshot: path.join(folder, snapshot) }
}

async function reopenCompacted(t: Test, made: Awaited<ReturnType<typeof compacted>>) {
  const { basePath, clock, ids } = made
  const handle = await new FileStorage({ basePath, clock, compactionSlackBytes: 65_536 }).open('q')
  t.teardown(() => handle.close())
  const warnings = warningsOf(handle)
  await turns()
  return { handle, warnings, states: await states(handle, ids) }
}

t.test('a lost snapshot is made again from the log before it', async (t) => {
  const made = await compacted(t)
  rmSync(made.snapshot)
  const { handle, states: found } = await reopenCompacted(t, made)
  t.strictSame(new Set(found), new Set(['queued']), 'nothing is lost')
  t.strictSame(await enqueue(handle, ['more']), ['created'])
})

t.test('a folder that others change while it is listed: what seems lost is looked for again', async (t) => {
  // Once: the listing itself saw an old log go, and its snapshot not yet come. Twice and more: so did the next.
  for (const times of [1, 2, 6]) {
    const { basePath, clock, ids, snapshot } = await compacted(t)
    let lists = 0
    const fs = {
      ...nodeFileSystem,
      list: (folder: string) => {
        const found = nodeFileSystem.list(folder)
        if (++lists > times) return found
        return found.filter((name) => name !== '0000000001.log' && !snapshot.endsWith(name))
      },
    }
    const handle = await new FileStorage({ basePath, clock }, fs).open('q')
    const warnings = warningsOf(handle)
    await turns()
    t.strictSame(warnings, [])
    t.strictSame(new Set(await states(handle, ids)), new Set(['queued']), `${times} listings were wrong`)
    await handle.close()
  }
})

t.test('a damaged snapshot is made again from the log before it, and replaced soon', async (t) => {
  for (const damage of ['flip', 'truncate', 'empty'] as const) {
    const made = await compacted(t)
    const bytes = readFileSync(made.snapshot)
    if (damage === 'flip') bytes[bytes.indexOf('job-3')] = 0x58
    writeFileSync(
      made.snapshot,
      damage === 'flip' ? bytes : bytes.subarray(0, damage === 'empty' ? 0 : bytes.length >> 1),
    )
    const { handle, states: found, warnings } = await reopenCompacted(t, made)
    t.strictSame(new Set(found), new Set(['queued']), `${damage}: nothing is lost`)
    if (damage === 'flip') t.match(warnings, [{ code: 'FILE_SNAPSHOT_DAMAGED' }])
    await enqueue(handle, ['more'])
    if (damage === 'flip') {
      await until('a new snapshot is there', () =>
        namesIn(made.folder).some((name) => name.endsWith('.snap') && !made.snapshot.endsWith(name)),
      )
    }
  }
})

t.test('a damaged snapshot without the log before it loses what is damaged, and says so', async (t) => {
  const made = await compacted(t)
  rmSync(path.join(made.folder, '0000000001.log'))
  const bytes = readFileSync(made.snapshot)
  bytes[bytes.indexOf('\tjob-3\t') + 1] = 0x4a
  writeFileSync(made.snapshot, bytes)
  const { states: found, warnings } = await reopenCompacted(t, made)
  t.strictSame(
    found,
    made.ids.map((id) => (id === 'job-3' ? 'absent' : 'queued')),
  )
  t.match(warnings.map(({ code }) => code).sort(), ['FILE_DAMAGED', 'FILE_SNAPSHOT_LOST'])
  t.match(
    warnings.find(({ code }) => code === 'FILE_DAMAGED')?.message,
    /"Job-3"/,
    'it is named, as far as it can be read',
  )
})

t.test('snapshot and older log are lost: the newer log is all there is, and it is said', async (t) => {
  const made = await compacted(t)
  rmSync(path.join(made.folder, '0000000001.log'))
  rmSync(made.snapshot)
  const { handle, states: found, warnings } = await reopenCompacted(t, made)
  t.strictSame(
    found,
    made.ids.map((id) => (id.startsWith('late') ? 'queued' : 'absent')),
  )
  t.match(warnings, [{ code: 'FILE_SNAPSHOT_LOST' }])
  t.strictSame(await enqueue(handle, ['job-1']), ['created'])
})

t.test('the newest log is lost: the snapshot is what there is, and it is said', async (t) => {
  const made = await compacted(t)
  rmSync(path.join(made.folder, '0000000002.log'))
  const { states: found, warnings } = await reopenCompacted(t, made)
  t.strictSame(
    found,
    made.ids.map((id) => (id.startsWith('late') ? 'absent' : 'queued')),
  )
  t.match(warnings, [{ code: 'FILE_LOG_LOST' }])
})

t.test('a log or snapshot of a newer format is refused in words; an older one is read', async (t) => {
  for (const file of ['log', 'snapshot'] as const) {
    for (const version of [0, 1, 3]) {
      const made = await compacted(t)
      const epoch = 2
      const target = file === 'log' ? path.join(made.folder, '0000000002.log') : made.snapshot
      const bytes = readFileSync(target)
      const header = new LineBuffer(epoch)
      header.add(`H\taskonce\t${version}`)
      const start = bytes.indexOf('H\taskonce') - 8
      const end = bytes.indexOf(0x0a, start) + 1
      writeFileSync(target, Buffer.concat([bytes.subarray(0, start), header.bytes, bytes.subarray(end)]))
      const storage = new FileStorage({ basePath: made.basePath, clock: made.clock })
      if (version === 3) {
        const error = await storage.open('q').catch((error: unknown) => error)
        t.match(error, { name: 'StorageError', retryable: false, message: /format 3, written by a newer askonce/ })
        t.match((error as Error).message, /Upgrade/)
      } else {
        const handle = await storage.open('q')
        t.strictSame(new Set(await states(handle, made.ids)), new Set(['queued']))
        await handle.close()
      }
    }
  }
})

t.test('what write-file-atomic left behind is collected', async (t) => {
  const made = await compacted(t)
  const old = `${made.snapshot}.3928103912`
  const next = path.join(made.folder, '0000000003-00000.snap.17')
  const other = path.join(made.folder, 'notes.txt')
  for (const file of [old, next, other]) writeFileSync(file, 'x')
  await reopenCompacted(t, made)
  const left = namesIn(made.folder)
  t.notOk(left.includes(path.basename(old)), 'of a snapshot that is whole')
  t.ok(left.includes(path.basename(next)), 'what another process may be writing is left for a minute')
  t.ok(left.includes('notes.txt'), 'strangers are left alone')
})
