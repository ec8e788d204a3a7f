import t from 'tap'
import * as errors from '../src/errors.ts'
import { limits } from '../src/limits.ts'

const {
  AskonceError,
  AttemptsExhaustedError,
  guardDuration,
  guardId,
  guardInteger,
  HandlerTimeoutError,
  InvalidArgumentError,
  JobCancelledError,
  JobFailedError,
  kindOf,
  LeaseLostError,
  PayloadMismatchError,
  quoteId,
  RateLimitedError,
  ResultGoneError,
  SerializationError,
  StateError,
  StoppedError,
  StorageClosedError,
  StorageError,
  StorageFullError,
  TimeoutError,
  TooLargeError,
  UnrecoverableError,
} = errors

const one: Record<string, { error: errors.AskonceError; code: string }> = {
  InvalidArgumentError: { error: new InvalidArgumentError('f', 'x', 1), code: 'ASKONCE_INVALID_ARGUMENT' },
  TooLargeError: { error: new TooLargeError('f', 2, 1), code: 'ASKONCE_TOO_LARGE' },
  SerializationError: { error: new SerializationError('f', 'x'), code: 'ASKONCE_SERIALIZATION' },
  PayloadMismatchError: { error: new PayloadMismatchError('id'), code: 'ASKONCE_PAYLOAD_MISMATCH' },
  JobFailedError: { error: new JobFailedError('id', 1, new Error('x')), code: 'ASKONCE_JOB_FAILED' },
  JobCancelledError: { error: new JobCancelledError('id'), code: 'ASKONCE_JOB_CANCELLED' },
  ResultGoneError: { error: new ResultGoneError('id'), code: 'ASKONCE_RESULT_GONE' },
  AttemptsExhaustedError: { error: new AttemptsExhaustedError(3), code: 'ASKONCE_ATTEMPTS_EXHAUSTED' },
  HandlerTimeoutError: { error: new HandlerTimeoutError(5), code: 'ASKONCE_HANDLER_TIMEOUT' },
  TimeoutError: { error: new TimeoutError('run', 5), code: 'ASKONCE_TIMEOUT' },
  LeaseLostError: { error: new LeaseLostError('id'), code: 'ASKONCE_LEASE_LOST' },
  UnrecoverableError: { error: new UnrecoverableError(), code: 'ASKONCE_UNRECOVERABLE' },
  RateLimitedError: { error: new RateLimitedError(5), code: 'ASKONCE_RATE_LIMITED' },
  StoppedError: { error: new StoppedError('it'), code: 'ASKONCE_STOPPED' },
  StateError: { error: new StateError('x'), code: 'ASKONCE_STATE' },
  StorageError: { error: new StorageError('x'), code: 'ASKONCE_STORAGE' },
  StorageFullError: { error: new StorageFullError('f', 1), code: 'ASKONCE_STORAGE_FULL' },
  StorageClosedError: { error: new StorageClosedError(), code: 'ASKONCE_STORAGE_CLOSED' },
}

t.test('each class: an Error and an AskonceError, named after itself, with its own code', async (t) => {
  const classes = Object.entries(errors).filter(
    ([, value]) => typeof value === 'function' && value.prototype instanceof AskonceError,
  )
  t.strictSame(classes.map(([name]) => name).sort(), Object.keys(one).sort(), 'all of them are tested here')
  for (const [name, { error, code }] of Object.entries(one)) {
    t.ok(error instanceof Error && error instanceof AskonceError, name)
    t.equal(error.name, name)
    t.equal(error.code, code)
    t.notOk(Object.hasOwn(error, 'name'))
    t.match(error.stack, name)
  }
  t.equal(new Set(Object.values(one).map(({ code }) => code)).size, Object.keys(one).length)
})

t.test('fields: what was meant, and the bound', async (t) => {
  t.match(new TooLargeError('options.name', 200, 128), { field: 'options.name', actualBytes: 200, allowedBytes: 128 })
  t.match(new TooLargeError('f', 200, 128).message, /200.*128/)
  t.match(new StorageFullError('recordsMax', 7), { field: 'recordsMax', bound: 7, message: /recordsMax = 7/ })
  const failed = new JobFailedError('id', 3, new TypeError('why'))
  t.match(failed, { id: 'id', attempts: 3, message: /"id".*3.*why/ })
  t.equal((failed.cause as Error).message, 'why')
  t.match(new JobFailedError('id', 1, 'text'), { message: /text/ })
  t.equal(new StorageError('x').retryable, true)
  t.equal(new StorageError('x', { retryable: false }).retryable, false)
  const cause = new Error('root')
  t.equal(new StorageError('x', { cause }).cause, cause)
  t.equal(new UnrecoverableError('x', { cause }).cause, cause)
  t.equal(new RateLimitedError(5, { cause }).cause, cause)
  t.equal(new RateLimitedError(5).retryAfterMs, 5)
  t.match(new HandlerTimeoutError(1_234).message, /1234/)
  t.match(new TimeoutError('enqueueAndWait', 1_234).message, /enqueueAndWait.*1234/)
})

t.test('kindOf tells what a value is, never its content; numbers are shown', async (t) => {
  t.equal(kindOf('hunter2'), 'a string of 7 characters')
  t.equal(kindOf(''), 'an empty string')
  t.equal(kindOf(1.5), 'the number 1.5')
  t.equal(kindOf(Number.NaN), 'the number NaN')
  t.equal(kindOf(null), 'null')
  t.equal(kindOf(undefined), 'undefined')
  t.equal(kindOf(true), 'true')
  t.equal(kindOf([1, 2]), 'an array of 2')
  t.equal(kindOf({ secret: 1 }), 'an object')
  t.equal(
    kindOf(() => 'secret'),
    'a function',
  )
  t.equal(kindOf(Symbol('secret')), 'a symbol')
  t.equal(kindOf(123456789n), 'a bigint')
})

t.test('quoteId: shortened, and unable to forge a log line', async (t) => {
  t.equal(quoteId('id'), '"id"')
  t.equal(quoteId('a"b\\c'), '"a\\"b\\\\c"')
  t.equal(quoteId('a\nb\r\u0000\u001b[31m'), '"a\\nb\\r\\u0000\\u001b[31m"')
  t.equal(quoteId('\u0085\u2028\u202e\u2066\u007f'), '"\\u0085\\u2028\\u202e\\u2066\\u007f"')
  t.ok(quoteId('x'.repeat(1_024)).length < 100)
  t.ok(quoteId(`${'x'.repeat(79)}😀${'x'.repeat(20)}`).isWellFormed())
  for (const make of [PayloadMismatchError, JobCancelledError, ResultGoneError, LeaseLostError]) {
    const error = new make('evil\n[admin] logged in')
    t.notMatch(error.message, '\n')
    t.equal(error.id, 'evil\n[admin] logged in')
  }
})

t.test('guards: the bounds themselves are inside', async (t) => {
  for (const ms of [1, 2 ** 31, limits.durationMsMax]) t.doesNotThrow(() => guardDuration('f', ms))
  for (const ms of [0, -1, 1.5, limits.durationMsMax + 1, Number.NaN, '1', null, 1n]) {
    t.throws(() => guardDuration('f', ms), { code: 'ASKONCE_INVALID_ARGUMENT', field: 'f' })
  }
  t.throws(() => guardDuration('f', 11, 10), /from 1 to 10; received the number 11/)
  for (const value of [3, 4, 5]) t.doesNotThrow(() => guardInteger('f', value, 3, 5))
  for (const value of [2, 6, 3.5, '4']) t.throws(() => guardInteger('f', value, 3, 5), /from 3 to 5/)
  for (const id of ['x', 'x'.repeat(1_024), '€'.repeat(341), '😀'.repeat(256), '\u0000'])
    t.doesNotThrow(() => guardId(id))
  for (const id of ['x'.repeat(1_025), '€'.repeat(342), '😀'.repeat(257)]) {
    t.throws(() => guardId(id, 'items[3].id'), { code: 'ASKONCE_TOO_LARGE', field: 'items[3].id', allowedBytes: 1_024 })
  }
  for (const id of ['', '\ud800', 'a\udfff', '\udc00\ud800', 1, null, undefined, {}]) {
    t.throws(() => guardId(id), { code: 'ASKONCE_INVALID_ARGUMENT', field: 'id' })
  }
})
