/** Every storage against the machine: sequences that fast-check makes up, shrunk to the shortest that fails. */

import fc from 'fast-check'
import { Redis } from 'ioredis'
import t from 'tap'
import { fromRecordStore } from '../../src/record-store.ts'
import type { ConformanceOptions } from '../../storages/conformance/index.ts'
import { openModel, VirtualClock } from '../../storages/conformance/index.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { brokenMachines } from '../conformance/broken-machines.ts'
import { LocalDynamoDB } from '../dynamodb/support/server.ts'
import { suiteOptions } from '../dynamodb/support/suite.ts'
import { tempFolder } from '../file/support/temp.ts'
import { VirtualTime } from '../redis/virtual-client.ts'
import { RedisServer, redisServerPath, skippedForRedis } from '../support/redis-server.ts'
import { sequences } from './commands.ts'
import { Rows, rowTraits } from './rows.ts'

type Options = Omit<ConformanceOptions, 'test'>

/** The property: whatever is asked, the storage answers as the machine does. */
function property(options: Options): fc.IAsyncProperty<[Iterable<fc.AsyncCommand<object, object>>]> {
  let runs = 0
  return fc.asyncProperty(sequences, async (commands) => {
    const model = await openModel(options, `model ${runs++}`)
    try {
      await fc.asyncModelRun(() => ({ model: { generations: [], incarnations: [] }, real: model }), commands)
    } finally {
      await model.end()
    }
  }) as never
}

/**
 * fast-check's failure message has the seed, the path and the shortest sequence. The seed is the same in every run unless
 * ASKONCE_SEED says else, so that a red run is the fault of the change that it was made for.
 */
async function holds(options: Options, numRuns: number): Promise<void> {
  await fc.assert(property(options), { numRuns, seed: Number(process.env['ASKONCE_SEED'] ?? 20_261_130) })
}

t.test('Memory', async (t) => {
  const clock = new VirtualClock()
  await holds({ create: async () => new MemoryStorage({ clock }), advance: (ms) => clock.advance(ms) }, 400)
  t.pass('holds')
})

for (const createFirst of [false, true]) {
  t.test(`fromRecordStore, ${createFirst ? 'creating first, clocks not trusted' : 'looking first'}`, async (t) => {
    const clock = new VirtualClock()
    // A lease that is over is due only when its grace is, too: that is no order by `at` any more.
    const graceMs = createFirst ? 7 : 0
    const traits = { ...rowTraits(false), ordering: createFirst ? 'approximate' : 'fifo' } as const
    const storages = new WeakMap<object, Rows>()
    const make = (rows: Rows) => {
      const open = async () => rows.store(() => {})
      const storage = fromRecordStore({ traits, clock, graceMs, createFirst, open })
      storages.set(storage, rows)
      return storage
    }
    const options: Options = {
      create: async () => make(new Rows(graceMs, false)),
      createShared: async (storage) => make(storages.get(storage) as Rows),
      advance: (ms) => clock.advance(ms),
      graceMs,
    }
    await holds(options, 200)
    t.pass('holds')
  })
}

t.test('File', async (t) => {
  const clock = new VirtualClock()
  const make = (basePath: string) => new FileStorage({ basePath, clock, durability: 'os' })
  const options: Options = {
    create: async () => {
      const { path, remove } = tempFolder()
      return { storage: make(path), cleanup: remove }
    },
    createShared: async (storage) => make((storage as FileStorage).basePath),
    advance: (ms) => clock.advance(ms),
  }
  await holds(options, 60)
  t.pass('holds')
})

t.test('Redis', { skip: redisServerPath() === null ? skippedForRedis : false }, async (t) => {
  const server = await RedisServer.start()
  const client = new Redis(server.url)
  t.teardown(async () => {
    client.disconnect()
    await server.dispose()
  })
  const time = new VirtualTime()
  const prefixes = new WeakMap<object, string>()
  let count = 0
  const make = (keyPrefix: string) => {
    const storage = new RedisStorage({ client: time.client(client), keyPrefix })
    prefixes.set(storage, keyPrefix)
    return storage
  }
  const options: Options = {
    create: async () => make(`model ${count++}`),
    createShared: async (storage) => make(prefixes.get(storage) as string),
    advance: (ms) => time.advance(ms),
  }
  await holds(options, 60)
  t.pass('holds')
})

t.test('DynamoDB', async (t) => {
  const server = await LocalDynamoDB.start()
  t.teardown(() => server.stop())
  await holds(await suiteOptions({ tableName: 'model', client: () => server.client() }), 20)
  t.pass('holds')
})

t.test('a broken machine is caught, and the sequence that shows it is short', async (t) => {
  const names = [
    'the fence ignores the generation in settle',
    'claim ignores the lease',
    'cancel takes a job from its worker',
  ]
  for (const name of names) {
    const mutant = brokenMachines.find((mutant) => mutant.name === name)
    if (mutant === undefined) return void t.fail(`there is no mutant '${name}'`)
    const clock = new VirtualClock()
    const options: Options = { create: async () => mutant.make({ clock }), advance: (ms) => clock.advance(ms) }
    const result = await fc.check(property(options), { numRuns: 500, seed: 1 })
    const shortest = String(result.counterexample?.[0])
    t.equal(result.failed, true, name)
    const commands = shortest.match(/(^|,)(enqueue|claim|settle|extend|cancel|touch|sweep|hold|wait|audit)\b/g) ?? []
    t.ok(commands.length <= 4, `${commands.length} commands: ${shortest.slice(0, 900)}`)
  }
})

t.setTimeout(300_000)
