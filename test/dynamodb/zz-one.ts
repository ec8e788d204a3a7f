import { conformance } from '../../storages/conformance/index.ts'
import { LocalDynamoDB } from './support/server.ts'
import { suiteOptions } from './support/suite.ts'

const [pattern = '', seed, extra = '{}', wire = ''] = process.argv.slice(2)
const server = await LocalDynamoDB.start()

import { Table } from 'dynamodb-toolbox/table'

const table = wire.includes('theirs')
  ? {
      table: new Table({
        name: 'plain',
        partitionKey: { name: 'PK', type: 'string' },
        sortKey: { name: 'SK', type: 'string' },
        indexes: {
          GSI1: {
            type: 'global',
            partitionKey: { name: 'GSI1PK', type: 'string' },
            sortKey: { name: 'GSI1SK', type: 'string' },
          },
        },
      }) as unknown as Table,
      indexName: 'GSI1',
    }
  : {}
const o = await suiteOptions({
  tableName: 'plain',
  client: () => server.client({ maxAttempts: 10 }),
  options: { ...table, ...JSON.parse(extra) },
})
if (wire.includes('stale')) server.wire.index = { random: Math.random }
if (wire.includes('old')) server.wire.oldItems = true
if (wire.includes('lose'))
  server.wire.lose = { operations: ['PutItem', 'UpdateItem'], chance: 0.2, random: Math.random }
const cases: [string, () => Promise<void>][] = []
conformance({
  ...o,
  test: (n, r) => void cases.push([n, r]),
  ...(seed && seed !== '-'
    ? { random: { seed: Number(seed), runs: Number(process.env['RUNS'] ?? 1), commands: 400 } }
    : {}),
})
let bad = 0
for (const [n, r] of cases)
  if (n.includes(pattern)) {
    try {
      await r()
    } catch (e: any) {
      bad++
      console.log('FAIL', n, e?.message, e?.stack?.split('\n').slice(0, 9).join('\n'), e?.cause)
    }
  }
console.log('done', bad, server.wire.lost)
await server.stop()
