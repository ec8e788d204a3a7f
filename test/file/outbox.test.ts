/** Outboxes, marks and refreshes when several processes have the folder: who gets what, who is told, what it costs. */

import { appendFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Test } from 'tap'
import t from 'tap'
import { complete } from '../../src/record.ts'
import type { CollectAnswer, Hint, StorageHandle } from '../../src/storage.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { entryText } from '../../storages/file/entries.ts'
import type { FileSystem } from '../../storages/file/file-system.ts'
import { nodeFileSystem } from '../../storages/file/file-system.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { LineBuffer } from '../../storages/file/lines.ts'
import { gated, onlyFolder, systemError } from './support/faulty-fs.ts'
import { enqueue, hour, item, names, token, turns, until } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

/** Handles of several storages on one folder, as several processes have it, and a clock for all of them. */
async function processes(t: Test, fileSystems: readonly FileSystem[]) {
  const { path: basePath, remove } = tempFolder(true)
  const clock = new VirtualClock()
  const handles = await Promise.all(
    fileSystems.map((fs) => new FileStorage({ basePath, durability: 'os', clock }, fs).open('q')),
  )
  t.teardown(async () => {
    for (const handle of handles) await handle.close()
    remove()
  })
  return { handles, clock, log: () => path.join(onlyFolder(basePath), '0000000001.log') }
}

/** Completes jobs of these ids, with rows to be delivered. */
async function post(handle: StorageHandle, ids: readonly string[], ttlMs = hour, rowsTtlMs = hour): Promise<void> {
  await enqueue(handle, ids)
  const generation = token()
  const { jobs } = await handle.claim({ generation, leaseMs: 1_000, limit: ids.length, ids })
  const outbox = { rows: 'rows', ttlMs: rowsTtlMs }
  const settlements = jobs.map(({ spec: { id } }) => ({ id, generation, verdict: complete('r', ttlMs, outbox) }))
  await handle.settle(settlements, null)
}

async function collect(handle: StorageHandle, limit: number, generation = token()): Promise<CollectAnswer> {
  const { collected } = await handle.deliver([], { generation, leaseMs: 10_000, limit })
  return collected as CollectAnswer
}

const idsOf = ({ records }: CollectAnswer): string[] => records.map(({ spec }) => spec.id)

/** The lines with which another process takes outboxes, at this very moment. */
function takenByAnother(ids: readonly string[], now: number): Buffer {
  const lines = new LineBuffer(1)
  lines.addBreak()
  for (const id of ids) {
    const command = { type: 'collect', generation: 'another', leaseMs: 10_000, graceMs: 0 } as const
    lines.add(entryText({ kind: 'command', id, command, now }, token))
  }
  return Buffer.from(lines.bytes)
}

t.test('what another process was faster to collect is replaced by others', async (t) => {
  let before: (() => void) | null = null
  const fs = gated((call) => {
    if (call !== 'append' || before === null) return
    const run = before
    before = null
    run()
  })
  const { handles, clock, log } = await processes(t, [fs])
  const [handle] = handles as [StorageHandle]
  const ids = names('job', 10)
  await post(handle, ids)
  before = () => {
    appendFileSync(log(), takenByAnother(['job-0', 'job-1', 'job-3'], clock.now()))
    // And once more, when it has looked for others.
    before = () => appendFileSync(log(), takenByAnother(['job-4'], clock.now()))
  }
  const got = await collect(handle, 4)
  t.strictSame(idsOf(got), ['job-2', 'job-5', 'job-6', 'job-7'])
  for (const { outbox } of got.records) t.match(outbox, { attempts: 1, at: clock.now() + 10_000 })
  t.strictSame(idsOf(await collect(handle, 10)), ['job-8', 'job-9'])
  t.match(await collect(handle, 10), { records: [], nextInMs: 10_000 }, 'until the first lease ends')
})

t.test('a collection that has brought something is answered, even if looking for more fails', async (t) => {
  let appends = 0
  let fault: ((append: number) => void) | null = null
  const fs = gated((call) => {
    if (call === 'append') fault?.(++appends)
  })
  const { handles, clock, log } = await processes(t, [fs])
  const [handle] = handles as [StorageHandle]
  await post(handle, names('job', 4))
  fault = (append) => {
    if (append > 1) throw systemError('EIO', 'write')
    appendFileSync(log(), takenByAnother(['job-0'], clock.now()))
  }
  t.strictSame(idsOf(await collect(handle, 2)), ['job-1'])
  await t.rejects(collect(handle, 2), { name: 'StorageError' })
  fault = null
  t.strictSame(idsOf(await collect(handle, 10)), ['job-2', 'job-3'])
})

t.test('processes that collect at once share what is due, each outbox once', async (t) => {
  const { handles } = await processes(t, [nodeFileSystem, nodeFileSystem, nodeFileSystem])
  const ids = names('job', 300)
  await post(handles[0] as StorageHandle, ids)
  const got: string[] = []
  for (let round = 0; round < 20 && got.length < ids.length; round++) {
    const answers = await Promise.all(handles.flatMap((handle) => [collect(handle, 7), collect(handle, 3)]))
    for (const answer of answers) got.push(...idsOf(answer))
  }
  t.strictSame(got.sort(), [...ids].sort())
})

t.test('deliveries and what is collected after them: what one call ends, the next of the turn may get', async (t) => {
  const { handles } = await processes(t, [nodeFileSystem])
  const [handle] = handles as [StorageHandle]
  await post(handle, ['a', 'b'])
  await collect(handle, 2, 'first')
  const end = (id: string, rows: string | null, generation = 'first') => ({ id, generation, rows, delayMs: 0 })
  const [ended, next] = await Promise.all([
    handle.deliver([end('a', 'left'), end('b', null), end('b', null), end('x', null)], null),
    handle.deliver([], { generation: 'second', leaseMs: 1_000, limit: 5 }),
  ])
  t.strictSame(ended, { answers: ['delivered', 'delivered', 'stale', 'stale'], collected: null })
  t.match(next.collected?.records, [{ spec: { id: 'a' }, outbox: { rows: 'left', attempts: 2, generation: 'second' } }])
  t.strictSame((await handle.deliver([end('a', null)], null)).answers, ['stale'], 'fenced')
  const bytes = new Uint8Array([9, 10, 0])
  const { answers } = await handle.deliver([{ id: 'a', generation: 'second', rows: bytes, delayMs: 0 }], null)
  t.strictSame(answers, ['delivered'])
  t.strictSame((await collect(handle, 1)).records[0]?.outbox?.rows, bytes, 'bytes stay bytes')
})

t.test('outboxes that are given up stand in the way of none, and go', async (t) => {
  const { handles, clock } = await processes(t, [nodeFileSystem, nodeFileSystem])
  const [mine, theirs] = handles as [StorageHandle, StorageHandle]
  await post(mine, names('old', 100), 1_000, 2_000)
  await clock.advance(1_500)
  t.equal((await collect(theirs, 1)).records.length, 1, 'past its TTL, but its rows are not')
  await clock.advance(10)
  await post(mine, names('new', 5))
  await clock.advance(490)
  const got = await collect(theirs, 3)
  t.strictSame(idsOf(got), ['new-0', 'new-1', 'new-2'])
  t.equal(got.nextInMs, 0)
  t.match(await mine.stats(), { completed: 6 }, 'but for the one that is leased, they are gone in every process')
  t.strictSame(await mine.sweep(100), 1)
  t.strictSame(idsOf(await collect(mine, 10)), ['new-3', 'new-4'])
})

t.test('others are told of rows to be delivered, and of nothing that nobody waits for', async (t) => {
  const { path: basePath, remove } = tempFolder()
  const mine = await new FileStorage({ basePath }).open('q')
  const theirs = await new FileStorage({ basePath }).open('q')
  t.teardown(async () => {
    await mine.close()
    await theirs.close()
    remove()
  })
  const hints: Hint[] = []
  theirs.watch((hint) => hints.push(hint))
  const outboxes = () => hints.filter((hint) => hint.type === 'outbox')
  const settled = () => hints.filter((hint) => hint.type === 'settled').length
  await post(mine, ['a'])
  await until('rows are posted', () => outboxes().length > 0 && settled() > 0)
  t.strictSame(outboxes(), [{ type: 'outbox', inMs: 0 }])
  hints.length = 0
  t.equal((await mine.mark([{ id: 'a', name: 'mail', token: 't' }]))[0], 'marked')
  t.equal((await collect(mine, 1, 'first')).records.length, 1)
  const [answer] = (await mine.deliver([{ id: 'a', generation: 'first', rows: 'left', delayMs: 60_000 }], null)).answers
  t.equal(answer, 'delivered')
  await until('some are left', () => outboxes().length > 0)
  const [later] = outboxes()
  t.ok(later?.type === 'outbox' && later.inMs > 30_000 && later.inMs <= 60_000, 'for later')
  t.strictSame(hints, [later], 'and that is all')
  hints.length = 0
  await mine.touch([{ id: 'a', ttlMs: 2 * hour }])
  await enqueue(mine, ['b'])
  await until('the next is due', () => hints.some(({ type }) => type === 'due'))
  t.strictSame(outboxes(), [], 'what is only kept longer has no news for relays')
})

t.test('who had to read a folder anew is told to look, if there are rows', async (t) => {
  const { handles, log } = await processes(t, [nodeFileSystem, nodeFileSystem])
  const [mine, theirs] = handles as [StorageHandle, StorageHandle]
  const reread = async () => {
    const hints: Hint[] = []
    const unwatch = theirs.watch((hint) => hints.push(hint))
    const bytes = readFileSync(log())
    rmSync(log())
    writeFileSync(log(), bytes)
    await theirs.get(['a'])
    await turns()
    unwatch()
    return hints.filter(({ type }) => type !== 'warning')
  }
  t.strictSame(await reread(), [{ type: 'due', inMs: 0 }])
  await post(mine, ['a'])
  await theirs.get(['a'])
  t.strictSame(await reread(), [
    { type: 'due', inMs: 0 },
    { type: 'outbox', inMs: 0 },
  ])
})

t.test('a name is marked for one of many callers in several processes', async (t) => {
  const { handles } = await processes(t, [nodeFileSystem, nodeFileSystem, nodeFileSystem])
  await enqueue(handles[0] as StorageHandle, ['a'])
  const marks = Array.from({ length: 200 }, () => ({ id: 'a', name: 'mail', token: token() }))
  const answers = await Promise.all(
    marks.map(async (mark, index) => (await (handles[index % 3] as StorageHandle).mark([mark]))[0]),
  )
  t.equal(answers.filter((answer) => answer === 'marked').length, 1)
  t.equal(answers.filter((answer) => answer === 'taken').length, 199)
  const winner = marks[answers.indexOf('marked')]!
  for (const handle of handles) t.strictSame(await handle.mark([winner]), ['marked'], 'repeated by who was first')
})

t.test('an id is refreshed for one of many callers in several processes; its result stays readable', async (t) => {
  const { handles } = await processes(t, [nodeFileSystem, nodeFileSystem, nodeFileSystem])
  const [first] = handles as [StorageHandle]
  await enqueue(first, ['a'])
  await first.claim({ generation: 'g', leaseMs: 1_000, limit: 1 })
  await first.settle([{ id: 'a', generation: 'g', verdict: complete('old', hour) }], null)
  const answers = await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const handle = handles[index % 3] as StorageHandle
      return (await handle.enqueue([{ ...item('a'), refresh: true }])).answers[0]
    }),
  )
  t.equal(answers.filter((answer) => answer?.outcome === 'created').length, 1)
  for (const handle of handles) {
    t.match((await handle.get(['a'])).records, [{ state: 'queued', kept: { result: 'old' } }])
  }
})

t.test('what deliveries cost: the calls of a turn share an append, claims and collections another', async (t) => {
  const calls = new Map<string, number>()
  const fs = gated((call) => calls.set(call, (calls.get(call) ?? 0) + 1))
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const handle = await new FileStorage({ basePath, durability: 'fsync' }, fs).open('q')
  const ids = names('job', 64)
  await post(handle, ids)
  await enqueue(handle, ['queued'])
  await collect(handle, 32, 'first')
  calls.clear()
  const [, { collected }, { jobs }] = await Promise.all([
    handle.mark(ids.map((id) => ({ id, name: 'mail', token: token() }))),
    handle.deliver(
      ids.slice(0, 32).map((id) => ({ id, generation: 'first', rows: null, delayMs: 0 })),
      { generation: 'second', leaseMs: 1_000, limit: 100 },
    ),
    handle.claim({ generation: token(), leaseMs: 1_000, limit: 1 }),
  ])
  t.equal(collected?.records.length, 32)
  t.equal(jobs.length, 1)
  t.strictSame(Object.fromEntries(calls), { status: 3, append: 2, syncData: 1 })
  calls.clear()
  await handle.mark(ids.map((id) => ({ id, name: 'mail', token: token() })))
  t.match(await collect(handle, 10), { records: [] })
  t.strictSame(Object.fromEntries(calls), { status: 2 }, 'what is taken already writes nothing')
  await handle.close()
})
