/**
 * The floor: what a queue with leases and results costs at the least when written by hand, one EVALSHA for each transition, no
 * batching; as many calls in flight as there are jobs.
 *
 * @module
 */

import { createHash } from 'node:crypto'
import { Redis } from 'ioredis'
import { type Session, smallPayload, smallResult } from '../backends/backend.ts'
import type { System } from './systems.ts'

const scripts = {
  /** KEYS: record, waiting list. ARGV: id, payload, channel. */
  enqueue: `
    local state = redis.call('HGET', KEYS[1], 'state')
    if state then return { state, redis.call('HGET', KEYS[1], 'result') } end
    redis.call('HSET', KEYS[1], 'state', 'queued', 'payload', ARGV[2], 'attempts', 0)
    redis.call('RPUSH', KEYS[2], ARGV[1])
    redis.call('PUBLISH', ARGV[3], 'work')
    return { 'new' }`,
  /** KEYS: waiting list, lease set. ARGV: key prefix, token, lease's end. */
  claim: `
    local id = redis.call('LPOP', KEYS[1])
    if not id then return nil end
    local key = ARGV[1] .. id
    redis.call('HSET', key, 'state', 'processing', 'token', ARGV[2])
    redis.call('HINCRBY', key, 'attempts', 1)
    redis.call('ZADD', KEYS[2], ARGV[3], id)
    return { id, redis.call('HGET', key, 'payload') }`,
  /** KEYS: record, lease set. ARGV: id, token, result, ttl, channel. */
  complete: `
    if redis.call('HGET', KEYS[1], 'token') ~= ARGV[2] then return 0 end
    redis.call('HDEL', KEYS[1], 'payload', 'token')
    redis.call('HSET', KEYS[1], 'state', 'completed', 'result', ARGV[3])
    redis.call('PEXPIRE', KEYS[1], ARGV[4])
    redis.call('ZREM', KEYS[2], ARGV[1])
    redis.call('PUBLISH', ARGV[5], ARGV[1])
    return 1`,
}

const shas = Object.fromEntries(
  Object.entries(scripts).map(([name, lua]) => [name, createHash('sha1').update(lua).digest('hex')]),
) as Record<keyof typeof scripts, string>

export const floor: System = {
  name: 'floor',
  version: 'by hand',
  async open(url, name): Promise<Session> {
    const client = new Redis(url)
    const subscriber = new Redis(url)
    for (const lua of Object.values(scripts)) await client.script('LOAD', lua)
    const small = JSON.stringify(smallPayload)
    const outcome = JSON.stringify(smallResult)
    const prefix = `{${name}}:r:`
    const list = `{${name}}:w`
    const leases = `{${name}}:l`
    const waiting = new Map<string, () => void>()
    const workers: Redis[] = []
    /** Of the loops that claim or sleep; one is taken out for each job that is told of. */
    const sleepers = new Set<() => void>()
    let stopped = false
    let completed = 0
    await subscriber.subscribe(`${name}:done`)
    subscriber.on('message', (channel, id) => {
      if (channel === `${name}:done`) {
        waiting.get(id)?.()
        waiting.delete(id)
      } else {
        const [first] = sleepers
        if (first === undefined) return
        sleepers.delete(first)
        first()
      }
    })
    const enqueue = (id: string, payload?: unknown) => {
      const text = payload === undefined ? small : JSON.stringify(payload)
      return client.evalsha(shas.enqueue, 2, prefix + id, list, id, text, `${name}:work`) as Promise<string[]>
    }
    return {
      enqueue,
      duplicate: async (id) => JSON.parse((await enqueue(id))[1] as string),
      wait: async (id, payload) => {
        const done = new Promise<void>((resolve) => waiting.set(id, resolve))
        await enqueue(id, payload)
        await done
        // HMGET, which no script calls: what is called in scripts is not counted as sent.
        return JSON.parse((await client.hmget(prefix + id, 'result'))[0] as string)
      },
      async work(concurrency, onRun) {
        const worker = new Redis(url)
        workers.push(worker)
        // Only here: who only asks need not hear of it.
        await subscriber.subscribe(`${name}:work`)
        let token = 0
        const loop = async () => {
          while (!stopped) {
            const mine = `token-${process.pid}-${token++}`
            // Before the claim, so that nothing is told of in between.
            let wake: (() => void) | undefined
            const heard = new Promise<void>((resolve) => {
              wake = resolve
              sleepers.add(resolve)
            })
            const end = String(Date.now() + 30_000)
            const job = (await worker.evalsha(shas.claim, 2, list, leases, prefix, mine, end)) as string[] | null
            if (job === null) {
              await heard
              continue
            }
            // Its own, and no other's. Had it been woken meanwhile, it comes round to claim again.
            sleepers.delete(wake as () => void)
            const [id, data] = job as [string, string]
            JSON.parse(data)
            await onRun()
            await worker.evalsha(shas.complete, 2, prefix + id, leases, id, mine, outcome, '3600000', `${name}:done`)
            completed++
          }
        }
        for (let i = 0; i < concurrency; i++) void loop().catch(() => {})
      },
      completed: () => completed,
      async close() {
        stopped = true
        for (const wake of sleepers) wake()
        for (const one of [client, subscriber, ...workers]) one.disconnect()
      },
    }
  },
}
