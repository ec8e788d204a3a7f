/**
 * DynamoDB, played by dynalite in a process of its own, and its baseline: the SDK's bare put and update.
 *
 * @module
 */

import { DeleteTableCommand, DynamoDBClient, ScanCommand, type ScanCommandOutput } from '@aws-sdk/client-dynamodb'
import { DynamoDBStorage } from '../../storages/dynamodb/index.ts'
import { clientConfig } from '../../test/dynamodb/support/server.ts'
import { bareTable } from '../baselines/dynamodb.ts'
import { askonceSession } from './askonce.ts'
import type { Backend } from './backend.ts'
import { startDynalite } from './dynalite.ts'

/** What of a client the storage uses; counts what it sends. */
function counted(client: DynamoDBClient): { client: DynamoDBClient; calls: () => number } {
  let calls = 0
  client.middlewareStack.add(
    (next) => (args) => {
      calls++
      return next(args)
    },
    // Behind the SDK's repetitions, so that these count.
    { step: 'finalizeRequest', priority: 'low', name: 'counted' },
  )
  return { client, calls: () => calls }
}

/** Bytes of all items, roughly as AWS counts them: names and values. Entries of indexes are not among them. */
async function tableBytes(client: DynamoDBClient, tableName: string): Promise<number> {
  let bytes = 0
  let from: ScanCommandOutput['LastEvaluatedKey']
  do {
    const page = await client.send(new ScanCommand({ TableName: tableName, ExclusiveStartKey: from }))
    for (const item of page.Items ?? []) {
      for (const [name, value] of Object.entries(item)) {
        const { S: text, N: number, B: binary } = value
        bytes += name.length + (binary?.length ?? Buffer.byteLength(text ?? '') + Math.ceil((number?.length ?? 0) / 2))
      }
    }
    from = page.LastEvaluatedKey
  } while (from !== undefined)
  return bytes
}

export const dynamodb: Backend = {
  name: 'dynamodb',
  title: 'DynamoDB (dynalite)',
  baseline: 'the SDK: a conditional put, two conditional updates; what is due is known in the process',
  pace: 500,
  depthMax: 1_000,
  async start() {
    const server = await startDynalite()
    const { client, calls } = counted(new DynamoDBClient(clientConfig(server.endpoint)))
    let tables = 0
    const address = { kind: 'dynamodb' as const, endpoint: server.endpoint, tableName: 'bench-0' }
    const remove = async () => {
      if (tables > 0) await client.send(new DeleteTableCommand({ TableName: address.tableName }))
      address.tableName = `bench-${++tables}`
    }
    return {
      address,
      software: 'dynalite in a process of its own, which keeps its tables in memory: no figure of AWS',
      async open(system) {
        await remove()
        const { tableName } = address
        if (system === 'bare') return bareTable(client, tableName)
        await new DynamoDBStorage({ tableName, client }).createTable()
        return askonceSession(() => new DynamoDBStorage({ tableName, client }), 'bench')
      },
      spent: async () => ({ serverUs: await server.cpuUs(), calls: calls() }),
      bytesOutside: () => tableBytes(client, address.tableName),
      async stop() {
        client.destroy()
        await server.stop()
      },
    }
  },
}
