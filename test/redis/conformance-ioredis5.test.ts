import { Redis } from 'ioredis5'
import t from 'tap'
import { RedisServer } from '../support/redis-server.ts'
import { skip, suite } from './suite.ts'

t.test(
  'the conformance suite with ioredis 5, its own prefix, and odd prefixes',
  { skip, timeout: 300_000 },
  async (t) => {
    const server = await RedisServer.start({ unixsocket: true })
    const client = new Redis(server.socketPath, { keyPrefix: 'of the client{x}:' })
    t.teardown(async () => {
      client.disconnect()
      await server.dispose()
    })
    suite(t, {
      storage: () => ({ client }),
      prefix: 'odd {prefix} of: 100% * ü\n',
      randomRuns: 1,
    })
  },
)
