/** The format on disk: what was written once is read for ever, and what is written changes only on purpose. */

import { appendFileSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import t from 'tap'
import { StorageError } from '../../src/errors.ts'
import { formatVersion } from '../../storages/file/entries.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { LineBuffer } from '../../storages/file/lines.ts'
import { onlyFolder } from './support/faulty-fs.ts'
import { goldenFiles, goldenState, openGolden, placeFiles, readState, writeHistory } from './support/golden.ts'
import { enqueue, item, states, turns, warningsOf, work } from './support/jobs.ts'
import { tempFolder } from './support/temp.ts'

const newestLog = '0000000002.log'
const snapshot = '0000000002-00000.snap'

/** The headers and ids in a log, in their order. */
function outline(file: string): string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.slice(8).split('\t'))
    .flatMap(([kind, first, second]) =>
      kind === 'H' ? [`format ${second}`] : kind === 'E' ? [`${second ?? first}`] : [],
    )
}

for (let format = 1; format <= formatVersion; format++) {
  t.test(`format ${format}: logs and snapshots are read as they were when they were written`, async (t) => {
    const { path: basePath, remove } = tempFolder(true)
    t.teardown(remove)
    const files = goldenFiles(format)
    t.strictSame([...files.keys()], ['0000000001.log', snapshot, newestLog])
    const folder = placeFiles(basePath, files)
    const handle = await openGolden(basePath)
    const warnings = warningsOf(handle)
    await turns()
    await handle.close()
    t.strictSame(warnings, [])
    t.strictSame(await readState(basePath, format), goldenState(format))
    for (const [name, bytes] of files)
      t.ok(readFileSync(path.join(folder, name)).equals(bytes), 'reading writes nothing')
    rmSync(path.join(folder, snapshot))
    t.strictSame(await readState(basePath, format), goldenState(format), 'the log before says what the snapshot says')
  })
}

t.test('what is written is the present format to the letter', async (t) => {
  // Whoever changes what these lines say makes a new format: see test/file/support/golden.ts.
  const written = await writeHistory(formatVersion)
  const kept = goldenFiles(formatVersion)
  t.strictSame([...written.keys()], [...kept.keys()])
  for (const [name, bytes] of written) t.equal(bytes.toString(), kept.get(name)?.toString(), name)
})

t.test('the files that are kept have every kind of line, verdict and record', async (t) => {
  const lines = [...goldenFiles(formatVersion).values()].flatMap((bytes) => bytes.toString().split('\n'))
  const fields = lines.map((line) => line.slice(8).split('\t'))
  const lettersAt = (index: number, kind?: string): string => {
    const some = fields.filter(([first]) => kind === undefined || first === kind).map((line) => line[index] ?? '')
    return [...new Set(some)].sort().join('')
  }
  t.equal(lettersAt(0), 'CDEFGHKMOPRSTXZ')
  t.equal(lettersAt(4, 'S'), 'cfgor', 'verdicts')
  t.equal(lettersAt(1, 'R'), 'acfpq', 'states')
  const extras = fields.filter(([first]) => first === 'R').flatMap((line) => line.slice(13))
  for (const letter of 'kmox') t.ok(extras.includes(letter), `records with ${letter}`)
})

t.test('jobs that need nothing new are written as the first format wrote them', async (t) => {
  const asFirst = (bytes: Buffer) => bytes.toString().replaceAll(/^[0-9a-f]{8}H\taskonce\t\d+$/gm, 'header')
  const written = await writeHistory(1)
  for (const [name, bytes] of goldenFiles(1)) t.equal(asFirst(written.get(name) as Buffer), asFirst(bytes), name)
})

t.test('a log that an older askonce began says so once, from where newer lines are', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const log = path.join(placeFiles(basePath, goldenFiles(1)), newestLog)
  const before = outline(log)
  t.equal(before[0], 'format 1')
  const [first, second] = [await openGolden(basePath), await openGolden(basePath)]
  await first.hold(0)
  await first.enqueue([{ ...item('completed'), refresh: true }])
  await second.enqueue([item('new')])
  await first.enqueue([item('newer')])
  t.strictSame(outline(log), [...before, `format ${formatVersion}`, 'completed', 'new', 'newer'])
  for (const handle of [first, second]) {
    const { records } = await handle.get(['completed', 'new', 'newer', 'late'])
    t.match(records, [
      { state: 'queued', kept: { result: '{"decoded":true}' } },
      { state: 'queued' },
      { state: 'queued' },
      { state: 'completed', result: 'result of late' },
    ])
  }
  await first.close()
  await second.close()
})

t.test('a process that has a folder open refuses to go on when a newer askonce writes there', async (t) => {
  const { path: basePath, remove } = tempFolder(true)
  t.teardown(remove)
  const handle = await new FileStorage({ basePath, durability: 'os' }).open('q')
  const warnings = warningsOf(handle)
  await enqueue(handle, ['before'])
  const lines = new LineBuffer(1)
  lines.addBreak()
  lines.add(`H\taskonce\t${formatVersion + 1}`)
  lines.add('Y\t1700000000000\tsomething that this version knows nothing of')
  appendFileSync(path.join(onlyFolder(basePath), '0000000001.log'), lines.bytes)
  const refusal = { name: 'StorageError', retryable: false, message: `format ${formatVersion + 1}` }
  for (let round = 0; round < 3; round++) {
    const refused = [states(handle, ['before']), enqueue(handle, ['during']), work(handle, 1), handle.sweep(1)]
    for (const answer of refused) {
      const error = await answer.catch((error: unknown) => error)
      t.type(error, StorageError)
      t.match(error, refusal)
    }
  }
  t.strictSame(warnings, [], 'its lines are not taken for damage')
  t.notMatch(readFileSync(path.join(onlyFolder(basePath), '0000000001.log'), 'utf8'), /during/, 'nothing is written')
  await handle.close()
})
