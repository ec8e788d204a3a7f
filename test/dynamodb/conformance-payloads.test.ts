import { Table } from 'dynamodb-toolbox/table'
import t from 'tap'
import { runConformance } from '../conformance/run.ts'
import { LocalDynamoDB } from './support/server.ts'
import { suiteOptions } from './support/suite.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())
t.setTimeout(600_000)

// Slow, and what is its own is tested in items.test.ts: not in every run.
const skip = process.env['ASKONCE_LONG'] === undefined && 'runs with ASKONCE_LONG=1'

t.test('DynamoDB, in a table of the user’s own, every payload an item of its own', { skip }, async (t) => {
  const table = new Table({
    name: 'theirs',
    partitionKey: { name: 'PK', type: 'string' },
    sortKey: { name: 'SK', type: 'string' },
    indexes: {
      GSI1: {
        type: 'global',
        partitionKey: { name: 'GSI1PK', type: 'string' },
        sortKey: { name: 'GSI1SK', type: 'string' },
      },
    },
  })
  const options = {
    table: table as unknown as Table,
    indexName: 'GSI1',
    inlinePayloadBytesMax: 0,
    payloadCleanup: 'delete',
  } as const
  runConformance(t, await suiteOptions({ tableName: 'theirs', client: () => server.client(), options }))
})
