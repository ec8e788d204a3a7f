/** Situations that broke other decoders, each named after its public report. */

import t from 'tap'
import {
  checkVin,
  createVinDecoder,
  createVpicClient,
  modelYearsOf,
  normalizeVin,
  type VinOutcome,
  vinId,
} from '../../src/presets/vin/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { recordedRows, startVpic, type VpicStandIn, vehicles } from '../support/vpic/index.ts'
import { oracle } from './oracle.ts'

const vins = vehicles.map(({ vin }) => vin)
const policy = { retryBaseMs: 1, retryMaxMs: 1 }

function decoderOf(standIn: VpicStandIn, more: Parameters<typeof createVinDecoder>[0] = {}) {
  return createVinDecoder({
    client: createVpicClient({ baseUrl: standIn.baseUrl }),
    minIntervalMs: 0,
    policy,
    ...more,
  })
}

async function all(outcomes: AsyncIterable<VinOutcome>): Promise<VinOutcome[]> {
  const list: VinOutcome[] = []
  for await (const outcome of outcomes) list.push(outcome)
  return list
}

t.test(
  'davidpeckham/vpic-api#8: XML with status 200 on a batch is a failure of the service, and not cached as an answer',
  async (t) => {
    await using standIn = await startVpic()
    await using decoder = decoderOf(standIn)
    standIn.script({ kind: 'xml' })
    t.match(
      await all(decoder.decodeMany(vins.slice(0, 3))),
      [{ ok: true }, { ok: true }, { ok: true }],
      'the next attempt answers',
    )
    standIn.script({ kind: 'xml' }, { kind: 'xml' }, { kind: 'xml' }, { kind: 'xml' })
    const outcome = await decoder.decode(vins[9])
    t.match(outcome, { ok: false, class: 'UPSTREAM', details: { reason: 'body', status: 200 } })
    const status = await decoder.queue.getStatus(vinId(vins[9]!))
    t.equal((status?.expiresAt ?? 0) - (status?.settledAt ?? 0), 300_000)
    for (const { body, endpoint } of standIn.calls) {
      if (endpoint === 'decodevinvaluesbatch') t.match(body, /^format=json&/, 'format=json is asked for in the body')
    }
  },
)

t.test(
  'davidpeckham/vpic-api#7: the limits that are enforced are not the documented ones; one limiter for all workers',
  async (t) => {
    await using standIn = await startVpic()
    const storage = new MemoryStorage()
    const decoders = [1, 2, 3, 4].map(() => decoderOf(standIn, { storage, batch: { size: 5, waitMs: 1 } }))
    for (const decoder of decoders) await decoder.start()
    const held: unknown[] = []
    for (const decoder of decoders) decoder.queue.on('held', (event) => held.push(event))
    standIn.script({ kind: 'throttle', retryAfter: '1' })
    await all(decoders[0]!.decodeMany(vins.slice(0, 5)))
    t.equal(standIn.calls.length, 2, 'of four workers none asked during the hold')
    t.match(held[0], { retryAfterMs: 1_000 })
    await Promise.all(decoders.map((decoder) => decoder.close()))
  },
)

t.test('arpuffer/pyvin#8: a VIN with a wrong check digit stays, with a warning and the suggestion', async (t) => {
  await using standIn = await startVpic()
  await using decoder = decoderOf(standIn)
  const outcome = await decoder.decode('1FBNE3BE1CDB23596')
  t.match(outcome, {
    ok: true,
    class: 'WARN',
    vin: '1FBNE3BE1CDB23596',
    warnings: [{ kind: 'check_digit', expected: 'X', mandatory: true }],
    decoded: { make: 'FORD', suggestedVin: '1FBNE3BL1CDB23596' },
  })
  t.equal(outcome.suggestions[0], '1FBNE3BL1CDB23596', 'vPIC’s suggestion comes first, and is not applied')
})

t.test('arpuffer/pyvin#9: a number in place of a text is an outcome, not an exception', async (t) => {
  await using standIn = await startVpic()
  await using decoder = decoderOf(standIn)
  t.match(await all(decoder.decodeMany([5, vins[0]])), [{ class: 'LOCAL_INVALID' }, { ok: true }])
})

t.test('ClutchEngineering/Pelican#37: a UK Kia with 1,8,400 has no data; it is no bad VIN', async (t) => {
  await using standIn = await startVpic()
  await using decoder = decoderOf(standIn)
  t.match(await decoder.decode('U5YH2519LKL016670'), { ok: false, class: 'NO_DATA', details: { codes: [1, 8, 400] } })
})

t.test('cardog-ai/corgi#29: a European letter at position 9 is a warning; the call is made', async (t) => {
  await using standIn = await startVpic()
  await using decoder = decoderOf(standIn)
  const outcome = await decoder.decode('U5YH2519LKL016670')
  t.match(outcome.warnings, [{ kind: 'check_digit', mandatory: false }])
  t.strictSame(standIn.vinsAsked, ['U5YH2519LKL016670'])
})

t.test('cardog-ai/corgi#16: 1980–2009 can be reached: a digit at position 7', async (t) => {
  const now = Date.UTC(2025, 0, 1)
  t.equal(modelYearsOf('2FTCF15F2ECA55516', now)[0], 1984)
  t.equal(modelYearsOf('1HGCM82633A004352', now)[0], 2003)
  for (const { vin, year } of vehicles) t.equal(modelYearsOf(vin, now)[0], year, vin)
})

t.test('h3/python-libvin#24: a truck of 2009 is not of 2039', async (t) => {
  const truck = '1FTWW3BR89EA00001'
  t.equal(truck[9], '9')
  t.strictSame(modelYearsOf(truck, Date.UTC(2025, 0, 1)), [2009], 'a letter at position 7, and yet')
  t.strictSame(modelYearsOf(truck, Date.UTC(2037, 0, 1)), [2039, 2009], 'next year plus one')
  t.strictSame(modelYearsOf(truck, Date.UTC(2036, 11, 31)), [2009])
})

t.test('cardog-ai/corgi#32: an answer after a long time is no failure', async (t) => {
  await using standIn = await startVpic()
  let timeoutMs = 0
  const original = globalThis.setTimeout
  t.teardown(() => {
    globalThis.setTimeout = original
  })
  globalThis.setTimeout = ((callback: () => void, ms: number, ...rest: []) => {
    timeoutMs = Math.max(timeoutMs, ms)
    return original(callback, ms, ...rest)
  }) as typeof setTimeout
  standIn.script({ kind: 'latency', ms: 50 })
  t.match(await createVpicClient({ baseUrl: standIn.baseUrl }).decode({ vin: vins[0]! }), { VIN: vins[0] })
  t.ok(timeoutMs >= 30_000, `the default time-out is ${timeoutMs} ms`)
})

t.test(
  'h3/python-libvin#21: 1 seventeen times passes the check digit; it is a placeholder, and no call is made',
  async (t) => {
    await using standIn = await startVpic()
    await using decoder = decoderOf(standIn)
    for (const digit of ['1', '0']) {
      t.ok(oracle.validate(digit.repeat(17)))
      t.match(await decoder.decode(digit.repeat(17)), { class: 'LOCAL_INVALID', problems: [{ kind: 'placeholder' }] })
    }
    t.equal(standIn.calls.length, 0)
  },
)

t.test('frankely/vin-decoder#6: mixed case is the same vehicle', async (t) => {
  t.equal(vinId('1hGcM82633a004352'), vinId('1HGCM82633A004352'))
  t.match(checkVin('1hGcM82633a004352'), { ok: true, warnings: [] })
})

t.test('ConceptualSystems/sms-mobile-portable#10: a barcode’s leading I is the same vehicle', async (t) => {
  t.equal(normalizeVin('I1N6AA0ED4AN318993'), '1N6AA0ED4AN318993')
  const wrong = '1N6AA0ED4AN318992'
  t.equal(normalizeVin(`I${wrong}`), `I${wrong}`, 'only if the other 17 pass the check digit')
  t.match(checkVin(`I${wrong}`), {
    ok: false,
    problems: [
      { kind: 'length', length: 18 },
      { kind: 'character', position: 1 },
    ],
  })
  t.equal(vinId('I1N6AA0ED4AN318993'), vinId('1N6AA0ED4AN318993'))
})

t.test('hargata/lubelog#1343: an import that was broken off and is run again asks nothing twice', async (t) => {
  await using standIn = await startVpic()
  const storage = new MemoryStorage()
  const first = decoderOf(standIn, { storage })
  let taken = 0
  for await (const _outcome of first.decodeMany(vins, { inFlightMax: 20 })) if (++taken === 60) break
  await first.close()
  const asked = new Set(standIn.vinsAsked)
  const second = decoderOf(standIn, { storage })
  const outcomes = await all(second.decodeMany(vins))
  t.ok(outcomes.every(({ ok }) => ok))
  t.ok(asked.size >= 60)
  t.equal(standIn.vinsAsked.length, vins.length, 'what the first run had asked was not asked again')
  const calls = standIn.calls.length
  await all(second.decodeMany(vins))
  t.equal(standIn.calls.length, calls, 'and a third run makes 0 calls')
  await second.close()
})

t.test('faker-js/faker#540: fixtures check themselves', async (t) => {
  for (const { vin } of vehicles) t.ok(/^[0-9A-HJ-NPR-Z]{17}$/.test(vin) && oracle.validate(vin), vin)
  t.equal(new Set(vins).size, vehicles.length)
  for (const vin of recordedRows.keys()) t.ok(vin.length === 17 || vin.includes('*'), vin)
})

t.test('ConnorRigby/rx8-ecu-dump#2: a ten-character domestic number, padded with blanks', async (t) => {
  const check = checkVin('SE3P123456       ')
  t.match(check, { ok: false, vin: 'SE3P123456', problems: [{ kind: 'length', length: 10 }] })
  t.match(!check.ok && check.problems[0].message, /not a 17-character VIN/)
})

t.test('codes are a list, and data comes before codes', async (t) => {
  await using standIn = await startVpic()
  await using decoder = decoderOf(standIn)
  t.match(await decoder.decode('WDC1668731A298010'), {
    ok: true,
    class: 'WARN',
    decoded: { codes: [8], make: 'MERCEDES-BENZ' },
  })
})
