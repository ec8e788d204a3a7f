/**
 * Request units by AWS's documented rules, computed from the operations that clients really send, the SDK's repetitions
 * included.
 *
 * - Item sizes: names and text in UTF-8 bytes, bytes as they are, numbers about a byte per two digits and one more.
 * - A write: 1 unit per KB begun of the larger of the item before and after; of a removal, of the item before; of a failed
 *   condition, of the item that is there, at least 1.
 * - An index: 1 unit per KB begun of an entry that is made, removed, or changed in what it carries; both where its key changes.
 * - A consistent read: 1 unit per 4 KB begun; half of it where it need not be consistent. A batch rounds each item by itself, a
 *   query or scan the sum of what it reads.
 *
 * https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
 *
 * @module
 */

import type { AttributeValue, DynamoDBClient } from '@aws-sdk/client-dynamodb'

type Item = Record<string, AttributeValue>

/** What was used. */
export interface Usage {
  requests: number
  /** Write units of the table, of the index, and read units. */
  tableWrites: number
  indexWrites: number
  reads: number
  /** Requests by operation. */
  operations: Record<string, number>
}

/** Bytes of an item, or of some attributes of it. */
function itemBytes(item: Item): number {
  let bytes = 0
  for (const [name, value] of Object.entries(item)) bytes += Buffer.byteLength(name) + valueBytes(value)
  return bytes
}

function valueBytes(value: AttributeValue): number {
  if (value.S !== undefined) return Buffer.byteLength(value.S)
  if (value.B !== undefined) return value.B.byteLength
  if (value.N !== undefined) return Math.ceil(value.N.replace(/^-?0*\.?|0+$|\./g, '').length / 2) + 1
  return 1
}

function writeUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / 1_024))
}

function readUnits(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / 4_096))
}

export interface MeterOptions {
  /** The attributes of the table's key and the index's, and what the index carries besides. */
  readonly keys: readonly string[]
  readonly indexKeys: readonly [string, string]
  readonly projected: readonly string[]
}

/** Meters the clients that it is put on; they share what it knows of the items. */
export class Meter {
  readonly #options: MeterOptions
  readonly #items = new Map<string, Item>()
  usage: Usage = none()

  constructor(options: MeterOptions) {
    this.#options = options
  }

  /** What was used since the last time. */
  take(): Usage {
    const { usage } = this
    this.usage = none()
    return usage
  }

  on(client: DynamoDBClient): DynamoDBClient {
    client.middlewareStack.add(
      (next: any, context: any) => async (args: any) => {
        const operation = String(context.commandName).replace(/Command$/, '')
        try {
          const result = await next(args)
          this.#count(operation, args.input, result.output)
          return result
        } catch (error) {
          this.#refused(operation, args.input, error)
          throw error
        }
      },
      // Below the SDK's repetitions, so that each is seen.
      { step: 'finalizeRequest', priority: 'low', name: 'askonceMeter' },
    )
    return client
  }

  #count(operation: string, input: Record<string, unknown>, output: Record<string, unknown>): void {
    this.#request(operation)
    const { usage } = this
    switch (operation) {
      case 'PutItem':
        this.#write(input['Item'] as Item, input['Item'] as Item)
        return
      case 'UpdateItem':
        this.#write(input['Key'] as Item, output['Attributes'] as Item)
        return
      case 'DeleteItem':
        this.#write(input['Key'] as Item, null)
        return
      case 'GetItem': {
        const units = readUnits(itemBytes((output['Item'] ?? {}) as Item))
        usage.reads += input['ConsistentRead'] === true ? units : units / 2
        return
      }
      case 'BatchGetItem': {
        const asked = Object.values(input['RequestItems'] as Record<string, { Keys: Item[] }>)[0]!.Keys.length
        const items = Object.values((output['Responses'] ?? {}) as Record<string, Item[]>).flat()
        for (const item of items) usage.reads += readUnits(itemBytes(item))
        usage.reads += asked - items.length
        return
      }
      case 'Query':
      case 'Scan': {
        const items = (output['Items'] ?? []) as Item[]
        usage.reads += readUnits(items.reduce((sum, item) => sum + itemBytes(item), 0)) / 2
        return
      }
    }
  }

  #refused(operation: string, input: Record<string, unknown>, error: unknown): void {
    this.#request(operation)
    if ((error as Error).name !== 'ConditionalCheckFailedException') return
    const there = this.#items.get(this.#key((input['Key'] ?? input['Item']) as Item))
    this.usage.tableWrites += writeUnits(there === undefined ? 0 : itemBytes(there))
  }

  #request(operation: string): void {
    this.usage.requests++
    this.usage.operations[operation] = (this.usage.operations[operation] ?? 0) + 1
  }

  #write(keyed: Item, after: Item | null): void {
    const key = this.#key(keyed)
    const before = this.#items.get(key) ?? null
    if (after === null) this.#items.delete(key)
    else this.#items.set(key, after)
    this.usage.tableWrites += writeUnits(Math.max(before ? itemBytes(before) : 0, after ? itemBytes(after) : 0))
    const old = before === null ? null : this.#entry(before)
    const now = after === null ? null : this.#entry(after)
    if (JSON.stringify(old) === JSON.stringify(now)) return
    const moved = old === null || now === null || this.#place(old) !== this.#place(now)
    if (!moved) {
      this.usage.indexWrites += writeUnits(Math.max(itemBytes(old), itemBytes(now)))
      return
    }
    if (old !== null) this.usage.indexWrites += writeUnits(itemBytes(old))
    if (now !== null) this.usage.indexWrites += writeUnits(itemBytes(now))
  }

  /** What the index has of an item; null if nothing. */
  #entry(item: Item): Item | null {
    const { keys, indexKeys, projected } = this.#options
    if (indexKeys.some((name) => item[name] === undefined)) return null
    const entry: Item = {}
    for (const name of [...keys, ...indexKeys, ...projected]) if (item[name] !== undefined) entry[name] = item[name]
    return entry
  }

  #place(entry: Item): string {
    return JSON.stringify(this.#options.indexKeys.map((name) => entry[name]))
  }

  #key(item: Item): string {
    return JSON.stringify(this.#options.keys.map((name) => item[name]))
  }
}

function none(): Usage {
  return { requests: 0, tableWrites: 0, indexWrites: 0, reads: 0, operations: {} }
}
