import t from 'tap'
import {
  createVinDecoder,
  DedupeReport,
  type VinOutcome,
  vinCells,
  vinColumns,
  vinId,
} from '../../src/presets/vin/index.ts'
import { vehicles } from '../support/vpic/index.ts'
import { FakeClient, failure } from './fake-client.ts'

const vins = vehicles.map(({ vin }) => vin)

async function outcomesOf(rows: readonly unknown[], client = new FakeClient()): Promise<VinOutcome[]> {
  await using decoder = createVinDecoder({ client, minIntervalMs: 0, policy: { maxAttempts: 1 } })
  const outcomes: VinOutcome[] = []
  for await (const outcome of decoder.decodeMany(rows)) outcomes.push(outcome)
  return outcomes
}

t.test('cells: raw first and as it was, then vin, id, class, suggestion, in a fixed order', async (t) => {
  t.strictSame(vinColumns.slice(0, 5), ['vin_raw', 'vin', 'vin_id', 'vin_class', 'vin_suggestion'])
  const rows = [
    ' 1hgcm82633a004352',
    '1FBNE3BE1CDB23596',
    '1HGCM82633A00435O',
    'U5YH2519LKL016670',
    null,
    { vin: vins[0], modelYear: 1 },
  ]
  const cells = (await outcomesOf(rows)).map(vinCells)
  for (const row of cells) t.equal(row.length, vinColumns.length)
  const id = vinId('1HGCM82633A004352')
  t.strictSame(cells[0], [
    ' 1hgcm82633a004352',
    '1HGCM82633A004352',
    id,
    'CLEAN',
    '',
    'HONDA',
    'Accord',
    '2003',
    '0',
    '',
  ])
  t.strictSame(cells[1]?.slice(3, 9), ['WARN', '1FBNE3BL1CDB23596', 'FORD', 'E-350', '2012', '1,3,14'])
  t.match(cells[1]?.[9], /check digit/)
  t.strictSame(cells[2]?.slice(0, 5), [
    '1HGCM82633A00435O',
    '1HGCM82633A00435O',
    '',
    'LOCAL_INVALID',
    '1HGCM82633A004350',
  ])
  t.strictSame(cells[3]?.slice(3, 9), ['NO_DATA', '', '', '', '', '1,8,400'])
  t.strictSame(cells[4]?.slice(0, 4), ['', '', '', 'LOCAL_INVALID'])
  t.strictSame(cells[5]?.slice(0, 4), [vins[0], '', '', 'UNDECIDED'])
})

t.test('the report: rows, unique, hits, calls saved, classes', async (t) => {
  const report = new DedupeReport()
  const rows = [vins[0], vins[0]?.toLowerCase(), vins[1], 'bad', { vin: vins[1], modelYear: 2010 }]
  const client = new FakeClient((asked) => {
    if (asked.includes(vins[1]!)) throw failure('UPSTREAM', { reason: 'timeout' })
    return undefined
  })
  const outcomes = await outcomesOf(rows, client)
  for (const outcome of outcomes) report.add(outcome)
  const summary = report.summary(client.calls.length)
  t.match(summary, { rows: 5, valid: 4, unique: 3, cached: 0, shared: 1, asked: 3 })
  t.equal(summary.callsSaved, 4 - client.calls.length)
  t.equal(
    Object.values(summary.classes).reduce((sum, count) => sum + count, 0),
    5,
  )
  t.equal(summary.classes.LOCAL_INVALID, 1)
  t.equal(new DedupeReport().summary(3).callsSaved, 0)
})

t.test('near-duplicates: one character, or two neighbours swapped; fleets are none', async (t) => {
  const vin = '1FAHP3FN8AW139719'
  const typo = '1FAHP3FN8AW139716'
  const swapped = '1FAHP3FN8AW137919'
  const fleet = ['1HGCM82633A004352', '1HGCM82653A004353', '1HGCM82673A004354']
  const report = new DedupeReport()
  for (const outcome of await outcomesOf([vin, typo, swapped, ...fleet, ...vins])) report.add(outcome)
  const pairs = report.nearDuplicates().map((pair) => [pair.vin, pair.like])
  t.strictSame(
    pairs.sort(),
    [
      [swapped, vin],
      [typo, vin],
    ].sort(),
  )
})
