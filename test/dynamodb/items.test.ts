import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb'
import { GetItemCommand } from 'dynamodb-toolbox/entity/actions/get'
import t from 'tap'
import { complete, fail, retry } from '../../src/record.ts'
import type { Hint } from '../../src/storage.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { dynamoDBEntities, dynamoDBTable } from '../../storages/dynamodb/index.ts'
import { LocalDynamoDB } from './support/server.ts'
import { claimOne, freshTable, job, token } from './support/table.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())

const dayMs = 86_400_000

t.test('an item has index keys while a worker may claim it, and a TTL in seconds once it ends', async (t) => {
  const clock = new VirtualClock()
  const { storage, items } = await freshTable(server, { clock, grace: 1_500 })
  const handle = await storage.open('q')
  const item = async (id: string) => (await items()).get(`askonce#q#j#${id}`)!
  const seconds = (ms: number) => Math.ceil(ms / 1000) + 3_600

  await handle.enqueue([{ ...job('a'), delayMs: 10 }])
  t.match(await item('a'), { s: 'q', shard: 'askonce#q#0', due: clock.now() + 10, ttl: undefined })
  await clock.advance(10)
  const { generation } = await claimOne(handle, 'a', 30_000)
  t.match(await item('a'), { s: 'p', due: clock.now() + 31_500, ttl: undefined })
  await handle.settle([{ id: 'a', generation, verdict: retry('an error', 5_000) }], null)
  t.match(await item('a'), { s: 'r', due: clock.now() + 5_000, e: 'an error', ttl: undefined })
  await clock.advance(5_000)
  const second = await claimOne(handle, 'a')
  t.equal((await item('a'))['e'], undefined, 'the error is gone')
  const verdict = complete('a result', 1_500)
  await handle.settle([{ id: 'a', generation: second.generation, verdict }], null)
  const done = await item('a')
  t.match(done, { s: 'c', r: 'a result', ttl: seconds(clock.now() + 1_500) })
  for (const name of ['shard', 'due', 'p', 'q', 'u']) t.notOk(name in done, `${name} is gone`)

  await handle.enqueue([{ ...job('b'), lease: { generation: 'g', leaseMs: 1_000 } }])
  const inline = await item('b')
  t.notOk('due' in inline, 'an inline run is no worker’s')
  t.equal(inline['ttl'], seconds(clock.now() + 1_000 + 3_600_000))
  await handle.close()
})

t.test('a lease of 1,500 ms: locked at 1.0 s, free at its end and the grace', async (t) => {
  const clock = new VirtualClock()
  const { make } = await freshTable(server, { clock, grace: 1_000 })
  const [one, two] = [await make().open('q'), await make().open('q')]
  await one.enqueue([job('a')])
  await claimOne(one, 'a', 1_500)
  const claim = async () => (await two.claim({ generation: token('g'), leaseMs: 1_000, limit: 1 })).jobs.length
  await clock.advance(1_000)
  t.equal(await claim(), 0)
  await clock.advance(1_499)
  t.equal(await claim(), 0, 'in the grace')
  await clock.advance(1)
  t.equal(await claim(), 1)
  await one.close()
  await two.close()
})

t.test('what is past its end counts as absent, though DynamoDB has not collected it', async (t) => {
  const clock = new VirtualClock()
  const { storage, items } = await freshTable(server, { clock })
  const handle = await storage.open('q')
  await handle.enqueue([job('a')])
  const { generation } = await claimOne(handle, 'a')
  await handle.settle([{ id: 'a', generation, verdict: fail('an error', 1) }], null)
  await clock.advance(1)
  t.equal((await items()).size, 1, 'still there')
  t.same((await handle.get(['a'])).records, [null])
  const before = storage.counters.requests
  t.match((await handle.enqueue([job('a', 'another')])).answers, [{ outcome: 'created' }])
  t.equal(storage.counters.requests, before + 1, 'one write takes its place')
  t.equal((await claimOne(handle, 'a')).payload, 'another')
  await handle.close()
})

t.test('a sweep removes what is past its end, in its namespace alone', async (t) => {
  const clock = new VirtualClock()
  const { storage, items } = await freshTable(server, { clock })
  const [one, two] = [await storage.open('one'), await storage.open('one#j')]
  const ids = Array.from({ length: 30 }, (_, n) => `job ${n}`)
  for (const handle of [one, two]) {
    await handle.enqueue([...ids.map((id) => job(id)), job('stays')])
    for (const id of ids) {
      const { generation } = await claimOne(handle, id)
      await handle.settle([{ id, generation, verdict: complete('x', 1_000) }], null)
    }
  }
  t.equal((await items()).size, 62)
  t.equal(await one.sweep(1_000), 0)
  await clock.advance(2_000)
  t.equal(await one.sweep(10), 10)
  t.equal(await one.sweep(1_000), 20)
  t.equal(await one.sweep(1_000), 0)
  t.equal((await items()).size, 32)
  t.equal(await two.sweep(1_000), 30)
  t.equal((await items()).size, 2)
  await one.close()
  await two.close()
})

t.test('where DynamoDB collects, a sweep does not scan', async (t) => {
  const { make } = await freshTable(server, { sweep: 'ttl' })
  const handle = await make().open('q')
  const seen: string[] = []
  server.wire.seen = (operation) => seen.push(operation)
  t.equal(await handle.sweep(1_000), 0)
  server.wire.seen = null
  t.same(seen, ['Query'])
  await handle.close()
})

t.test('a large payload has an item of its own, written before the record', async (t) => {
  const clock = new VirtualClock()
  const { storage, items } = await freshTable(server, { clock, inlinePayloadBytesMax: 100 })
  const handle = await storage.open('q')
  const payload = 'x'.repeat(101)
  const written: string[] = []
  server.wire.seen = (operation, { Item }) => operation === 'PutItem' && written.push(Item!['pk']!.S!)
  await handle.enqueue([job('small', 'x'.repeat(100)), job('large', payload)])
  server.wire.seen = null
  const [first, second] = written.filter((key) => key !== 'askonce#q#j#small')
  t.match(first, /^askonce#q#p#/)
  t.equal(second, 'askonce#q#j#large')
  const record = (await items()).get('askonce#q#j#large')!
  t.equal(record['p'], undefined)
  t.match((await items()).get(String(record['q'])), { p: payload, o: 'askonce#q#j#large' })
  t.same((await items()).size, 3)

  await handle.enqueue([job('large', 'y'.repeat(500))])
  t.equal((await items()).size, 3, 'a duplicate writes no payload')
  const found = await handle.claim({ generation: 'g', leaseMs: 1_000, limit: 10 })
  t.same(found.jobs.map((job) => job.payload).toSorted(), ['x'.repeat(100), payload])
  await handle.close()
})

t.test('payloads without a record are collected by sweeps, others are not', async (t) => {
  const clock = new VirtualClock()
  const { storage, items, make } = await freshTable(server, { clock, inlinePayloadBytesMax: 10 })
  const handle = await storage.open('q')
  const payloads = async () => [...(await items()).keys()].filter((key) => key.startsWith('askonce#q#p#')).length
  await handle.enqueue(['waits', 'done', 'cancelled'].map((id) => job(id, `payload of ${id}`)))
  // The process dies between the two writes.
  server.wire.refuse = (operation, { Item }) =>
    operation === 'PutItem' && Item!['pk']!.S!.includes('#j#') ? { name: 'AccessDeniedException' } : null
  await t.rejects(handle.enqueue([job('died', 'payload of died')]))
  server.wire.refuse = null
  const { generation } = await claimOne(handle, 'done')
  await handle.settle([{ id: 'done', generation, verdict: complete('x', 60_000) }], null)
  await handle.cancel(['cancelled'])
  t.equal(await payloads(), 4)
  await handle.sweep(1_000)
  t.equal(await payloads(), 4, 'young ones may be somebody’s who is about to write the record')
  await clock.advance(3_600_000)
  await handle.sweep(1_000)
  t.equal(await payloads(), 1)
  t.equal((await claimOne(handle, 'waits')).payload, 'payload of waits')
  await handle.close()

  const removing = await make({ payloadCleanup: 'delete' }).open('q')
  await removing.enqueue([job('one', 'payload of one'), job('two', 'payload of two')])
  const one = await claimOne(removing, 'one')
  t.equal(await payloads(), 3)
  await removing.settle([{ id: 'one', generation: one.generation, verdict: complete('x', 60_000) }], null)
  await removing.cancel(['two'])
  await removing.close()
  t.equal(await payloads(), 1, 'removed at once')
})

t.test('the payload of a job that waits long is kept: by whoever changes the record, or sweeps', async (t) => {
  const clock = new VirtualClock()
  const retention = 3 * dayMs
  const { storage, items } = await freshTable(server, {
    clock,
    inlinePayloadBytesMax: 10,
    payloadRetention: retention,
    sweep: 'ttl',
  })
  const handle = await storage.open('q')
  const until = async (id: string) => {
    const record = (await items()).get(`askonce#q#j#${id}`)!
    t.equal((await items()).get(String(record['q']))?.['ttl'], record['u'], 'record and payload agree')
    return Number(record['u']) * 1_000
  }
  const near = (actual: number, expected: number, what: string) => t.ok(Math.abs(actual - expected) < 60_000, what)
  await handle.enqueue([job('a', 'a large payload'), { ...job('later', 'a large payload'), delayMs: 30 * dayMs }])
  near(await until('a'), clock.now() + retention, 'at first')
  near(await until('later'), clock.now() + 30 * dayMs + retention, 'counted from when it is due')
  await clock.advance(dayMs / 2)
  await handle.sweep(100)
  near(await until('a'), clock.now() - dayMs / 2 + retention, 'not yet')
  await clock.advance(dayMs)
  await handle.sweep(100)
  near(await until('a'), clock.now() + retention, 'put off by a sweep')
  await clock.advance(1.5 * dayMs)
  const { generation } = await claimOne(handle, 'a')
  near(await until('a'), clock.now() + retention, 'put off by a claim')
  await handle.settle([{ id: 'a', generation, verdict: retry('an error', 10 * dayMs) }], null)
  near(await until('a'), clock.now() + 10 * dayMs + retention, 'put off for a retry')
  await handle.close()
})

t.test('shards grow at run time: who was told of fewer finds the jobs in all of them', async (t) => {
  const clock = new VirtualClock()
  const { make, items } = await freshTable(server, { clock })
  const [one, four] = [await make().open('q'), await make({ shards: 4 }).open('q')]
  const ids = Array.from({ length: 40 }, (_, n) => `job ${n}`)
  await one.enqueue([job('old')])
  await four.enqueue(ids.map((id) => job(id)))
  const shards = new Set([...(await items()).values()].map(({ shard }) => shard).filter((shard) => shard !== undefined))
  t.equal(shards.size, 4)
  await clock.advance(60_000)
  const found: string[] = []
  for (let round = 0; round < 100 && found.length < 41; round++) {
    const { jobs } = await one.claim({ generation: token('g'), leaseMs: 60_000_000, limit: 7 })
    found.push(...jobs.map(({ spec }) => spec.id))
  }
  t.same(found.toSorted(), [...ids, 'old'].toSorted())
  await one.enqueue([job('new')])
  const again = await make({ shards: 2 }).open('q')
  t.equal((await items()).get('askonce#q#shards')?.['h'], 4, 'the number never shrinks')
  for (const handle of [one, four, again]) await handle.close()
})

t.test('the wake hook passes on what is known outside, until the queue closes', async (t) => {
  let notify: ((hint?: Hint) => void) | undefined
  const ended: string[] = []
  const { make } = await freshTable(server)
  const storage = make({
    wake: (namespace, callback) => {
      notify = callback
      return () => ended.push(namespace)
    },
  })
  const handle = await storage.open('q')
  const hints: Hint[] = []
  const end = handle.watch((hint) => hints.push(hint))
  notify?.()
  notify?.({ type: 'settled', id: 'a' })
  t.same(hints, [
    { type: 'due', inMs: 0 },
    { type: 'outbox', inMs: 0 },
    { type: 'settled', id: 'a' },
  ])
  end()
  t.same(ended, ['q'])
  await handle.close()
})

t.test('items are read with the exported entities', async (t) => {
  const { client, storage, tableName } = await freshTable(server)
  const handle = await storage.open('a queue')
  await handle.enqueue([job('a')])
  const table = dynamoDBTable(tableName)
  table.documentClient = DynamoDBDocumentClient.from(client)
  const entity = dynamoDBEntities(table).job
  const { Item } = await entity
    .build(GetItemCommand)
    .key({ pk: 'askonce#a%20queue#j#a' } as never)
    .send()
  t.match(Item, { s: 'q', p: 'payload', m: 3 })
  await handle.close()
})

t.test('a record that somebody damaged is refused in words, without its content', async (t) => {
  const { client, storage, tableName } = await freshTable(server)
  const handle = await storage.open('q')
  const { PutItemCommand } = await import('@aws-sdk/client-dynamodb')
  const Item = { pk: { S: 'askonce#q#j#a' }, w: { S: 'v' }, s: { S: 'secret' } }
  await client.send(new PutItemCommand({ TableName: tableName, Item }))
  await t.rejects(handle.get(['a']), { code: 'ASKONCE_SERIALIZATION', message: /damaged/ })
  await handle.close()
})

t.test('a record damaged or without its payload costs nobody else anything', async (t) => {
  const { client, storage, tableName, items } = await freshTable(server, { inlinePayloadBytesMax: 10 })
  const handle = await storage.open('q')
  const hints: Hint[] = []
  handle.watch((hint) => hints.push(hint))
  await handle.enqueue(['one', 'lost', 'two'].map((id) => job(id, `payload of ${id}`, { maxAttempts: 2 })))
  const { DeleteItemCommand, PutItemCommand } = await import('@aws-sdk/client-dynamodb')
  const payloadKey = String((await items()).get('askonce#q#j#lost')!['q'])
  await client.send(new DeleteItemCommand({ TableName: tableName, Key: { pk: { S: payloadKey } } }))
  const Item = {
    pk: { S: 'askonce#q#j#damaged' },
    shard: { S: 'askonce#q#0' },
    due: { N: '1' },
    w: { S: 'v' },
    s: { S: 'secret' },
  }
  await client.send(new PutItemCommand({ TableName: tableName, Item }))
  const { jobs } = await handle.claim({ generation: token('g'), leaseMs: 60_000, limit: 10 })
  t.same(jobs.map(({ spec }) => spec.id).toSorted(), ['one', 'two'])
  t.match(
    hints.find(({ type }) => type === 'warning'),
    { code: 'dynamodb_damaged', message: /left out/ },
  )
  t.notMatch(JSON.stringify(hints), /secret/)
  await handle.close()
})

t.test('a hold made elsewhere is noticed within holdCache, and costs an idle queue nothing', async (t) => {
  const clock = new VirtualClock()
  const { make } = await freshTable(server, { clock, holdCache: 1_000 })
  const storage = make()
  const [here, there] = [await storage.open('q'), await make().open('q')]
  const claim = () => here.claim({ generation: token('g'), leaseMs: 600_000, limit: 1 })
  await here.enqueue([job('a'), job('b'), job('c')])
  t.equal((await claim()).jobs.length, 1)
  await there.hold(60_000)
  await clock.advance(1_000)
  const { jobs, heldForMs } = await claim()
  t.same(jobs, [])
  t.equal(heldForMs, 59_000)
  await clock.advance(59_000)
  t.equal((await claim()).jobs.length, 1)
  t.equal((await claim()).jobs.length, 1)
  await clock.advance(5_000)
  await claim()
  await clock.advance(5_000)
  const before = storage.counters.requests
  await claim()
  t.equal(storage.counters.requests, before + 1, 'the look alone')
  await here.close()
  await there.close()
})

t.test('a payload whose record others have gone on with is left, though the enqueue’s answer was lost', async (t) => {
  const { storage, make, items } = await freshTable(server, { inlinePayloadBytesMax: 10, payloadCleanup: 'delete' })
  const [one, two] = [await storage.open('q'), await make().open('q')]
  let other: Promise<unknown> | undefined
  server.wire.oldItems = true
  server.wire.lose = {
    operations: ['PutItem'],
    chance: 0.5,
    random: () => {
      // The record is there, the answer is not: another process claims it before the SDK repeats the request.
      if (server.wire.lose === null || other !== undefined) return 1
      other = two.claim({ generation: 'theirs', leaseMs: 60_000, limit: 1, ids: ['a'] })
      return 0
    },
  }
  // The payload's own write must not be the one.
  const { lose } = server.wire
  server.wire.lose = null
  server.wire.seen = (operation, { Item }) => {
    if (operation === 'PutItem') server.wire.lose = Item!['pk']!.S!.includes('#j#') ? lose : null
  }
  t.match((await one.enqueue([job('a', 'a large payload')])).answers, [{ outcome: 'created' }])
  Object.assign(server.wire, { lose: null, seen: null, oldItems: false })
  t.match(await other, { jobs: [{ payload: 'a large payload' }] })
  await one.close()
  t.equal([...(await items()).keys()].filter((key) => key.includes('#p#')).length, 1)
  await two.close()
})
