import t from 'tap'
import { TapTotals } from './support/run/tap-totals.ts'

function read(text: string): { totals: TapTotals['totals']; printed: string[] } {
  const printed: string[] = []
  const report = new TapTotals((line) => printed.push(line))
  for (const line of text.split('\n')) report.line(line)
  return { totals: report.totals, printed }
}

t.test('counts what tap counted, names files, and knows the end', async (t) => {
  const { totals, printed } = read(`TAP version 14
1..2
# Subtest: test/a.test.ts
    # Subtest: outer
        ok 1 - inner # time=1.5ms
        1..1
    ok 1 - outer # time=3ms
    ok 2 - a name with # and - in it
    ok 3 - redis thing # SKIP no redis
    ok 4 - another # TODO
    1..4
ok 1 - test/a.test.ts # time=1234.5ms
ok 2 - test/b.test.ts # time=7ms {
    ok 1 - within braces
    1..1
}
# No coverage generated
# { total: 5, pass: 3, todo: 1, skip: 1 }
# time=1300ms`)
  t.match(totals, { passed: 3, failed: 0, skipped: 2, failedFiles: [], complete: true })
  t.same(totals.skips, ['redis thing: no redis', 'another'])
  t.same(printed, ['ok test/a.test.ts (1235 ms)', 'ok test/b.test.ts (7 ms)'])
})

t.test('shows failures with their diagnostics; a file that only died counts as one', async (t) => {
  const { totals, printed } = read(`TAP version 14
# Subtest: test/a.test.ts
    not ok 1 - one is two
      ---
      compare: ===

      source: |
        t.equal(1, 2)
      ...
    ok 2 - fine
    1..2
not ok 1 - test/a.test.ts # time=10ms
  ---
  exitCode: 1
  ...
# Subtest: test/b.test.ts
    ok 1 - yes
not ok 2 - test/b.test.ts # time=20ms
  ---
  signal: SIGKILL
  ...
1..2
# { total: 3, pass: 2, fail: 1 }`)
  t.match(totals, { passed: 2, failed: 2, failedFiles: ['test/a.test.ts', 'test/b.test.ts'], complete: true })
  t.same(printed, [
    'not ok test/a.test.ts (10 ms)',
    '    not ok 1 - one is two',
    '      ---',
    '      compare: ===',
    '',
    '      source: |',
    '        t.equal(1, 2)',
    '      ...',
    'not ok test/b.test.ts (20 ms)',
    '  ---',
    '  signal: SIGKILL',
    '  ...',
  ])
})

t.test('a stream that breaks off is not complete', async (t) => {
  t.match(read('TAP version 14\nok 1 - test/a.test.ts # time=1ms').totals, { complete: false })
  const { printed, totals } = read('Bail out! no disk')
  t.same(printed, ['Bail out! no disk'])
  t.notOk(totals.complete)
})
