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

/** Objects with the ordinary prototype, as records have. What is `optional` is left out at times. */
function plain<T, O = unknown>(
  model: { [K in keyof T]: fc.Arbitrary<T[K]> },
  optional?: { [K in keyof O]: fc.Arbitrary<O[K]> },
): fc.Arbitrary<T & Partial<O>> {
  const constraints = { noNullPrototype: true, requiredKeys: Object.keys(model) }
  return fc.record({ ...model, ...optional }, constraints as never) as unknown as fc.Arbitrary<T & Partial<O>>
}

const fixed = {
  id: fc.oneof(fc.string({ unit: 'binary', minLength: 1 }), fc.constantFrom('__proto__', 'constructor', '\0', '\n')),
  incarnation: token,
  fingerprint: fc.oneof(fc.constant(''), token),
  createdAt: time,
  maxAttempts: fc.integer({ min: 1, max: 1_000_000 }),
  resultTTL: fc.integer({ min: 1, max: 3e12 }),
  failureTTL: fc.integer({ min: 1, max: 3e12 }),
}
const spec: fc.Arbitrary<JobSpec> = plain(fixed, { marks: fc.constantFrom('mail=t1\n', 'a=b\nc.d:e-f=1_2\n') }).chain(
  (made) => fc.constantFrom(made, { ...made, failureTTL: made.resultTTL }),
)

const base = { spec, attempts: fc.integer({ min: 0, max: 1_000_000 }), at: time }
const open = { ...base, payload: encoded, inline: fc.boolean() }
const ended = { ...base, settledAt: time }

const kept = { kept: plain({ result: fc.option(encoded), settledAt: time, until: time }) }
const missed = plain({
  reason: fc.constantFrom('error' as const, 'exhausted' as const, 'cancelled' as const),
  error: fc.option(encoded),
})
const outbox = plain({ rows: encoded, at: time, generation: fc.option(token), attempts: fc.nat(9), until: time })
const completed = { state: fc.constant('completed' as const), ...ended, result: fc.option(encoded) }

const record: fc.Arbitrary<JobRecord> = fc.oneof(
  plain({ state: fc.constant('queued' as const), ...open, generation: fc.option(token) }, kept),
  plain({ state: fc.constant('processing' as const), ...open, generation: token }, kept),
  plain({ state: fc.constant('failing' as const), ...open, generation: token, error: encoded }, kept),
  plain({ ...completed, generation: token }, { outbox }),
  plain({ ...completed, generation: fc.option(token), missed }),
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
  const optional = new Set(['d', 'K', 'a', 'l', 'r', 'x', 'b', 'R', 'E', 'G', 'A'])
  fc.assert(
    fc.property(record, fc.nat(), (given, choice) => {
      const packed = packRecord(given)
      const keys = Object.keys(packed)
      const key = keys[choice % keys.length]!
      const { [key as 'v']: _, ...rest } = packed
      const unowned = 'qf'.includes(packed.s) || packed.M !== undefined
      const may =
        optional.has(key) ||
        (key === 'g' && unowned) ||
        (key === 'e' && packed.s === 'f') ||
        (key === 'M' && packed.E === undefined && packed.g !== undefined)
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
        (typeof value === 'string' && 'indgpreREobG'.includes(key)) ||
        (typeof value === 'number' && Number.isFinite(value) && 'ctzTZOU'.includes(key)) ||
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
    /was written in format 3; this version of askonce reads up to 2/,
  )
})

t.test('a record says the oldest format that has all of it, and has nothing of a newer one', async () => {
  const second = ['b', 'T', 'R', 'Z', 'M', 'E', 'o', 'O', 'G', 'A', 'U'] as const
  fc.assert(
    fc.property(record, (given) => {
      const packed = packRecord(given)
      const has = second.some((key) => packed[key] !== undefined)
      assert.equal(packed.v, has ? 2 : 1)
      if (has) assert.match(refused(() => unpackRecord({ ...packed, v: 1 })) ?? '', /of format 1 has no such field/)
      else assert.deepStrictEqual(unpackRecord({ ...packed, v: 2 }), given)
    }),
    { numRuns: 500 },
  )
})

t.test('by the letter: a refreshed record, one refreshed in vain, and one with rows to deliver', async (t) => {
  const spec = { id: 'a', incarnation: 'i', fingerprint: '', createdAt: 1, maxAttempts: 3, resultTTL: 9, failureTTL: 9 }
  const base = { spec, attempts: 1, at: 20, generation: 'g' }
  const ended = { ...base, state: 'completed' as const, result: 'old', settledAt: 5 }
  const kept = { result: new Uint8Array([1]), settledAt: 5, until: 30 }
  const given: { [text: string]: JobRecord } = {
    '"a":1,"t":20,"g":"g","p":"","T":30,"R":["AQ=="],"Z":5': {
      ...base,
      state: 'processing',
      payload: '',
      inline: false,
      kept,
    },
    '"a":1,"t":20,"z":5,"r":"old","M":"c"': {
      ...ended,
      generation: null,
      missed: { reason: 'cancelled', error: null },
    },
    '"a":1,"t":20,"g":"g","z":5,"r":"old","M":"e","E":"no"': { ...ended, missed: { reason: 'error', error: 'no' } },
    '"a":1,"t":20,"g":"g","b":"mail=t\\n","z":5,"r":"old","o":"rows","O":7,"G":"relay","A":2,"U":90': {
      ...ended,
      spec: { ...spec, marks: 'mail=t\n' },
      outbox: { rows: 'rows', at: 7, generation: 'relay', attempts: 2, until: 90 },
    },
  }
  for (const [text, record] of Object.entries(given)) {
    const state = record.state === 'processing' ? 'p' : 'c'
    t.equal(recordToText(record), `{"v":2,"s":"${state}","i":"a","n":"i","c":1,"m":3,"k":9,${text}}`)
  }
})
