import { Redis } from 'ioredis'
import t from 'tap'
import { RedisServer } from '../support/redis-server.ts'
import { skip, suite } from './suite.ts'
import { VirtualTime } from './virtual-client.ts'

t.test('the conformance suite on a virtual time: single milliseconds count', { skip, timeout: 300_000 }, async (t) => {
  const server = await RedisServer.start()
  const client = new Redis(server.url)
  const time = new VirtualTime()
  t.teardown(async () => {
    client.disconnect()
    await server.dispose()
  })
  suite(t, { storage: () => ({ client: time.client(client) }), advance: (ms) => time.advance(ms) })
})
