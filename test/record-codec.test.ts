import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import type { JobRecord, JobSpec } from '../src/record.ts'
import { packRecord, recordFormat, recordFromText, recordToText, unpackRecord } from '../src/record-codec.ts'

const text = fc.string({ unit: 'binary' })
const bytes = fc.uint8Array({ maxLength: 40 })
const encoded = fc.oneof(text, bytes)
const time = fc.integer({ min: 0, max: 5e12 })
const token = fc.string({ minLength: 1, maxLength: 30 })

/** Objects with the ordinary prototype, as records have. */
function plain<T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> {
  return fc.record(model, { noNullPrototype: true }) as fc.Arbitrary<T>
}

const spec: fc.Arbitrary<JobSpec> = plain({
  id: fc.oneof(fc.string({ unit: 'binary', minLength: 1 }), fc.constantFrom('__proto__', 'constructor', '\0', '\n')),
  incarnation: token,
  fingerprint: fc.oneof(fc.constant(''), token),
  createdAt: time,
  maxAttempts: fc.integer({ min: 1, max: 1_000_000 }),
  resultTTL: fc.integer({ min: 1, max: 3e12 }),
  failureTTL: fc.integer({ min: 1, max: 3e12 }),
}).chain((made) => fc.constantFrom(made, { ...made, failureTTL: made.resultTTL }))

const base = { spec, attempts: fc.integer({ min: 0, max: 1_000_000 }), at: time }
const open = { ...base, payload: encoded, inline: fc.boolean() }
const ended = { ...base, settledAt: time }

const record: fc.Arbitrary<JobRecord> = fc.oneof(
  plain({ state: fc.constant('queued' as const), ...open, generation: fc.option(token) }),
  plain({ state: fc.constant('processing' as const), ...open, generation: token }),
  plain({ state: fc.constant('failing' as const), ...open, generation: token, error: encoded }),
  plain({ state: fc.constant('completed' as const), ...ended, generation: token, result: fc.option(encoded) }),
  plain({
    state: fc.constant('failed' as const),
    ...ended,
    generation: fc.option(token),
    reason: fc.constantFrom('error' as const, 'exhausted' as const),
    error: fc.option(encoded),
  }),
)

/** The message with which it was refused, always by the same typed error; null if it was not. */
function refused(action: () => unknown): string | null {
  try {
    action()
    return null
  } catch (error) {
    const { code, field, message } = error as { code?: string; field?: string; message: string }
    if (code !== 'ASKONCE_SERIALIZATION' || field !== 'record') throw error
    return message
  }
}

t.test('a record comes back as it was, as an object and as text', async () => {
  fc.assert(
    fc.property(record, (given) => {
      const packed = packRecord(given)
      assert.deepStrictEqual(unpackRecord(packed), given)
      const line = recordToText(given)
      assert.doesNotMatch(line, /[\n\r]/)
      assert.deepStrictEqual(recordFromText(line), given)
    }),
    { numRuns: 500 },
  )
})

t.test('bytes come back as plain bytes of their own, whatever view they were in', async (t) => {
  const view = new Uint8Array(new Uint8Array([9, 1, 2, 3, 9]).buffer, 1, 3)
  for (const payload of [view, Buffer.from(view)]) {
    const [given] = fc.sample(plain({ state: fc.constant('queued' as const), ...open, generation: token }), 1)
    const back = recordFromText(recordToText({ ...given!, payload })) as { payload: Uint8Array }
    t.equal(back.payload.constructor, Uint8Array)
    t.same([...back.payload], [1, 2, 3])
  }
})

t.test('an ordinary record is short', async (t) => {
  const given: JobRecord = {
    state: 'queued',
    spec: {
      id: 'order-1',
      incarnation: 'abcdefgh',
      fingerprint: '',
      createdAt: 1_700_000_000_000,
      maxAttempts: 3,
      resultTTL: 3_600_000,
      failureTTL: 3_600_000,
    },
    attempts: 0,
    at: 1_700_000_000_000,
    payload: '{}',
    inline: false,
    generation: null,
  }
  t.equal(
    recordToText(given),
    '{"v":1,"s":"q","i":"order-1","n":"abcdefgh","c":1700000000000,"m":3,"k":3600000,"t":1700000000000,"p":"{}"}',
  )
})

t.test('a missing field is refused, or is one that has a default', async () => {
  const optional = new Set(['d', 'K', 'a', 'l', 'r', 'x'])
  fc.assert(
    fc.property(record, fc.nat(), (given, choice) => {
      const packed = packRecord(given)
      const keys = Object.keys(packed)
      const key = keys[choice % keys.length]!
      const { [key as 'v']: _, ...rest } = packed
      const may = optional.has(key) || (key === 'g' && 'sqf'.includes(packed.s)) || (key === 'e' && packed.s === 'f')
      assert.equal(refused(() => unpackRecord(rest)) === null, may, `without ${key}`)
    }),
    { numRuns: 500 },
  )
})

t.test('a field of another type, an unknown or a foreign one is refused, and no content is shown', async () => {
  const odd = fc.constantFrom<unknown>(null, true, {}, [], Number.NaN, Number.POSITIVE_INFINITY, -1, 'secret', 7n, 0.5)
  fc.assert(
    fc.property(record, fc.nat(), odd, (given, choice, value) => {
      const packed = { ...packRecord(given) } as { [key: string]: unknown }
      const keys = Object.keys(packed)
      const key = keys[choice % keys.length]!
      const fits =
        (typeof value === 'string' && 'indgpre'.includes(key)) ||
        (typeof value === 'number' && Number.isFinite(value) && 'ctz'.includes(key)) ||
        (value === 0.5 && 'kK'.includes(key))
      const message = refused(() => unpackRecord({ ...packed, [key]: value }))
      assert.equal(message === null, fits, `${key} = ${String(value)}`)
      assert.doesNotMatch(message ?? '', /secret/)
      assert.ok(refused(() => unpackRecord({ ...packed, secret: 1 })))
      const foreign = packed['s'] === 'c' ? 'p' : 'r'
      assert.ok(
        refused(() => unpackRecord({ ...packed, [foreign]: 'x' })),
        `${foreign} in ${packed['s']}`,
      )
    }),
    { numRuns: 500 },
  )
})

t.test('text that was cut short or is something else is refused, and no content is shown', async (t) => {
  fc.assert(
    fc.property(record, fc.nat(), (given, cut) => {
      const line = recordToText(given)
      assert.ok(refused(() => recordFromText(line.slice(0, cut % line.length))))
    }),
    { numRuns: 300 },
  )
  for (const line of ['', '{}', '[]', 'null', '1', '"secret"', '{"v":1}', 'secret', '{"secret', '[{"v":1,"s":"q"}]']) {
    t.notMatch(refused(() => recordFromText(line)) ?? 'secret: accepted', /secret/, line)
  }
  for (const payload of ['[]', '["a","b"]', '[1]', '["?"]', '["QQ"]', '["QR=="]', '{}', '1', 'null']) {
    const line = `{"v":1,"s":"q","i":"a","n":"b","c":1,"m":1,"k":1,"t":1,"p":${payload}}`
    t.ok(
      refused(() => recordFromText(line)),
      payload,
    )
  }
})

t.test('a newer format is refused in words', async (t) => {
  t.match(
    refused(() => recordFromText(`{"v":${recordFormat + 1},"new":true}`)),
    /was written in format 2; this version of askonce reads up to 1/,
  )
})
