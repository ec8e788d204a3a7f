/**
 * `askonce/dynamodb`: queues in a table of Amazon DynamoDB.
 *
 * @module
 */

import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  UpdateTimeToLiveCommand,
} from '@aws-sdk/client-dynamodb'
import { systemClock } from '../../src/clock.ts'
import { StorageError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type { RecordStore } from '../../src/record-store.ts'
import { fromRecordStore } from '../../src/record-store.ts'
import type { HintListener, Storage, StorageHandle, StorageTraits } from '../../src/storage.ts'
import type { DynamoDBClientLike, DynamoDBCounters } from './calls.ts'
import { Calls } from './calls.ts'
import type { TableDefinition } from './definition.ts'
import { tableDefinition } from './definition.ts'
import { awsName, storageError } from './errors.ts'
import { Items } from './items.ts'
import { Layout } from './layout.ts'
import type { DynamoDBStorageOptions, Settings } from './options.ts'
import { settingsOf } from './options.ts'
import { Payloads } from './payloads.ts'
import { Requests } from './requests.ts'
import { Rows } from './rows.ts'
import type { KeyNames } from './schema.ts'
import { dynamoDBEntities, dynamoDBTable, keyNames, ttlAttribute } from './schema.ts'
import { ServerClock } from './server-clock.ts'
import { Shards } from './shards.ts'
import { DynamoDBStore } from './store.ts'
import { Sweeper } from './sweeper.ts'

export type { DynamoDBClientLike, DynamoDBCounters } from './calls.ts'
export type { TableDefinition } from './definition.ts'
export { TableMissingError } from './errors.ts'
export type { DynamoDBStorageOptions, Unsubscribe } from './options.ts'
export { type DynamoDBEntities, dynamoDBEntities, dynamoDBTable } from './schema.ts'

/** Bytes that a value may have as it is stored: DynamoDB allows 400 KB an item, names and all. */
const valueBytesMax = 350 * 1024

/** How long it is believed that TTL is switched on, or is not, ms. */
const ttlBelievedMs = 3_600_000

/** How long {@link DynamoDBStorage.createTable} waits for the table, ms. */
const createTimeoutMs = 120_000

/**
 * Queues in DynamoDB. The client, if none was given, is made when the first queue opens and ended when the last one closes.
 *
 * @throws InvalidArgumentError or TooLargeError for options out of their bounds
 */
export class DynamoDBStorage implements Storage {
  readonly traits: StorageTraits
  /** The definition of the table, as CreateTable takes it. */
  readonly definition: TableDefinition
  /** What was done so far. */
  readonly counters: Readonly<DynamoDBCounters>
  readonly #counters: DynamoDBCounters
  readonly #options: DynamoDBStorageOptions
  readonly #settings: Settings
  readonly #names: KeyNames
  readonly #requests: Requests
  readonly #clock: ServerClock
  readonly #storage: Storage
  readonly #watching = new Set<HintListener>()
  #resources: { readonly client: DynamoDBClientLike; readonly calls: Calls; readonly end: () => void } | null = null
  #users = 0
  #ttl: { readonly on: Promise<boolean>; readonly askedAt: number } | null = null

  constructor(options: DynamoDBStorageOptions) {
    const settings = settingsOf(options)
    const { indexName, graceMs, holdCacheMs, random, compressFromBytes, pollMs } = settings
    const table = options.table ?? dynamoDBTable(options.tableName!, indexName)
    this.#options = options
    this.#settings = settings
    this.#names = keyNames(table, indexName)
    this.#requests = new Requests(table, dynamoDBEntities(table, indexName), indexName, this.#names)
    this.#clock = new ServerClock(options.clock ?? systemClock)
    this.definition = tableDefinition(table.getName(), indexName, this.#names)
    this.#counters = { requests: 0, repeated: 0, throttled: 0, conflicts: 0, claimsLost: 0, recognised: 0 }
    this.counters = this.#counters
    this.traits = Object.freeze({
      kind: 'dynamodb',
      durable: true,
      shared: true,
      push: false,
      ordering: 'approximate',
      clock: 'client',
      // What compression makes of a value shows when it is written.
      payloadBytesMax: compressFromBytes === null ? valueBytesMax : limits.payloadBytesMax,
      ttlResolutionMs: 1,
      pollMs,
      gather: 'macrotask',
    })
    this.#storage = fromRecordStore({
      traits: this.traits,
      open: (namespace) => this.#open(namespace),
      clock: this.#clock,
      graceMs,
      createFirst: true,
      holdCacheMs,
      random,
    })
  }

  /**
   * Opens a namespace.
   *
   * @throws {@link TableMissingError} if there is no such table
   * @throws StorageError if DynamoDB can't be reached, or refuses the request
   */
  open(namespace: string): Promise<StorageHandle> {
    return this.#storage.open(namespace)
  }

  /** What is added to the machine's clock, ms: 0 unless it is off by more than 1.5 s. */
  get clockOffsetMs(): number {
    return this.#clock.offsetMs
  }

  /**
   * Makes the table, on demand, with its index and TTL; leaves one that is there as it is, but for switching TTL on. Resolves
   * when it can be used.
   *
   * @throws StorageError
   */
  async createTable(): Promise<void> {
    const { client, end } = this.#connect()
    const { TableName } = this.definition
    try {
      await send(client, 'create the table', new CreateTableCommand(this.definition as CreateTableCommandInput), [
        'ResourceInUseException',
      ])
      await this.#active(client)
      const TimeToLiveSpecification = { AttributeName: ttlAttribute, Enabled: true }
      // Switched on already, that is a ValidationException; services that only look like DynamoDB may not know the call.
      const command = new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification })
      await send(client, 'switch on TTL', command, ['ValidationException', 'UnknownOperationException'])
      this.#ttl = null
    } finally {
      end()
    }
  }

  async #active(client: DynamoDBClientLike): Promise<void> {
    const { TableName } = this.definition
    const deadline = performance.now() + createTimeoutMs
    for (let waitMs = 20; ; waitMs = Math.min(2_000, waitMs * 2)) {
      const answer = (await send(client, 'look at the table', new DescribeTableCommand({ TableName }), [
        // Right after its creation a table may not be known everywhere.
        'ResourceNotFoundException',
      ])) as { Table?: { TableStatus?: string; GlobalSecondaryIndexes?: { IndexStatus?: string }[] } } | null
      const { TableStatus, GlobalSecondaryIndexes = [] } = answer?.Table ?? {}
      if (TableStatus === 'ACTIVE' && GlobalSecondaryIndexes.every(({ IndexStatus }) => IndexStatus === 'ACTIVE'))
        return
      if (performance.now() > deadline) {
        throw new StorageError(`the table ${TableName} is not active ${createTimeoutMs} ms after it was created`)
      }
      await new Promise<void>((resolve) => void systemClock.timer(resolve, waitMs, true))
    }
  }

  async #open(namespace: string): Promise<RecordStore> {
    const { calls } = this.#acquire()
    const requests = this.#requests
    const clock = this.#clock
    const { keyPrefix, graceMs, compressFromBytes, inlineBytesMax, removePayloads, retentionMs, random } =
      this.#settings
    const layout = new Layout(keyPrefix, namespace)
    const shards = new Shards({ calls, requests, layout, clock, shards: this.#settings.shards })
    try {
      await shards.open()
    } catch (error) {
      this.#release()
      throw error
    }
    const items = new Items({
      layout,
      graceMs,
      shards: () => shards.count,
      dueIsText: this.#names.dueIsText,
      compressFromBytes,
      valueBytesMax,
    })
    const now = () => clock.now()
    const payloads = new Payloads({
      calls,
      requests,
      items,
      layout,
      inlineBytesMax,
      retentionMs,
      remove: removePayloads,
      now,
    })
    const scan = () => this.#scans()
    const warn = (code: string, message: string) => this.#warn(code, message)
    const rows = new Rows({ calls, requests, items, layout, payloads, clock, warn })
    const sweeper = new Sweeper({ calls, requests, items, layout, payloads, shards, clock, scan, warn })
    return new DynamoDBStore({
      calls,
      requests,
      items,
      layout,
      payloads,
      rows,
      shards,
      sweeper,
      clock,
      graceMs,
      lookaheadMs: this.#settings.lookaheadMs,
      random,
      counters: this.#counters,
      dueName: this.#names.due,
      warn,
      watch: (listener) => this.#watch(namespace, listener),
      closed: async () => this.#release(),
    })
  }

  #watch(namespace: string, listener: HintListener): () => void {
    this.#watching.add(listener)
    const end = this.#options.wake?.(namespace, (hint) => {
      if (hint !== undefined) return listener(hint)
      // It may be work of either kind.
      listener({ type: 'due', inMs: 0 })
      listener({ type: 'outbox', inMs: 0 })
    })
    return () => {
      this.#watching.delete(listener)
      end?.()
    }
  }

  #acquire() {
    this.#users++
    this.#resources ??= this.#connect()
    return this.#resources
  }

  #release(): void {
    if (--this.#users > 0) return
    this.#resources?.end()
    this.#resources = null
  }

  #connect() {
    const { client: given, clientConfig = {} } = this.#options
    const { requestTimeoutMs, throttleTimeoutMs, requestsMax, correctClock, random } = this.#settings
    const own = given === undefined ? new DynamoDBClient(clientConfig) : null
    const client: DynamoDBClientLike = given ?? own!
    const calls = new Calls({
      client,
      clock: this.#clock,
      measure: correctClock,
      random,
      requestTimeoutMs,
      throttleTimeoutMs,
      concurrency: requestsMax,
      definition: this.definition,
      counters: this.#counters,
      warn: (code, message) => this.#warn(code, message),
    })
    return { client, calls, end: () => own?.destroy() }
  }

  #warn(code: string, message: string): void {
    for (const listener of this.#watching) listener({ type: 'warning', code, message })
  }

  /** Whether sweeps scan the table. */
  #scans(): Promise<boolean> {
    const { sweep } = this.#settings
    if (sweep !== 'auto') return Promise.resolve(sweep === 'scan')
    const now = this.#clock.monotonic()
    if (this.#ttl === null || now - this.#ttl.askedAt > ttlBelievedMs) {
      this.#ttl = { on: this.#ttlIsOn(), askedAt: now }
    }
    return this.#ttl.on.then((on) => !on)
  }

  async #ttlIsOn(): Promise<boolean> {
    const { calls } = this.#resources ?? {}
    const { TableName } = this.definition
    try {
      const answer = (await calls?.send('ask for TTL', () => new DescribeTimeToLiveCommand({ TableName }))) as {
        TimeToLiveDescription?: { TimeToLiveStatus?: string; AttributeName?: string }
      }
      const { TimeToLiveStatus, AttributeName } = answer.TimeToLiveDescription ?? {}
      return AttributeName === ttlAttribute && (TimeToLiveStatus === 'ENABLED' || TimeToLiveStatus === 'ENABLING')
    } catch (error) {
      // A service without the call has no TTL. Who may not ask may not scan, most likely.
      return awsName((error as Error).cause) !== 'UnknownOperationException'
    }
  }
}

/** Sends a command of the control plane; null for errors that are as good as done. */
async function send(client: DynamoDBClientLike, doing: string, command: unknown, ignored: readonly string[]) {
  try {
    return (await client.send(command)) as unknown
  } catch (error) {
    if (ignored.includes(awsName(error))) return null
    throw storageError(doing, error)
  }
}
