import t from 'tap'
import { randomOf, recordedRows, seededFaults, startVpic, vehicles } from '../support/vpic/index.ts'

const vins = vehicles.slice(0, 51).map(({ vin }) => vin)

function batch(data: string, more: { format?: string | null; query?: string; escaped?: boolean } = {}) {
  const { format = 'json', query = '', escaped = true } = more
  const form = format === null ? '' : `format=${format}&`
  return {
    path: `DecodeVINValuesBatch/${query}`,
    init: {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: `${form}DATA=${escaped ? encodeURIComponent(data) : data}`,
    },
  }
}

t.test('the endpoints', async (t) => {
  await using standIn = await startVpic()
  const get = async (path: string, init?: RequestInit) => {
    const response = await fetch(standIn.baseUrl + path, init)
    return { status: response.status, type: response.headers.get('content-type') ?? '', text: await response.text() }
  }
  for (const [vin, fact] of recordedRows) {
    for (const endpoint of ['DecodeVinValues', 'decodevinvaluesextended']) {
      const { text } = await get(`${endpoint}/${encodeURIComponent(vin.toLowerCase())}?format=json`)
      const [row] = JSON.parse(text).Results
      t.match(row, { VIN: vin, ErrorCode: fact.codes.join(','), Make: fact.make ?? '', Model: fact.model ?? '' }, vin)
      t.ok(Object.values(row).every((value) => typeof value === 'string'))
    }
  }
  const rows = JSON.parse((await get(`DecodeVin/${vins[0]}?format=json`)).text).Results
  t.match(
    rows.find((row: { Variable: string }) => row.Variable === 'Make'),
    { Value: vehicles[0]?.make.toUpperCase() },
  )
  t.match((await get(`DecodeVinValues/${vins[0]}`)).type, 'xml', 'XML unless asked otherwise')
  t.match(JSON.parse((await get(`DecodeVinValues/${vins[0]}?format=json&modelyear=1999`)).text).Results, [
    { ErrorCode: '0,12' },
  ])
  t.equal((await get('DecodeVinValues/')).status, 404)
  t.equal((await get('Nothing/x')).status, 404)
  t.equal((await get(`DecodeVinValues/${vins[0]}?format=json&modelyear=soon`)).status, 400)
  t.equal((await get(`DecodeVinValues/${'A'.repeat(3_000)}?format=json`)).status, 414)
  t.equal((await get(`DecodeVinValues/${vins[0]}`, { method: 'POST' })).status, 405)
})

t.test('the batch: what the real one insists on', async (t) => {
  await using standIn = await startVpic()
  const post = async (request: ReturnType<typeof batch>) => {
    const response = await fetch(standIn.baseUrl + request.path, request.init)
    return { status: response.status, type: response.headers.get('content-type') ?? '', text: await response.text() }
  }
  const fine = await post(batch(`${vins[0]},2003; ${vins[1]?.toLowerCase()};;`))
  t.strictSame(
    JSON.parse(fine.text).Results.map((row: { VIN: string }) => row.VIN),
    vins.slice(0, 2),
  )
  t.equal(
    JSON.parse((await post(batch(`${vins[0]};${vins[0]}`))).text).Results.length,
    2,
    'asked twice, answered twice',
  )
  t.equal((await post(batch(vins.slice(0, 50).join(';')))).status, 200)
  t.equal((await post(batch(vins.join(';')))).status, 400, '51 are too many')
  t.equal((await post(batch(''))).status, 400)
  t.equal((await post(batch(`${vins[0]},2003`, { escaped: false }))).status, 400, 'values must be escaped')
  t.match(
    (await post(batch(vins[0]!, { format: null, query: '?format=json' }))).type,
    'xml',
    'format in the query: XML with 200',
  )
  t.equal((await post(batch('A'.repeat(70_000)))).status, 413)
  t.equal(standIn.calls.length, 8)
})

t.test('faults come by script, by VIN, or by a seed that replays', async (t) => {
  const kinds = (seed: number) => {
    const plan = seededFaults(seed, 0.5, [{ kind: 'xml' }, { kind: 'ban' }, { kind: 'reset' }])
    return Array.from({ length: 60 }, (_, index) => plan({ number: index + 1, batch: true, vins: [] })?.kind ?? null)
  }
  t.strictSame(kinds(4), kinds(4))
  t.notSame(kinds(4), kinds(5))
  t.ok(new Set(kinds(4)).size === 4, 'all of them, and none')
  const random = randomOf(1)
  t.ok(Array.from({ length: 1_000 }, random).every((value) => value >= 0 && value < 1))
  await using standIn = await startVpic()
  const status = async (vin: string) => (await fetch(`${standIn.baseUrl}DecodeVinValues/${vin}?format=json`)).status
  standIn.script({ kind: 'ban' }, { kind: 'gateway_timeout' })
  standIn.faultFor(vins[1]!, { kind: 'status', status: 418 })
  t.strictSame(
    [await status(vins[0]!), await status(vins[1]!), await status(vins[0]!), await status(vins[0]!)],
    [403, 418, 504, 200],
  )
  standIn.faultFor(vins[1]!, null)
  t.equal(await status(vins[1]!), 200)
  t.strictSame(standIn.vinsAsked, [vins[0], vins[1], vins[0], vins[0], vins[1]])
})
