/**
 * What a Redis server tells of itself: processor time, memory, traffic, commands.
 *
 * @module
 */

import { Redis } from 'ioredis'

/** Looks into a server. */
export class Probe {
  /** A connection of its own, for whatever else is to be asked. */
  readonly redis: Redis

  constructor(url: string) {
    this.redis = new Redis(url)
  }

  async #info(section: string, field: string): Promise<number> {
    return Number(new RegExp(`^${field}:([\\d.]+)`, 'm').exec(await this.redis.info(section))?.[1] ?? Number.NaN)
  }

  async version(): Promise<string> {
    return /^redis_version:(\S+)/m.exec(await this.redis.info('server'))?.[1] ?? 'unknown'
  }

  async redisUs(): Promise<number> {
    return ((await this.#info('cpu', 'used_cpu_user')) + (await this.#info('cpu', 'used_cpu_sys'))) * 1e6
  }

  /** Commands that clients sent, of those that are never called inside a script; what is asked here is not counted. */
  async clientCommands(): Promise<number> {
    const stats = await this.redis.info('commandstats')
    let calls = 0
    for (const [, count] of stats.matchAll(
      /^cmdstat_(?:evalsha|eval|hmget|evalsha_ro|eval_ro|fcall|ping|subscribe|ssubscribe|unsubscribe|sunsubscribe):calls=(\d+)/gm,
    )) {
      calls += Number(count)
    }
    return calls
  }

  bytesUsed(): Promise<number> {
    return this.#info('memory', 'used_memory')
  }

  bytesIn(): Promise<number> {
    return this.#info('stats', 'total_net_input_bytes')
  }

  async empty(): Promise<void> {
    await this.redis.flushall()
  }

  close(): void {
    this.redis.disconnect()
  }
}
