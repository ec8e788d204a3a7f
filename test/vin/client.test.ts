import t from 'tap'
import { parseRetryAfter } from '../../src/presets/vin/http.ts'
import { createVpicClient, type Fetch } from '../../src/presets/vin/index.ts'
import { startVpic, vehicles } from '../support/vpic/index.ts'

const vin = '1HGCM82633A004352'
const vins = vehicles.slice(0, 50).map(({ vin }) => vin)

/** A fetch that answers with this, and keeps what it was asked. */
function fakeFetch(body: unknown, init: ResponseInit = { headers: { 'content-type': 'application/json' } }) {
  const asked: { url: string; init: RequestInit }[] = []
  const fetch: Fetch = async (url, request) => {
    asked.push({ url, init: request })
    return new Response(typeof body === 'string' ? body : JSON.stringify(body), init)
  }
  return { fetch, asked }
}

t.test('one VIN: the flat endpoint, the year, the escaping, the headers', async (t) => {
  const { fetch, asked } = fakeFetch({ Results: [{ VIN: vin, Make: 'HONDA' }] })
  const client = createVpicClient({ fetch, headers: { 'x-api-key': 'k' } })
  t.match(await client.decode({ vin }), { Make: 'HONDA' })
  await client.decode({ vin, modelYear: 2003 })
  await createVpicClient({ fetch, extended: true, baseUrl: 'https://proxy.test/vpic' }).decode({ vin })
  t.strictSame(
    asked.map(({ url }) => url),
    [
      `https://vpic.nhtsa.dot.gov/api/vehicles/DecodeVinValues/${vin}?format=json`,
      `https://vpic.nhtsa.dot.gov/api/vehicles/DecodeVinValues/${vin}?format=json&modelyear=2003`,
      `https://proxy.test/vpic/DecodeVinValuesExtended/${vin}?format=json`,
    ],
  )
  t.match(asked[0]?.init, { method: 'GET', headers: { accept: 'application/json', 'x-api-key': 'k' } })
})

t.test('a batch: a form with escaped values and format=json in the body', async (t) => {
  const { fetch, asked } = fakeFetch({ Results: vins.map((vin) => ({ VIN: vin })) })
  await createVpicClient({ fetch }).decodeBatch([{ vin }, { vin: '5UXWX7C5*BA', modelYear: 2011 }])
  const { url, init } = asked[0]!
  t.equal(url, 'https://vpic.nhtsa.dot.gov/api/vehicles/DecodeVINValuesBatch/')
  t.equal(String(init.body), `format=json&DATA=${vin}%2C%3B5UXWX7C5*BA%2C2011`)
  t.equal(init.method, 'POST')
})

t.test('a batch of 50, over the wire: rows by VIN, whatever their order', async (t) => {
  await using standIn = await startVpic()
  const client = createVpicClient({ baseUrl: standIn.baseUrl })
  standIn.script({ kind: 'reversed' })
  const { rows, gaps } = await client.decodeBatch(vins.map((vin) => ({ vin })))
  t.strictSame([...rows.keys()], vins)
  for (const [vin, row] of rows) t.equal(row['VIN'], vin)
  t.strictSame(gaps, [])
  t.ok(Object.keys(rows.get(vins[0]!)!).length > 140, 'about as many fields as the real one has')
  standIn.script({ kind: 'missing', vins: [vins[3]!] }, { kind: 'doubled', vins: [vins[4]!] })
  t.strictSame((await client.decodeBatch(vins.map((vin) => ({ vin })))).gaps, [vins[3]])
  const doubled = await client.decodeBatch(vins.map((vin) => ({ vin })))
  t.strictSame([doubled.gaps, doubled.rows.has(vins[4]!), doubled.rows.size], [[vins[4]], false, 49])
})

t.test('rows of VINs that were not asked for, and rows that are none, are left out', async (t) => {
  const { fetch } = fakeFetch({
    Results: [null, 5, 'x', [], {}, { VIN: 7 }, { VIN: vins[9] }, { VIN: ` ${vin.toLowerCase()} ` }],
  })
  const { rows, gaps } = await createVpicClient({ fetch }).decodeBatch([{ vin }, { vin: vins[0]! }])
  t.strictSame([[...rows.keys()], gaps], [[vin], [vins[0]]])
})

t.test('what could break out of its place is not sent', async (t) => {
  const { fetch, asked } = fakeFetch({})
  const client = createVpicClient({ fetch })
  const bad = [
    '',
    '..',
    `${vin};${vins[0]}`,
    `${vin},2003`,
    '../x',
    'a b',
    vin.toLowerCase(),
    `${vin}1`,
    'Ä',
    5,
    null,
    undefined,
  ]
  for (const value of bad) {
    await t.rejects(client.decode({ vin: value as string }), { name: 'InvalidArgumentError', field: 'query.vin' })
    await t.rejects(client.decodeBatch([{ vin: value as string }]), { name: /Error$/, field: 'queries[0].vin' })
  }
  for (const modelYear of [1979, 20, 2003.5, '2003&x=y']) {
    await t.rejects(client.decode({ vin, modelYear: modelYear as number }), {
      name: /Error$/,
      field: 'query.modelYear',
    })
  }
  await t.rejects(client.decodeBatch([]), { name: /Error$/, field: 'queries.length' })
  await t.rejects(client.decodeBatch([...vins, vin].map((vin) => ({ vin }))), {
    name: /Error$/,
    field: 'queries.length',
  })
  await t.rejects(client.decodeBatch([{ vin }, { vin }]), { name: /Error$/, field: 'queries[1].vin' })
  t.equal(asked.length, 0)
})

t.test('bad options are refused by name, without showing an address', async (t) => {
  const bad: [object, string][] = [
    [{ baseUrl: 'nowhere' }, 'options.baseUrl'],
    [{ baseUrl: 'ftp://h/' }, 'options.baseUrl'],
    [{ baseUrl: 'https://me:secret@h/' }, 'options.baseUrl'],
    [{ baseUrl: 'https://h/?key=secret' }, 'options.baseUrl'],
    [{ baseUrl: 'https://h/#x' }, 'options.baseUrl'],
    [{ timeoutMs: 0 }, 'options.timeoutMs'],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, 'options.timeoutMs'],
    [{ bodyBytesMax: 0 }, 'options.bodyBytesMax'],
    [{ fetch: 5 }, 'options.fetch'],
  ]
  for (const [options, field] of bad) {
    try {
      createVpicClient(options)
      t.fail(`${JSON.stringify(options)} was taken`)
    } catch (error) {
      t.match(error, { name: 'InvalidArgumentError', field })
      t.notMatch((error as Error).message, 'secret')
    }
  }
})

t.test('a signal ends a call at once, before and during it, with its own reason', async (t) => {
  await using standIn = await startVpic()
  const client = createVpicClient({ baseUrl: standIn.baseUrl })
  const reason = new Error('enough')
  await t.rejects(client.decode({ vin }, { signal: AbortSignal.abort(reason) }), reason)
  t.equal(standIn.calls.length, 0)
  standIn.script({ kind: 'silence' })
  const controller = new AbortController()
  const call = client.decode({ vin }, { signal: controller.signal })
  setTimeout(() => controller.abort(reason), 20)
  await t.rejects(call, reason)
  const deaf = createVpicClient({ fetch: () => new Promise<Response>(() => {}) })
  const late = new AbortController()
  const unheard = deaf.decode({ vin }, { signal: late.signal })
  late.abort(reason)
  await t.rejects(unheard, reason, 'a fetch that does not heed signals is not waited for')
})

t.test('a time-out covers the body too; a slow answer within it is no failure', async (t) => {
  await using standIn = await startVpic()
  standIn.script({ kind: 'latency', ms: 60 })
  t.match(await createVpicClient({ baseUrl: standIn.baseUrl }).decode({ vin }), { Make: 'HONDA' })
  const stuck = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode('{')) })
  const fetch: Fetch = async () => new Response(stuck)
  await t.rejects(createVpicClient({ fetch, timeoutMs: 30 }).decode({ vin }), {
    code: 'UPSTREAM',
    details: { reason: 'timeout' },
  })
})

t.test('a body beyond its bound is not read to its end', async (t) => {
  let sent = 0
  const endless = new ReadableStream({
    pull(controller) {
      sent++
      controller.enqueue(new Uint8Array(1_000).fill(32))
    },
  })
  const client = createVpicClient({ fetch: async () => new Response(endless), bodyBytesMax: 10_000 })
  await t.rejects(client.decode({ vin }), { code: 'UPSTREAM', details: { reason: 'body' } })
  t.ok(sent < 20, `${sent} pieces read`)
})

t.test('a BOM before the JSON, and JSON under another type, are read', async (t) => {
  const text = `\ufeff${JSON.stringify({ Results: [{ VIN: vin, Make: 'HONDA' }] })}`
  for (const type of ['text/plain', 'application/octet-stream', '']) {
    const { fetch } = fakeFetch(text, { headers: type === '' ? {} : { 'content-type': type } })
    t.match(await createVpicClient({ fetch }).decode({ vin }), { Make: 'HONDA' }, type)
  }
})

t.test('strange envelopes are UPSTREAM', async (t) => {
  const strange = [
    '',
    'null',
    '5',
    '"x"',
    '[]',
    '{}',
    '{"Results":null}',
    '{"Results":{}}',
    '{"Results":[]}',
    '{"Results":[null]}',
    ' <x/>',
  ]
  for (const body of strange) {
    const { fetch } = fakeFetch(body)
    await t.rejects(createVpicClient({ fetch }).decode({ vin }), { code: 'UPSTREAM' }, body)
  }
  const { fetch } = fakeFetch({ Message: ' execution error ', Results: [{ VIN: vin, Make: 'X' }] })
  await t.rejects(createVpicClient({ fetch }).decode({ vin }), { code: 'UPSTREAM', details: { reason: 'execution' } })
})

t.test('a fetch that throws something odd is UPSTREAM', async (t) => {
  for (const thrown of [undefined, 'x', new TypeError('fetch failed', { cause: { code: 'E' } })]) {
    const client = createVpicClient({ fetch: () => Promise.reject(thrown) })
    await t.rejects(client.decode({ vin }), { code: 'UPSTREAM', details: { reason: 'network' } })
  }
  const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:80'), { code: 'ECONNREFUSED' })
  const refused = createVpicClient({ fetch: () => Promise.reject(new TypeError('fetch failed', { cause })) })
  await t.rejects(refused.decode({ vin }), { message: 'vPIC: the connection failed (ECONNREFUSED)' })
})

t.test('Retry-After: seconds, dates, and neither', async (t) => {
  const now = Date.UTC(2025, 0, 1)
  t.equal(parseRetryAfter('120', now), 120_000)
  t.equal(parseRetryAfter('0', now), 0)
  t.equal(parseRetryAfter('Wed, 01 Jan 2025 00:01:00 GMT', now), 60_000)
  t.equal(parseRetryAfter('Wed, 01 Jan 2020 00:01:00 GMT', now), 0)
  for (const text of [null, '', '-5', '1.5', 'soon', '99999999999999999999'])
    t.equal(parseRetryAfter(text, now), null, `${text}`)
})
