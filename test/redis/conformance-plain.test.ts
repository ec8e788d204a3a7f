import t from 'tap'
import { RedisServer } from '../support/redis-server.ts'
import { skip, suite } from './suite.ts'

t.test('the conformance suite on one Redis, by url', { skip, timeout: 300_000 }, async (t) => {
  const server = await RedisServer.start()
  t.teardown(() => server.dispose())
  suite(t, { storage: () => ({ url: server.url }) })
})
