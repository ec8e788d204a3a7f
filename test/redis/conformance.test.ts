import t from 'tap'
import { conformance } from '../../storages/conformance/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { RedisServer, redisServerPath, skippedForRedis } from '../support/redis-server.ts'

const skip = redisServerPath() === null ? skippedForRedis : false

t.test('conformance on a plain Redis', { skip }, async (t) => {
  const server = await RedisServer.start()
  t.teardown(() => server.dispose())
  let count = 0
  const prefixes = new WeakMap<object, string>()
  const make = (keyPrefix: string) => {
    const storage = new RedisStorage({ url: server.url, keyPrefix })
    prefixes.set(storage, keyPrefix)
    return storage
  }
  conformance({
    test: (name, run) =>
      t.test(name, async (t) => {
        await run()
        t.pass('holds')
      }),
    create: async () => make(`case ${count++}`),
    createShared: async (storage) => make(prefixes.get(storage) as string),
  })
})
