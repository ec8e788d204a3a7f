import { DeleteItemCommand } from '@aws-sdk/client-dynamodb'
import t from 'tap'
import type { CompletedRecord, OpenRecord } from '../../src/record.ts'
import { complete, fail, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { LocalDynamoDB } from './support/server.ts'
import { claimOne, freshTable, job, token } from './support/table.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())
t.afterEach(() => {
  Object.assign(server.wire, { oldItems: false, lose: null, refuse: null, seen: null })
})

const small = 'a result'
const large = 'x'.repeat(5_000)
const ttlMs = 3_600_000
const seconds = (ms: number) => Math.ceil(ms / 1000) + 3_600

/** Runs a job to its result. */
async function run(handle: StorageHandle, id: string, result: string): Promise<void> {
  await handle.enqueue([job(id)])
  const { generation } = await claimOne(handle, id)
  await handle.settle([{ id, generation, verdict: complete(result, ttlMs) }], null)
}

const refreshed = (id: string, payload = 'another payload') => ({ ...job(id, payload), refresh: true })

async function record(handle: StorageHandle, id: string) {
  return (await handle.get([id])).records[0]!
}

async function table(options: Parameters<typeof freshTable>[1] = {}) {
  const clock = new VirtualClock()
  const made = await freshTable(server, { clock, ...options })
  const handle = await made.storage.open('q')
  const item = async (id: string) => (await made.items()).get(`askonce#q#j#${id}`)!
  const apart = async () => new Map([...(await made.items())].filter(([key]) => key.startsWith('askonce#q#p#')))
  return { ...made, clock, handle, item, apart }
}

t.test('an ordinary job’s item has nothing of this', async (t) => {
  const { handle, item } = await table()
  await handle.enqueue([job('a')])
  const names = async () =>
    Object.keys(await item('a'))
      .toSorted()
      .join(' ')
  t.equal(await names(), 'K c d due k m n p pk s shard t v w')
  const { generation } = await claimOne(handle, 'a')
  t.equal(await names(), 'K a c d due g k m n p pk s shard t v w')
  await handle.settle([{ id: 'a', generation, verdict: complete(small, ttlMs) }], null)
  t.equal(await names(), 'K a c d g k m n pk r s t ttl v w z')
  t.equal((await item('a'))['v'], 1)
  await handle.close()
})

t.test('a small result stays in the record, through a refresh that ends well and one in vain', async (t) => {
  const { handle, item, apart, clock } = await table()
  await run(handle, 'a', small)
  const until = clock.now() + ttlMs
  await clock.advance(1_000)
  await handle.enqueue([refreshed('a')])
  t.match(await item('a'), { v: 2, s: 'q', R: small, T: until, p: 'another payload', shard: 'askonce#q#0' })
  t.equal((await item('a'))['ttl'], undefined)
  const first = await claimOne(handle, 'a')
  await handle.settle([{ id: 'a', generation: first.generation, verdict: retry('an error', 0) }], null)
  t.match(await item('a'), { s: 'r', R: small, e: 'an error' })
  const second = await claimOne(handle, 'a')
  await handle.settle([{ id: 'a', generation: second.generation, verdict: fail('no', ttlMs) }], null)
  const restored = await item('a')
  t.match(restored, { v: 2, s: 'c', r: small, t: until, ttl: seconds(until), M: 'e', E: 'no' })
  for (const name of ['R', 'T', 'Z', 'Q', 'p', 'e', 'shard', 'due']) t.notOk(name in restored, `${name} is gone`)

  await handle.enqueue([refreshed('a')])
  t.notOk('M' in (await item('a')), 'a refresh begins anew')
  const third = await claimOne(handle, 'a')
  await handle.settle([{ id: 'a', generation: third.generation, verdict: complete('new', ttlMs) }], null)
  t.match(await item('a'), { v: 1, r: 'new' })
  t.notOk('R' in (await item('a')))
  t.equal((await apart()).size, 0)
  await handle.close()
})

t.test('a large one gets an item of its own, once, that ends with it', async (t) => {
  const { handle, item, apart, clock, storage } = await table()
  await run(handle, 'a', large)
  t.equal((await apart()).size, 0)
  const until = clock.now() + ttlMs
  await handle.enqueue([refreshed('a')])
  const key = String((await item('a'))['Q'])
  t.match((await apart()).get(key), { p: large, o: 'askonce#q#j#a', ttl: seconds(until) })
  t.notOk('R' in (await item('a')))
  t.equal(((await record(handle, 'a')) as OpenRecord).kept?.result, large, 'while queued')
  t.equal((await handle.enqueue([job('a')])).answers[0]?.outcome, 'exists')
  const answered = (await handle.enqueue([job('a')])).answers[0]!.record as OpenRecord
  t.equal(answered.kept?.result, large, 'for a plain enqueue')
  const { generation } = await claimOne(handle, 'a')
  t.equal(((await record(handle, 'a')) as OpenRecord).kept?.result, large, 'while it runs')
  await handle.settle([{ id: 'a', generation, verdict: retry('an error', 0) }], null)
  t.equal(((await record(handle, 'a')) as OpenRecord).kept?.result, large, 'while it fails')
  t.same(await handle.cancel(['a']), ['cancelled'])
  t.equal(((await record(handle, 'a')) as CompletedRecord).result, large, 'in vain')
  t.equal((await item('a'))['Q'], key, 'it was not written again')

  const put = storage.counters.requests
  await handle.touch([{ id: 'a', ttlMs: 10 * ttlMs }])
  t.ok(storage.counters.requests > put)
  t.ok(
    Number((await apart()).get(key)?.['ttl']) >= seconds(clock.now() + 10 * ttlMs),
    'kept for as long as the record is',
  )
  t.equal((await item('a'))['V'], (await apart()).get(key)?.['ttl'], 'record and item agree')
  await handle.enqueue([refreshed('a')])
  t.equal((await item('a'))['Q'], key, 'nor at the next refresh')
  const again = await claimOne(handle, 'a')
  await handle.settle([{ id: 'a', generation: again.generation, verdict: complete('new', ttlMs) }], null)
  t.equal(((await record(handle, 'a')) as CompletedRecord).result, 'new')
  t.notOk('Q' in (await item('a')))
  t.ok((await apart()).has(key), 'left to DynamoDB')
  await handle.close()
})

t.test('it is removed when nobody needs it any more: by a sweep, or at once', async (t) => {
  const left = await table({ inlinePayloadBytesMax: 10 })
  await run(left.handle, 'a', large)
  await run(left.handle, 'b', large)
  await left.handle.enqueue([refreshed('a'), refreshed('b')])
  const { generation } = await claimOne(left.handle, 'a')
  await left.handle.settle([{ id: 'a', generation, verdict: complete('new', ttlMs) }], null)
  await left.handle.sweep(100)
  const count = (await left.apart()).size
  await left.clock.advance(ttlMs)
  await left.handle.sweep(1_000)
  t.ok((await left.apart()).size < count, 'the orphan is gone')
  t.ok((await left.apart()).has(String((await left.item('b'))['Q'])), 'what a record has is left')
  await left.handle.close()

  const gone = await table({ payloadCleanup: 'delete' })
  await run(gone.handle, 'a', large)
  await gone.handle.enqueue([refreshed('a')])
  t.equal((await gone.apart()).size, 1)
  await gone.handle.cancel(['a'])
  await gone.handle.enqueue([refreshed('a')])
  const last = await claimOne(gone.handle, 'a')
  t.equal((await gone.apart()).size, 1)
  await gone.handle.settle([{ id: 'a', generation: last.generation, verdict: complete('new', ttlMs) }], null)
  await gone.handle.close()
  t.equal((await gone.apart()).size, 0)
})

t.test('who reads the record, and finds its result gone, looks whether it has become another', async (t) => {
  const { handle, item, make, client, tableName } = await table({ payloadCleanup: 'delete' })
  await run(handle, 'a', large)
  await handle.enqueue([refreshed('a')])
  const { generation } = await claimOne(handle, 'a')
  const reader = await make({ client: server.client() }).open('q')
  const key = String((await item('a'))['Q'])
  let settled: Promise<unknown> | null = null
  // The reader has the record, and asks for the result: it comes to that once the refresh has ended.
  server.wire.refuse = (operation, { Key }) => {
    if (operation !== 'GetItem' || Key?.['pk']?.S !== key || settled !== null) return null
    settled = handle.settle([{ id: 'a', generation, verdict: complete('new', ttlMs) }], null)
    return { name: 'ThrottlingException' }
  }
  const read = (await record(reader, 'a')) as CompletedRecord
  await settled
  t.ok(settled !== null)
  t.match([(read as unknown as OpenRecord).kept?.result, read.result], [undefined, 'new'])
  server.wire.refuse = null

  await handle.enqueue([refreshed('a')])
  await run(handle, 'b', large)
  await handle.enqueue([refreshed('b')])
  const Key = { pk: { S: String((await item('b'))['Q']) } }
  await client.send(new DeleteItemCommand({ TableName: tableName, Key }))
  t.equal(((await record(handle, 'b')) as OpenRecord).kept?.result, null, 'removed by somebody, it is lost')
  await handle.cancel(['b'])
  t.equal(((await record(handle, 'b')) as CompletedRecord).result, null)
  t.notOk('Q' in (await item('b')))
  await reader.close()
  await handle.close()
})

t.test('a result that was compressed is kept by a process that does not compress', async (t) => {
  const { handle, make, item } = await table()
  const packing = await make({ compress: true }).open('q')
  const text = JSON.stringify(Array.from({ length: 60_000 }, (_, n) => ({ n })))
  t.ok(text.length > storageMax)
  await run(packing, 'a', text)
  await run(packing, 'b', 'y'.repeat(400_000))
  await handle.enqueue([refreshed('a'), refreshed('b')])
  t.ok('Q' in (await item('a')))
  t.ok('R' in (await item('b')), 'compressed, it is small')
  await handle.cancel(['a', 'b'])
  const { records } = await handle.get(['a', 'b'])
  t.equal((records[0] as CompletedRecord).result, text)
  t.equal((records[1] as CompletedRecord).result, 'y'.repeat(400_000))
  await packing.close()
  await handle.close()
})

const storageMax = 350 * 1024

t.test('a claim of a job that is refreshed reads the record, for the index does not tell all of it', async (t) => {
  const { handle, clock } = await table()
  const spec = { maxAttempts: 1 }
  await run(handle, 'a', large)
  await handle.enqueue([{ ...job('a', 'another payload', spec), refresh: true }])
  const { jobs } = await handle.claim({ generation: token('g'), leaseMs: 1_000, limit: 10 })
  t.match(jobs, [{ payload: 'another payload', kept: { result: large } }])
  await clock.advance(60_000)
  const { exhausted } = await handle.claim({ generation: token('g'), leaseMs: 1_000, limit: 10 })
  t.match(exhausted, [{ state: 'completed', result: large, missed: { reason: 'exhausted' } }])
  await handle.close()
})

t.test('marks travel in the record, and go with it', async (t) => {
  const { handle, item, clock } = await table()
  await run(handle, 'a', small)
  const mark = (id: string, name: string) => handle.mark([{ id, name, token: token('t').replace('-', '') }])
  t.same(
    [await mark('a', 'mail'), await mark('a', 'mail'), await mark('a', 'bill')],
    [['marked'], ['taken'], ['marked']],
  )
  t.match(await item('a'), { v: 2, b: /^mail=\w+\nbill=\w+\n$/, r: small })
  await clock.advance(ttlMs)
  const [created] = (await handle.enqueue([job('a')])).answers
  t.equal(created?.outcome, 'created', 'past its end it makes room')
  t.notOk('b' in (await item('a')))
  await handle.close()
})
