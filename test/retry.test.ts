import t from 'tap'
import { exponential, fixed } from '../src/retry.ts'

t.test('exponential: full jitter between 0 and the doubled base, at most maxMs', async (t) => {
  const policy = exponential({ baseMs: 100, maxMs: 1_000 })
  const error = new Error('x')
  t.equal(policy(1, error, 0), 0)
  t.equal(policy(1, error, 0.5), 50)
  t.equal(policy(1, error, 0.999_999), 99)
  t.equal(policy(2, error, 0.5), 100)
  t.equal(policy(3, error, 0.5), 200)
  t.equal(policy(4, error, 0.5), 400)
  t.equal(policy(5, error, 0.5), 500, 'the ceiling')
  t.equal(policy(1_000_000, error, 0.5), 500, 'no overflow to Infinity or NaN')
  t.equal(policy(1_000_000, error, 0), 0)
})

t.test('exponential: the factor is settable; 1 keeps the ceiling where it is', async (t) => {
  const tripling = exponential({ baseMs: 10, maxMs: 1_000_000, factor: 3 })
  t.equal(tripling(4, null, 0.5), 135)
  const level = exponential({ baseMs: 10, maxMs: 1_000_000, factor: 1 })
  t.equal(level(50, null, 0.5), 5)
  t.equal(exponential({ baseMs: 10, maxMs: 1_000_000, factor: 1_000 })(1_000_000, null, 0.5), 500_000)
})

t.test('fixed: the same after every attempt, whatever the error and the chance', async (t) => {
  const policy = fixed(250)
  for (const [attempt, chance] of [
    [1, 0],
    [7, 0.9],
    [1_000_000, 0.5],
  ] as const) {
    t.equal(policy(attempt, new Error('x'), chance), 250)
  }
})
