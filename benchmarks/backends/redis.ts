/**
 * Redis on a server of its own, and its baseline: a loop of EVALSHAs written by hand.
 *
 * @module
 */

import { createRequire } from 'node:module'
import { RedisStorage } from '../../storages/redis/index.ts'
import { RedisServer } from '../../test/support/redis-server.ts'
import { floor } from '../redis/floor.ts'
import { Probe } from '../redis/probe.ts'
import { askonceSession } from './askonce.ts'
import type { Backend } from './backend.ts'

export const redis: Backend = {
  name: 'redis',
  title: 'Redis',
  baseline: 'ioredis, one EVALSHA written by hand for each step',
  pace: 50_000,
  depthMax: 500_000,
  async start() {
    const server = await RedisServer.start()
    const { url } = server
    const probe = new Probe(url)
    const ioredis = createRequire(import.meta.url)('ioredis/package.json') as { version: string }
    return {
      address: { kind: 'redis', url },
      software: `Redis ${await probe.version()} on this machine, without persistence; ioredis ${ioredis.version}`,
      async open(system) {
        await probe.empty()
        return system === 'bare' ? floor.open(url, 'bench') : askonceSession(() => new RedisStorage({ url }), 'bench')
      },
      async spent() {
        return { serverUs: await probe.redisUs(), calls: await probe.clientCommands() }
      },
      bytesOutside: () => probe.bytesUsed(),
      async stop() {
        probe.close()
        await server.dispose()
      },
    }
  },
}
