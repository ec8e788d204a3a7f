import { Cluster } from 'ioredis'
import t from 'tap'
import { RedisCluster } from '../support/redis-server.ts'
import { skip, suite } from './suite.ts'

t.test('the conformance suite on a Cluster of three', { skip, timeout: 300_000 }, async (t) => {
  const cluster = await RedisCluster.start()
  const client = new Cluster(cluster.addresses)
  t.teardown(async () => {
    client.disconnect()
    await cluster.dispose()
  })
  suite(t, { storage: () => ({ client }), randomRuns: 1 })
})
