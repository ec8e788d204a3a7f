import t from 'tap'
import { type Attempt, type AttemptError, headersFor, isAttemptFresh, mintAttempt } from '../../src/client/index.ts'

const now = () => 1_700_000_000_000

t.test('each mint has a key of its own: a UUID of version 4', async (t) => {
  const attempt = mintAttempt('vin:1', { ttlMs: 30_000, now })
  t.match(attempt, { subject: 'vin:1', createdAt: now(), ttlMs: 30_000 })
  t.match(attempt.key, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  const keys = new Set(Array.from({ length: 1_000 }, () => mintAttempt('vin:1').key))
  t.equal(keys.size, 1_000)
})

t.test('version 7 begins with the time and sorts by it', async (t) => {
  const { key } = mintAttempt('s', { uuid: 7, now })
  t.match(key, /^[\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
  t.equal(Number.parseInt(key.replaceAll('-', '').slice(0, 12), 16), now())
  const later = mintAttempt('s', { uuid: 7, now: () => now() + 1 }).key
  t.ok(key < later)
  t.equal(new Set(Array.from({ length: 1_000 }, () => mintAttempt('s', { uuid: 7, now }).key)).size, 1_000)
})

t.test('a page that came by plain HTTP has no randomUUID', async (t) => {
  const { randomUUID } = crypto
  t.teardown(() =>
    Object.defineProperty(crypto, 'randomUUID', { value: randomUUID, configurable: true, writable: true }),
  )
  Object.defineProperty(crypto, 'randomUUID', { value: undefined, configurable: true, writable: true })
  t.match(mintAttempt('s').key, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
})

t.test('an attempt is frozen: nothing can put another key into it', async (t) => {
  const attempt = mintAttempt('s')
  t.ok(Object.isFrozen(attempt))
  // @ts-expect-error a key is read-only
  t.throws(() => (attempt.key = 'another'), TypeError)
})

t.test('by type, a plain object is no attempt', async (t) => {
  // @ts-expect-error made by hand, without the brand
  const made: Attempt = { subject: 's', key: crypto.randomUUID(), createdAt: 0, ttlMs: 1 }
  t.ok(made)
})

t.test('fresh for ttlMs, by the clock before as well as after', async (t) => {
  const attempt = mintAttempt('s', { ttlMs: 1_000, now })
  for (const [offsetMs, fresh] of [
    [0, true],
    [999, true],
    [1_000, false],
    [86_400_000, false],
    [-999, true],
    [-1_000, false],
  ] as const) {
    t.equal(isAttemptFresh(attempt, now() + offsetMs), fresh, `${offsetMs} ms`)
  }
  t.ok(isAttemptFresh(mintAttempt('s')), 'by the machine’s clock')
  t.equal(mintAttempt('s').ttlMs, 60_000, 'the default')
})

t.test('the header is a structured-field string', async (t) => {
  const attempt = mintAttempt('s')
  t.strictSame(headersFor(attempt), { 'Idempotency-Key': `"${attempt.key}"` })
  t.doesNotThrow(() => new Headers(headersFor(attempt)))
})

t.test('bad input is refused with a typed error that names the field, and shows nothing of it', async (t) => {
  const secret = 's3cret'.repeat(200)
  const cases: [() => unknown, string][] = [
    [() => mintAttempt(''), 'subject'],
    [() => mintAttempt(7 as never), 'subject'],
    [() => mintAttempt(secret), 'subject'],
    [() => mintAttempt('s', { ttlMs: 0 }), 'options.ttlMs'],
    [() => mintAttempt('s', { ttlMs: 1.5 }), 'options.ttlMs'],
    [() => mintAttempt('s', { ttlMs: 86_400_001 }), 'options.ttlMs'],
    [() => mintAttempt('s', { ttlMs: Number.NaN }), 'options.ttlMs'],
    [() => mintAttempt('s', { uuid: 1 as never }), 'options.uuid'],
    [() => mintAttempt('s', { now: 5 as never }), 'options.now'],
    [() => mintAttempt('s', { now: () => Number.NaN }), 'options.now'],
  ]
  for (const [call, field] of cases) {
    try {
      call()
      t.fail(`${field} was taken`)
    } catch (error) {
      t.match(error, { name: 'AttemptError', code: 'ASKONCE_INVALID_ARGUMENT', field, status: null }, field)
      t.notMatch((error as AttemptError).message, 's3cret')
    }
  }
  t.equal(mintAttempt('x'.repeat(1_024), { ttlMs: 86_400_000 }).ttlMs, 86_400_000, 'the bounds themselves are taken')
})
