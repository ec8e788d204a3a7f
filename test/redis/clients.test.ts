/** Options, and clients of both versions that must fit the structural type: that this file compiles is half of the test. */

import { Cluster, Redis } from 'ioredis'
import { Cluster as Cluster5, Redis as Redis5 } from 'ioredis5'
import t from 'tap'
import { InvalidArgumentError, TooLargeError } from '../../src/errors.ts'
import type { RedisClient, RedisStorageOptions } from '../../storages/redis/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { RedisServer } from '../support/redis-server.ts'
import { item } from './items.ts'
import { skip } from './suite.ts'

t.test('Redis and Cluster of ioredis 5 and 6 are clients', async (t) => {
  const options = { lazyConnect: true }
  const clients: RedisClient[] = [
    new Redis(options),
    new Redis5(options),
    new Cluster([{ host: '127.0.0.1', port: 1 }], options),
    new Cluster5([{ host: '127.0.0.1', port: 1 }], options),
  ]
  for (const client of clients) t.equal(new RedisStorage({ client }).traits.kind, 'redis')
})

t.test('bad options are refused by name', async (t) => {
  const refused = (options: unknown, field: string, type: unknown = InvalidArgumentError) => {
    try {
      new RedisStorage(options as RedisStorageOptions)
      t.fail(`${field} was taken`)
    } catch (error) {
      t.ok(error instanceof (type as typeof InvalidArgumentError), field)
      t.equal((error as InvalidArgumentError).field, field)
    }
  }
  refused({ url: '' }, 'options.url')
  refused({ url: 5 }, 'options.url')
  refused({ client: {} }, 'options.client')
  refused({ client: null }, 'options.client')
  refused({ client: new Redis({ lazyConnect: true }), url: 'redis://127.0.0.1' }, 'options.url')
  for (const partitions of [0, -1, 1.5, Number.NaN, 1_025, '2']) refused({ partitions }, 'options.partitions')
  for (const time of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]) {
    refused({ connectTimeout: time }, 'options.connectTimeout')
    refused({ commandTimeout: time }, 'options.commandTimeout')
  }
  refused({ keyPrefix: 5 }, 'options.keyPrefix')
  refused({ keyPrefix: '\ud800' }, 'options.keyPrefix')
  refused({ keyPrefix: 'x'.repeat(257) }, 'options.keyPrefix', TooLargeError)
})

t.test('unix sockets, users, databases by url', { skip }, async (t) => {
  const server = await RedisServer.start({ unixsocket: true, users: ['alice on >s%3Ac&=ret ~* &* +@all'] })
  t.teardown(() => server.dispose())
  const user = `redis://alice:${encodeURIComponent('s%3Ac&=ret')}@127.0.0.1:${server.port}/2`
  for (const url of [server.socketPath, user]) {
    const handle = await new RedisStorage({ url }).open('q')
    t.equal((await handle.enqueue([item('a')])).answers[0]?.outcome, 'created', 'each has a database of its own')
    await handle.close()
  }
})

t.test('ioredis options that change replies or calls do no harm', { skip }, async (t) => {
  const server = await RedisServer.start()
  for (const options of [
    { stringNumbers: true },
    { enableAutoPipelining: true },
    { protocol: 2 as const },
    { db: 3 },
  ]) {
    const client = new Redis(server.url, options)
    const handle = await new RedisStorage({ client, keyPrefix: JSON.stringify(options) }).open('q')
    const { now, answers } = await handle.enqueue([item('a')])
    t.type(now, 'number')
    t.equal(answers[0]?.outcome, 'created')
    const claim = await handle.claim({ generation: 'g', leaseMs: 1_000, limit: 5 })
    t.equal(claim.jobs[0]?.at, claim.now + 1_000)
    t.equal((await handle.stats()).processing, 1)
    await handle.close()
    client.disconnect()
  }
  await server.dispose()
})
