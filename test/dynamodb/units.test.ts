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

/** What each step costs of a refresh, and of a completion with rows, with a result of so many bytes. */
async function beyondOneRun(resultBytes: number) {
  const { meter, handle } = await metered({ holdCache: 60_000 })
  const costs: Record<string, string> = {}
  const step = (name: string) => {
    const usage = meter.take()
    costs[name] = `${writes(usage)} W, ${usage.reads} R; ${usage.requests}`
  }
  const result = 'y'.repeat(resultBytes)
  const run = async (generation: string, last: Parameters<StorageHandle['settle']>[0][number]['verdict']) => {
    const { jobs } = await handle.claim({ generation, leaseMs: 30_000, limit: 1 })
    if (jobs.length !== 1) throw new Error('nothing to claim')
    step('claim')
    await handle.settle([{ id: 'a', generation, verdict: last }], null)
  }
  await handle.enqueue([item('a', 'x'.repeat(500))])
  await run('first', complete(result, 60_000))
  meter.take()
  const again = item('a', 'x'.repeat(500))
  await handle.enqueue([{ ...again, spec: { ...again.spec, incarnation: 'another' }, refresh: true }])
  step('refresh')
  await handle.get(['a'])
  step('read')
  await run('second', retry('an error', 0))
  step('retry')
  await run('third', complete(result.replace('y', 'z'), 60_000, { rows: 'r'.repeat(300), ttlMs: 3_600_000 }))
  step('complete with rows')
  await handle.mark([{ id: 'a', name: 'mail', token: 't'.repeat(22) }])
  step('mark')
  const { collected } = await handle.deliver([], { generation: 'relay', leaseMs: 30_000, limit: 1 })
  if (collected?.records.length !== 1) throw new Error('nothing to deliver')
  step('collect')
  await handle.deliver([{ id: 'a', generation: 'relay', rows: null, delayMs: 0 }], null)
  step('delivered')
  await handle.close()
  return costs
}

t.test('what a refresh, marks and an outbox cost, with a result of 1 KB and of 4 KB', async (t) => {
  t.same(await beyondOneRun(1_024), {
    refresh: '2+1 W, 1 R; 2',
    read: '0+0 W, 1 R; 1',
    claim: '2+2 W, 1.5 R; 3',
    retry: '2+2 W, 0 R; 1',
    'complete with rows': '2+2 W, 0 R; 1',
    mark: '2+1 W, 1 R; 2',
    collect: '2+2 W, 1.5 R; 3',
    delivered: '2+1 W, 1 R; 2',
  })
  // The result is written where it is moved to, and never again.
  t.same(await beyondOneRun(4_096), {
    refresh: '10+1 W, 2 R; 3',
    read: '0+0 W, 3 R; 2',
    claim: '1+2 W, 3.5 R; 4',
    retry: '1+2 W, 0 R; 1',
    'complete with rows': '6+2 W, 0 R; 2',
    mark: '1+1 W, 3 R; 3',
    collect: '1+2 W, 1.5 R; 3',
    delivered: '1+1 W, 3 R; 3',
  })
})
