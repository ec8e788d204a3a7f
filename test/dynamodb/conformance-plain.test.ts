import t from 'tap'
import { runConformance } from '../conformance/run.ts'
import { LocalDynamoDB } from './support/server.ts'
import { suiteOptions } from './support/suite.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())
t.setTimeout(600_000)

t.test('DynamoDB, as dynalite is: no old items with failed conditions', async (t) => {
  runConformance(t, await suiteOptions({ tableName: 'plain', client: () => server.client() }))
})
