import t from 'tap'
import type { CompletedRecord } from '../../src/record.ts'
import { complete } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { LocalDynamoDB } from './support/server.ts'
import { claimOne, freshTable, job, token } from './support/table.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())
t.afterEach(() => {
  Object.assign(server.wire, { oldItems: false, lose: null, refuse: null, seen: null })
})

const graceMs = 100
const seconds = (ms: number) => Math.ceil(ms / 1000) + 3_600

async function table(options: Parameters<typeof freshTable>[1] = {}) {
  const clock = new VirtualClock()
  const made = await freshTable(server, { clock, grace: graceMs, ...options })
  const handle = await made.storage.open('q')
  const item = async (id: string) => (await made.items()).get(`askonce#q#j#${id}`)
  return { ...made, clock, handle, item }
}

interface Posted {
  readonly result?: string
  readonly rows?: string
  readonly ttlMs?: number
  readonly rowsMs?: number
}

/** Runs a job whose completion posts rows. */
async function post(handle: StorageHandle, id: string, posted: Posted = {}): Promise<void> {
  const { result = 'a result', rows = 'the rows', ttlMs = 1_000, rowsMs = 60_000 } = posted
  await handle.enqueue([job(id)])
  const { generation } = await claimOne(handle, id)
  const verdict = complete(result, ttlMs, { rows, ttlMs: rowsMs })
  await handle.settle([{ id, generation, verdict }], null)
}

async function collect(handle: StorageHandle, limit = 10, leaseMs = 5_000) {
  const generation = token('generation')
  const { collected } = await handle.deliver([], { generation, leaseMs, limit })
  return { generation, ...collected! }
}

t.test('rows have a place of their own in the index, until they are delivered; the TTL is theirs', async (t) => {
  const { handle, item, clock } = await table()
  await post(handle, 'a', { ttlMs: 1_000, rowsMs: 60_000 })
  const postedAt = clock.now()
  t.match(await item('a'), { v: 2, s: 'c', o: 'the rows', shard: 'askonce#q#o0', due: postedAt })
  t.equal((await item('a'))?.['ttl'], seconds(postedAt + 60_000))
  t.same((await handle.claim({ generation: token('g'), leaseMs: 1_000, limit: 10 })).jobs, [])
  const { generation, records } = await collect(handle)
  t.match(records, [{ spec: { id: 'a' }, outbox: { rows: 'the rows', attempts: 1, generation } }])
  t.match(await item('a'), { G: generation, A: 1, due: postedAt + 5_000 + graceMs })
  await handle.deliver([{ id: 'a', generation, rows: 'the rest', delayMs: 700 }], null)
  t.match(await item('a'), { o: 'the rest', G: undefined, due: postedAt + 700 })
  await clock.advance(700)
  const second = await collect(handle)
  await handle.deliver([{ id: 'a', generation: second.generation, rows: null, delayMs: 0 }], null)
  const delivered = (await item('a'))!
  for (const name of ['o', 'O', 'G', 'A', 'U', 'shard', 'due']) t.notOk(name in delivered, `${name} is gone`)
  t.match(delivered, { v: 1, r: 'a result', ttl: seconds(postedAt + 1_000) })
  await handle.close()
})

t.test('an undelivered record lives on past its TTL; what takes its place must have read it', async (t) => {
  for (const oldItems of [true, false]) {
    server.wire.oldItems = oldItems
    const { handle, clock } = await table()
    await post(handle, 'a', { ttlMs: 1_000, rowsMs: 60_000 })
    await clock.advance(30_000)
    t.match((await handle.enqueue([job('a')])).answers, [{ outcome: 'exists', record: { state: 'completed' } }])
    await clock.advance(30_000)
    t.same((await handle.get(['a'])).records, [null], 'given up, and gone')
    t.match((await handle.enqueue([job('a')])).answers, [{ outcome: 'created' }])
    await handle.close()
  }
})

t.test('what was given up does not stand in the way of what is due behind it', async (t) => {
  // The earliest first, of which these are.
  const { handle, item, clock, items } = await table({ random: () => 0 })
  for (const id of ['a', 'b', 'c', 'd']) await post(handle, id, { ttlMs: 1, rowsMs: 1_000 })
  await clock.advance(1_000)
  await post(handle, 'e')
  t.equal((await items()).size, 5)
  const { records } = await collect(handle, 1)
  t.same(
    records.map(({ spec }) => spec.id),
    ['e'],
  )
  t.equal((await items()).size, 1, 'they have been removed')
  t.ok(await item('e'))
  const { records: none, nextInMs } = await collect(handle)
  t.same(none, [])
  t.ok(nextInMs === null || nextInMs > 0, `${nextInMs}`)
  await handle.close()
})

t.test('claims never read past outboxes, nor relays past jobs', async (t) => {
  const { handle, clock } = await table()
  for (let n = 0; n < 30; n++) await post(handle, `posted ${n}`)
  await handle.enqueue(Array.from({ length: 30 }, (_, n) => job(`queued ${n}`)))
  await clock.advance(1)
  const seen: string[] = []
  server.wire.seen = (operation) => seen.push(operation)
  const { jobs } = await handle.claim({ generation: token('g'), leaseMs: 1_000, limit: 5 })
  t.ok(jobs.length === 5 && jobs.every(({ spec }) => spec.id.startsWith('queued')))
  t.equal(seen.filter((operation) => operation === 'Query').length, 1)
  seen.length = 0
  const { records } = await collect(handle, 5)
  t.ok(records.length === 5 && records.every(({ spec }) => spec.id.startsWith('posted')))
  t.equal(seen.filter((operation) => operation === 'Query').length, 1)
  await handle.close()
})

t.test('outboxes spread over shards, too', async (t) => {
  const { handle, items, clock } = await table({ shards: 3 })
  const ids = Array.from({ length: 12 }, (_, n) => `job ${n}`)
  for (const id of ids) await post(handle, id)
  await clock.advance(1)
  const shards = new Set([...(await items()).values()].map(({ shard }) => shard).filter((shard) => shard !== undefined))
  t.equal(shards.size, 3)
  const found: string[] = []
  for (let round = 0; round < 12 && found.length < 12; round++) {
    found.push(...(await collect(handle, 4)).records.map(({ spec }) => spec.id))
  }
  t.same(found.toSorted(), ids.toSorted())
  await handle.close()
})

t.test('the largest result and the largest outbox go together: the result gets an item of its own', async (t) => {
  const { handle, item, items, clock } = await table()
  const result = 'y'.repeat(350 * 1024)
  await post(handle, 'a', { result, rows: 'x'.repeat(64 * 1024), ttlMs: 1_000, rowsMs: 600_000 })
  const key = String((await item('a'))?.['Q'])
  t.equal((await items()).get(key)?.['ttl'], seconds(clock.now() + 600_000), 'for as long as the record may live')
  const read = async () => ((await handle.get(['a'])).records[0] as CompletedRecord).result
  t.equal(await read(), result)
  const { generation, records } = await collect(handle)
  t.equal(records[0]?.outbox?.rows, 'x'.repeat(64 * 1024))
  t.equal(await read(), result)
  await handle.deliver([{ id: 'a', generation, rows: null, delayMs: 0 }], null)
  t.equal(await read(), result)
  t.equal((await item('a'))?.['Q'], key)
  const [duplicate] = (await handle.enqueue([job('a')])).answers
  t.equal((duplicate!.record as CompletedRecord).result, result)
  await clock.advance(1_000)
  t.same((await handle.get(['a'])).records, [null])
  await handle.close()
})

t.test('a delivery whose answer was lost is known as one’s own', async (t) => {
  const { storage, handle } = await table()
  await post(handle, 'a')
  let losses = 1
  server.wire.lose = { operations: ['UpdateItem'], chance: 0.5, random: () => (losses-- > 0 ? 0 : 1) }
  const { generation, records } = await collect(handle)
  t.equal(records.length, 1)
  t.equal(records[0]?.outbox?.attempts, 1)
  t.equal(storage.counters.recognised, 1)
  losses = 1
  const { answers } = await handle.deliver([{ id: 'a', generation, rows: null, delayMs: 0 }], null)
  t.same(answers, ['delivered'])
  t.equal(storage.counters.recognised, 2)
  await handle.close()
})
