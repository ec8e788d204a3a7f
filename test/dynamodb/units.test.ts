import t from 'tap'
import { complete, retry } from '../../src/record.ts'
import type { EnqueueItem, StorageHandle } from '../../src/storage.ts'
import type { DynamoDBStorageOptions } from '../../storages/dynamodb/index.ts'
import { DynamoDBStorage } from '../../storages/dynamodb/index.ts'
import { projectedAttributes } from '../../storages/dynamodb/schema.ts'
import { Meter, type Usage } from './support/meter.ts'
import { LocalDynamoDB } from './support/server.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())

let tables = 0

async function metered(options: Partial<DynamoDBStorageOptions> = {}) {
  const meter = new Meter({ keys: ['pk'], indexKeys: ['shard', 'due'], projected: projectedAttributes })
  server.wire.oldItems = true
  const client = meter.on(server.client())
  const storage = new DynamoDBStorage({ tableName: `table-${tables++}`, client, ...options })
  await storage.createTable()
  const handle = await storage.open('q')
  // The hold is remembered from here on, as it is in a process that has been at work for a second.
  await handle.stats()
  meter.take()
  return { storage, meter, handle }
}

function item(id: string, payload: string): EnqueueItem {
  return {
    spec: {
      id,
      incarnation: `incarnation of ${id}`,
      fingerprint: 'f'.repeat(43),
      maxAttempts: 3,
      resultTTL: 3_600_000,
      failureTTL: 60_000,
    },
    payload,
    delayMs: 0,
    rejectMismatch: false,
    lease: null,
    wait: false,
  }
}

const writes = ({ tableWrites, indexWrites }: Usage): string => `${tableWrites}+${indexWrites}`
const lease = { generation: 'g'.repeat(22), leaseMs: 30_000 }

async function claim(handle: StorageHandle): Promise<void> {
  const { jobs } = await handle.claim({ ...lease, limit: 1 })
  if (jobs.length !== 1) throw new Error('nothing to claim')
}

t.test('write units (table + index) and requests of a job of half a KB with a result of 1 KB', async (t) => {
  const { meter, handle } = await metered({ holdCache: 60_000 })
  let requests = 0
  let total = 0
  const step = (name: string, expected: string) => {
    const usage = meter.take()
    t.equal(writes(usage), expected, name)
    requests += usage.requests
    total += usage.tableWrites + usage.indexWrites
  }
  await handle.enqueue([item('a', 'x'.repeat(500))])
  step('enqueue', '1+1')
  await claim(handle)
  step('claim', '1+2')
  await handle.settle([{ id: 'a', generation: lease.generation, verdict: complete('y'.repeat(1_024), 60_000) }], null)
  step('complete', '2+1')
  t.equal(total, 8)
  t.equal(requests, 4)
  await handle.close()
})

t.test('a duplicate costs one unit, a heartbeat three, a retry three', async (t) => {
  const { meter, handle } = await metered({ holdCache: 60_000 })
  await handle.enqueue([item('a', 'x'.repeat(500))])
  meter.take()
  await handle.enqueue([{ ...item('a', 'x'), spec: { ...item('a', 'x').spec, incarnation: 'another' } }])
  let usage = meter.take()
  t.equal(writes(usage), '1+0', 'duplicate')
  t.equal(usage.requests, 1)
  await claim(handle)
  meter.take()
  await handle.extend([{ id: 'a', ...lease, leaseMs: 60_000 }])
  usage = meter.take()
  t.equal(writes(usage), '1+2', 'heartbeat')
  t.equal(usage.requests, 1)
  await handle.settle([{ id: 'a', generation: lease.generation, verdict: retry('an error', 0) }], null)
  usage = meter.take()
  t.equal(writes(usage), '1+2', 'retry')
  t.equal(usage.requests, 1)
  await handle.get(['a'])
  usage = meter.take()
  t.equal(usage.reads, 1, 'a look')
  await handle.close()
})

t.test('with 4 KB the payload is written once', async (t) => {
  const { meter, handle } = await metered({ holdCache: 60_000 })
  await handle.enqueue([item('a', 'x'.repeat(4_096))])
  const enqueued = meter.take()
  t.equal(writes(enqueued), '6+1')
  await claim(handle)
  const claimed = meter.take()
  t.equal(writes(claimed), '1+2')
  await handle.settle([{ id: 'a', generation: lease.generation, verdict: complete('y'.repeat(1_024), 60_000) }], null)
  const completed = meter.take()
  t.equal(writes(completed), '2+1')
  const sum = [enqueued, claimed, completed].reduce((sum, usage) => sum + usage.tableWrites + usage.indexWrites, 0)
  t.equal(sum, 13)
  // A duplicate does not write its payload.
  await handle.enqueue([{ ...item('b', 'x'.repeat(4_096)) }])
  meter.take()
  const other = item('b', 'z'.repeat(4_096))
  await handle.enqueue([{ ...other, spec: { ...other.spec, incarnation: 'another' } }])
  const duplicate = meter.take()
  t.ok(duplicate.tableWrites <= 1, writes(duplicate))
  await handle.close()
})

t.test('an idle look costs half a read unit', async (t) => {
  const { meter, handle } = await metered()
  await handle.claim({ ...lease, limit: 10 })
  const usage = meter.take()
  t.equal(usage.requests, 1)
  t.equal(usage.reads, 0.5)
  await handle.close()
})
