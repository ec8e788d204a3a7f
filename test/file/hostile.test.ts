/** Disks that are full, gone, forbidden or broken. */

import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import t from 'tap'
import { StorageError } from '../../src/errors.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { nodeFileSystem } from '../../storages/file/file-system.ts'
import { FileStorage } from '../../storages/file/index.ts'
import type { FileSystemCall } from './support/faulty-fs.ts'
import { gated, namesIn, onlyFolder, systemError } from './support/faulty-fs.ts'
import { enqueue, names, states, turns, until, warningsOf, work } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

/** A file system on which calls fail with the codes that the map says, until they are taken out. */
function failing() {
  const faults = new Map<FileSystemCall, string>()
  const fs = gated((call) => {
    const code = faults.get(call)
    if (code !== undefined) throw systemError(code, call)
  })
  return { fs, faults }
}

const remedies: [code: string, remedy: RegExp][] = [
  ['ENOSPC', /make room/],
  ['EDQUOT', /make room/],
  ['EROFS', /read-only/],
  ['EACCES', /[Pp]ermission/],
  ['EMFILE', /too many files/],
  ['ENFILE', /too many files/],
  ['EIO', /check the disk/],
]

for (const durability of ['fsync', 'os'] as const) {
  for (const [code, remedy] of remedies) {
    t.test(`${durability}: an append that fails with ${code} says so, and harms nothing`, async (t) => {
      const { path: basePath, remove } = tempFolder(true)
      t.teardown(remove)
      const { fs, faults } = failing()
      const handle = await new FileStorage({ basePath, durability }, fs).open('q')
      await enqueue(handle, ['before'])
      faults.set('append', code)
      const error = await handle.claim({ generation: 'g', leaseMs: 1_000, limit: 1 }).catch((error: unknown) => error)
      t.type(error, StorageError)
      t.match((error as Error).message, basePath, 'the path')
      t.match((error as Error).message, code)
      t.match((error as Error).message, remedy, 'what to do')
      t.equal((error as StorageError).retryable, true)
      await t.rejects(enqueue(handle, ['during']), StorageError)
      t.strictSame(await states(handle, ['before', 'during']), ['queued', 'absent'], 'reading goes on')
      t.strictSame(await enqueue(handle, ['before']), ['exists'], 'what needs no write goes on')
      faults.clear()
      t.strictSame(await enqueue(handle, ['during']), ['created'], 'no restart is needed')
      t.strictSame(await work(handle, 5), ['before', 'during'])
      await handle.close()
    })
  }

  t.test(`${durability}: a disk that takes half of a write, then nothing`, async (t) => {
    const { path: basePath, remove } = tempFolder(true)
    t.teardown(remove)
    let room = Number.POSITIVE_INFINITY
    const fs = {
      ...nodeFileSystem,
      append: (fd: number, bytes: Buffer) => {
        if (room === 0) throw systemError('ENOSPC', 'write')
        const written = nodeFileSystem.append(fd, bytes.subarray(0, Math.min(bytes.length, room)))
        room -= written
        return written
      },
    }
    const handle = await new FileStorage({ basePath, durability }, fs).open('q')
    const witness = await new FileStorage({ basePath, durability }).open('q')
    const ids = names('job', 10)
    for (let bytes = 1; bytes < 2_000; bytes += 97) {
      const round = ids.map((id) => `${bytes}-${id}`)
      room = bytes
      const outcomes = await Promise.all(
        round.map((id) => enqueue(handle, [id], 'y'.repeat(150)).catch(() => ['refused'])),
      )
      room = Number.POSITIVE_INFINITY
      const acknowledged = round.filter((_, index) => outcomes[index]?.[0] === 'created')
      t.ok(acknowledged.length < round.length, `${acknowledged.length} of ${round.length} found room`)
      t.strictSame(
        await states(witness, acknowledged),
        acknowledged.map(() => 'queued'),
        'another process sees them',
      )
      t.notOk((await Promise.all(round.map((id) => enqueue(handle, [id])))).flat().includes(''), 'all can be repeated')
      t.strictSame(
        await states(witness, round),
        round.map(() => 'queued'),
      )
    }
    await handle.close()
    await witness.close()
  })
}

t.test('a snapshot that finds no room is put off: nothing fails, and it is made once there is room', async (t) => {
  for (const how of ['ENOSPC', 'a short write']) {
    const { path: basePath, remove } = tempFolder(true)
    t.teardown(remove)
    const clock = new VirtualClock()
    let full = true
    const fs = {
      ...nodeFileSystem,
      writeAtomically: async (file: string, bytes: Buffer) => {
        if (full && how === 'ENOSPC') throw systemError('ENOSPC', 'write')
        // As write-file-atomic 7 does it: what write(2) took is all there is.
        await nodeFileSystem.writeAtomically(file, full ? bytes.subarray(0, bytes.length >> 1) : bytes)
      },
    }
    const handle = await new FileStorage({ basePath, durability: 'os', compactionSlackBytes: 65_536, clock }, fs).open(
      'q',
    )
    const warnings = warningsOf(handle)
    const ids = names('job', 200)
    const churn = async () => {
      for (const id of ids) {
        await enqueue(handle, [id], 'x'.repeat(2_000))
        await work(handle, 1, 1)
        await clock.advance(2)
      }
    }
    await churn()
    await until('the warning comes', () => warnings.some(({ code }) => code === 'FILE_NOT_COMPACTED'))
    await until('no half snapshot is left', () => !namesIn(onlyFolder(basePath)).some((name) => name.includes('.snap')))
    await enqueue(handle, ['kept'])
    full = false
    await until('a snapshot is there', async () => {
      await clock.advance(60_000)
      await enqueue(handle, ['another'])
      await handle.cancel(['another'])
      return namesIn(onlyFolder(basePath)).some((name) => name.endsWith('.snap'))
    })
    const fresh = await new FileStorage({ basePath, clock }).open('q')
    t.strictSame(await states(fresh, ['kept']), await states(handle, ['kept']), how)
    await handle.close()
    await fresh.close()
  }
})

t.test('a failed fdatasync is not believed when it succeeds the next time: all is written anew', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const { fs, faults } = failing()
  const storage = new FileStorage({ basePath, durability: 'fsync' }, fs)
  const handle = await storage.open('q')
  await enqueue(handle, ['before'])
  faults.set('syncData', 'EIO')
  await t.rejects(enqueue(handle, ['during']), /EIO/)
  faults.set('writeAtomically', 'EIO')
  faults.delete('syncData')
  await t.rejects(enqueue(handle, ['during']), StorageError, 'the log is not trusted, and no snapshot can be had')
  faults.clear()
  t.strictSame(await enqueue(handle, ['after']), ['created'])
  const files = namesIn(onlyFolder(basePath))
  t.ok(
    files.some((name) => name.endsWith('.snap')),
    `a snapshot was made: ${files.join(' ')}`,
  )
  t.strictSame(await states(handle, ['before', 'after']), ['queued', 'queued'])
  await handle.close()
})

t.test('a folder that is taken away and brought back', async (t) => {
  const { path: above, remove } = tempFolder(true)
  t.teardown(remove)
  const basePath = path.join(above, 'base')
  const storage = new FileStorage({ basePath, durability: 'os' })
  const handle = await storage.open('q')
  await enqueue(handle, ['before'])
  renameSync(basePath, `${basePath}.away`)
  const error = await enqueue(handle, ['during']).catch((error: unknown) => error)
  t.type(error, StorageError)
  t.match((error as Error).message, basePath)
  t.match((error as Error).message, /put it back/)
  t.strictSame(namesIn(above), ['base.away'], 'nothing is made in the place of what may be a mount')
  renameSync(`${basePath}.away`, basePath)
  t.strictSame(await states(handle, ['before', 'during']), ['queued', 'absent'])
  t.strictSame(await enqueue(handle, ['during']), ['created'], 'it goes on without a restart')
  rmSync(basePath, { recursive: true })
  await t.rejects(enqueue(handle, ['gone']), StorageError)
  const again = await storage.open('q')
  t.strictSame(await enqueue(again, ['before']), ['created'], 'opening again starts with an empty one')
  t.strictSame(await states(handle, ['before']), ['queued'], 'the older handle goes on with it')
  await handle.close()
  await again.close()
})

t.test('a file where a folder should be', async (t) => {
  const { path: above, remove } = tempFolder(true)
  t.teardown(remove)
  const basePath = path.join(above, 'base')
  writeFileSync(basePath, '')
  const storage = new FileStorage({ basePath })
  const error = await storage.open('q').catch((error: unknown) => error)
  t.type(error, StorageError)
  t.match((error as Error).message, basePath)
  t.match((error as Error).message, /A file is where a folder should be/)
  rmSync(basePath)
  const handle = await storage.open('q')
  t.strictSame(await enqueue(handle, ['a']), ['created'], 'a later open works')
  await handle.close()
})

t.test(
  'a folder that is forbidden',
  { skip: process.getuid?.() === 0 ? false : 'needs root to become another user' },
  async (t) => {
    const { path: above, remove } = tempFolder(true)
    t.teardown(remove)
    const basePath = path.join(above, 'base')
    mkdirSync(basePath, { mode: 0o700 })
    const storage = new FileStorage({ basePath })
    process.seteuid?.(65_534)
    const error = await storage.open('q').catch((error: unknown) => error)
    process.seteuid?.(0)
    t.type(error, StorageError)
    t.match((error as Error).message, /EACCES.*Permission is denied/)
    const handle = await storage.open('q')
    t.strictSame(await enqueue(handle, ['a']), ['created'])
    await handle.close()
  },
)

for (const code of ['EROFS', 'EMFILE', 'EACCES']) {
  t.test(`opening fails with ${code}; a later open works`, async (t) => {
    const { path: basePath, remove } = tempFolder(true)
    t.teardown(remove)
    const { fs, faults } = failing()
    const storage = new FileStorage({ basePath }, fs)
    faults.set('openLog', code)
    await t.rejects(storage.open('q'), { name: 'StorageError', message: new RegExp(code) })
    faults.clear()
    const handle = await storage.open('q')
    t.strictSame(await enqueue(handle, ['a']), ['created'])
    await handle.close()
  })
}

t.test('the next log cannot be opened: calls fail, and go on when it can', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const clock = new VirtualClock()
  const { fs, faults } = failing()
  const handle = await new FileStorage({ basePath, durability: 'os', compactionSlackBytes: 65_536, clock }, fs).open(
    'q',
  )
  const acknowledged: string[] = []
  faults.set('openLog', 'EMFILE')
  let failed = 0
  for (const id of names('job', 300)) {
    try {
      await enqueue(handle, [id], 'x'.repeat(2_000))
      acknowledged.push(id)
      await work(handle, 1)
    } catch (error) {
      t.match(error, { name: 'StorageError', message: /EMFILE/ })
      if (++failed === 3) faults.clear()
    }
  }
  t.equal(failed, 3, 'it failed until files could be opened again')
  await clock.advance(60_000)
  while ((await work(handle, 100)).length > 0) await turns(1)
  t.strictSame(new Set(await states(handle, acknowledged)), new Set(['completed']))
  await handle.close()
})
