/**
 * Every ```js block of the DynamoDB guide is run as it stands there, against dynalite; what it takes for granted is put before it, what
 * shows that it works behind. (The ```ts blocks, which need nothing more, are run by test/docs.)
 */

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { projectedAttributes } from '../../storages/dynamodb/schema.ts'
import { root, SampleRunner, samplesOf } from '../support/samples.ts'
import { LocalDynamoDB } from './support/server.ts'

const guide = join(root, 'docs/guides/dynamodb.md')

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())

const imports = {
  storage: "import { DynamoDBStorage, dynamoDBEntities } from 'askonce/dynamodb'",
  queue: "import { Queue } from 'askonce'",
  table: "import { Table } from 'dynamodb-toolbox/table'",
}

/** A block, by what it begins with. */
interface Sample {
  readonly begins: string
  readonly before: string
  readonly after: string
  readonly prints: unknown
}

const samples: readonly Sample[] = [
  {
    begins: "import { Queue } from 'askonce'",
    before: "const decode = async ({ vin }) => ({ vin, make: 'Honda' })",
    after: 'print(answer); await queue.stop()',
    prints: { vin: '1HGCM82633A004352', make: 'Honda' },
  },
  {
    begins: "const table = new TableV2(this, 'Askonce', {",
    before: `
      const AttributeType = { STRING: 'S', NUMBER: 'N' }
      const Billing = { onDemand: () => 'PAY_PER_REQUEST' }
      const ProjectionType = { INCLUDE: 'INCLUDE' }
      class TableV2 { constructor(scope, id, props) { this.props = props } }`,
    after: 'print(table.props)',
    prints: {
      partitionKey: { name: 'pk', type: 'S' },
      billing: 'PAY_PER_REQUEST',
      timeToLiveAttribute: 'ttl',
      globalSecondaryIndexes: [
        {
          indexName: 'due',
          partitionKey: { name: 'shard', type: 'S' },
          sortKey: { name: 'due', type: 'N' },
          projectionType: 'INCLUDE',
          nonKeyAttributes: [...projectedAttributes],
        },
      ],
    },
  },
  {
    begins: 'const table = new Table({',
    before: `
      ${imports.storage}
      ${imports.queue}
      ${imports.table}
      import { DynamoDBClient } from '@aws-sdk/client-dynamodb'
      import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
      import { GetItemCommand } from 'dynamodb-toolbox/entity/actions/get'`,
    after: `
      await storage.createTable()
      const queue = new Queue({ storage, name: 'q' })
      await queue.enqueue('an id', { n: 1 })
      const client = new DynamoDBClient({})
      table.documentClient = DynamoDBDocumentClient.from(client)
      const { Item } = await job.build(GetItemCommand).key({ pk: 'askonce#q#j#an id', sk: 'askonce' }).send()
      print([Item.s, Item.p])
      client.destroy()
      await queue.stop()`,
    prints: ['q', '{"n":1}'],
  },
  {
    begins: 'const storage = new DynamoDBStorage({\n  tableName',
    before: `
      ${imports.storage}
      import { EventEmitter } from 'node:events'
      const bus = new EventEmitter()`,
    after: `
      await storage.createTable()
      const handle = await storage.open('q')
      const hints = []
      const end = handle.watch((hint) => hints.push(hint.type))
      bus.emit('message', { queue: 'another' })
      bus.emit('message', { queue: 'q' })
      end()
      await handle.close()
      print([hints, bus.listenerCount('message')])`,
    prints: [['due', 'outbox'], 0],
  },
]

const environment = {
  AWS_ENDPOINT_URL_DYNAMODB: server.endpoint,
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'none',
  AWS_SECRET_ACCESS_KEY: 'none',
}

t.test('samples of the guide', async (t) => {
  t.setTimeout(600_000)
  const runner = new SampleRunner()
  t.teardown(() => runner.end())
  const markdown = await readFile(guide, 'utf8')
  const blocks = samplesOf(markdown, 'js').map(({ code }) => code)
  t.equal(blocks.length, samples.length, 'each is known')
  for (const { begins, before, after, prints } of samples) {
    await t.test(begins.split('\n')[0]!, async (t) => {
      const block = blocks.find((code) => code.startsWith(begins))
      if (block === undefined) return void t.fail('it is not in the guide')
      const print = 'const print = (value) => console.log(JSON.stringify(value))'
      const { code, stdout, stderr } = await runner.run(`${before}\n${print}\n${block}\n${after}\n`, environment)
      t.equal(code, 0, `exits by itself with 0 ${stderr}`)
      if (code === 0) t.same(JSON.parse(stdout), prints)
    })
  }
})

t.test('the tables of the guide carry in their index what the storage reads', async (t) => {
  const markdown = await readFile(guide, 'utf8')
  const [, yaml] = /NonKeyAttributes: \[(.*)\]/.exec(markdown)!
  t.same(yaml!.split(', '), [...projectedAttributes])
  const [, policy] = /^```json\n([\s\S]*?)^```$/m.exec(markdown)!
  t.same(
    (JSON.parse(policy!) as { Statement: { Effect: string }[] }).Statement.map(({ Effect }) => Effect),
    ['Allow', 'Allow'],
  )
})
