import t from 'tap'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { DynamoDBStorage } from '../../storages/dynamodb/index.ts'
import { runConformance } from '../conformance/run.ts'
import { LocalDynamoDB } from './support/server.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())
t.setTimeout(600_000)

t.test('DynamoDB, virtual clock', async (t) => {
  const clock = new VirtualClock()
  const client = server.client()
  await new DynamoDBStorage({ tableName: 'plain', client }).createTable()
  let cases = 0
  const make = (keyPrefix: string) =>
    new DynamoDBStorage({ tableName: 'plain', client, keyPrefix, clock, holdCache: 0, grace: 7 })
  const prefixes = new WeakMap<object, string>()
  const made = (keyPrefix: string) => {
    const storage = make(keyPrefix)
    prefixes.set(storage, keyPrefix)
    return storage
  }
  runConformance(t, {
    create: async () => made(`case ${cases++}`),
    createShared: async (storage) => made(prefixes.get(storage)!),
    advance: (ms) => clock.advance(ms),
    graceMs: 7,
    note: () => {},
  })
})
