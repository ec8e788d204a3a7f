/**
 * Where things lie: the keys of items, and the partitions of the index.
 *
 * Every item's partition key begins with `prefix#namespace#`, the namespace escaped so that no name can reach into another's;
 * then a letter for the kind, and what tells the item from others of its kind. Ids come last and unescaped, so that any
 * characters may be in them. A partition key may have 2,048 bytes: 256 for the prefix, 384 for a name, 1,024 for an id.
 *
 * @module
 */

/** Bytes that {@link DynamoDBStorageOptions.keyPrefix} may have. */
export const keyPrefixBytesMax = 256

/** What the sort key of every item is, in tables that have one. */
export const sortKeyValue = 'askonce'

/** The keys of one namespace. */
export class Layout {
  readonly #base: string
  readonly #jobs: string
  /** What the partition keys of payloads and results kept apart begin with. */
  readonly payloads: string
  /** The key of the item that says until when the namespace is held. */
  readonly hold: string
  /** The key of the item that says how many shards the namespace has. */
  readonly shards: string

  constructor(keyPrefix: string, namespace: string) {
    this.#base = `${keyPrefix}#${encodeURIComponent(namespace)}#`
    this.#jobs = `${this.#base}j#`
    this.payloads = `${this.#base}p#`
    this.hold = `${this.#base}hold`
    this.shards = `${this.#base}shards`
  }

  /** What the partition keys of all items of the namespace begin with. */
  get all(): string {
    return this.#base
  }

  job(id: string): string {
    return this.#jobs + id
  }

  /** The id of a job's key; null if it is another item's key. */
  id(key: string): string | null {
    return key.startsWith(this.#jobs) ? key.slice(this.#jobs.length) : null
  }

  payload(token: string): string {
    return this.payloads + token
  }

  /** A partition of the index for what workers may claim. */
  shard(index: number): string {
    return this.#base + index
  }

  /** A partition of the index for what is to be delivered: claims never read past it. */
  outboxShard(index: number): string {
    return `${this.#base}o${index}`
  }
}

/** The shard of an id, from 0: FNV-1a over its UTF-16 units, mixed at the end so that few shards get even shares. */
export function shardOf(id: string, shards: number): number {
  if (shards === 1) return 0
  let hash = 0x811c9dc5
  for (let index = 0; index < id.length; index++) hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return ((hash ^ (hash >>> 16)) >>> 0) % shards
}
