/**
 * What stands between dynalite and the wire, so that it is more like the service, or less kind: an index that lags, old items
 * with failed conditions, answers that get lost, throttling. It sees writes in the order in which they were made.
 *
 * @module
 */

import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { crc32 } from './crc32.ts'

type Value = { readonly S?: string; readonly N?: string; readonly B?: string }
type Item = Record<string, Value>

interface Input {
  readonly TableName: string
  readonly IndexName?: string
  readonly Item?: Item
  readonly Key?: Item
  readonly Limit?: number
  readonly ReturnValuesOnConditionCheckFailure?: string
  readonly ExpressionAttributeNames?: Record<string, string>
  readonly ExpressionAttributeValues?: Record<string, Value>
  readonly KeyConditionExpression?: string
}

/** What can be set, at any time. */
export interface Wire {
  /** How far the index is behind: by a time; or by chance, so that each look may show any earlier state. */
  index: { readonly lagMs: number } | { readonly random: () => number } | null
  /** Whether failed conditions come with the item that is there, as the service sends it and dynalite does not. */
  oldItems: boolean
  /** The chance that the answer to a write is lost once it was made: operations, and a number from 0 to 1. */
  lose: { readonly operations: readonly string[]; readonly chance: number; readonly random: () => number } | null
  /** Asked for each request: the name of an error to answer with instead of doing it, or null. */
  refuse: ((operation: string, input: Input) => { readonly name: string; readonly message?: string } | null) | null
  /** Told of each request that was done. */
  seen: ((operation: string, input: Input) => void) | null
  lost: number
}

interface Write {
  readonly at: number
  readonly key: string
  readonly image: Item | null
}

/** One table's items as they are, and its index as it is shown. */
class Shown {
  readonly now = new Map<string, Item>()
  readonly #index = new Map<string, Item>()
  #pending: Write[] = []

  write(key: string, image: Item | null): void {
    if (image === null) this.now.delete(key)
    else this.now.set(key, image)
    this.#pending.push({ at: performance.now(), key, image })
  }

  /** The index's items of a query, after as much of what is pending as has arrived. */
  query(
    index: NonNullable<Wire['index']>,
    partition: [string, string],
    range: [string, number],
    limit: number,
  ): Item[] {
    let arrived = this.#pending.length
    if ('lagMs' in index) {
      const until = performance.now() - index.lagMs
      arrived = this.#pending.findIndex(({ at }) => at > until)
      if (arrived < 0) arrived = this.#pending.length
    } else if (index.random() < 0.5) {
      arrived = Math.floor(index.random() * (arrived + 1))
    }
    for (const { key, image } of this.#pending.splice(0, arrived)) {
      if (image?.[partition[0]] === undefined) this.#index.delete(key)
      else this.#index.set(key, image)
    }
    const found: Item[] = []
    for (const item of this.#index.values()) {
      if (item[partition[0]]?.S === partition[1] && Number(item[range[0]]?.N) <= range[1]) found.push(item)
    }
    return found.sort((a, b) => Number(a[range[0]]?.N) - Number(b[range[0]]?.N)).slice(0, limit)
  }
}

const type = 'com.amazonaws.dynamodb.v20120810#'

/** Wraps dynalite's listener. */
export function wired(listener: RequestListener): { listener: RequestListener; wire: Wire } {
  const wire: Wire = { index: null, oldItems: false, lose: null, refuse: null, seen: null, lost: 0 }
  const tables = new Map<string, Shown>()
  const table = (name: string): Shown => {
    const shown = tables.get(name) ?? new Shown()
    tables.set(name, shown)
    return shown
  }

  const answered = (
    operation: string,
    input: Input,
    status: number,
    output: Record<string, unknown>,
  ): string | null => {
    if (input.TableName === undefined) return null
    const shown = table(input.TableName)
    const key = JSON.stringify(input.Key?.['pk'] ?? input.Item?.['pk'] ?? input.Key?.['PK'] ?? input.Item?.['PK'])
    if (status === 200) {
      wire.seen?.(operation, input)
      if (operation === 'PutItem') shown.write(key, input.Item!)
      else if (operation === 'UpdateItem') shown.write(key, output['Attributes'] as Item)
      else if (operation === 'DeleteItem') shown.write(key, null)
      else if (operation === 'Query' && input.IndexName !== undefined && wire.index !== null) {
        return JSON.stringify(query(shown, wire.index, input))
      }
    } else if (wire.oldItems && input.ReturnValuesOnConditionCheckFailure === 'ALL_OLD') {
      if (String(output['__type']).endsWith('ConditionalCheckFailedException')) {
        const item = shown.now.get(key)
        if (item !== undefined) return JSON.stringify({ ...output, Item: item })
      }
    }
    return null
  }

  return {
    wire,
    listener: (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      const operation = String(request.headers['x-amz-target']).split('.')[1] ?? ''
      const read = () => JSON.parse(Buffer.concat(chunks).toString()) as Input
      if (wire.refuse !== null) {
        // The request must be read before it can be judged; so dynalite gets it from memory then.
        request.on('end', () => {
          const refusal = wire.refuse?.(operation, read()) ?? null
          if (refusal !== null)
            return answer(
              response,
              400,
              `{"__type":"${type}${refusal.name}","message":"${refusal.message ?? 'slow down'}"}`,
            )
          end(request, response, operation, read)
          listener(replayed(request, chunks), response)
        })
        return
      }
      end(request, response, operation, read)
      listener(request, response)
    },
  }

  /** Has a say in what is answered. */
  function end(request: IncomingMessage, response: ServerResponse, operation: string, read: () => Input): void {
    const end = response.end.bind(response)
    response.end = ((body: string) => {
      const input = read()
      const changed = answered(operation, input, response.statusCode, JSON.parse(body || '{}'))
      const { lose } = wire
      if (lose?.operations.includes(operation) && lose.random() < lose.chance) {
        wire.lost++
        request.socket.destroy()
        return response
      }
      if (changed === null) return end(body)
      response.setHeader('x-amz-crc32', crc32(changed))
      response.setHeader('Content-Length', Buffer.byteLength(changed))
      return end(changed)
    }) as typeof response.end
  }
}

function query(shown: Shown, index: NonNullable<Wire['index']>, input: Input): { Items: Item[]; Count: number } {
  const names = input.ExpressionAttributeNames ?? {}
  const values = input.ExpressionAttributeValues ?? {}
  const conditions = [...(input.KeyConditionExpression ?? '').matchAll(/(#\w+) (=|<=) (:\w+)/g)]
  const partition = conditions.find(([, , operator]) => operator === '=')!
  const range = conditions.find(([, , operator]) => operator === '<=')!
  const Items = shown.query(
    index,
    [names[partition[1]!]!, values[partition[3]!]!.S!],
    [names[range[1]!]!, Number(values[range[3]!]!.N)],
    input.Limit ?? 1_000,
  )
  return { Items, Count: Items.length }
}

function answer(response: ServerResponse, status: number, body: string): void {
  response.statusCode = status
  response.setHeader('Content-Type', 'application/x-amz-json-1.0')
  response.setHeader('x-amz-crc32', crc32(body))
  response.setHeader('Content-Length', Buffer.byteLength(body))
  response.end(body)
}

/** A request that was read, to be read again. */
function replayed(request: IncomingMessage, chunks: readonly Buffer[]): IncomingMessage {
  const again = Object.create(request) as IncomingMessage
  again.on = ((event: string, listener: (chunk?: Buffer) => void) => {
    if (event === 'data') for (const chunk of chunks) setImmediate(listener, chunk)
    else if (event === 'end') setImmediate(listener)
    return again
  }) as typeof again.on
  return again
}
