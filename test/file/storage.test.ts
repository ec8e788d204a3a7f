/** Options, names, modes, handles, and how a process ends. */

import { spawnSync } from 'node:child_process'
import { statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { InvalidArgumentError, StorageClosedError } from '../../src/errors.ts'
import { complete } from '../../src/record.ts'
import type { FileStorageOptions } from '../../storages/file/index.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { typescript } from '../support/typescript.ts'
import { gated, namesIn, onlyFolder } from './support/faulty-fs.ts'
import { enqueue, hour, item, names, states, token, turns, work } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

t.test('options', async (t) => {
  const wrong: [string, unknown][] = [
    ['options.basePath', { basePath: '' }],
    ['options.basePath', { basePath: 'a\0b' }],
    ['options.basePath', {}],
    ['options.basePath', { basePath: 7 }],
    ['options.durability', { basePath: 'x', durability: 'maybe' }],
    ['options.compactionSlackBytes', { basePath: 'x', compactionSlackBytes: 65_535 }],
    ['options.compactionSlackBytes', { basePath: 'x', compactionSlackBytes: Number.NaN }],
    ['options.compactionSlackBytes', { basePath: 'x', compactionSlackBytes: 1e5 + 0.5 }],
  ]
  for (const [field, options] of wrong) {
    try {
      new FileStorage(options as FileStorageOptions)
      t.fail(`${JSON.stringify(options)} was taken`)
    } catch (error) {
      t.type(error, InvalidArgumentError)
      t.equal((error as InvalidArgumentError).field, field)
    }
  }
  const storage = new FileStorage({ basePath: 'relative/folder' })
  t.equal(storage.basePath, path.resolve('relative/folder'), 'a later chdir changes nothing')
  t.match(storage.traits, { kind: 'file', durable: true, shared: true, push: true, ordering: 'fifo' })
})

t.test('ids and namespaces never become paths', async (t) => {
  const { path: above, remove } = tempFolder(true)
  t.teardown(remove)
  const basePath = path.join(above, 'a', 'base')
  const storage = new FileStorage({ basePath, durability: 'os' })
  const spaces = ['../../etc', '/', 'Q', 'q', '.', '..', 'con', '\0', '🦊'.repeat(30), 'x'.repeat(128)]
  const ids = [
    '../x',
    '/etc/passwd',
    'a\0b',
    '__proto__',
    'constructor',
    '\n\t\u0010',
    '🦊',
    'é',
    'é',
    '.'.repeat(1_024),
  ]
  const handles = await Promise.all(spaces.map((space) => storage.open(space)))
  for (const handle of handles) await handle.enqueue(ids.map((id) => item(id)))
  t.strictSame(namesIn(above), ['a'])
  t.equal(namesIn(basePath).length, spaces.length, 'one folder each, though file systems may not tell Q from q')
  for (const name of namesIn(basePath)) t.match(name, /^queue-[0-9a-f]{32}$/)
  for (const handle of handles) await handle.close()
  const again = await new FileStorage({ basePath, durability: 'os' }).open('../../etc')
  t.strictSame(
    await states(again, ids),
    ids.map(() => 'queued'),
  )
  await again.close()
})

t.test('files are private to the user', { skip: process.platform === 'win32' && 'no modes here' }, async (t) => {
  const { path: above, remove } = tempFolder(true)
  t.teardown(remove)
  const basePath = path.join(above, 'a', 'base')
  const mask = process.umask(0)
  t.teardown(() => process.umask(mask))
  const handle = await new FileStorage({ basePath, durability: 'os', compactionSlackBytes: 65_536 }).open('q')
  const mode = (file: string) => (statSync(file).mode & 0o777).toString(8)
  for (let round = 0; !namesIn(onlyFolder(basePath)).some((name) => name.endsWith('.snap')); round++) {
    await enqueue(handle, [`job-${round}`], 'x'.repeat(5_000))
    await handle.cancel([`job-${round}`])
    await turns(5)
  }
  await handle.close()
  for (const folder of [path.dirname(basePath), basePath, onlyFolder(basePath)]) t.equal(mode(folder), '700', folder)
  const files = namesIn(onlyFolder(basePath))
  for (const name of files) t.equal(mode(path.join(onlyFolder(basePath), name)), '600', name)
})

t.test('texts and bytes come back as what they were', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const values = [
    '',
    'null',
    'a\tb\nc\r\u0010d\\e',
    '\ud800 alone',
    '🦊',
    "'",
    '=',
    new Uint8Array(),
    new Uint8Array([0, 10, 9, 255, 16]),
  ]
  const handle = await new FileStorage({ basePath, durability: 'os' }).open('q')
  const ids = names('job', values.length)
  await handle.enqueue(ids.map((id, index) => ({ ...item(id), payload: values[index] as string | Uint8Array })))
  const { jobs } = await handle.claim({ generation: token(), leaseMs: 1_000, limit: 100 })
  const verdicts = jobs.map(({ spec, generation }, index) => {
    return { id: spec.id, generation, verdict: complete(values[index] as string | Uint8Array, hour) }
  })
  await handle.settle(verdicts.slice(0, 5), null)
  const fresh = await new FileStorage({ basePath, durability: 'os' }).open('q')
  const { records } = await fresh.get(ids)
  for (const [index, record] of records.entries()) {
    const found = record?.state === 'completed' ? record.result : record?.state === 'processing' ? record.payload : null
    t.strictSame(found, values[index])
  }
  await handle.close()
  await fresh.close()
})

t.test('handles share what they need, and let go of it with the last of them', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  let opened = 0
  const fs = gated((call) => {
    if (call === 'openLog') opened++
    if (call === 'close') opened--
  })
  const storage = new FileStorage({ basePath, durability: 'fsync' }, fs)
  const [a, b] = await Promise.all([storage.open('q'), storage.open('q')])
  t.equal(opened, 1, 'one log for both')
  const running = enqueue(a, ['x'])
  await a.close()
  await a.close()
  t.strictSame(await running, ['created'], 'what ran has ended first')
  await t.rejects(a.get(['x']), StorageClosedError)
  t.throws(() => a.watch(() => {}), StorageClosedError)
  t.strictSame(await states(b, ['x']), ['queued'], 'the other goes on')
  await b.close()
  t.equal(opened, 0, 'nothing is left open')
  const again = await storage.open('q')
  t.strictSame(await states(again, ['x']), ['queued'])
  await again.close()
  t.equal(opened, 0)
})

t.test('a call costs what it changes: duplicates and reads write nothing', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const calls = new Map<string, number>()
  const fs = gated((call) => calls.set(call, (calls.get(call) ?? 0) + 1))
  const handle = await new FileStorage({ basePath, durability: 'fsync' }, fs).open('q')
  await enqueue(handle, names('job', 500))
  calls.clear()
  await enqueue(handle, names('job', 500))
  await handle.get(names('job', 500))
  await handle.extend([{ id: 'job-1', generation: 'none', leaseMs: 1_000 }])
  await handle.cancel(['unknown'])
  t.strictSame(Object.fromEntries(calls), { status: 4 }, 'one look each')
  calls.clear()
  await Promise.all(names('more', 64).map((id) => enqueue(handle, [id])))
  t.strictSame(
    Object.fromEntries(calls),
    { status: 2, append: 1, syncData: 1 },
    '64 calls of one turn: one append, one sync',
  )
  calls.clear()
  await work(handle, 64)
  t.strictSame(Object.fromEntries(calls), { status: 4, append: 2, syncData: 2 })
  await handle.close()
})

t.test('a process that has closed ends by itself; so does one that only watches', async (t) => {
  const { path: folder, remove } = tempFolder(true)
  t.teardown(remove)
  const storage = fileURLToPath(new URL('../../storages/file/index.ts', import.meta.url))
  for (const end of ['await handle.close()', '']) {
    const script = path.join(folder, 'script.ts')
    writeFileSync(
      script,
      `import { FileStorage } from ${JSON.stringify(storage)}
       export {}
       async function main() {
         const handle = await new FileStorage({ basePath: ${JSON.stringify(path.join(folder, 'base'))} }).open('q')
         handle.watch(() => {})
         await handle.sweep(10)
         ${end}
         console.log('done')
       }
       void main()`,
    )
    const { status, stdout, signal } = spawnSync(process.execPath, [...typescript, script], {
      encoding: 'utf8',
      timeout: 20_000,
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
    })
    t.strictSame({ status, stdout, signal }, { status: 0, stdout: 'done\n', signal: null })
  }
})
