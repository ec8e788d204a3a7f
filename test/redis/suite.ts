/**
 * The conformance suite as the Redis tests run it: each case under a key prefix of its own.
 *
 * @module
 */

import t, { type Test } from 'tap'
import { conformance } from '../../storages/conformance/index.ts'
import type { RedisStorageOptions } from '../../storages/redis/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { redisServerPath, skippedForRedis } from '../support/redis-server.ts'

/** What tests that need Redis are skipped with. */
export const skip = redisServerPath() === null ? skippedForRedis : false

/** How the suite is run. */
export interface SuiteOptions {
  /** Called for each storage. */
  readonly storage: () => RedisStorageOptions
  /** What each case's key prefix begins with. Default: `case `. */
  readonly prefix?: string
  readonly advance?: (ms: number) => void
  readonly randomRuns?: number
}

/** Registers the suite's cases. */
export function suite(t: Test, options: SuiteOptions): void {
  const { prefix = 'case ', advance, randomRuns } = options
  const prefixes = new WeakMap<object, string>()
  let count = 0
  const make = (keyPrefix: string) => {
    const storage = new RedisStorage({ ...options.storage(), keyPrefix })
    prefixes.set(storage, keyPrefix)
    return storage
  }
  const { cases } = conformance({
    test: (name, run) =>
      t.test(name, async (t) => {
        await run()
        t.pass('holds')
      }),
    create: async () => make(`${prefix}${count++}`),
    createShared: async (storage) => make(prefixes.get(storage) as string),
    note: (text) => t.comment(`not tested: ${text}`),
    ...(advance === undefined ? {} : { advance }),
    ...(randomRuns === undefined ? {} : { random: { runs: randomRuns } }),
  })
  t.not(cases.length, 0)
}

// The suite waits for real leases and TTLs.
t.setTimeout(300_000)
