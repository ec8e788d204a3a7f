import t from 'tap'
import { runConformance } from '../conformance/run.ts'
import { Seeded } from '../support/seeded.ts'
import { LocalDynamoDB } from './support/server.ts'
import { suiteOptions } from './support/suite.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())
t.setTimeout(600_000)

// Slow, and units, faults and eight.ts have stale indexes, too: not in every run.
const skip = process.env['ASKONCE_LONG'] === undefined && 'runs with ASKONCE_LONG=1'

t.test('DynamoDB, old items with failed conditions, and an index that shows what was', { skip }, async (t) => {
  const random = new Seeded()
  t.comment(`ASKONCE_SEED=${random.seed} makes the same index again`)
  server.wire.oldItems = true
  server.wire.index = { random: random.next }
  // What comes next can't be told from such an index.
  const options = { lookahead: 0, shards: 3 }
  runConformance(t, await suiteOptions({ tableName: 'stale', client: () => server.client(), options }))
})
