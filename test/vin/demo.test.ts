import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'csv-parse/sync'
import t from 'tap'
import { CsvWriter, countRows, readCsv } from '../../docs/examples/demo/csv.ts'
import { readOptions } from '../../docs/examples/demo/options.ts'
import type { DemoResult } from '../../docs/examples/demo/run.ts'
import { vinColumns } from '../../src/presets/vin/index.ts'
import { typescript } from '../support/typescript.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const ownRows = readFileSync(path.join(root, 'docs/examples/demo/vins.csv'), 'utf8').trimEnd().split('\n').length - 1

interface Run {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Each with a folder for temporary files of its own: what one run kept must not answer the next one's questions. */
async function demo(...args: string[]): Promise<Run> {
  const own = await mkdtemp(path.join(tmpdir(), 'askonce-demo-test-'))
  try {
    return await demoIn(own, ...args)
  } finally {
    await rm(own, { recursive: true, force: true })
  }
}

function demoIn(temporary: string, ...args: string[]): Promise<Run> {
  return new Promise((resolve) => {
    const command = [...typescript, 'docs/examples/demo/demo.ts', ...args]
    const env = { ...process.env, TMPDIR: temporary }
    execFile(process.execPath, command, { cwd: root, env, timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr })
    })
  })
}

function folder(t: { testdir(files: Record<string, string>): string }, files: Record<string, string> = {}): string {
  return t.testdir(files)
}

t.test(
  'the table: rows, valid, unique, upstream calls, answered from cache, seconds; the second pass asks nobody',
  async (t) => {
    const { code, stdout, stderr } = await demo()
    t.equal(code, 0, stderr)
    const lines = stdout.split('\n')
    t.match(lines[0], /^pass +rows +valid +unique +upstream calls +answered from cache +seconds$/)
    const cells = (line: string | undefined) => (line ?? '').trim().split(/ {2,}/)
    const first = cells(lines[2]).map(Number)
    const second = cells(lines[3]).map(Number)
    t.strictSame(first.slice(0, 2), [1, ownRows])
    t.strictSame(second.slice(0, 2), [2, ownRows])
    t.ok(first[2]! > 400 && first[3]! > 236 && first[3]! < first[2]!)
    t.ok(first[4]! > 0 && first[4]! < 30, `${first[4]} calls`)
    t.strictSame([second[4], second[5]], [0, second[2]], 'the second pass: no call, all from the cache')
    t.match(stderr, /pass 1: \d+ of \d+ rows\n/, 'plain lines where there is no terminal')
    t.notMatch(stderr, '\u001b', 'and no control sequences')
  },
)

t.test('--json: one object and nothing else', async (t) => {
  const { code, stdout, stderr } = await demo('--json', '--passes', '3')
  t.strictSame([code, stderr], [0, ''])
  const result: DemoResult = JSON.parse(stdout)
  t.equal(result.passes.length, 3)
  const [first, second, third] = result.passes
  t.match(first, { pass: 1, rows: ownRows, answered_from_cache: 0 })
  t.equal(first?.vins_sent, first?.unique, 'each vehicle was sent once')
  for (const pass of [second, third])
    t.match(pass, { upstream_calls: 0, vins_sent: 0, answered_from_cache: first?.valid })
  t.equal(
    Object.values(first?.classes ?? {}).reduce((sum, count) => sum + count, 0),
    ownRows,
  )
  t.equal(result.near_duplicates.length, 3)
  t.match(result.counters, { decode_jobs_claimed: first?.unique, request_bugs: 0, upstream_per_unique: 1 })
})

t.test('a storm of faults changes the number of calls, not one outcome', async (t) => {
  const [calm, storm] = await Promise.all([
    demo('--json', '--passes', '1'),
    demo('--json', '--faults', '7', '--workers', '1'),
  ])
  const outcomes = ({ stdout }: Run) => (JSON.parse(stdout) as DemoResult).passes[0]
  t.strictSame(outcomes(storm)?.classes, outcomes(calm)?.classes)
  t.ok((outcomes(storm)?.upstream_calls ?? 0) > (outcomes(calm)?.upstream_calls ?? 0))
  t.equal((JSON.parse(storm.stdout) as DemoResult).passes[1]?.upstream_calls, 0)
})

t.test('a file of one’s own, with what was found written beside it', async (t) => {
  const dir = folder(t)
  const file = path.join(dir, 'cars.csv')
  const out = path.join(dir, 'found.csv')
  const original =
    '\ufeffid,Chassis no,"a ""note"""\n1, 1hgcm82633a004352 ,"x, y"\n2,bad,\n3\n\n4,1FBNE3BE1CDB23596,"two\nlines"\n5,1HG-CM82633A004352,z\n'
  writeFileSync(file, original)
  const { code, stdout, stderr } = await demo(file, '--column', 'chassis NO', '--out', out, '--json')
  t.equal(code, 0, stderr)
  t.match((JSON.parse(stdout) as DemoResult).passes, [
    { rows: 5, valid: 3, unique: 2, upstream_calls: 1, calls_saved: 2 },
    { upstream_calls: 0, answered_from_cache: 3 },
  ])
  const before: string[][] = parse(original, { bom: true, relax_column_count: true, skip_empty_lines: true })
  const after: string[][] = parse(readFileSync(out, 'utf8'))
  t.strictSame(after[0], [...(before[0] ?? []), ...vinColumns])
  for (const [index, row] of before.entries()) {
    if (index === 0) continue
    t.strictSame(after[index]?.slice(0, row.length), row, `row ${index} is kept as it was, in its place`)
    t.equal(after[index]?.length, 3 + vinColumns.length)
    t.equal(after[index]?.[3], row[1] ?? '', 'the original cell')
  }
  t.strictSame(
    after.slice(1).map((row) => row[6]),
    ['CLEAN', 'LOCAL_INVALID', 'LOCAL_INVALID', 'WARN', 'CLEAN'],
  )
  t.equal(after[4]?.[7], '1FBNE3BL1CDB23596', 'the suggestion')
  t.equal(after[1]?.[5], after[5]?.[5], 'two writings, one id')
})

t.test('records are kept in files by default: another process asks nobody', async (t) => {
  const temporary = folder(t)
  const first: DemoResult = JSON.parse((await demoIn(temporary, '--json', '--passes', '1')).stdout)
  const second: DemoResult = JSON.parse((await demoIn(temporary, '--json', '--passes', '1')).stdout)
  t.ok((first.passes[0]?.upstream_calls ?? 0) > 0)
  t.match(second.passes, [{ upstream_calls: 0, answered_from_cache: first.passes[0]?.valid }])
})

t.test('what is wrong on the command line is said in words', async (t) => {
  const wrong: [string[], RegExp][] = [
    [['--bogus'], /--bogus/],
    [['--workers'], /--workers/],
    [['--json=yes'], /--json/],
    [['--workers', '0'], /--workers is a whole number from 1 to 16, not 0/],
    [['--workers', '1.5'], /--workers/],
    [['--passes', 'many'], /--passes/],
    [['--storage', 'tape'], /--storage is memory or file, not tape/],
    [['--storage', 'memory', '--dir', 'x'], /--dir goes only with --storage file/],
    [['--live', '--faults'], /--faults is for the stand-in/],
    [['a.csv', 'b.csv'], /one file at a time, not 2/],
  ]
  for (const [args, words] of wrong) {
    t.throws(() => readOptions(args), { name: 'UsageError', message: words }, args.join(' '))
  }
  t.match(readOptions([]), { file: null, live: false, workers: 3, passes: 2, storage: 'file', faults: null })
  t.match(readOptions(['x.csv', '--live', '--json']), { file: 'x.csv', live: true, json: true, workers: 1 })
  t.match(readOptions(['--faults', 'x.csv']), { file: 'x.csv', faults: 1 })
  t.match(readOptions(['--faults', '7', 'x.csv']), { file: 'x.csv', faults: 7 })
  const { code, stdout, stderr } = await demo('--bogus')
  t.strictSame([code, stdout], [2, ''])
  t.match(stderr, /^demo: .*--bogus/)
  t.notMatch(stderr, /\n\s+at /, 'no stack')
})

t.test('files that are not there, empty, or without the column', async (t) => {
  const dir = folder(t, { 'empty.csv': '', 'header.csv': 'vin\n', 'plain.csv': 'a,b\n1,2\n', 'open.csv': 'vin\n"1HG' })
  await t.rejects(readCsv(path.join(dir, 'none.csv'), null), { message: /can't be read: ENOENT/ })
  await t.rejects(countRows(dir), { message: /can't be read: EISDIR/ })
  await t.rejects(countRows(path.join(dir, 'open.csv')), { message: /can't be read: Quote Not Closed/ })
  await t.rejects(readCsv(path.join(dir, 'empty.csv'), null), { message: /is empty; a header line is needed/ })
  await t.rejects(readCsv(path.join(dir, 'plain.csv'), 'vin'), { message: /no column vin; there are a, b/ })
  await t.rejects(CsvWriter.create(path.join(dir, 'no', 'where.csv')), { message: /can't be written: ENOENT/ })
  const none = await demo(path.join(dir, 'none.csv'))
  t.strictSame([none.code, none.stdout], [2, ''])
  t.match(none.stderr, /none\.csv can't be read/)
  const header = await demo(path.join(dir, 'header.csv'), '--json')
  t.match((JSON.parse(header.stdout) as DemoResult).passes, [{ rows: 0, upstream_calls: 0 }, { rows: 0 }])
})

t.test('--help', async (t) => {
  const { code, stdout } = await demo('--help')
  t.equal(code, 0)
  for (const flag of ['--live', '--json', '--storage', '--faults', '--out', '--column', '--workers'])
    t.match(stdout, flag)
})
