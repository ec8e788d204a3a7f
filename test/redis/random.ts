/**
 * Random commands against the machine, on a virtual time: the conformance suite's sequences, and after each command a look at
 * all keys.
 *
 *     npx tsx test/redis/random.ts --commands 100000 --seed 1
 *
 * @module
 */

import { parseArgs } from 'node:util'
import { Redis } from 'ioredis'
import type { StorageHandle } from '../../src/storage.ts'
import { conformance } from '../../storages/conformance/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { keyBase } from '../../storages/redis/layout.ts'
import { seedOf, whole } from '../support/arguments.ts'
import { RedisServer } from '../support/redis-server.ts'
import { indexFaults } from './indexes.ts'
import { VirtualTime } from './virtual-client.ts'

const commandsInRun = 400

/** Runs so many commands; rejects with the seed and the command that failed. Answers how many there were. */
export async function randomCommands(server: RedisServer, commands: number, seed: number): Promise<number> {
  const client = new Redis(server.url)
  const runs = Math.ceil(commands / commandsInRun)
  let calls = 0
  try {
    for (let run = 0; run < runs; run++) {
      const time = new VirtualTime()
      const keyPrefix = `run ${run}`
      const make = (): RedisStorage => {
        const storage = new RedisStorage({ client: time.client(client), keyPrefix })
        const open = storage.open.bind(storage)
        storage.open = async (namespace) => {
          const base = keyBase(keyPrefix, namespace, null)
          return watched(await open(namespace), async () => {
            calls++
            const faults = await indexFaults(client, base, time.now)
            if (faults.length > 0) throw new Error(`seed ${(seed + run) >>> 0}: ${faults.join('; ')}`)
          })
        }
        return storage
      }
      const cases: (() => Promise<void>)[] = []
      conformance({
        test: (_name, run) => void cases.push(run),
        create: async () => make(),
        createShared: async () => make(),
        advance: (ms) => time.advance(ms),
        note: () => {},
        random: { seed: (seed + run) >>> 0, runs: 1, commands: commandsInRun },
      })
      // The random case is the suite's last.
      await (cases.at(-1) as () => Promise<void>)()
      await client.flushall()
    }
  } finally {
    client.disconnect()
  }
  return calls
}

/** The handle, with something done after each operation that writes. */
function watched(handle: StorageHandle, after: () => Promise<void>): StorageHandle {
  const wrapped = Object.create(handle) as Record<string, unknown>
  for (const name of ['enqueue', 'claim', 'extend', 'settle', 'cancel', 'touch', 'mark', 'deliver'] as const) {
    wrapped[name] = async (...values: unknown[]) => {
      const answer = await (handle[name] as (...values: unknown[]) => Promise<unknown>).apply(handle, values)
      await after()
      return answer
    }
  }
  for (const name of ['get', 'watch', 'sweep', 'hold', 'stats', 'close'] as const) {
    wrapped[name] = (handle[name] as () => unknown).bind(handle)
  }
  return wrapped as unknown as StorageHandle
}

if (import.meta.filename === process.argv[1]) {
  const { values } = parseArgs({
    options: { commands: { type: 'string', default: '100000' }, seed: { type: 'string' } },
  })
  const [commands, seed] = [whole(values, 'commands', 1), seedOf(values)]
  const server = await RedisServer.start()
  try {
    const calls = await randomCommands(server, commands, seed)
    console.log(`${commands} random commands from seed ${seed}: ${calls} writing calls, all as the machine does`)
  } finally {
    await server.dispose()
  }
}
