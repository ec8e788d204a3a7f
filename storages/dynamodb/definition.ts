/**
 * The definition of the table, as CreateTable takes it.
 *
 * @module
 */

import type { KeyNames } from './schema.ts'
import { projectedAttributes } from './schema.ts'

/** The input of CreateTable: on demand, one sparse index. */
export interface TableDefinition {
  readonly TableName: string
  readonly BillingMode: 'PAY_PER_REQUEST'
  readonly AttributeDefinitions: readonly { readonly AttributeName: string; readonly AttributeType: 'S' | 'N' }[]
  readonly KeySchema: readonly { readonly AttributeName: string; readonly KeyType: 'HASH' | 'RANGE' }[]
  readonly GlobalSecondaryIndexes: readonly {
    readonly IndexName: string
    readonly KeySchema: readonly { readonly AttributeName: string; readonly KeyType: 'HASH' | 'RANGE' }[]
    readonly Projection: { readonly ProjectionType: 'INCLUDE'; readonly NonKeyAttributes: readonly string[] }
  }[]
}

/** The definition of a table with these keys. */
export function tableDefinition(tableName: string, indexName: string, names: KeyNames): TableDefinition {
  const { partition, sort, shard, due, dueIsText } = names
  return {
    TableName: tableName,
    BillingMode: 'PAY_PER_REQUEST',
    AttributeDefinitions: [
      { AttributeName: partition, AttributeType: 'S' },
      ...(sort === null ? [] : [{ AttributeName: sort, AttributeType: 'S' as const }]),
      { AttributeName: shard, AttributeType: 'S' },
      { AttributeName: due, AttributeType: dueIsText ? 'S' : 'N' },
    ],
    KeySchema: [
      { AttributeName: partition, KeyType: 'HASH' },
      ...(sort === null ? [] : [{ AttributeName: sort, KeyType: 'RANGE' as const }]),
    ],
    GlobalSecondaryIndexes: [
      {
        IndexName: indexName,
        KeySchema: [
          { AttributeName: shard, KeyType: 'HASH' },
          { AttributeName: due, KeyType: 'RANGE' },
        ],
        Projection: { ProjectionType: 'INCLUDE', NonKeyAttributes: [...projectedAttributes] },
      },
    ],
  }
}
