/**
 * `askonce/redis`: queues in Redis 6.2 and later, or Valkey; single, Sentinel or Cluster.
 *
 * @module
 */

import { randomBytes } from 'node:crypto'
import { guardDuration, guardInteger, InvalidArgumentError, TooLargeError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type { Storage, StorageHandle, StorageTraits } from '../../src/storage.ts'
import type { RedisClient } from './client.ts'
import { guardClient } from './client.ts'
import { Connection } from './connection.ts'
import { RedisHandle } from './handle.ts'
import { keyBase } from './layout.ts'
import { Subscriber } from './subscriber.ts'

export type { RedisClient } from './client.ts'

/** What can be set on a {@link RedisStorage}: `url` or `client`, and the rest. */
export interface RedisStorageOptions {
  /**
   * Where Redis is, as ioredis takes it: `redis://`, `rediss://`, with user, password and database, or the path of a unix
   * socket. Needs the package ioredis, 5 or 6. Default: `redis://127.0.0.1:6379`.
   */
  readonly url?: string
  /**
   * A client of ioredis 5 or 6 instead, `Redis` or `Cluster`. It is never closed and never reconfigured; to hear wake-ups, a
   * duplicate of it is made.
   */
  readonly client?: RedisClient
  /** What every key and channel begins with: at most 256 bytes, any characters. Default: `askonce`. */
  readonly keyPrefix?: string
  /**
   * Spreads each queue over so many hash tags, so that one queue can use every node of a Cluster. Jobs are then claimed in the
   * order of each partition only. Must be the same in all processes, for as long as the queue has records. 1 (the default)
   * to 1,024.
   */
  readonly partitions?: number
  /** How long opening may take, ms; also ioredis's own time to connect. Default: 10,000. */
  readonly connectTimeout?: number
  /** How long a call may take, its repetitions included, ms. Default: 5,000. */
  readonly commandTimeout?: number
  /**
   * Whether opening succeeds while Redis is away, instead of failing after `connectTimeout`: connecting then goes on in the
   * background, and calls made meanwhile fail after `commandTimeout`. Default: false.
   */
  readonly lazyConnect?: boolean
  /** Numbers from 0 to below 1, for jitter. Default: Math.random. */
  readonly random?: () => number
}

const keyPrefixBytesMax = 256
const partitionsMax = 1024

/** The clients that the open handles of a storage share. */
interface Resources {
  readonly connection: Connection
  readonly subscriber: Subscriber
}

/**
 * Queues in Redis. Clients are made when the first queue opens, and ended when the last one closes.
 *
 * @throws InvalidArgumentError or {@link TooLargeError} for options out of their bounds
 */
export class RedisStorage implements Storage {
  readonly traits: StorageTraits
  readonly #options: RedisStorageOptions
  readonly #keyPrefix: string
  readonly #partitions: number
  readonly #connectTimeoutMs: number
  readonly #commandTimeoutMs: number
  readonly #random: () => number
  #resources: Promise<Resources> | null = null
  #users = 0

  constructor(options: RedisStorageOptions = {}) {
    const { url, client, keyPrefix = 'askonce', partitions = 1 } = options
    const { connectTimeout = 10_000, commandTimeout = 5_000, random = Math.random } = options
    if (client !== undefined) {
      guardClient(client)
      if (url !== undefined) throw new InvalidArgumentError('options.url', 'left out where a client is given', url)
    } else if (url !== undefined && (typeof url !== 'string' || url === '')) {
      throw new InvalidArgumentError('options.url', 'a non-empty string', url)
    }
    guardPrefix(keyPrefix)
    guardInteger('options.partitions', partitions, 1, partitionsMax)
    guardDuration('options.connectTimeout', connectTimeout, limits.timerMsMax)
    guardDuration('options.commandTimeout', commandTimeout, limits.timerMsMax)
    this.#options = options
    this.#keyPrefix = keyPrefix
    this.#partitions = partitions
    this.#connectTimeoutMs = connectTimeout
    this.#commandTimeoutMs = commandTimeout
    this.#random = random
    this.traits = Object.freeze({
      kind: 'redis',
      durable: true,
      shared: true,
      push: true,
      ordering: partitions === 1 ? 'fifo' : 'approximate',
      clock: 'server',
      payloadBytesMax: limits.payloadBytesMax,
      ttlResolutionMs: 1,
      pollMs: Object.freeze({ min: 1_000, max: 1_500 }),
      gather: 'macrotask',
    })
  }

  /**
   * Opens a namespace.
   *
   * @throws StorageError if Redis can't be reached within `connectTimeout`, or refuses the user; not with `lazyConnect`
   * @throws StateError if there is a `url` but no ioredis
   */
  async open(namespace: string): Promise<StorageHandle> {
    this.#users++
    let handle: RedisHandle
    try {
      const { connection, subscriber } = await this.#acquire()
      handle = new RedisHandle({
        connection,
        subscriber,
        bases: this.#bases(namespace),
        channel: `${encodeURIComponent(this.#keyPrefix)}:${randomBytes(9).toString('base64url')}`,
        commandTimeoutMs: this.#commandTimeoutMs,
        onClosed: () => this.#release(),
      })
    } catch (error) {
      this.#release()
      throw error
    }
    const connecting = handle.connect(this.#connectTimeoutMs)
    if (this.#options.lazyConnect === true) {
      // Whoever calls meanwhile is told by the call.
      connecting.catch(() => {})
      return handle
    }
    try {
      await connecting
      return handle
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  #bases(namespace: string): readonly string[] {
    if (this.#partitions === 1) return [keyBase(this.#keyPrefix, namespace, null)]
    return Array.from({ length: this.#partitions }, (_, index) => keyBase(this.#keyPrefix, namespace, index))
  }

  #acquire(): Promise<Resources> {
    if (this.#resources === null) {
      const resources = this.#connect()
      this.#resources = resources
      resources.catch(() => {
        if (this.#resources === resources) this.#resources = null
      })
    }
    return this.#resources
  }

  async #connect(): Promise<Resources> {
    const { url = 'redis://127.0.0.1:6379', client } = this.#options
    const connection = await Connection.create({
      url: client === undefined ? url : undefined,
      client,
      connectTimeoutMs: this.#connectTimeoutMs,
      commandTimeoutMs: this.#commandTimeoutMs,
      random: this.#random,
    })
    const subscriber = new Subscriber(connection.client, this.#connectTimeoutMs, this.#random)
    return { connection, subscriber }
  }

  #release(): void {
    if (--this.#users > 0) return
    const resources = this.#resources
    this.#resources = null
    resources?.then(
      ({ connection, subscriber }) => {
        subscriber.close()
        connection.close()
      },
      () => {},
    )
  }
}

function guardPrefix(prefix: unknown): asserts prefix is string {
  if (typeof prefix !== 'string' || !prefix.isWellFormed()) {
    throw new InvalidArgumentError('options.keyPrefix', 'a string of well-formed Unicode', prefix)
  }
  const bytes = Buffer.byteLength(prefix)
  if (bytes > keyPrefixBytesMax) throw new TooLargeError('options.keyPrefix', bytes, keyPrefixBytesMax)
}
