/** fsync: whatever is answered rests on what is on disk, also where another process wrote it and never came to sync it. */

import path from 'node:path'
import t from 'tap'
import { Folder, folderName } from '../../storages/file/folder.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { Change, ReplicatedLog } from '../../storages/file/replicated-log.ts'
import { namesIn, VolatileDisk } from './support/faulty-fs.ts'
import { enqueue, item, states, token, turns, work } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

/** A disk, and a process on it that writes but never syncs. */
async function laggard(basePath: string, disk: VolatileDisk) {
  const fs = { ...disk.fs, syncData: () => new Promise<void>(() => {}), syncDataNow: () => {} }
  const folder = new Folder(fs, path.join(basePath, folderName('q')))
  folder.make(true)
  const log = await ReplicatedLog.load({ fs, folder, warn: () => {}, nonce: token, fsync: true })
  const now = Date.now()
  return {
    enqueue: (id: string) => {
      const { spec, payload, delayMs, rejectMismatch } = item(id)
      const command = { type: 'enqueue', spec, payload, delayMs, rejectMismatch, lease: null, inline: false } as const
      log.append([new Change({ kind: 'command', id, command, now })])
    },
    seal: () => log.seal(now),
  }
}

function world(t: { teardown: (end: () => void) => void }) {
  const base = tempFolder(true)
  const keep = tempFolder(true)
  t.teardown(base.remove)
  t.teardown(keep.remove)
  return { basePath: base.path, disk: new VolatileDisk(keep.path) }
}

t.test('a duplicate is answered when the record it met is on disk', async (t) => {
  const { basePath, disk } = world(t)
  const writer = await laggard(basePath, disk)
  const handle = await new FileStorage({ basePath }, disk.fs).open('q')
  writer.enqueue('a')
  t.strictSame(await enqueue(handle, ['a']), ['exists'])
  disk.cutPower(() => 0)
  const after = await new FileStorage({ basePath }).open('q')
  t.strictSame(await states(after, ['a']), ['queued'])
  await after.close()
})

for (const open of ['before', 'after'] as const) {
  t.test(`so it is when the log was sealed meanwhile (opened ${open} that)`, async (t) => {
    const { basePath, disk } = world(t)
    const writer = await laggard(basePath, disk)
    const early = open === 'before' ? await new FileStorage({ basePath }, disk.fs).open('q') : null
    writer.enqueue('a')
    writer.seal()
    const handle = early ?? (await new FileStorage({ basePath }, disk.fs).open('q'))
    t.strictSame(await work(handle, 1), ['a'])
    disk.cutPower(() => 0)
    const after = await new FileStorage({ basePath }).open('q')
    t.strictSame(await states(after, ['a']), ['completed'])
    await after.close()
  })
}

t.test('what a snapshot replaced may go, for the snapshot is on disk: with either durability', async (t) => {
  const { basePath, disk } = world(t)
  const settings = { basePath, durability: 'os', compactionSlackBytes: 65_536 } as const
  const handle = await new FileStorage(settings, disk.fs).open('q')
  await enqueue(handle, ['early'])
  const folder = path.join(basePath, folderName('q'))
  for (let round = 0; !namesIn(folder).includes('0000000003-00000.snap'); round++) {
    await enqueue(handle, [`noise-${round}`], 'x'.repeat(5_000))
    await handle.cancel([`noise-${round}`])
    await turns(3)
  }
  await turns(20)
  disk.cutPower(() => 0)
  const after = await new FileStorage({ basePath }).open('q')
  t.strictSame(await states(after, ['early']), ['queued'])
  await after.close()
})
