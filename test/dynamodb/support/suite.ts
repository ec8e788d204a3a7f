/**
 * The conformance suite as the DynamoDB tests run it: each case under a key prefix of its own, on a virtual clock.
 *
 * @module
 */

import type { Clock } from '../../../src/clock.ts'
import { systemClock } from '../../../src/clock.ts'
import type { ConformanceOptions } from '../../../storages/conformance/index.ts'
import { VirtualClock } from '../../../storages/conformance/index.ts'
import type { DynamoDBClientLike } from '../../../storages/dynamodb/calls.ts'
import type { DynamoDBStorageOptions } from '../../../storages/dynamodb/index.ts'
import { DynamoDBStorage } from '../../../storages/dynamodb/index.ts'

/** What the suite adds to a lease's end, ms: small, as the suite waits for it. */
const graceMs = 7

export interface World {
  readonly tableName: string
  /** A client for each storage: another process has another one. */
  readonly client: () => DynamoDBClientLike
  readonly options?: Partial<DynamoDBStorageOptions>
}

/** Makes the table, and what the suite needs. */
export async function suiteOptions(world: World): Promise<Omit<ConformanceOptions, 'test'>> {
  const { tableName, client, options = {} } = world
  const virtual = new VirtualClock()
  // Operations that wait before they try again do so by the system's time: nobody moves the other on while they are under way.
  const clock: Clock = {
    now: () => virtual.now(),
    monotonic: () => virtual.monotonic(),
    timer: (callback, ms, ref) => systemClock.timer(callback, ms, ref),
  }
  const prefixes = new WeakMap<object, string>()
  const make = (keyPrefix: string): DynamoDBStorage => {
    const storage = new DynamoDBStorage({
      ...(options.table === undefined ? { tableName } : {}),
      client: client(),
      keyPrefix,
      clock,
      holdCache: 0,
      grace: graceMs,
      ...options,
    })
    prefixes.set(storage, keyPrefix)
    return storage
  }
  await make('table').createTable()
  let cases = 0
  return {
    create: async () => make(`case ${cases++}`),
    createShared: async (storage) => make(prefixes.get(storage) as string),
    advance: (ms) => virtual.advance(ms),
    graceMs,
    // Every call is a real request, to a server that shares this machine.
    patienceMs: 120_000,
    note: () => {},
  }
}
