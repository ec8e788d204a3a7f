import t from 'tap'
import {
  createVinDecoder,
  createVpicClient,
  parseCodes,
  type VinDecodeError,
  type VinOutcome,
  vinClasses,
  vpicCodes,
} from '../../src/presets/vin/index.ts'
import { policyOf, ttlOf } from '../../src/presets/vin/policy.ts'
import { judgeRow, type VpicRow } from '../../src/presets/vin/row.ts'
import { recordedRows, startVpic } from '../support/vpic/index.ts'

const dayMs = 86_400_000
const now = Date.UTC(2025, 5, 1)

function judge(codes: string, data: VpicRow = {}): string {
  const judged = judgeRow({ ErrorCode: codes, ...data })
  if (judged.kind === 'decoded') return judged.decoded.class
  return judged.kind === 'refused' ? judged.refused.class : judged.kind
}

t.test('code fields: lists, old texts, and nothing that is none', async (t) => {
  const cases: [unknown, number[]][] = [
    ['0', [0]],
    ['1,11,400', [1, 11, 400]],
    ['0,14', [0, 14]],
    [' 5 , 6;14 ', [5, 6, 14]],
    ['11- Incorrect Model Year - Position 10 does not match valid codes (I, O, Q, U, Z, 0)', [11]],
    ['1 - Check Digit (9th position) does not calculate; 14 - Unable to provide, 17 characters are needed', [1, 14]],
    ['1,1', [1]],
    ['', []],
    ['none', []],
    [null, []],
    [undefined, []],
    [8, [8]],
    [1.5, []],
    [['0'], []],
  ]
  for (const [field, codes] of cases) t.strictSame(parseCodes(field), codes, JSON.stringify(field))
  t.notOk(vpicCodes.has(13))
})

t.test('rows: data first, then codes', async (t) => {
  const whole = { Make: 'FORD', Model: 'F-150' }
  const cases: [string, VpicRow, string][] = [
    ['0', whole, 'CLEAN'],
    ['0,14', whole, 'CLEAN'],
    ['0,9,12', whole, 'CLEAN'],
    ['1', whole, 'WARN'],
    ['8', whole, 'WARN'],
    ['1,4,14,400', whole, 'WARN'],
    ['6', whole, 'WARN'],
    ['', whole, 'WARN'],
    ['6', {}, 'BAD_VIN'],
    ['400', {}, 'BAD_VIN'],
    ['1,7', {}, 'BAD_VIN'],
    ['1,11,14,400', { Make: 'X' }, 'BAD_VIN'],
    ['7', {}, 'UNKNOWN_MAKER'],
    ['7,11', {}, 'UNKNOWN_MAKER'],
    ['8', {}, 'NO_DATA'],
    ['1,8', {}, 'NO_DATA'],
    ['1,8,400', {}, 'NO_DATA'],
    ['0', { Make: 'X' }, 'NO_DATA'],
    ['14', { Make: 'X', Model: '  ' }, 'NO_DATA'],
    ['1', {}, 'NO_DATA'],
    ['', {}, 'malformed'],
    ['', { Make: '  ', Model: null }, 'malformed'],
  ]
  for (const [codes, data, expected] of cases) t.equal(judge(codes, data), expected, `${codes} ${JSON.stringify(data)}`)
})

t.test('fields are trimmed, empty ones left out, and __proto__ is a field like any other', async (t) => {
  const row = JSON.parse(
    '{"ErrorCode":"0","Make":" FORD ","Model":"F-150","VehicleType":"TRUCK ","Trim":"","__proto__":"x"}',
  )
  const judged = judgeRow(row)
  if (judged.kind !== 'decoded') throw new Error(judged.kind)
  t.strictSame(Object.keys(judged.decoded.fields).sort(), ['ErrorCode', 'Make', 'Model', 'VehicleType', '__proto__'])
  t.equal(judged.decoded.fields['VehicleType'], 'TRUCK')
  t.equal(judged.decoded.make, 'FORD')
  t.equal(judged.decoded.modelYear, null, 'vPIC says none: nothing is guessed')
})

t.test('the recorded rows, over the wire', async (t) => {
  await using standIn = await startVpic()
  const client = createVpicClient({ baseUrl: standIn.baseUrl })
  await using decoder = createVinDecoder({ client, minIntervalMs: 0, partial: true })
  const expected: Record<string, string> = {
    '1HGCM82633A004352': 'CLEAN',
    '1FTMW1T88MFA00001': 'CLEAN',
    '1FTFW1ET5DFC10312': 'WARN',
    '3C6TRVAG6JE100000': 'WARN',
    '5UXWX7C5XBA123456': 'WARN',
    '5UXWX7C5*BA': 'WARN',
    SAL00000000000000: 'NO_DATA',
    ZZZCM82633A004352: 'BAD_VIN',
    '12345678901234567': 'LOCAL_INVALID',
    VF1RFB00X56123456: 'NO_DATA',
    WDC1668731A298010: 'WARN',
    U5YH2519LKL016670: 'NO_DATA',
    '1FBNE3BE1CDB23596': 'WARN',
    '5YJSA3DS*EF': 'WARN',
    '1FA6P8C0!M!100001': 'LOCAL_INVALID',
  }
  t.strictSame(Object.keys(expected).sort(), [...recordedRows.keys()].sort())
  const outcomes: VinOutcome[] = []
  for await (const outcome of decoder.decodeMany(Object.keys(expected))) outcomes.push(outcome)
  for (const outcome of outcomes) t.equal(outcome.class, expected[String(outcome.raw)], String(outcome.raw))
  const ford = outcomes.find(({ vin }) => vin === '1FBNE3BE1CDB23596')
  t.match(ford, {
    ok: true,
    vin: '1FBNE3BE1CDB23596',
    decoded: { suggestedVin: '1FBNE3BL1CDB23596', codes: [1, 3, 14] },
  })
  t.equal(ford?.suggestions[0], '1FBNE3BL1CDB23596')
  const row = await client.decode({ vin: '12345678901234567' })
  t.match(row, { ErrorCode: '1,11,14,400' }, 'the client itself asks what it is told to')
})

t.test('every class has a rule, and the TTLs are those of the table', async (t) => {
  const policy = policyOf()
  t.strictSame(Object.keys(policy.rules).sort(), [...vinClasses].sort())
  const facts = { codes: [], modelYear: 2003, now }
  const days = (name: (typeof vinClasses)[number], more = {}) =>
    (ttlOf(policy, name, { ...facts, ...more }) ?? 0) / dayMs
  t.equal(days('LOCAL_INVALID'), 365)
  t.equal(days('CLEAN', { codes: [0] }), 90)
  t.equal(days('CLEAN', { codes: [0, 14] }), 30)
  t.equal(days('WARN'), 30)
  t.equal(days('BAD_VIN'), 180)
  t.equal(days('NO_DATA'), 30)
  t.equal(days('NO_DATA', { modelYear: 2024 }), 7)
  t.equal(days('NO_DATA', { modelYear: 2025 }), 7)
  t.equal(days('NO_DATA', { modelYear: null }), 30)
  t.equal(days('UNKNOWN_MAKER'), 30)
  t.equal(ttlOf(policy, 'THROTTLED', facts), null)
  t.equal(ttlOf(policy, 'BATCH_GAP', facts), null)
  t.equal(ttlOf(policy, 'UPSTREAM', facts), 300_000)
  t.equal(ttlOf(policy, 'REQUEST_BUG', facts), 3_600_000)
})

t.test('a policy is changed class by class, and bad ones are refused', async (t) => {
  const policy = policyOf({ version: 'mine', rules: { WARN: { retry: 'never', ttlMs: 5 } } })
  t.match(policy, { version: 'mine', rules: { WARN: { ttlMs: 5 }, BAD_VIN: { ttlMs: 180 * dayMs } } })
  const bad: [object, string][] = [
    [{ version: '' }, 'policy.version'],
    [{ maxAttempts: 0 }, 'policy.maxAttempts'],
    [{ holdMs: 0 }, 'policy.holdMs'],
    [{ retryBaseMs: Number.NaN }, 'policy.retryBaseMs'],
    [{ rules: { WARN: { retry: 'backoff', ttlMs: 5 } } }, 'policy.rules.WARN.retry'],
    [{ rules: { WARN: { retry: 'never', ttlMs: null } } }, 'policy.rules.WARN.ttlMs'],
    [{ rules: { UPSTREAM: { retry: 'backoff', ttlMs: 0 } } }, 'policy.rules.UPSTREAM.ttlMs'],
    [{ rules: { UPSTREAM: undefined } }, 'policy.rules.UPSTREAM.retry'],
  ]
  for (const [changes, field] of bad) {
    t.throws(() => createVinDecoder({ policy: changes as never }), { name: 'InvalidArgumentError', field })
  }
})

t.test('every fault has its class, and none of its body is told', async (t) => {
  await using standIn = await startVpic()
  const client = createVpicClient({ baseUrl: standIn.baseUrl, timeoutMs: 2_000 })
  const cases = [
    [{ kind: 'throttle' }, 'THROTTLED', 'status', undefined],
    [{ kind: 'throttle', retryAfter: '7' }, 'THROTTLED', 'status', 7_000],
    [{ kind: 'throttle', retryAfter: 'soon' }, 'THROTTLED', 'status', undefined],
    [{ kind: 'ban' }, 'THROTTLED', 'status', undefined],
    [{ kind: 'status', status: 403, body: 'json' }, 'REQUEST_BUG', 'status', undefined],
    [{ kind: 'gateway_timeout' }, 'UPSTREAM', 'status', undefined],
    [{ kind: 'status', status: 500 }, 'UPSTREAM', 'status', undefined],
    [{ kind: 'status', status: 503, retryAfter: '3', body: 'html' }, 'UPSTREAM', 'status', 3_000],
    [{ kind: 'status', status: 302 }, 'UPSTREAM', 'status', undefined],
    [{ kind: 'xml' }, 'UPSTREAM', 'body', undefined],
    [{ kind: 'html' }, 'UPSTREAM', 'body', undefined],
    [{ kind: 'broken_json' }, 'UPSTREAM', 'body', undefined],
    [{ kind: 'execution_error' }, 'UPSTREAM', 'execution', undefined],
    [{ kind: 'empty_results' }, 'UPSTREAM', 'empty', undefined],
    [{ kind: 'missing' }, 'UPSTREAM', 'empty', undefined],
    [{ kind: 'doubled' }, 'UPSTREAM', 'row', undefined],
    [{ kind: 'reset' }, 'UPSTREAM', 'network', undefined],
    [{ kind: 'reset', halfway: true }, 'UPSTREAM', 'network', undefined],
    [{ kind: 'silence' }, 'UPSTREAM', 'timeout', undefined],
    [{ kind: 'status', status: 400 }, 'REQUEST_BUG', 'status', undefined],
    [{ kind: 'status', status: 404, body: 'html' }, 'REQUEST_BUG', 'status', undefined],
    [{ kind: 'status', status: 413 }, 'REQUEST_BUG', 'status', undefined],
    [{ kind: 'status', status: 414 }, 'REQUEST_BUG', 'status', undefined],
  ] as const
  for (const [fault, code, reason, retryAfterMs] of cases) {
    const name = JSON.stringify(fault)
    standIn.script(fault)
    const error: VinDecodeError = await client.decode({ vin: '1HGCM82633A004352' }).then(
      () => Promise.reject(new Error(`${name}: answered`)),
      (error: VinDecodeError) => error,
    )
    t.match(error, { name: 'VinDecodeError', code, details: { class: code, reason } }, name)
    if (fault.kind === 'xml' || fault.kind === 'html') {
      t.match(error.message, `status 200 with ${fault.kind.toUpperCase()} in place of JSON`)
    }
    t.equal(error.details.retryAfterMs, retryAfterMs, `${name}: Retry-After`)
    t.notMatch(`${error.message} ${error.stack}`, /127\.0\.0\.1|<html|Response|1HGCM8/, `${name}: nothing told`)
    t.ok(JSON.stringify(error.details).length < 200)
  }
  t.match(await client.decode({ vin: '1HGCM82633A004352' }), { Make: 'HONDA' }, 'and the next call is answered')
})
