/**
 * The table and its items in the words of dynamodb-toolbox: for askonce's own requests, and for users who keep queues in a
 * table of their own.
 *
 * @module
 */

import { Entity } from 'dynamodb-toolbox/entity'
import { anyOf, binary, item, number, string } from 'dynamodb-toolbox/schema'
import { Table } from 'dynamodb-toolbox/table'
import { InvalidArgumentError } from '../../src/errors.ts'

/** The index's name, unless an option says otherwise. */
export const defaultIndexName = 'due'

/** The attribute that DynamoDB's own TTL is to be set on: seconds since 1970. */
export const ttlAttribute = 'ttl'

/**
 * What the index must carry of a job besides its keys for a claim to need no look at the table. With less (`KEYS_ONLY`) each
 * claim reads the record first; so does that of a job which is refreshed or marked, and every delivery.
 */
export const projectedAttributes = [
  'w',
  'v',
  's',
  'n',
  'd',
  'c',
  'm',
  'k',
  'K',
  'a',
  't',
  'g',
  'l',
  'y',
  'q',
  'u',
] as const

/** The table that askonce makes: key `pk`, one sparse index on (`shard`, `due`). */
export function dynamoDBTable(tableName: string, indexName: string = defaultIndexName) {
  return new Table({
    name: tableName,
    partitionKey: { name: 'pk', type: 'string' },
    indexes: {
      [indexName]: {
        type: 'global',
        partitionKey: { name: 'shard', type: 'string' },
        sortKey: { name: 'due', type: 'number' },
      },
    },
  }) as unknown as Table
}

/** How the attributes that are keys are called in the table, and whether its index sorts by text. */
export interface KeyNames {
  readonly partition: string
  readonly sort: string | null
  readonly shard: string
  readonly due: string
  readonly dueIsText: boolean
}

/**
 * The names of a table's keys.
 *
 * @throws InvalidArgumentError if a queue can't live in it
 */
export function keyNames(table: Table, indexName: string): KeyNames {
  const { partitionKey, sortKey } = table
  if (partitionKey.type !== 'string' || (sortKey !== undefined && sortKey.type !== 'string')) {
    throw new InvalidArgumentError('options.table', 'a table whose keys are strings', table)
  }
  const index = Object.hasOwn(table.indexes, indexName) ? table.indexes[indexName] : undefined
  const shard = index?.partitionKey
  const due = index?.sortKey
  if (index?.type !== 'global' || shard?.type !== 'string' || due === undefined || due.type === 'binary') {
    throw new InvalidArgumentError(
      'options.indexName',
      'a global index of the table, its partition key a string, its sort key a number or string',
      indexName,
    )
  }
  return {
    partition: partitionKey.name,
    sort: sortKey?.name ?? null,
    shard: shard.name,
    due: due.name,
    dueIsText: due.type === 'string',
  }
}

/**
 * The entities that a queue keeps in a table: `job` (one record), `payload` (a large payload or result, kept apart), `hold` (until when a
 * namespace is held) and `shards` (how many partitions of the index it has).
 *
 * Their attribute names are short, as every kilobyte is paid for. Read with them what you like; write with them only what you
 * know, as each write of askonce carries a new version `w`, and a record without one is refused.
 */
export function dynamoDBEntities(table: Table, indexName: string = defaultIndexName): DynamoDBEntities {
  const names = keyNames(table, indexName)
  const key = { pk: string().key().savedAs(names.partition) }
  const sorted = names.sort === null ? key : { ...key, sk: string().key().savedAs(names.sort) }
  const value = () => anyOf(string(), binary()).optional()
  const plain = { entityAttribute: false, timestamps: false } as const
  const job = new Entity({
    name: 'askonce-job',
    table,
    ...plain,
    schema: item({
      ...sorted,
      /** The version: new with every write. */
      w: string(),
      /** Format of the record. */
      v: number(),
      /** State: q(ueued), p(rocessing), r(etried: failing), c(ompleted), f(ailed). */
      s: string(),
      /** Incarnation. */
      n: string(),
      /** Fingerprint of the payload. */
      d: string().optional(),
      /** Created at, ms. */
      c: number(),
      /** Attempts at most. */
      m: number(),
      /** How long a result is kept, ms. */
      k: number(),
      /** How long an error is kept, ms, where that differs. */
      K: number().optional(),
      /** Attempts. */
      a: number().optional(),
      /** The one time stamp `at`, ms. */
      t: number(),
      /** Generation. */
      g: string().optional(),
      /** 1 for an inline run's. */
      l: number().optional(),
      /** Payload, result, error: text or bytes, as all values. */
      p: value(),
      r: value(),
      e: value(),
      /** Which of them are compressed. */
      y: string().optional(),
      /** Effects that were begun. */
      b: string().optional(),
      /** While it is refreshed: the result before, when that was settled, until when it is kept, ms. */
      R: value(),
      Z: number().optional(),
      T: number().optional(),
      /** Refreshed in vain: e(rror), x (exhausted) or c(ancelled), and the error. */
      M: string().optional(),
      E: value(),
      /** The outbox: rows, from when they may be delivered or until when they are, by whom, how often begun, given up at. */
      o: value(),
      O: number().optional(),
      G: string().optional(),
      A: number().optional(),
      U: number().optional(),
      /** Key of the result's own item, and until when that is kept at least, seconds. */
      Q: string().optional(),
      V: number().optional(),
      /** Key of the payload's own item. */
      q: string().optional(),
      /** Until when that item is kept at least, seconds. */
      u: number().optional(),
      /** 1 if the attempts were used up. */
      x: number().optional(),
      /** Settled at, ms. */
      z: number().optional(),
      /** For DynamoDB's garbage collector, seconds. */
      [ttlAttribute]: number().optional(),
      /** The index's keys: where and from when on a worker may claim it, or a relay deliver its rows. */
      shard: string().optional().savedAs(names.shard),
      due: anyOf(number(), string()).optional().savedAs(names.due),
    }),
  } as never) as unknown as Entity
  const payload = new Entity({
    name: 'askonce-payload',
    table,
    ...plain,
    schema: item({
      ...sorted,
      p: value(),
      y: string().optional(),
      /** The partition key of the record that it belongs to. */
      o: string(),
      /** Written at, ms. */
      c: number(),
      [ttlAttribute]: number().optional(),
    }),
  } as never) as unknown as Entity
  const hold = new Entity({
    name: 'askonce-hold',
    table,
    ...plain,
    schema: item({
      ...sorted,
      w: string(),
      /** Held until, ms. */
      h: number(),
    }),
  } as never) as unknown as Entity
  const shards = new Entity({
    name: 'askonce-shards',
    table,
    ...plain,
    schema: item({ ...sorted, h: number() }),
  } as never) as unknown as Entity
  return { job, payload, hold, shards }
}

/** What {@link dynamoDBEntities} makes. */
export interface DynamoDBEntities {
  readonly job: Entity
  readonly payload: Entity
  readonly hold: Entity
  readonly shards: Entity
}
