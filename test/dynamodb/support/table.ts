/**
 * What the tests of single faults begin with: a server, a table each, items to enqueue, and a look at what lies in the table.
 *
 * @module
 */

import type { AttributeValue, DynamoDBClient } from '@aws-sdk/client-dynamodb'
import { ScanCommand } from '@aws-sdk/client-dynamodb'
import type { ProcessingRecord } from '../../../src/record.ts'
import type { EnqueueItem, StorageHandle } from '../../../src/storage.ts'
import { unmarshalled } from '../../../storages/dynamodb/attribute-values.ts'
import type { DynamoDBStorageOptions } from '../../../storages/dynamodb/index.ts'
import { DynamoDBStorage } from '../../../storages/dynamodb/index.ts'
import type { LocalDynamoDB } from './server.ts'

let tables = 0
let tokens = 0

/** A token never used before. */
export function token(kind: string): string {
  return `${kind}-${tokens++}`
}

/** A storage on a table of its own, and others on the same one. */
export async function freshTable(server: LocalDynamoDB, options: Partial<DynamoDBStorageOptions> = {}) {
  const tableName = `table-${tables++}`
  const client = server.client()
  const make = (more: Partial<DynamoDBStorageOptions> = {}) =>
    new DynamoDBStorage({ tableName, client, holdCache: 0, ...options, ...more })
  const storage = make()
  await storage.createTable()
  return { tableName, client, storage, make, items: () => allItems(client, tableName) }
}

/** Everything in a table, by partition key. */
async function allItems(client: DynamoDBClient, tableName: string): Promise<Map<string, Record<string, unknown>>> {
  const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName, ConsistentRead: true }))
  return new Map(
    Items.map((item: Record<string, AttributeValue>) => [String(item['pk']?.S), unmarshalled(item)] as const),
  )
}

/** An item to enqueue, due at once. */
export function job(
  id: string,
  payload: string | Uint8Array = 'payload',
  spec: Partial<EnqueueItem['spec']> = {},
): EnqueueItem {
  return {
    spec: {
      id,
      incarnation: token('incarnation'),
      fingerprint: 'fingerprint',
      maxAttempts: 3,
      resultTTL: 3_600_000,
      failureTTL: 60_000,
      ...spec,
    },
    payload,
    delayMs: 0,
    rejectMismatch: false,
    lease: null,
    wait: false,
  }
}

/** Claims one job by its id. */
export async function claimOne(handle: StorageHandle, id: string, leaseMs = 30_000): Promise<ProcessingRecord> {
  const { jobs } = await handle.claim({ generation: token('generation'), leaseMs, limit: 1, ids: [id] })
  if (jobs[0] === undefined) throw new Error(`${id} could not be claimed`)
  return jobs[0]
}
