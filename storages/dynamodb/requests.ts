/**
 * The commands that are sent, made with dynamodb-toolbox where they carry expressions.
 *
 * @module
 */

import {
  BatchGetCommand,
  DeleteCommand,
  GetCommand,
  PutCommand,
  QueryCommand,
  ScanCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb'
import type { Entity } from 'dynamodb-toolbox/entity'
import { DeleteItemCommand } from 'dynamodb-toolbox/entity/actions/delete'
import type { Condition } from 'dynamodb-toolbox/entity/actions/parseCondition'
import { PutItemCommand } from 'dynamodb-toolbox/entity/actions/put'
import { $remove, UpdateItemCommand } from 'dynamodb-toolbox/entity/actions/update'
import type { Table } from 'dynamodb-toolbox/table'
import { QueryCommand as TableQuery } from 'dynamodb-toolbox/table/actions/query'
import type { Attributes } from './items.ts'
import { dueKey } from './items.ts'
import { sortKeyValue } from './layout.ts'
import type { DynamoDBEntities, KeyNames } from './schema.ts'
import { ttlAttribute } from './schema.ts'

/** A key as the service has it. */
export type Key = Record<string, string>

/** What is asked of a scan for what can be collected. */
export interface ScanTerms {
  /** What the partition keys begin with. */
  readonly prefix: string
  /** Items whose TTL attribute is up to this, seconds. */
  readonly ttlUntil: number
  /** What the partition keys of payloads begin with. */
  readonly payloads: string
  /** Payloads written up to this, ms. */
  readonly writtenUntil: number
  readonly limit: number
  readonly startKey: Key | undefined
}

/** Makes commands for one table. */
export class Requests {
  readonly table: Table
  readonly entities: DynamoDBEntities
  readonly #indexName: string
  readonly #names: KeyNames

  constructor(table: Table, entities: DynamoDBEntities, indexName: string, names: KeyNames) {
    this.table = table
    this.entities = entities
    this.#indexName = indexName
    this.#names = names
  }

  key(partition: string): Key {
    const { partition: name, sort } = this.#names
    return sort === null ? { [name]: partition } : { [name]: partition, [sort]: sortKeyValue }
  }

  /** The partition key of an item. */
  partitionOf(item: Attributes): string {
    return String(item[this.#names.partition])
  }

  put(entity: Entity, partition: string, attributes: Attributes, condition: Condition | null) {
    const action = entity.build(PutItemCommand).item({ ...this.#key(partition), ...attributes })
    return new PutCommand(
      (condition === null ? action : action.options({ condition, returnValuesOnConditionFalse: 'ALL_OLD' })).params(),
    )
  }

  /** Sets and removes (undefined) attributes; the output has the whole item. */
  update(entity: Entity, partition: string, changes: Attributes, condition: Condition) {
    const item: { [name: string]: unknown } = this.#key(partition)
    for (const [name, value] of Object.entries(changes)) item[name] = value === undefined ? $remove() : value
    return new UpdateCommand(
      entity
        .build(UpdateItemCommand)
        .item(item)
        .options({ condition, returnValues: 'ALL_NEW', returnValuesOnConditionFalse: 'ALL_OLD' })
        .params() as ConstructorParameters<typeof UpdateCommand>[0],
    )
  }

  delete(entity: Entity, partition: string, condition: Condition | null) {
    const action = entity.build(DeleteItemCommand).key(this.#key(partition))
    return new DeleteCommand(
      (condition === null ? action : action.options({ condition, returnValuesOnConditionFalse: 'ALL_OLD' })).params(),
    )
  }

  get(partition: string, consistent = true) {
    return new GetCommand({
      TableName: this.table.getName(),
      Key: this.key(partition),
      ConsistentRead: consistent,
    })
  }

  batchGet(keys: readonly Key[]) {
    const name = this.table.getName()
    return new BatchGetCommand({ RequestItems: { [name]: { Keys: [...keys], ConsistentRead: true } } })
  }

  /** The first of a shard that a worker may claim up to a moment. */
  due(shard: string, until: number, limit: number, startKey?: Key) {
    const range = { lte: dueKey(until, this.#names.dueIsText) }
    return new QueryCommand(
      this.table
        .build(TableQuery)
        .query({ index: this.#indexName, partition: shard, range } as never)
        .options({ limit, ...(startKey === undefined ? {} : { exclusiveStartKey: startKey }) })
        .params(),
    )
  }

  /** Items past their end, and payloads long written, anywhere in the table. */
  scan({ prefix, ttlUntil, payloads, writtenUntil, limit, startKey }: ScanTerms) {
    const names = { '#pk': this.#names.partition, '#ttl': ttlAttribute, '#c': 'c' }
    const values = { ':all': prefix, ':ttl': ttlUntil, ':payloads': payloads, ':written': writtenUntil }
    const filter = 'begins_with(#pk, :all) AND (#ttl <= :ttl OR (begins_with(#pk, :payloads) AND #c <= :written))'
    return new ScanCommand({
      TableName: this.table.getName(),
      FilterExpression: filter,
      ExpressionAttributeNames: names,
      ExpressionAttributeValues: values,
      Limit: limit,
      ExclusiveStartKey: startKey,
    })
  }

  #key(partition: string): { [name: string]: unknown } {
    return this.#names.sort === null ? { pk: partition } : { pk: partition, sk: sortKeyValue }
  }
}
