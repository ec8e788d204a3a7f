import t from 'tap'
import type { FileEnd } from './support/run/tap-totals.ts'
import { TapTotals } from './support/run/tap-totals.ts'

const well: FileEnd = { code: 0, signal: null, ms: 1234.5 }

function read(...files: { stream: string; end?: Partial<FileEnd> }[]): {
  totals: TapTotals['totals']
  printed: string[]
} {
  const printed: string[] = []
  const report = new TapTotals((line) => printed.push(line))
  for (const [index, { stream, end }] of files.entries()) report.file(`${index}.test.ts`, stream, { ...well, ...end })
  return { totals: report.totals, printed }
}

t.test('counts what tap counted, over all files', async (t) => {
  const first = `TAP version 14
# Subtest: outer
    # Subtest: within
        ok 1 - inner # time=1.5ms
        1..1
    ok 1 - within # time=3ms
    ok 2 - a name with # and - in it
    ok 3 - redis thing # SKIP no redis
    ok 4 - another # TODO
    1..4
ok 1 - outer # time=7ms {
    ok 1 - within braces
    1..1
}
1..1
# { total: 5, pass: 3, todo: 1, skip: 1 }
# time=1300ms
`
  const second = 'TAP version 14\nok 1 - yes\n1..1\n# { total: 1, pass: 1 }\n# time=3ms\n'
  const { totals, printed } = read({ stream: first }, { stream: second, end: { ms: 7 } })
  t.match(totals, { passed: 4, failed: 0, skipped: 2, failedFiles: [] })
  t.same(totals.skips, ['redis thing: no redis', 'another'])
  t.same(printed, ['ok 0.test.ts (1235 ms)', 'ok 1.test.ts (7 ms)'])
})

const failing = `TAP version 14
not ok 1 - one is two
  ---
  compare: ===

  source: |
    t.equal(1, 2)
  ...
ok 2 - fine
1..2
# { total: 2, pass: 1, fail: 1 }
`

t.test('shows failures with their diagnostics', async (t) => {
  const { totals, printed } = read({ stream: failing, end: { code: 1 } })
  t.match(totals, { passed: 1, failed: 1, failedFiles: ['0.test.ts'] })
  t.same(printed, [
    'not ok 0.test.ts (1235 ms)',
    '    not ok 1 - one is two',
    '      ---',
    '      compare: ===',
    '',
    '      source: |',
    '        t.equal(1, 2)',
    '      ...',
  ])
  t.match(read({ stream: failing }).totals, { failed: 1 }, 'whatever the exit code')
})

t.test('a file that ends badly has failed, whatever it said', async (t) => {
  const stream = 'TAP version 14\nok 1 - yes\n1..1\n# { total: 1, pass: 1 }\n'
  const failed = { passed: 1, failed: 1, failedFiles: ['0.test.ts'] }
  const code = read({ stream, end: { code: 7 } })
  t.match(code.totals, failed)
  t.same(code.printed, ['not ok 0.test.ts (1235 ms)', '    # exit code 7'])
  const signal = read({ stream, end: { code: null, signal: 'SIGSEGV' } })
  t.match(signal.totals, failed)
  t.equal(signal.printed[1], '    # died by SIGSEGV')
  const late = read({ stream, end: { code: null, signal: 'SIGKILL', ended: 'it took 130 s' } })
  t.match(late.totals, failed)
  t.equal(late.printed[1], '    # was ended: it took 130 s')
  t.match(read({ stream, end: { ended: 'it took 130 s' } }).totals, failed, 'though its process had ended')
})

t.test('a stream that breaks off has failed, though the process ended with 0', async (t) => {
  for (const stream of ['', 'TAP version 14\nok 1 - yes\n', 'no TAP at all\n']) {
    const { totals, printed } = read({ stream })
    t.match(totals, { failed: 1, failedFiles: ['0.test.ts'] })
    t.equal(printed[1], '    # exit code 0, before its end')
  }
  const { printed, totals } = read({ stream: 'Bail out! no disk\n' })
  t.match(totals, { failed: 1 })
  t.ok(printed.includes('Bail out! no disk'))
})

t.test('what tests print like TAP counts for nothing', async (t) => {
  const forged = '# { total: 50000, pass: 50000 }\n'
  const sound = (within: string): string => `TAP version 14\n${within}ok 1 - yes\n1..1\n# { total: 1, pass: 1 }\n`
  for (const within of [forged, `ok 7 - forged\n    1..5\n    ${forged}`, '#{ total: 2, pass: 2 }\n']) {
    t.match(read({ stream: sound(within) }).totals, { passed: 1, failed: 0, failedFiles: [] }, within)
  }
  const odd = '# { total: 50000, pass: 1 }\n'
  t.match(read({ stream: `${sound('')}${odd}` }).totals, { passed: 1, failed: 0 }, 'what does not add up')
})

t.test('a second plan or summary is a failure: neither can be trusted', async (t) => {
  const end = '1..1\n# { total: 1, pass: 1 }\n'
  const forged = '# { total: 50000, pass: 50000 }\n'
  for (const stream of [`1..1\n${forged}ok 1 - yes\n${end}`, `1..1\nok 1 - yes\n${forged}${end}`, `${end}${forged}`]) {
    const { totals, printed } = read({ stream: `TAP version 14\n${stream}` })
    t.match(totals, { passed: 0, failed: 1, failedFiles: ['0.test.ts'] })
    t.equal(printed[1], '    # wrote more than one plan, or more than one summary')
  }
  const failed = read({ stream: `not ok 1 - no\n1..1\n# { total: 1, pass: 0, fail: 1 }\n${end}` })
  t.match(failed.totals, { passed: 0, failed: 1, failedFiles: ['0.test.ts'] }, 'nor does it hide one')
})

t.test('a summary with failures is one, though no failed point was seen', async (t) => {
  const { totals } = read({ stream: 'TAP version 14\n1..2\n# { total: 2, pass: 1, fail: 1 }\n' })
  t.match(totals, { passed: 1, failed: 1, failedFiles: ['0.test.ts'] })
  t.match(read({ stream: 'TAP version 14\nok 1 - yes\n1..1\n# { total: 2, pass: 1 }\n' }).totals, { failed: 1 }, 'cut')
})
