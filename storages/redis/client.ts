/**
 * The Redis client as askonce uses it: a structural type, so that ioredis 5 and 6, single or Cluster, fit without askonce
 * naming a version; and the making of clients of our own.
 *
 * @module
 */

import { InvalidArgumentError, StateError } from '../../src/errors.ts'

/** What askonce needs of an ioredis client: `Redis` or `Cluster` of ioredis 5 or 6. */
export interface RedisClient {
  /** `wait`, `connecting`, `connect`, `ready`, `reconnecting`, `close`, `end`. */
  readonly status: string
  readonly isCluster: boolean
  evalsha(sha: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>
  eval(script: string, keys: number, ...keysAndArguments: string[]): Promise<unknown>
  /** Makes another client for the same server; askonce subscribes on such a one. */
  duplicate(...options: never[]): unknown
}

/** A client of our own: connected, reconnected and closed by us. */
export interface OwnClient extends RedisClient {
  connect(): Promise<void>
  disconnect(reconnect?: boolean): void
  subscribe(...channels: string[]): Promise<unknown>
  unsubscribe(...channels: string[]): Promise<unknown>
  on(event: string, listener: (...values: never[]) => void): unknown
}

/** The longest pause between two tries to connect, ms: short, as a queue that is back should be used. */
const reconnectMsMax = 1_000

/** How long a connection may take to close in good order before it is cut, ms: a half-open one never does. */
const disconnectMsMax = 100

/** Pause before the next try to connect, ms: doubled up to the longest, and jittered, so that a fleet does not come at once. */
function reconnectMs(times: number, random: () => number): number {
  const ceiling = Math.min(reconnectMsMax, 25 * 2 ** Math.min(times, 10))
  return Math.round(ceiling * (0.25 + 0.75 * random()))
}

/** A client for the url, not yet connected. Calls on it fail at once while there is no connection: we repeat them ourselves. */
export async function createClient(url: string, connectTimeoutMs: number, random: () => number): Promise<OwnClient> {
  let Redis: new (url: string, options: object) => unknown
  try {
    ;({ Redis } = (await import('ioredis')) as unknown as { Redis: typeof Redis })
  } catch {
    throw new StateError('RedisStorage with `url` needs the package ioredis (5 or 6): install it, or give a `client`')
  }
  const options = {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    disconnectTimeout: disconnectMsMax,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: (times: number) => reconnectMs(times, random),
  }
  return new Redis(url, options) as OwnClient
}

/** A client to subscribe on, made of another; not yet connected, nor subscribed again by itself. */
export function createSubscriber(client: RedisClient, connectTimeoutMs: number, random: () => number): OwnClient {
  const options = {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    disconnectTimeout: disconnectMsMax,
    // Channels are named in full by the scripts.
    keyPrefix: '',
    enableOfflineQueue: true,
    autoResubscribe: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    enableAutoPipelining: false,
    commandTimeout: undefined,
    retryStrategy: (times: number) => reconnectMs(times, random),
  }
  const made = client.isCluster
    ? (client.duplicate as (nodes: unknown[], options: object) => unknown)([], {
        lazyConnect: true,
        enableOfflineQueue: true,
        clusterRetryStrategy: options.retryStrategy,
        redisOptions: { connectTimeout: connectTimeoutMs, keyPrefix: '' },
      })
    : (client.duplicate as (options: object) => unknown)(options)
  return made as OwnClient
}

/**
 * Gives a connection up that is made but does not become ready in time. ioredis waits for ever for the first replies, and
 * calls on such a client are refused at once, so that no time-out of theirs would do it.
 */
export function boundHandshake(client: OwnClient, timeoutMs: number): void {
  let timer: NodeJS.Timeout | undefined
  const clear = () => clearTimeout(timer)
  client.on('connect', () => {
    clear()
    timer = setTimeout(() => client.disconnect(true), timeoutMs).unref()
  })
  for (const event of ['ready', 'close', 'end']) client.on(event, clear)
}

/** Refuses what is not a client. */
export function guardClient(client: unknown): asserts client is RedisClient {
  const { evalsha, eval: evaluate, duplicate } = (client ?? {}) as Partial<Record<keyof RedisClient, unknown>>
  if (typeof evalsha !== 'function' || typeof evaluate !== 'function' || typeof duplicate !== 'function') {
    throw new InvalidArgumentError('options.client', 'an ioredis client (Redis or Cluster, version 5 or 6)', client)
  }
}
