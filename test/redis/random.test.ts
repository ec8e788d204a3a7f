import t from 'tap'
import { RedisServer } from '../support/redis-server.ts'
import { Seeded } from '../support/seeded.ts'
import { randomCommands } from './random.ts'
import { skip } from './suite.ts'

t.test('5,000 random commands do what the machine does, and leave every key as it must be', { skip }, async (t) => {
  const server = await RedisServer.start()
  t.teardown(() => server.dispose())
  const { seed } = new Seeded()
  t.ok((await randomCommands(server, 5_000, seed)) > 1_000, `seed ${seed}`)
})
