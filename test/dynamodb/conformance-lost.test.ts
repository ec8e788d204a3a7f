import t from 'tap'
import { longCases, runConformance } from '../conformance/run.ts'
import { Seeded } from '../support/seeded.ts'
import { atOnce, LocalDynamoDB } from './support/server.ts'
import { suiteOptions } from './support/suite.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())
t.setTimeout(600_000)

t.test('DynamoDB, a fifth of the answers to writes lost', async (t) => {
  const random = new Seeded()
  t.comment(`ASKONCE_SEED=${random.seed} loses the same again`)
  server.wire.oldItems = true
  const options = { compress: { fromBytes: 4 } }
  const client = () => server.client({ retryStrategy: atOnce(10) })
  const suite = await suiteOptions({ tableName: 'lost', client, options })
  // A removal whose answer was lost can't be told from another's: that is said, and tested elsewhere.
  server.wire.lose = { operations: ['PutItem', 'UpdateItem'], chance: 0.2, random: random.next }
  runConformance(t, suite, longCases)
})

t.test('answers were lost indeed', async (t) => {
  t.ok(server.wire.lost > 100, `${server.wire.lost} of them`)
})
