import t from 'tap'
import type { SystemName } from '../../benchmarks/backends/backend.ts'
import { memory } from '../../benchmarks/backends/memory.ts'
import { measure } from '../../benchmarks/run/host.ts'
import { scenarios } from '../../benchmarks/scenarios/index.ts'
import { upload } from '../../benchmarks/vin/rows.ts'
import { checkVin, passesCheckDigit } from '../../src/presets/vin/index.ts'

t.test('scenarios measure both systems on Memory, at a tiny size', async (t) => {
  const site = await memory.start()
  for (const name of ['enqueue', 'duplicate', 'process', 'wait', 'payload', 'wake']) {
    const one = scenarios.find((scenario) => scenario.name === name)?.cases(true)[0]?.name ?? ''
    for (const system of ['askonce', 'bare'] satisfies SystemName[]) {
      const figures = await measure('memory', site, { scenario: name, case: one, system, jobs: 8, quick: true })
      const { rate, p50 } = figures
      t.ok((name === 'wake' ? p50 : rate)! > 0, `${name}, ${system}`)
      t.ok(Object.values(figures).every(Number.isFinite), 'nothing that is no number')
    }
  }
  await site.stop()
})

t.test('a case that there is not is refused', async (t) => {
  const site = await memory.start()
  const order = { scenario: 'enqueue', case: '2 in flight', system: 'askonce', jobs: 8, quick: true }
  await t.rejects(measure('memory', site, order), /no case 2 in flight of enqueue/)
})

t.test('names of scenarios and cases are keys: each is there once', async (t) => {
  for (const quick of [true, false]) {
    const names = scenarios.flatMap((scenario) => scenario.cases(quick).map((one) => `${scenario.name} ${one.name}`))
    t.equal(new Set(names).size, names.length)
  }
})

t.test('the file of VINs: all distinct ones, evenly, each sound; the same again from the same seed', async (t) => {
  const rows = upload({ rows: 1_000, distinct: 100 })
  const counts = new Map<string, number>()
  for (const vin of rows) counts.set(vin, (counts.get(vin) ?? 0) + 1)
  t.equal(counts.size, 100)
  t.ok([...counts.values()].every((count) => count === 10))
  t.ok([...counts.keys()].every((vin) => passesCheckDigit(vin) && checkVin(vin).ok))
  t.same(upload({ rows: 1_000, distinct: 100 }), rows)
  t.notSame(upload({ rows: 1_000, distinct: 100 }, 9), rows)
})
