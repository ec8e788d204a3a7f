import t from 'tap'
import { decode, decodeError, encode, encodeError, encodePayload, jsonSerde, toError } from '../src/codec.ts'
import { AskonceError, HandlerTimeoutError } from '../src/errors.ts'
import { limits } from '../src/limits.ts'
import type { Serde } from '../src/options.ts'
import { Seeded } from './support/seeded.ts'

const max = limits.payloadBytesMax
const same = (value: unknown) => decode(jsonSerde, encode(jsonSerde, value, 'result', max), 'result')

t.test('JSON keeps what JSON keeps, and undefined; each value as it was', async (t) => {
  const values = [
    undefined,
    null,
    0,
    -0,
    '',
    false,
    true,
    [],
    {},
    [null, 'x', 1.5, [[]]],
    { a: { b: '😀\u0000\ud83d' } },
    '""',
    'null',
  ]
  for (const value of values) {
    if (Object.is(value, -0)) t.equal(same(value), 0)
    else t.strictSame(same(value), value)
  }
  const plain = JSON.parse('{"__proto__": {"polluted": true}, "constructor": 1}')
  t.equal(JSON.stringify(same(plain)), JSON.stringify(plain))
  t.equal(({} as { polluted?: boolean }).polluted, undefined)
})

t.test('what JSON drops or changes is dropped or changed, as documented', async (t) => {
  t.equal(same(new Date(0)), '1970-01-01T00:00:00.000Z')
  t.strictSame(same(new Map([[1, 2]])), {})
  t.strictSame(same({ a: undefined, b: Number.NaN }), { b: null })
})

t.test('what has no JSON form is refused, typed, with the field and without the content', async (t) => {
  const cycle: { secret: string; self?: unknown } = { secret: 'hunter2' }
  cycle.self = cycle
  const hostile = {
    toJSON() {
      throw new Error('hunter2')
    },
  }
  for (const value of [1n, cycle, hostile, () => 'hunter2', Symbol('hunter2'), [1n]]) {
    try {
      encode(jsonSerde, value, 'payload', max)
      t.fail('was taken')
    } catch (error) {
      t.match(error, { name: 'SerializationError', code: 'ASKONCE_SERIALIZATION', field: 'payload' })
      t.notMatch(`${(error as Error).message} ${String((error as Error).cause)}`, 'hunter2')
    }
  }
})

t.test('the bound is in bytes of UTF-8, exact, for text and for bytes', async (t) => {
  const text: Serde<string> = { serialize: (value) => value, deserialize: String }
  const bytes: Serde<number> = { serialize: (length) => new Uint8Array(length), deserialize: () => 0 }
  for (const [value, size] of [
    ['x'.repeat(10), 10],
    ['é'.repeat(5), 10],
    ['€'.repeat(4), 12],
    ['😀'.repeat(3), 12],
  ] as const) {
    t.equal(encode(text, value, 'payload', size), value)
    t.throws(() => encode(text, value, 'payload', size - 1), {
      code: 'ASKONCE_TOO_LARGE',
      field: 'payload',
      actualBytes: size,
      allowedBytes: size - 1,
    })
  }
  t.equal((encode(bytes, 10, 'payload', 10) as Uint8Array).byteLength, 10)
  t.throws(() => encode(bytes, 11, 'payload', 10), { code: 'ASKONCE_TOO_LARGE', actualBytes: 11 })
})

t.test('a serde that answers neither text nor bytes, or text that UTF-8 would lose, is told so', async (t) => {
  for (const answer of [undefined, null, 1, {}, [1], new ArrayBuffer(1), '\ud800', 'a\udfffb']) {
    const serde = { serialize: () => answer as never, deserialize: () => 0 }
    t.throws(() => encode(serde, 1, 'result', max), { code: 'ASKONCE_SERIALIZATION', field: 'result' })
  }
  t.ok(encode({ serialize: () => Buffer.from('x'), deserialize: () => 0 }, 1, 'result', max))
})

t.test('what can’t be decoded is a SerializationError; lost is told as lost', async (t) => {
  t.throws(() => decode(jsonSerde, '{', 'result'), { code: 'ASKONCE_SERIALIZATION', field: 'result' })
  t.throws(() => decode(jsonSerde, null, 'result'), { code: 'ASKONCE_SERIALIZATION', message: /lost/ })
  t.equal(decode(jsonSerde, Buffer.from('1'), 'result'), 1, 'text that a storage gave back as bytes')
})

t.test(
  'fingerprints: equal for equal JSON values whatever the order of keys; different for different ones',
  async (t) => {
    const print = (value: unknown) => encodePayload(jsonSerde, value, max).fingerprint
    t.equal(
      print({ a: 1, b: { c: [1, { d: 1, e: 2 }], f: null } }),
      print({ b: { f: null, c: [1, { e: 2, d: 1 }] }, a: 1 }),
    )
    t.equal(print({ a: 1, b: undefined }), print({ a: 1 }))
    t.equal(print([1.0, 1e2]), print([1, 100]))
    t.equal(print(new Date(0)), print('1970-01-01T00:00:00.000Z'))
    const all = [
      undefined,
      null,
      0,
      1,
      '',
      '0',
      false,
      true,
      [],
      {},
      [[]],
      [{}],
      { a: 1 },
      { a: '1' },
      { a: [1] },
      [1, 2],
      [2, 1],
    ]
    t.equal(new Set(all.map(print)).size, all.length)
    t.equal(print({ a: 1 }), '{"a":1}', 'a short text is its own')
    const longest = 'x'.repeat(40)
    t.equal(print(longest), `"${longest}"`)
    for (const digested of [`${longest}y`, undefined, { long: 'x'.repeat(99) }]) t.match(print(digested), /^[\w-]{43}$/)
    const bytes = { serialize: (value: string) => Buffer.from(value), deserialize: String }
    t.match(encodePayload(bytes, 'x', max).fingerprint, /^[\w-]{43}$/)
    const lone = { ...jsonSerde, fingerprint: () => '\ud800' }
    t.match(encodePayload(lone, { b: 1, a: 2 }, max).fingerprint, /^[\w-]{43}$/, 'UTF-8 would lose it')
  },
)

t.test('fingerprints at random: a shuffled copy has the same, a changed one another', async (t) => {
  const seeded = new Seeded()
  const value = (depth: number): unknown => {
    const kind = seeded.below(depth > 6 ? 4 : 6)
    if (kind === 0) return seeded.below(1_000) / 10
    if (kind === 1) return seeded.pick(['', 'a', 'é', '😀', '10', '9'])
    if (kind === 2) return seeded.pick([true, false, null])
    if (kind === 3) return seeded.below(100)
    if (kind === 4) return Array.from({ length: seeded.below(40) > 35 ? 40 : seeded.below(4) }, () => value(depth + 1))
    const keys = ['a', 'b', 'é', '10', '9', 'B', '', 'zz', '_', '1']
    return Object.fromEntries(keys.filter(() => seeded.chance(0.4)).map((key) => [key, value(depth + 1)]))
  }
  const shuffled = (one: unknown): unknown => {
    if (Array.isArray(one)) return one.map(shuffled)
    if (typeof one !== 'object' || one === null) return one
    const entries = Object.entries(one).map(([key, inner]) => [key, shuffled(inner), seeded.next()] as const)
    entries.sort(([, , a], [, , b]) => a - b)
    return Object.fromEntries(entries.map(([key, inner]) => [key, inner]))
  }
  const print = (one: unknown) => encodePayload(jsonSerde, one, max).fingerprint
  for (let run = 0; run < 1_000; run++) {
    const one = { root: value(0), other: value(0) }
    if (print(one) !== print(shuffled(one))) return t.fail(`seed ${seeded.seed}, run ${run}: ${JSON.stringify(one)}`)
    if (print(one) === print({ ...one, more: run })) return t.fail(`seed ${seeded.seed}, run ${run}`)
  }
  t.pass('1,000 values')
})

t.test(
  'a serde of one’s own: its fingerprint is used; one that throws is no trouble; without one the bytes count',
  async (t) => {
    const plain: Serde<string> = { serialize: (value) => value, deserialize: String }
    const folding: Serde<string> = { ...plain, fingerprint: (value) => value.toLowerCase() }
    const picky: Serde<string> = {
      ...plain,
      fingerprint: () => {
        throw new Error('picky')
      },
    }
    const print = (serde: Serde<string>, value: string) => encodePayload(serde, value, max).fingerprint
    t.equal(print(folding, 'A'), print(folding, 'a'))
    t.not(print(plain, 'A'), print(plain, 'a'))
    t.not(print(picky, 'A'), print(picky, 'a'))
    t.equal(print(picky, 'A'), print(picky, 'A'))
  },
)

const through = (error: unknown): any => decodeError(encodeError(error))

t.test('errors keep name, message, code, details and causes; not the stack, which tells paths', async (t) => {
  class OwnError extends TypeError {
    override name = 'OwnError'
    code = 'E_OWN'
    details = { field: 'x', list: [1, null] }
  }
  const error = new OwnError('own', { cause: new RangeError('inner', { cause: 'text' }) })
  const back = through(error)
  t.ok(back instanceof Error)
  t.match(back, { name: 'OwnError', message: 'own', code: 'E_OWN', details: { field: 'x', list: [1, null] } })
  t.match(back.cause, { name: 'RangeError', message: 'inner' })
  t.match(back.cause.cause, { message: 'text' })
  t.notMatch(String(encodeError(error)), import.meta.filename)
  t.notMatch(back.stack, import.meta.filename)
  t.equal(through(Object.assign(new Error('x'), { code: 42 })).code, 42)
  t.equal(through(Object.assign(new Error('x'), { code: { odd: 1 } })).code, undefined)
  t.equal(through(new HandlerTimeoutError(5)).code, 'ASKONCE_HANDLER_TIMEOUT')
  t.equal(through(new Error('plain')).name, 'Error')
  t.equal(through(new Error('')).message, '')
})

t.test('whatever is thrown can be kept', async (t) => {
  const cycle = new Error('cycle')
  cycle.cause = new Error('back', { cause: cycle })
  const circular: { self?: unknown } = {}
  circular.self = circular
  const odd: unknown[] = [
    undefined,
    null,
    '',
    'text',
    0,
    Number.NaN,
    1n,
    true,
    Symbol('s'),
    () => 1,
    {},
    circular,
    Object.create(null),
    [1, 2],
    cycle,
    Object.freeze(new Error('frozen')),
    Object.assign(new Error('x'), { details: circular }),
    Object.assign(new Error('x'), { details: 1n }),
    Object.assign(new Error('x'), { message: 1, name: null, code: Number.NaN, cause: undefined }),
    new AggregateError([new Error('1')], 'many'),
    new DOMException('dom', 'AbortError'),
    new Error('\ud800'),
  ]
  for (const thrown of odd) {
    const encoded = encodeError(thrown)
    t.type(encoded, 'string')
    t.ok(encoded.isWellFormed())
    t.ok(Buffer.byteLength(encoded) <= limits.errorBytesMax)
    t.ok(decodeError(encoded) instanceof Error)
    t.ok(toError(thrown) instanceof Error)
  }
  t.equal(through('just text').message, 'just text')
  t.match(through({ reason: 'because' }).message, /because/)
  t.match(through(undefined).message, /non-error/)
})

t.test('getters that throw, at every key that is read', async (t) => {
  for (const key of ['name', 'message', 'code', 'details', 'cause']) {
    const error = Object.defineProperty(new Error('shown'), key, {
      get() {
        throw new Error('no')
      },
    })
    t.ok(through(error) instanceof Error, key)
  }
})

t.test('a revoked proxy can be kept, too', async (t) => {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  t.ok(toError(proxy) instanceof Error)
  t.type(encodeError(proxy), 'string')
})

t.test('an own property `thrown` of a user’s error does not replace the error', async (t) => {
  const { Queue } = await import('../src/queue.ts')
  const queue = new Queue<number, number>({ maxAttempts: 1 })
  queue.execute(() => {
    throw Object.assign(new Error('mine'), { thrown: 'something else' })
  })
  await queue.start()
  await t.rejects(queue.enqueueAndWait('id', 1), { cause: { message: 'mine' } })
  await queue.stop()
})

t.test('runaway errors are shortened: message, details, names, codes and chains of causes', async (t) => {
  let chain = new Error('innermost')
  for (let depth = 0; depth < 1_000; depth++) chain = new Error(`depth ${depth}`, { cause: chain })
  const runaways = [
    new Error('x'.repeat(10_000_000)),
    new Error('€'.repeat(1_000_000)),
    Object.assign(new Error('short'), { details: 'x'.repeat(1_000_000) }),
    Object.assign(new Error('short'), { name: 'N'.repeat(1_000_000) }),
    Object.assign(new Error('short'), { code: 'C'.repeat(1_000_000) }),
    new Error('short', { cause: new Error('x'.repeat(1_000_000)) }),
    'text '.repeat(1_000_000),
    new Error(`${'x'.repeat(1_999)}😀${'x'.repeat(1_000_000)}`),
    chain,
  ]
  for (const error of runaways) {
    const encoded = encodeError(error)
    t.ok(Buffer.byteLength(encoded) <= limits.errorBytesMax, `${Buffer.byteLength(encoded)} bytes`)
    t.ok(encoded.isWellFormed())
    t.ok(decodeError(encoded) instanceof Error)
  }
  let depth = 0
  for (let cause: any = through(chain); cause !== undefined; cause = cause.cause) depth++
  t.equal(depth, limits.errorCauseDepthMax + 1)
})

t.test('stored errors that are damaged, or lost, are typed errors', async (t) => {
  for (const stored of ['', '{', 'null', '1', '"text"', '[]', null]) {
    const error = decodeError(stored)
    t.ok(error instanceof Error, String(stored))
    t.ok(error instanceof AskonceError || typeof error.message === 'string')
  }
  t.match(decodeError(null), { code: 'ASKONCE_SERIALIZATION' })
  t.match(decodeError('{'), { code: 'ASKONCE_SERIALIZATION' })
  t.equal(decodeError(Buffer.from(encodeError(new Error('bytes')))).message, 'bytes')
})
