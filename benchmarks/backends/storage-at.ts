/**
 * The storage at an address, in whatever process.
 *
 * @module
 */

import type { Storage } from '../../src/storage.ts'
import type { Address } from './backend.ts'

/** Loads only the storage that it is: the drivers take their time. */
export async function storageAt(address: Address): Promise<Storage> {
  switch (address.kind) {
    case 'memory': {
      const { MemoryStorage } = await import('../../storages/memory/index.ts')
      return new MemoryStorage()
    }
    case 'file': {
      const { FileStorage } = await import('../../storages/file/index.ts')
      return new FileStorage({ basePath: address.basePath, durability: address.durability })
    }
    case 'redis': {
      const { RedisStorage } = await import('../../storages/redis/index.ts')
      return new RedisStorage({ url: address.url })
    }
    case 'dynamodb': {
      const { DynamoDBClient } = await import('@aws-sdk/client-dynamodb')
      const { DynamoDBStorage } = await import('../../storages/dynamodb/index.ts')
      const { clientConfig } = await import('../../test/dynamodb/support/server.ts')
      const client = new DynamoDBClient(clientConfig(address.endpoint))
      return new DynamoDBStorage({ tableName: address.tableName, client })
    }
  }
}
