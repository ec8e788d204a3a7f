/**
 * Random commands against the machine, with payloads apart and compressed, an index that shows what was, and lost answers.
 *
 *     node --import tsx test/dynamodb/random.ts --commands 3000 --seed 1
 *
 * @module
 */

import { parseArgs } from 'node:util'
import { conformance } from '../../storages/conformance/index.ts'
import { seedOf, whole } from '../support/arguments.ts'
import { Seeded } from '../support/seeded.ts'
import { atOnce, LocalDynamoDB } from './support/server.ts'
import { suiteOptions } from './support/suite.ts'

const commandsInRun = 400

/** Runs so many commands; rejects with the seed and the command that failed. */
export async function randomCommands(commands: number, seed: number): Promise<number> {
  const server = await LocalDynamoDB.start()
  try {
    const { next } = new Seeded(seed)
    server.wire.oldItems = true
    const suite = await suiteOptions({
      tableName: 'random',
      client: () => server.client({ ...server.directConfig, retryStrategy: atOnce(10) }),
      options: { inlinePayloadBytesMax: 3, compress: { fromBytes: 5 }, lookahead: 0, shards: 2, random: next },
    })
    server.wire.index = { random: next }
    server.wire.lose = { operations: ['PutItem', 'UpdateItem'], chance: 0.1, random: next }
    for (let done = 0; done < commands; done += commandsInRun) {
      const cases: (() => Promise<void>)[] = []
      const random = { seed: (seed + done) >>> 0, runs: 1, commands: Math.min(commandsInRun, commands - done) }
      conformance({ ...suite, test: (_name, run) => void cases.push(run), random })
      try {
        // The random case is the suite's last.
        await cases.at(-1)!()
      } catch (error) {
        throw new Error(`ASKONCE_SEED=${seed} replays this`, { cause: error })
      }
    }
    return commands
  } finally {
    await server.stop()
  }
}

if (process.argv[1] === import.meta.filename) {
  const { values } = parseArgs({ options: { commands: { type: 'string', default: '3000' }, seed: { type: 'string' } } })
  const [commands, seed] = [whole(values, 'commands', 1), seedOf(values)]
  console.log(`${await randomCommands(commands, seed)} random commands from seed ${seed}: all as the machine does`)
}
