import { inspect } from 'node:util'
import t from 'tap'
import { systemClock } from '../../src/clock.ts'
import { StorageError, TooLargeError } from '../../src/errors.ts'
import { complete, retry } from '../../src/record.ts'
import type { Hint } from '../../src/storage.ts'
import { DynamoDBStorage, TableMissingError } from '../../storages/dynamodb/index.ts'
import { LocalDynamoDB } from './support/server.ts'
import { claimOne, freshTable, job } from './support/table.ts'

const server = await LocalDynamoDB.start()
t.teardown(() => server.stop())
t.afterEach(() => {
  Object.assign(server.wire, { index: null, oldItems: false, lose: null, refuse: null, seen: null })
})

async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('did not reject')
}

t.test('a missing table is told of with its exact definition, which makes it', async (t) => {
  const storage = new DynamoDBStorage({ tableName: 'absent', client: server.client() })
  const error = (await rejection(storage.open('q'))) as TableMissingError
  t.ok(error instanceof TableMissingError)
  t.equal(error.name, 'TableMissingError')
  t.equal(error.code, 'ASKONCE_STORAGE')
  t.equal(error.retryable, false)
  t.equal(error.tableName, 'absent')
  t.same(error.definition, storage.definition)
  t.ok(error.message.includes(JSON.stringify(storage.definition)))
  await storage.createTable()
  await storage.createTable()
  const handle = await storage.open('q')
  t.same((await handle.enqueue([job('a')])).answers[0]?.outcome, 'created')
  await handle.close()
})

t.test('a missing index is told of, too', async (t) => {
  const { make } = await freshTable(server)
  const handle = await make({ indexName: 'other' }).open('q')
  const error = (await rejection(handle.claim({ generation: 'g', leaseMs: 1_000, limit: 1 }))) as TableMissingError
  t.ok(error instanceof TableMissingError)
  t.match(error.message, /index other/)
  await handle.close()
})

for (const name of ['ProvisionedThroughputExceededException', 'RequestLimitExceeded', 'ThrottlingException']) {
  t.test(`throttled by ${name}, it waits, goes on, counts and tells`, async (t) => {
    const { storage } = await freshTable(server, { client: server.client({ maxAttempts: 1 }) })
    const handle = await storage.open('q')
    const hints: Hint[] = []
    handle.watch((hint) => hints.push(hint))
    let left = 3
    server.wire.refuse = (operation) => (operation === 'PutItem' && left-- > 0 ? { name } : null)
    t.equal((await handle.enqueue([job('a')])).answers[0]?.outcome, 'created')
    t.equal(storage.counters.throttled, 3)
    t.match(
      hints.filter(({ type }) => type === 'warning'),
      [{ code: 'dynamodb_throttled' }],
    )
    await handle.close()
  })
}

t.test('throttled for too long, it says so, and that it may be tried again', async (t) => {
  const { make } = await freshTable(server)
  const handle = await make({ throttleTimeout: 0 }).open('q')
  server.wire.refuse = (operation) => (operation === 'PutItem' ? { name: 'ThrottlingException' } : null)
  const error = (await rejection(handle.enqueue([job('a')]))) as StorageError
  t.ok(error instanceof StorageError)
  t.equal(error.retryable, true)
  t.match(error.message, /ThrottlingException/)
  server.wire.refuse = null
  t.equal((await handle.enqueue([job('a')])).answers[0]?.outcome, 'created')
  await handle.close()
})

t.test('no permission is an error that is not worth a repetition', async (t) => {
  const { storage } = await freshTable(server)
  const handle = await storage.open('q')
  server.wire.refuse = () => ({ name: 'AccessDeniedException' })
  const error = (await rejection(handle.get(['a']))) as StorageError
  t.equal(error.retryable, false)
  t.match(error.message, /Permission/)
  await handle.close()
})

t.test('errors carry no secrets', async (t) => {
  const { storage } = await freshTable(server)
  const handle = await storage.open('q')
  const message = 'The canonical string was\nx-amz-security-token:FwoGZXIvYXdzEXAMPLE\nAKIAIOSFODNN7EXAMPLE'
  for (const name of ['InvalidSignatureException', 'UnrecognizedClientException', 'ValidationException']) {
    server.wire.refuse = () => ({ name, message })
    const error = await rejection(handle.enqueue([job('a', 'a secret payload')]))
    const shown = inspect(error, { depth: 10, showHidden: true })
    t.notMatch(shown, /EXAMPLE/, name)
    t.notMatch(shown, /secret payload/, name)
  }
  await handle.close()
})

t.test('what is too large is refused with sizes, and nothing is sent', async (t) => {
  const { storage, items } = await freshTable(server)
  const handle = await storage.open('q')
  const allowed = storage.traits.payloadBytesMax
  t.equal(allowed, 350 * 1024)
  const error = (await rejection(handle.enqueue([job('a', 'x'.repeat(allowed + 1))]))) as TooLargeError
  t.ok(error instanceof TooLargeError)
  t.same([error.field, error.actualBytes, error.allowedBytes], ['payload', allowed + 1, allowed])
  t.equal((await items()).size, 0)
  await handle.enqueue([job('a', '€'.repeat(Math.floor(allowed / 3)))])
  const { generation } = await claimOne(handle, 'a')
  const before = storage.counters.requests
  const verdict = complete('y'.repeat(allowed + 1), 1_000)
  const failed = (await rejection(handle.settle([{ id: 'a', generation, verdict }], null))) as TooLargeError
  t.same([failed.field, failed.actualBytes], ['result', allowed + 1])
  t.equal(storage.counters.requests, before, 'nothing was sent')
  const settled = await handle.settle([{ id: 'a', generation, verdict: complete('y'.repeat(allowed), 1_000) }], null)
  t.same(settled.answers, ['settled'])
  await handle.close()
})

t.test('compressed, more fits in; what does not is refused by its compressed size', async (t) => {
  const { make, items } = await freshTable(server)
  const handle = await make({ compress: true }).open('q')
  const text = JSON.stringify(Array.from({ length: 60_000 }, (_, n) => ({ n })))
  t.ok(text.length > 600_000)
  await handle.enqueue([job('a', text)])
  const claimed = await claimOne(handle, 'a')
  t.equal(claimed.payload, text)
  const noise = Uint8Array.from({ length: 400_000 }, () => Math.random() * 256)
  const error = (await rejection(handle.enqueue([job('b', noise)]))) as TooLargeError
  t.ok(error instanceof TooLargeError)
  t.ok(error.actualBytes >= 400_000 && error.allowedBytes === 350 * 1024)
  t.notOk([...(await items()).keys()].some((key) => key.endsWith('#b')))
  await handle.close()
})

t.test('a write whose answer was lost is known as its own when the SDK repeats it', async (t) => {
  for (const oldItems of [true, false]) {
    server.wire.oldItems = oldItems
    const { storage } = await freshTable(server)
    const handle = await storage.open('q')
    let chance = 1
    // Once each time it is armed.
    const random = () => {
      const now = 1 - chance
      chance = 0
      return now
    }
    server.wire.lose = { operations: ['PutItem', 'UpdateItem'], chance: 0.5, random }
    t.match((await handle.enqueue([job('a')])).answers, [{ outcome: 'created' }])
    t.equal(storage.counters.recognised, 1, 'the enqueue')
    chance = 1
    const { generation, attempts } = await claimOne(handle, 'a')
    t.equal(attempts, 1)
    t.equal(storage.counters.recognised, 2, 'the claim')
    chance = 1
    const verdict = retry('an error', 0)
    t.same((await handle.settle([{ id: 'a', generation, verdict }], null)).answers, ['settled'])
    t.equal(storage.counters.recognised, 3, 'the retry')
    chance = 1
    await handle.hold(1_000)
    t.equal(storage.counters.recognised, 4, 'the hold')
    await handle.hold(0)
    server.wire.lose = null
    await handle.close()
  }
})

t.test('a removal whose answer was lost is not taken for another’s, nor for done', async (t) => {
  const { storage } = await freshTable(server)
  const handle = await storage.open('q')
  await handle.enqueue([job('a')])
  let losses = 1
  server.wire.lose = { operations: ['DeleteItem'], chance: 0.5, random: () => (losses-- > 0 ? 0 : 1) }
  const error = (await rejection(handle.cancel(['a']))) as StorageError
  t.ok(error instanceof StorageError)
  t.equal(error.retryable, true)
  t.same(await handle.cancel(['a']), ['not_found'])
  await handle.close()
})

t.test('an unreachable service is a StorageError within the limit', async (t) => {
  const client = server.client({ endpoint: 'http://127.0.0.1:9', maxAttempts: 1 })
  const storage = new DynamoDBStorage({ tableName: 'any', client, requestTimeout: 5_000 })
  const error = (await rejection(storage.open('q'))) as StorageError
  t.ok(error instanceof StorageError)
  t.equal(error.retryable, true)
})

t.test('a service that does not answer is given up, and a later call works', async (t) => {
  const { make } = await freshTable(server)
  const handle = await make().open('q')
  const client = server.client()
  const stuck = {
    config: client.config,
    send: (_: unknown, { abortSignal }: { abortSignal: AbortSignal }) =>
      new Promise((_, reject) => abortSignal.addEventListener('abort', () => reject(new Error('aborted')))),
  }
  const storage = make({ client: stuck, requestTimeout: 50 })
  t.match((await rejection(storage.open('q'))).message, /requestTimeout = 50 ms/)
  t.equal((await handle.enqueue([job('a')])).answers[0]?.outcome, 'created')
  await handle.close()
})

t.test('a client that was given is left alone; one that was made is ended', async (t) => {
  const { client, storage, tableName } = await freshTable(server)
  const stack = client.middlewareStack.identify().length
  const config = Object.keys(client.config).sort()
  let destroyed = 0
  const destroy = client.destroy.bind(client)
  client.destroy = () => void destroyed++
  const first = await storage.open('one')
  const second = await storage.open('two')
  await first.close()
  await second.close()
  t.equal(destroyed, 0)
  t.equal(client.middlewareStack.identify().length, stack)
  t.same(Object.keys(client.config).sort(), config)
  client.destroy = destroy
  const { endpoint, region, credentials } = server.config
  const own = new DynamoDBStorage({ tableName, clientConfig: { endpoint, region, credentials } as never })
  for (let round = 0; round < 2; round++) {
    const handle = await own.open('q')
    t.equal((await handle.enqueue([job(`round ${round}`)])).answers[0]?.outcome, 'created', 'opened again')
    await handle.close()
  }
})

for (const hours of [90 / 3600, -90 / 3600]) {
  const skewMs = Math.round(hours * 3_600_000)
  const wrong = { ...systemClock, now: () => systemClock.now() + skewMs }

  t.test(`a clock ${skewMs} ms off is corrected: no early recovery, no lost deduplication`, async (t) => {
    const { make } = await freshTable(server)
    const right = await make().open('q')
    const storage = make({ clock: wrong, correctClock: true })
    const off = await storage.open('q')
    t.ok(Math.abs(storage.clockOffsetMs + skewMs) < 1_500, `corrected by ${storage.clockOffsetMs} ms`)
    await right.enqueue([job('running'), job('done')])
    await claimOne(right, 'running')
    const { generation } = await claimOne(right, 'done')
    await right.settle([{ id: 'done', generation, verdict: complete('result', 60_000) }], null)
    const { jobs } = await off.claim({ generation: 'early', leaseMs: 1_000, limit: 10, ids: ['running'] })
    t.same(jobs, [], 'a live lease is left alone')
    t.same((await off.claim({ generation: 'early2', leaseMs: 1_000, limit: 10 })).jobs, [])
    t.match((await off.enqueue([job('done')])).answers, [{ outcome: 'exists', record: { state: 'completed' } }])
    const before = Date.now()
    const [made] = (await off.enqueue([job('new')])).answers
    const lateMs = made!.record.at - before
    t.ok(Math.abs(lateMs) < 1_500 + Date.now() - before, `a new job is due within the rounding: ${lateMs} ms`)
    await right.close()
    await off.close()
  })

  t.test(
    `a clock ${skewMs} ms off that nothing corrects may run a job twice, but never settles it twice`,
    async (t) => {
      const { make } = await freshTable(server)
      const right = await make().open('q')
      const off = await make({ clock: wrong, correctClock: false }).open('q')
      const ids = Array.from({ length: 20 }, (_, n) => `job ${n}`)
      await right.enqueue(ids.map((id) => job(id)))
      const settled = new Map<string, string[]>()
      const leases = []
      for (const [name, handle] of [
        ['right', right],
        ['off', off],
        ['right', right],
        ['off', off],
      ] as const) {
        const generation: string = `${name} ${leases.length}`
        const { jobs } = await handle.claim({ generation, leaseMs: 30_000, limit: 100, ids })
        leases.push({ name, handle, generation, jobs })
      }
      for (const { handle, generation, jobs } of leases) {
        const settlements = jobs.map(({ spec }) => ({
          id: spec.id,
          generation,
          verdict: complete(generation, 600_000),
        }))
        const { answers } = await handle.settle(settlements, null)
        jobs.forEach(({ spec }, index) => {
          if (answers[index] === 'settled') settled.set(spec.id, [...(settled.get(spec.id) ?? []), generation])
        })
      }
      const { records } = await right.get(ids)
      for (const [index, id] of ids.entries()) {
        t.equal(settled.get(id)?.length, 1, `${id} is settled once`)
        const record = records[index]
        if (record?.state === 'completed') t.equal(record.result, settled.get(id)?.[0])
      }
      await right.close()
      await off.close()
    },
  )
}

t.test('options out of bounds are refused by name', (t) => {
  const client = server.client()
  const cases: [object, string][] = [
    [{}, 'options.tableName'],
    [{ tableName: '' }, 'options.tableName'],
    [{ tableName: 't', client: {} }, 'options.client'],
    [{ tableName: 't', client, clientConfig: {} }, 'options.clientConfig'],
    [{ tableName: 't', shards: 0 }, 'options.shards'],
    [{ tableName: 't', grace: -1 }, 'options.grace'],
    [{ tableName: 't', inlinePayloadBytesMax: 40_961 }, 'options.inlinePayloadBytesMax'],
    [{ tableName: 't', payloadCleanup: 'never' }, 'options.payloadCleanup'],
    [{ tableName: 't', payloadRetention: 1_000 }, 'options.payloadRetention'],
    [{ tableName: 't', compress: 'yes' }, 'options.compress'],
    [{ tableName: 't', sweep: 'daily' }, 'options.sweep'],
    [{ tableName: 't', poll: { min: 0 } }, 'options.poll.min'],
    [{ tableName: 't', poll: { min: 100, max: 50 } }, 'options.poll.max'],
    [{ tableName: 't', keyPrefix: '\ud800' }, 'options.keyPrefix'],
    [{ tableName: 't', keyPrefix: 'x'.repeat(257) }, 'options.keyPrefix'],
    [{ tableName: 't', requestTimeout: 0 }, 'options.requestTimeout'],
  ]
  for (const [options, field] of cases) {
    t.throws(() => new DynamoDBStorage(options as never), { field } as never, field)
  }
  t.end()
})
