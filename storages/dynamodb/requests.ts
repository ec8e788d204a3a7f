/**
 * The commands that are sent, made with dynamodb-toolbox where they carry expressions.
 *
 * @module
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'
import {
  BatchGetItemCommand,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb'
import type { Entity } from 'dynamodb-toolbox/entity'
import { DeleteItemCommand as Delete } from 'dynamodb-toolbox/entity/actions/delete'
import { PutItemCommand as Put } from 'dynamodb-toolbox/entity/actions/put'
import { $remove, UpdateItemCommand as Update } from 'dynamodb-toolbox/entity/actions/update'
import type { Table } from 'dynamodb-toolbox/table'
import { QueryCommand as Query } from 'dynamodb-toolbox/table/actions/query'
import { marshalled } from './attribute-values.ts'
import type { Condition } from './conditions.ts'
import type { Attributes } from './items.ts'
import { dueKey } from './items.ts'
import { sortKeyValue } from './layout.ts'
import type { DynamoDBEntities, KeyNames } from './schema.ts'
import { ttlAttribute } from './schema.ts'

/** A key as the service has it. */
export type Key = Record<string, AttributeValue>

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
    return sort === null ? { [name]: { S: partition } } : { [name]: { S: partition }, [sort]: { S: sortKeyValue } }
  }

  /** The partition key of an item. */
  partitionOf(item: Attributes): string {
    return String(item[this.#names.partition])
  }

  put(entity: Entity, partition: string, attributes: Attributes, condition: Condition | null): PutItemCommand {
    const params = entity
      .build(Put)
      .item({ ...this.#key(partition), ...attributes })
      .params()
    return new PutItemCommand({ ...this.#conditional(params, condition), Item: marshalled(params.Item as Attributes) })
  }

  /** Sets and removes (undefined) attributes; the output has the whole item. */
  update(entity: Entity, partition: string, changes: Attributes, condition: Condition): UpdateItemCommand {
    const item: { [name: string]: unknown } = this.#key(partition)
    for (const [name, value] of Object.entries(changes)) item[name] = value === undefined ? $remove() : value
    const action = entity.build(Update).item(item as never)
    const params = action.options({ returnValues: 'ALL_NEW' }).params() as Params
    return new UpdateItemCommand({ ...this.#conditional(params, condition), Key: this.key(partition) })
  }

  delete(entity: Entity, partition: string, condition: Condition | null): DeleteItemCommand {
    const params = entity
      .build(Delete)
      .key(this.#key(partition) as never)
      .params() as Params
    return new DeleteItemCommand({ ...this.#conditional(params, condition), Key: this.key(partition) })
  }

  get(partition: string): GetItemCommand {
    return new GetItemCommand({ TableName: this.table.getName(), Key: this.key(partition), ConsistentRead: true })
  }

  batchGet(keys: readonly Key[]): BatchGetItemCommand {
    const name = this.table.getName()
    return new BatchGetItemCommand({ RequestItems: { [name]: { Keys: [...keys], ConsistentRead: true } } })
  }

  /** The first of a shard that a worker may claim up to a moment. */
  due(shard: string, until: number, limit: number, startKey?: Key): QueryCommand {
    const range = { lte: dueKey(until, this.#names.dueIsText) }
    const params = this.table
      .build(Query)
      .query({ index: this.#indexName, partition: shard, range } as never)
      .options({ limit } as never)
      .params()
    return new QueryCommand({ ...wired(params), ...(startKey === undefined ? {} : { ExclusiveStartKey: startKey }) })
  }

  /** Items past their end, and payloads long written, anywhere in the table. */
  scan({ prefix, ttlUntil, payloads, writtenUntil, limit, startKey }: ScanTerms): ScanCommand {
    const values = { ':all': prefix, ':ttl': ttlUntil, ':payloads': payloads, ':written': writtenUntil }
    return new ScanCommand({
      TableName: this.table.getName(),
      FilterExpression: 'begins_with(#pk, :all) AND (#ttl <= :ttl OR (begins_with(#pk, :payloads) AND #c <= :written))',
      ExpressionAttributeNames: { '#pk': this.#names.partition, '#ttl': ttlAttribute, '#c': 'c' },
      ExpressionAttributeValues: marshalled(values),
      Limit: limit,
      ...(startKey === undefined ? {} : { ExclusiveStartKey: startKey }),
    })
  }

  /** An input as it is sent, with a condition that sends the item along where it does not hold. */
  #conditional<P extends Params>(params: P, condition: Condition | null) {
    const wire = wired(params)
    if (condition === null) return wire
    const { expression, attributes, values } = condition
    const names: Record<string, string> = { ...params.ExpressionAttributeNames }
    for (const name of attributes) names[`#${name}`] = name === 'pk' ? this.#names.partition : name
    const all: Record<string, AttributeValue> = { ...wire.ExpressionAttributeValues }
    for (const [name, value] of Object.entries(marshalled(values ?? {}))) all[`:${name}`] = value
    return {
      ...wire,
      ConditionExpression: expression,
      ExpressionAttributeNames: names,
      ...(Object.keys(all).length === 0 ? {} : { ExpressionAttributeValues: all }),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
    }
  }

  #key(partition: string): { [name: string]: unknown } {
    return this.#names.sort === null ? { pk: partition } : { pk: partition, sk: sortKeyValue }
  }
}

/** What the toolbox makes: inputs of the document client. */
interface Params {
  readonly TableName?: string | undefined
  readonly ExpressionAttributeNames?: Record<string, string> | undefined
  readonly ExpressionAttributeValues?: Record<string, unknown> | undefined
}

/** An input of the document client as one of the client itself, but for item and key; what the toolbox adds is left out. */
function wired<P extends Params>(
  params: P,
): Omit<P, 'ToolboxItem' | 'ExpressionAttributeValues'> & {
  TableName: string
  ExpressionAttributeValues?: Record<string, AttributeValue>
} {
  const {
    ToolboxItem: _,
    ExpressionAttributeValues: values,
    TableName,
    ...rest
  } = params as P & { ToolboxItem?: unknown }
  const wire = { ...rest, TableName: TableName as string }
  return (values === undefined ? wire : { ...wire, ExpressionAttributeValues: marshalled(values) }) as never
}
