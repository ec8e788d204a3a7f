/**
 * A client whose scripts read a virtual time in place of Redis's: what a script does can then be compared with the machine to the
 * millisecond. Keys still expire by Redis's own time, so the virtual one runs years ahead of it.
 *
 * @module
 */

import { createHash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { RedisClient } from '../../storages/redis/client.ts'
import { scripts } from '../../storages/redis/scripts/index.ts'

const timeCall = "call('TIME')"

/** A clock that the test moves, and clients that tell it. */
export class VirtualTime {
  /** ms since 1970; whole. */
  now: number
  /** Microseconds since the millisecond began: no two calls are at the same time, and calls of many items take longer. */
  #us = 0

  constructor(now = Date.now() + 10 * 365 * 24 * 3_600_000) {
    this.now = now
  }

  /** Moves on. */
  advance(ms: number): void {
    this.now += ms
    this.#us = 0
  }

  #spend(items: number): number {
    const us = this.#us
    // The scripts set a quarter of a microsecond between items. Real ones need more than twice that.
    this.#us = Math.min(749, us + Math.ceil(1 + items) / 4)
    return us
  }

  /** A client like the given one, on this time. Counts as the beginning of something new. */
  client(real: Redis): RedisClient {
    this.#us = 0
    const loaded = new Map<string, string>()
    for (const { lua, sha } of Object.values(scripts)) {
      const parts = lua.split(timeCall)
      if (parts.length !== 2) throw new Error('a script reads the time more or less than once')
      loaded.set(
        sha,
        `local theTime = { ARGV[#ARGV - 1], ARGV[#ARGV] } ARGV[#ARGV] = nil ARGV[#ARGV] = nil ${parts.join('theTime')}`,
      )
    }
    const run = (lua: string, keysAndArguments: string[]): Promise<unknown> => {
      const seconds = String(Math.floor(this.now / 1000))
      const us = String((this.now % 1000) * 1000 + this.#spend(keysAndArguments.length / 3))
      const sha = createHash('sha1').update(lua).digest('hex')
      const all = [...keysAndArguments, seconds, us]
      return real.evalsha(sha, 2, ...all).catch((error: Error) => {
        if (!error.message.startsWith('NOSCRIPT')) throw error
        return real.eval(lua, 2, ...all)
      })
    }
    return {
      get status() {
        return real.status
      },
      isCluster: false,
      evalsha: (sha, _keys, ...keysAndArguments) => run(loaded.get(sha) as string, keysAndArguments),
      eval: () => Promise.reject(new Error('not used')),
      duplicate: ((options: object) => real.duplicate(options)) as RedisClient['duplicate'],
    }
  }
}
