/** Each script by itself: how it is built, and random calls of it against the machine. */

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { RedisStorage } from '../../storages/redis/index.ts'
import { keyBase } from '../../storages/redis/layout.ts'
import { scripts } from '../../storages/redis/scripts/index.ts'
import type { Part } from '../../storages/redis/scripts/part.ts'
import { RedisServer } from '../support/redis-server.ts'
import { Seeded } from '../support/seeded.ts'
import { indexFaults } from './indexes.ts'
import { operations, ScriptModel } from './script-model.ts'
import { skip } from './suite.ts'
import { VirtualTime } from './virtual-client.ts'

const linesMax = 40
const callsOfEach = 500

const folder = join(import.meta.dirname, '../../storages/redis/scripts')

/** A part, or those that it is made of. */
function pieces(part: Part): readonly Part[] {
  return part.holds.length === 0 ? [part] : part.holds.flatMap(pieces)
}

/** What a piece of Lua declares at its outermost. */
function names(lua: string): string[] {
  return [...lua.matchAll(/^local (?:function )?([\w, ]+)/gm)].flatMap((found) => (found[1] as string).split(', '))
}

t.test('each script opens with its KEYS and ARGV and has at most 40 lines of its own; so has each part', async (t) => {
  for (const { name, header, parts, body, lua } of Object.values(scripts)) {
    t.match(header, /^-- KEYS: .*\n-- ARGV: .*\n(?:-- {3}.*\n)*-- Answers: /, `${name} says what it takes and answers`)
    t.ok(header.split('\n').every((line) => line.startsWith('--')))
    t.ok(lua.startsWith(header), `${name} opens with it`)
    t.ok(body.split('\n').length <= linesMax, `${name} has ${body.split('\n').length} lines`)
    t.equal(parts[0]?.name, 'frame', `${name} begins with the frame`)
    const all = parts.flatMap(pieces)
    for (const part of all) {
      t.ok(part.lua.split('\n').length <= linesMax, `${part.name} has ${part.lua.split('\n').length} lines`)
      const others = [...all.filter((other) => other !== part).map(({ lua }) => lua), body].join('\n')
      t.ok(
        names(part.lua).some((name) => new RegExp(`\\b${name}\\b`).test(others)),
        `${name} needs ${part.name}`,
      )
    }
  }
})

t.test('each part has a sentence that says what it is', async (t) => {
  for (const file of await readdir(join(folder, 'parts'))) {
    const source = await readFile(join(folder, 'parts', file), 'utf8')
    const parts = source.match(/^(?:export )?const \w+ = (?:lazily\(\s*)?part\(/gm) ?? []
    const told = source.match(/\.? \*\/\n(?:export )?const \w+ = (?:lazily\(\s*)?part\(/g) ?? []
    t.ok(parts.length > 0, file)
    t.equal(told.length, parts.length, `${file}: all ${parts.length} parts are told of`)
  }
})

t.test('Redis takes each script', { skip }, async (t) => {
  const server = await RedisServer.start()
  t.teardown(() => server.dispose())
  for (const { name, lua, sha } of Object.values(scripts)) {
    t.equal(await server.call('SCRIPT', 'LOAD', lua), sha, name)
  }
})

for (const operation of operations) {
  t.test(`${operation}: ${callsOfEach} random calls do what the machine does`, { skip }, async (t) => {
    const server = await RedisServer.start()
    const client = new Redis(server.url)
    const time = new VirtualTime()
    const handle = await new RedisStorage({ client: time.client(client) }).open('q')
    t.teardown(async () => {
      await handle.close()
      client.disconnect()
      await server.dispose()
    })
    const random = new Seeded()
    const model = new ScriptModel(handle, time, random)
    try {
      for (let call = 0; call < callsOfEach; call++) {
        // Others before it make what it meets.
        for (let others = random.below(4); others > 0; others--) await model.call(random.pick(operations))
        if (random.chance(0.4)) await model.pass()
        await model.call(operation)
        const faults = await indexFaults(client, keyBase('askonce', 'q', null), time.now)
        if (faults.length > 0) throw new Error(faults.join('; '))
      }
    } catch (error) {
      t.comment(`ASKONCE_SEED=${random.seed}`)
      throw error
    }
  })
}
