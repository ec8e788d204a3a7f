/**
 * What can be set on a DynamoDBStorage, and the checks of that.
 *
 * @module
 */

import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb'
import type { Table } from 'dynamodb-toolbox/table'
import type { Clock } from '../../src/clock.ts'
import { guardDuration, guardInteger, InvalidArgumentError, TooLargeError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type { Hint } from '../../src/storage.ts'
import type { DynamoDBClientLike } from './calls.ts'
import { keyPrefixBytesMax } from './layout.ts'
import { defaultIndexName } from './schema.ts'

/** Ends a subscription. */
export type Unsubscribe = () => void

/** What can be set on a `DynamoDBStorage`: `tableName` or `table`, and the rest. */
export interface DynamoDBStorageOptions {
  /** The table, as {@link dynamoDBTable} describes it. Many queues can share it. */
  readonly tableName?: string
  /**
   * Instead of `tableName`: a Table of dynamodb-toolbox, with keys and an index of your own names, for queues in a table that
   * has other things in it. Its keys must be strings; the index global, its partition key a string.
   */
  readonly table?: Table
  /** A DynamoDBClient of @aws-sdk/client-dynamodb 3. It is never destroyed and never reconfigured. */
  readonly client?: DynamoDBClientLike
  /** Without `client`: how one is made. Default: {}, so region and credentials are found where the SDK looks for them. */
  readonly clientConfig?: DynamoDBClientConfig
  /** The index that tells what is due. Default: `due`. */
  readonly indexName?: string
  /** What every partition key begins with: at most 256 bytes, any characters. Default: `askonce`. */
  readonly keyPrefix?: string
  /**
   * Partitions of the index that a queue spreads over: one takes about 250 jobs a second. Can be raised at any time, and in one
   * process first: the others follow within a minute. It never shrinks. 1 (the default) to 100.
   */
  readonly shards?: number
  /**
   * How long after a lease's end another may take it over, ms: no less than clocks may differ. Default: 2,000; 0 to 60,000.
   * Must be the same in all processes.
   */
  readonly grace?: number
  /**
   * Payloads of more bytes get an item of their own, so that transitions do not pay for them. Default: 2,048; 0 to 40,960.
   */
  readonly inlinePayloadBytesMax?: number
  /**
   * What becomes of a payload's own item when its job has ended. `expire` (the default): nothing is paid for that, DynamoDB
   * collects it, `payloadRetention` after it was written or later. `delete`: it is removed at once, at the price of writing it.
   */
  readonly payloadCleanup?: 'expire' | 'delete'
  /**
   * How long a payload's own item is kept at least, ms; longer as long as any process with the queue open sweeps once a day.
   * Only where none does for so long does a job that still waits lose its payload. Default: 14 days; from 3 days.
   */
  readonly payloadRetention?: number
  /** Compress values from so many bytes on; true: from 1,024. Readers need no option. Default: false. */
  readonly compress?: boolean | { readonly fromBytes: number }
  /**
   * How items past their end are collected. `ttl`: by DynamoDB alone. `scan`: sweeps read the table, some pages a minute and
   * process. `auto` (the default): asks whether TTL is switched on for the table, and scans if not.
   */
  readonly sweep?: 'auto' | 'ttl' | 'scan'
  /** How often an idle queue looks: from `min` growing by half each time to `max`, jittered, ms. Default: 50 to 5,000. */
  readonly poll?: { readonly min?: number; readonly max?: number }
  /**
   * How far a look for work looks ahead, ms, so that what becomes due meanwhile is begun on time, whoever enqueued it. As the
   * index lags, it is a hint. Default: `poll.max`; 0: not at all.
   */
  readonly lookahead?: number
  /** How long the hold of a queue may be remembered, ms: others' holds are noticed that much later. Default: 1,000; 0: not at all. */
  readonly holdCache?: number
  /** How long a request may take, the SDK's repetitions included, ms. Default: 10,000. */
  readonly requestTimeout?: number
  /** How long throttled requests are repeated, beyond the SDK's own repetitions, ms. Default: 20,000; 0: not at all. */
  readonly throttleTimeout?: number
  /** Requests under way at once. Default: 40, below the 50 connections of the SDK. */
  readonly requestsMax?: number
  /**
   * Wakes queues from outside, where something tells of new jobs: a consumer of the table's stream, an SNS topic. Called when a
   * queue opens; call `notify` when there may be work, or with what is known; answer the function that ends it.
   */
  readonly wake?: (namespace: string, notify: (hint?: Hint) => void) => Unsubscribe
  /**
   * Whether the clock is corrected by the server's, where it is off by more than 1.5 s. Default: true, but false where a
   * `clock` is given.
   */
  readonly correctClock?: boolean
  /** Default: the system's. */
  readonly clock?: Clock
  /** Numbers from 0 to below 1, for jitter and choice. Default: Math.random. */
  readonly random?: () => number
}

/** Options, checked and complete. */
export interface Settings {
  readonly indexName: string
  readonly keyPrefix: string
  readonly shards: number
  readonly graceMs: number
  readonly inlineBytesMax: number
  readonly removePayloads: boolean
  readonly retentionMs: number
  readonly compressFromBytes: number | null
  readonly sweep: 'auto' | 'ttl' | 'scan'
  readonly pollMs: { readonly min: number; readonly max: number }
  readonly lookaheadMs: number
  readonly holdCacheMs: number
  readonly requestTimeoutMs: number
  readonly throttleTimeoutMs: number
  readonly requestsMax: number
  readonly correctClock: boolean
  readonly random: () => number
}

const dayMs = 86_400_000
const shardsMax = 100
const graceMsMax = 60_000
/** A value of 350 KB, this, and the rest stay below the 400 KB that an item may have. */
const inlineBytesMaxMax = 40_960

/** @throws InvalidArgumentError or TooLargeError */
export function settingsOf(options: DynamoDBStorageOptions): Settings {
  const { tableName, table, client, clientConfig, clock } = options
  if (table === undefined) guardText('options.tableName', tableName)
  else if (tableName !== undefined)
    throw new InvalidArgumentError('options.tableName', 'left out with a table', tableName)
  if (client !== undefined && typeof client?.send !== 'function') {
    throw new InvalidArgumentError('options.client', 'a DynamoDBClient of @aws-sdk/client-dynamodb', client)
  }
  if (client !== undefined && clientConfig !== undefined) {
    throw new InvalidArgumentError('options.clientConfig', 'left out where a client is given', clientConfig)
  }
  const { indexName = defaultIndexName, keyPrefix = 'askonce', shards = 1, grace = 2_000 } = options
  guardText('options.indexName', indexName)
  guardPrefix(keyPrefix)
  guardInteger('options.shards', shards, 1, shardsMax)
  guardInteger('options.grace', grace, 0, graceMsMax)
  const { inlinePayloadBytesMax = 2_048, payloadCleanup = 'expire', payloadRetention = 14 * dayMs } = options
  guardInteger('options.inlinePayloadBytesMax', inlinePayloadBytesMax, 0, inlineBytesMaxMax)
  guardOneOf('options.payloadCleanup', payloadCleanup, ['expire', 'delete'])
  guardInteger('options.payloadRetention', payloadRetention, 3 * dayMs, limits.durationMsMax)
  const { compress = false, sweep = 'auto', poll = {}, holdCache = 1_000 } = options
  guardOneOf('options.sweep', sweep, ['auto', 'ttl', 'scan'])
  const { min = 50, max = Math.max(5_000, poll.min ?? 0) } = poll
  guardDuration('options.poll.min', min, limits.timerMsMax)
  guardInteger('options.poll.max', max, min, limits.timerMsMax)
  const { lookahead = max } = options
  guardInteger('options.lookahead', lookahead, 0, limits.timerMsMax)
  guardInteger('options.holdCache', holdCache, 0, limits.timerMsMax)
  const { requestTimeout = 10_000, throttleTimeout = 20_000, requestsMax = 40, random = Math.random } = options
  guardDuration('options.requestTimeout', requestTimeout, limits.timerMsMax)
  guardInteger('options.throttleTimeout', throttleTimeout, 0, limits.timerMsMax)
  guardInteger('options.requestsMax', requestsMax, 1, 10_000)
  return {
    indexName,
    keyPrefix,
    shards,
    graceMs: grace,
    inlineBytesMax: inlinePayloadBytesMax,
    removePayloads: payloadCleanup === 'delete',
    retentionMs: payloadRetention,
    compressFromBytes: compressFrom(compress),
    sweep,
    pollMs: Object.freeze({ min, max }),
    lookaheadMs: lookahead,
    holdCacheMs: holdCache,
    requestTimeoutMs: requestTimeout,
    throttleTimeoutMs: throttleTimeout,
    requestsMax,
    correctClock: options.correctClock ?? clock === undefined,
    random,
  }
}

function compressFrom(compress: unknown): number | null {
  if (compress === false) return null
  if (compress === true) return 1_024
  const fromBytes = (compress as { fromBytes?: unknown } | null)?.fromBytes
  if (fromBytes === undefined)
    throw new InvalidArgumentError('options.compress', 'a boolean or { fromBytes }', compress)
  guardInteger('options.compress.fromBytes', fromBytes, 0, limits.payloadBytesMax)
  return fromBytes
}

function guardText(field: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || value === '') throw new InvalidArgumentError(field, 'a non-empty string', value)
}

function guardOneOf(field: string, value: unknown, choices: readonly string[]): void {
  if (!choices.includes(value as string)) {
    throw new InvalidArgumentError(field, `one of '${choices.join("', '")}'`, value)
  }
}

function guardPrefix(prefix: unknown): asserts prefix is string {
  if (typeof prefix !== 'string' || !prefix.isWellFormed()) {
    throw new InvalidArgumentError('options.keyPrefix', 'a string of well-formed Unicode', prefix)
  }
  const bytes = Buffer.byteLength(prefix)
  if (bytes > keyPrefixBytesMax) throw new TooLargeError('options.keyPrefix', bytes, keyPrefixBytesMax)
}
