import t from 'tap'
import { retryAfterMs } from '../../src/client/retry-after.ts'

const now = Date.UTC(2026, 10, 30, 12)

t.test('seconds, dates, and what is neither', async (t) => {
  const cases: [string | null, number | null][] = [
    [null, null],
    ['', null],
    ['0', 0],
    ['120', 120_000],
    [' 7 ', 7_000],
    ['999999999999', 999_999_999_999_000],
    ['9999999999999', null],
    ['-1', null],
    ['+1', null],
    ['1.5', null],
    ['1e3', null],
    ['0x10', null],
    ['1, 2', null],
    ['2099-01-01', null],
    ['soon', null],
    ['Mon, 30 Nov 2026 12:00:05 GMT', 5_000],
    ['Mon, 30 Nov 2026 11:00:00 GMT', 0],
    ['Monday, 30-Nov-26 12:00:05 GMT', 5_000],
    ['Mon Nov 30 12:00:05 2026 GMT', 5_000],
  ]
  for (const [value, expected] of cases) {
    const headers = new Headers(value === null ? {} : { 'retry-after': value })
    t.equal(retryAfterMs(headers, now), expected, JSON.stringify(value))
  }
})

t.test('a date is measured by the answer’s own, if that is one', async (t) => {
  const at = (date: string) => new Headers({ 'retry-after': 'Mon, 30 Nov 2026 12:00:05 GMT', date })
  t.equal(retryAfterMs(at('Mon, 30 Nov 2026 12:00:02 GMT'), 0), 3_000)
  t.equal(retryAfterMs(at('Mon, 30 Nov 2026 12:30:00 GMT'), now), 0)
  t.equal(retryAfterMs(at('nonsense'), now), 5_000)
})
