/**
 * CPU of one write: with inputs that the toolbox makes, against the same inputs made by hand; without a network. And what
 * importing costs, each in a process of its own.
 *
 * @module
 */

import { execFileSync } from 'node:child_process'
import { Readable } from 'node:stream'
import { DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb'
import { marshalled } from '../../storages/dynamodb/attribute-values.ts'
import { UNCHANGED } from '../../storages/dynamodb/conditions.ts'
import { Requests } from '../../storages/dynamodb/requests.ts'
import { defaultIndexName, dynamoDBEntities, dynamoDBTable, keyNames } from '../../storages/dynamodb/schema.ts'
import { figure, spread, table } from '../support/report.ts'

const calls = 2_000
const rounds = 5

/** A client whose requests are made, signed and answered, but not sent. */
function unconnected(): DynamoDBClient {
  const client = new DynamoDBClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  })
  client.middlewareStack.add(
    (_next) => async () => ({
      response: { statusCode: 200, headers: {}, body: Readable.from([]) },
      output: { $metadata: {} } as never,
    }),
    { step: 'deserialize', priority: 'high', name: 'unconnected' },
  )
  return client
}

const changes = { w: 'v'.repeat(20), s: 'p', a: 1, t: 1_700_000_030_000, g: 'g'.repeat(22), due: 1_700_000_032_000 }
const key = 'askonce#bench#j#vehicle/00000000000000000'

function byHand(): UpdateItemCommand {
  const names: Record<string, string> = { '#w': 'w' }
  const values: Record<string, unknown> = { ':w': 'an older version' }
  const sets: string[] = []
  for (const [name, value] of Object.entries(changes)) {
    names[`#${name}`] = name
    values[`:_${name}`] = value
    sets.push(`#${name} = :_${name}`)
  }
  return new UpdateItemCommand({
    TableName: 'bench',
    Key: { pk: { S: key } },
    UpdateExpression: `SET ${sets.join(', ')}`,
    ConditionExpression: '#w = :w',
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: marshalled(values),
    ReturnValues: 'ALL_NEW',
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  })
}

async function microseconds(call: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  for (let count = 0; count < calls; count++) await call()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / calls
}

function importMs(specifier: string): number {
  const code = `const t = performance.now(); await import(${JSON.stringify(specifier)}); console.log(performance.now() - t)`
  return Number(
    execFileSync(process.execPath, ['--no-warnings', '--input-type=module', '-e', code], { encoding: 'utf8' }),
  )
}

export async function cpu(): Promise<void> {
  const client = unconnected()
  const table_ = dynamoDBTable('bench')
  const entities = dynamoDBEntities(table_)
  const requests = new Requests(table_, entities, defaultIndexName, keyNames(table_, defaultIndexName))
  const byToolbox = () => requests.update(entities.job, key, changes, UNCHANGED('an older version'))
  const systems: [string, () => unknown][] = [
    ['input by hand', byHand],
    ['input by the toolbox', byToolbox],
    ['whole call, input by hand', () => client.send(byHand())],
    ['whole call, input by the toolbox', () => client.send(byToolbox())],
  ]
  const samples = systems.map((): number[] => [])
  for (let count = -1; count < rounds; count++) {
    for (const [index, [, call]] of systems.entries()) {
      const sample = await microseconds(call)
      // Round -1 warms up.
      if (count >= 0) samples[index]!.push(sample)
    }
  }
  console.log(`## CPU of an update, without network\n`)
  const rows = systems.map(([name], index) => {
    const { median, min, max } = spread(samples[index]!)
    return [name, figure(median), `${figure(min)}–${figure(max)}`]
  })
  console.log(table(['', 'us a call', 'min–max'], rows))
  const imports = ['@aws-sdk/client-dynamodb', 'dynamodb-toolbox'].map((name) => [
    name,
    figure(spread([1, 2, 3].map(() => importMs(name))).median),
  ])
  console.log(`\n${table(['import in a new process', 'ms'], imports)}`)
  client.destroy()
}
