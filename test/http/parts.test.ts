/** The small parts of `askonce/http`, each alone: the key's header, ids, fingerprints, bodies, headers, problems, times. */

import fc from 'fast-check'
import t from 'tap'
import { readBody } from '../../src/http/body.ts'
import { restored, stored } from '../../src/http/bytes.ts'
import { answeredHeaders, replayedHeaders, requestHeaders } from '../../src/http/headers.ts'
import {
  belongsTo,
  buildKey,
  contentFingerprint,
  type IdempotentOptions,
  idempotent,
  invalidInput,
  parseIdempotencyKey,
  problem,
} from '../../src/http/index.ts'
import { answerOf, replay } from '../../src/http/stored-response.ts'
import { ttlOf } from '../../src/http/ttl.ts'
import { Queue } from '../../src/index.ts'
import { seen } from './support/rig.ts'

/** An error that names its field, as tap compares it. */
const naming = (field: string) => ({ field }) as unknown as Error
const bytes = (text: string) => new TextEncoder().encode(text)

t.test('a key is a structured string or a bare token', async (t) => {
  const uuid = '8e03978e-40d5-43dd-bc93-6894a57f9324'
  const taken: [string, string][] = [
    [`"${uuid}"`, uuid],
    [uuid, uuid],
    [`  "${uuid}"  `, uuid],
    ['"a;b"', 'a;b'],
    ['"a, b"', 'a, b'],
    [String.raw`"a\"b\\c"`, 'a"b\\c'],
    ['"abc"; v=1; w', 'abc'],
    ['01ARZ3NDEKTSV4RRFFQ69G5FAV', '01ARZ3NDEKTSV4RRFFQ69G5FAV'],
    ['urn:uuid:1', 'urn:uuid:1'],
    ['YWJj+/==', 'YWJj+/=='],
    ['12345', '12345'],
    [`"${'k'.repeat(255)}"`, 'k'.repeat(255)],
    ['k'.repeat(255), 'k'.repeat(255)],
  ]
  for (const [header, key] of taken) t.strictSame(parseIdempotencyKey(header), { ok: true, key }, header)
})

t.test('anything else is refused, and says why without repeating it', async (t) => {
  const refused = [
    '',
    '   ',
    '""',
    '"unclosed',
    'un"quoted',
    '"a" "b"',
    '"a", "a"',
    'a, a',
    'a;b=1',
    ':YWJj:',
    '?1',
    '@1659578233',
    '%"caf%c3%a9"',
    '("a" "b")',
    'a b',
    'caf\u00e9',
    '"caf\u00e9"',
    '\u{1f600}',
    '"a\tb"',
    '"a\u0000b"',
    'a\u007f',
    '"a\r\nx: y"',
    'k'.repeat(256),
    `"${'k'.repeat(256)}"`,
    'k'.repeat(10_240),
    `"${'\\"'.repeat(5_000)}"`,
  ]
  for (const header of refused) {
    const parsed = parseIdempotencyKey(header)
    t.equal(parsed.ok, false, JSON.stringify(header.slice(0, 40)))
    if (parsed.ok) continue
    t.equal(parsed.missing, false)
    if (header.length > 8) t.notMatch(parsed.problem, header.slice(0, 9))
  }
  t.match(parseIdempotencyKey(null), { ok: false, missing: true })
  t.match(parseIdempotencyKey('abcd', 3), { ok: false, missing: false })
})

t.test('whatever a header holds, parsing answers, and a key is printable ASCII', async (t) => {
  const property = fc.property(fc.string({ unit: 'binary', maxLength: 400 }), (header) => {
    const parsed = parseIdempotencyKey(header)
    return !parsed.ok || /^[\x20-\x7e]{1,255}$/.test(parsed.key)
  })
  fc.assert(property, { numRuns: 500 })
  t.pass()
})

t.test('ids: no choice of parts passes for another', async (t) => {
  const parts = { actor: 'ada', subject: { vin: 'V' }, schemaVersion: 1, attempt: 'k' }
  const { attempt: _, ...derived } = parts
  const ids = [
    parts,
    derived,
    { ...parts, actor: 'bob' },
    { ...parts, subject: { vin: 'W' } },
    { ...parts, subject: null },
    { ...parts, schemaVersion: 2 },
    { ...parts, attempt: 'l' },
    { ...parts, actor: 'ad', attempt: 'ak' },
  ].map(buildKey)
  t.equal(new Set(ids).size, ids.length)
  t.equal(buildKey({ ...parts, subject: { vin: 'V' }, schemaVersion: '1' }), ids[0], 'the same parts, the same id')
  for (const id of ids) t.match(id, /^[\w-]{22}\.[\w-]{43}$/, 'says nothing of its parts')
  t.equal(belongsTo(ids[0]!, 'ada'), true)
  t.equal(belongsTo(ids[0]!, 'bob'), false)
  t.equal(belongsTo(ids[2]!, 'bob'), true)
  for (const bad of [
    { actor: '' },
    { actor: 'a\ud800' },
    { attempt: '' },
    { schemaVersion: '' },
    { schemaVersion: 1.5 },
  ]) {
    t.throws(() => buildKey({ ...parts, ...bad }), { code: 'ASKONCE_INVALID_ARGUMENT' })
  }
  t.throws(() => buildKey({ ...parts, actor: null as unknown as string }), naming('actor'))
  t.throws(() => buildKey({ ...parts, subject: () => {} }), { code: 'ASKONCE_SERIALIZATION' })
})

t.test('a fingerprint is of method, path, query and body, not of the host', async (t) => {
  const of = (method: string, url: string, body: string) => contentFingerprint(method, new URL(url), bytes(body))
  const one = await of('POST', 'http://a/x?q=1', '{"a":1}')
  t.equal(await of('POST', 'https://b:81/x?q=1', '{"a":1}'), one)
  const others = [
    await of('PATCH', 'http://a/x?q=1', '{"a":1}'),
    await of('POST', 'http://a/y?q=1', '{"a":1}'),
    await of('POST', 'http://a/x?q=2', '{"a":1}'),
    await of('POST', 'http://a/x?q=1', '{"a": 1}'),
    await of('POST', 'http://a/x?q=1', ''),
  ]
  t.equal(new Set([one, ...others]).size, 6)
})

t.test('bytes come back as they were', async (t) => {
  const property = fc.property(fc.uint8Array({ maxLength: 300 }), (given) => {
    const kept = JSON.parse(JSON.stringify(stored(given))) as ReturnType<typeof stored>
    t.strictSame([...restored(kept)], [...given])
  })
  fc.assert(property, { numRuns: 200 })
  t.equal(stored(bytes('\ufeffcafé')), '\ufeffcafé', 'text stays text, with its byte order mark')
  t.type((stored(new Uint8Array([0xff])) as { base64: string }).base64, 'string')
  const large = new Uint8Array(1_000_000).map((_, index) => (index * 7) & 255)
  t.ok(Buffer.from(restored(stored(large))).equals(large))
})

t.test('bodies are read whole, within the bound', async (t) => {
  const read = (body: string | null, max: number, headers = {}) =>
    readBody(new Request('http://x', { method: 'POST', body, headers }), max)
  t.match(await read('1234', 4), { ok: true, bytes: bytes('1234') })
  t.match(await read('12345', 4), { ok: false, problem: 'too-large' })
  t.match(await read(null, 0), { ok: true, bytes: new Uint8Array() })
  t.match(
    await read('1', 4, { 'content-length': '5' }),
    { ok: false, problem: 'too-large' },
    'what is announced counts',
  )
  t.match(await read('12345', 4, { 'content-length': '1' }), { ok: false, problem: 'too-large' }, 'and what is sent')
  const broken = new ReadableStream({ pull: (controller) => controller.error(new Error('gone')) })
  const request = new Request('http://x', { method: 'POST', body: broken, duplex: 'half' })
  t.match(await readBody(request, 4), { ok: false, problem: 'unreadable' })
  const used = new Request('http://x', { method: 'POST', body: 'x' })
  await used.text()
  t.match(await readBody(used, 4), { ok: false, problem: 'unreadable' })
})

t.test('headers: nothing of one connection travels on, no cookie is replayed', async (t) => {
  const given = new Headers({
    'content-type': 'text/plain',
    connection: 'close, X-Hop',
    'x-hop': '1',
    'x-mine': '2',
    'transfer-encoding': 'chunked',
    'set-cookie': 'session=secret',
    'content-length': '3',
    date: 'Mon, 30 Nov 2026 21:00:00 GMT',
    age: '7',
    'idempotent-replay': 'true',
  })
  given.append('link', '<a>; rel="x"')
  given.append('link', '<b>; rel="y"')
  const names = (headers: Iterable<readonly [string, string]>) => [...headers].map(([name]) => name).sort()
  const response = new Response('abc', { headers: given })
  t.strictSame(names(replayedHeaders(response)), ['content-type', 'link', 'x-mine'])
  t.equal(new Map(replayedHeaders(response)).get('link'), '<a>; rel="x", <b>; rel="y"')
  t.ok(answeredHeaders(response).has('set-cookie'), 'who asked first gets the cookie')
  t.notOk(answeredHeaders(response).has('transfer-encoding'))
  t.notOk(requestHeaders(given).has('x-hop'))
  t.notOk(requestHeaders(given).has('content-length'))
  const fetched = new Response('abc', { headers: { 'content-encoding': 'gzip' } })
  t.strictSame(names(replayedHeaders(fetched)), ['content-encoding', 'content-type'])
  Object.defineProperty(fetched, 'url', { value: 'http://upstream/' })
  t.strictSame(names(replayedHeaders(fetched)), ['content-type'], 'fetch has decoded the body, and left the header')
})

t.test('a response too large to be kept is replayed as a problem of the same status', async (t) => {
  const response = new Response('x'.repeat(5_000), { status: 201, headers: { location: '/1', etag: '"1"' } })
  const answer = answerOf(response, bytes('x'.repeat(5_000)), { bytesMax: 5_000, at: 0, by: 'me' })
  t.equal((await seen(answer.live)).body.length, 5_000)
  const { status, code, replay: isReplay, headers } = await seen(replay(answer.stored, 'urn:x:'))
  t.strictSame([status, code, isReplay], [201, 'response-too-large', true])
  t.equal(headers.get('location'), '/1')
  t.equal(headers.get('etag'), null)
})

t.test('statuses without a body are replayed without one', async (t) => {
  for (const status of [204, 205, 304]) {
    const answer = answerOf(new Response(null, { status }), new Uint8Array(), { bytesMax: 9_999_999, at: 0, by: '' })
    t.equal(replay(answer.stored, '').body, null)
    t.equal(answer.live.status, status)
  }
})

t.test('problems', async (t) => {
  const { status, body, headers } = await seen(invalidInput('no VIN', { field: 'vin', type: 'x', status: 1 }))
  t.equal(status, 422)
  t.equal(headers.get('content-type'), 'application/problem+json')
  t.strictSame(JSON.parse(body), {
    field: 'vin',
    type: 'urn:askonce:problem:invalid-input',
    title: 'The input is invalid',
    status: 422,
    detail: 'no VIN',
    code: 'invalid-input',
  })
  const own = await seen(
    problem(402, 'no-money', 'No money', undefined, { base: 'https://x/', headers: { 'x-a': '1' } }),
  )
  t.strictSame(JSON.parse(own.body), { type: 'https://x/no-money', title: 'No money', status: 402, code: 'no-money' })
  t.equal(own.headers.get('x-a'), '1')
})

t.test('times by status', async (t) => {
  t.equal(ttlOf(5, 503), 5)
  t.equal(ttlOf({ default: 5, 503: 2 }, 503), 2)
  t.equal(ttlOf({ default: 5, 503: 2 }, 500), 5)
})

t.test('odd options are refused by name', async (t) => {
  const queue = new Queue()
  t.teardown(() => queue.stop())
  const good = { actor: () => 'a', upstream: () => new Response() }
  const bad: [string, object][] = [
    ['options.actor', { actor: 'ada' }],
    ['options.upstream', { upstream: undefined }],
    ['options.validate', { validate: 1 }],
    ['options.subject', { subject: 'vin' }],
    ['options.subject', { cache: { freshMs: 1 } }],
    ['options.cache.freshMs', { subject: () => 1, cache: { freshMs: 0 } }],
    ['options.cache.staleMs', { subject: () => 1, cache: { freshMs: 1, staleMs: -1 } }],
    ['options.mode', { mode: 'worker' }],
    ['options.busy', { busy: 'maybe' }],
    ['options.statusUrl', { busy: 'accepted' }],
    ['options.waitMs', { busy: 'wait', waitMs: -1 }],
    ['options.timeoutMs', { timeoutMs: 0 }],
    ['options.upstreamTimeoutMs', { upstreamTimeoutMs: 0 }],
    ['options.resultTtlMs', { resultTtlMs: 0 }],
    ['options.failureTtlMs.default', { failureTtlMs: { 503: 1 } }],
    ['options.failureTtlMs', { failureTtlMs: { default: 1, 999: 1 } }],
    ['options.failureTtlMs[503]', { failureTtlMs: { default: 1, 503: 0 } }],
    ['options.breaker', { breaker: {} }],
    ['options.isBreakerOpen', { isBreakerOpen: true }],
    ['options.isFailure', { isFailure: 500 }],
    ['options.maxAttempts', { maxAttempts: 0 }],
    ['options.retryAfterMs', { retryAfterMs: 0 }],
    ['options.problemBase', { problemBase: 1 }],
    ['options.documentation', { documentation: 'no url' }],
    ['options.documentation', { documentation: 1 }],
    ['options.methods', { methods: 'POST' }],
    ['options.workerHeaders', { workerHeaders: [1] }],
    ['options.bodyBytesMax', { bodyBytesMax: -1 }],
    ['options.keyLengthMax', { keyLengthMax: 0 }],
    ['options.actorMissingStatus', { actorMissingStatus: 500 }],
    ['options.onError', { onError: 1 }],
  ]
  for (const [field, options] of bad) {
    t.throws(
      () => idempotent(queue, { ...good, ...options } as IdempotentOptions),
      naming(field),
      JSON.stringify(options),
    )
  }
  t.throws(() => idempotent(queue, null as unknown as IdempotentOptions), naming('options'))
})
