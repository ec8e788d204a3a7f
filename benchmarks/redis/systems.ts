/**
 * The systems that are measured, each behind the same few calls: askonce, its floor, and the peers.
 *
 * @module
 */

import path from 'node:path'
import { Queue } from '../../src/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import type { Session } from '../backends/backend.ts'
import { floor } from './floor.ts'
import { type LoadedPeer, type Peer, peer, versionOf } from './peer.ts'

interface Payload {
  vin: string
}

const payload: Payload = { vin: '1HGCM82633A004352' }
const result = { make: 'HONDA', model: 'Accord' }

export interface System {
  readonly name: string
  readonly version: string
  open(url: string, name: string): Promise<Session>
}

const askonce: System = {
  name: 'askonce',
  version: versionOf(path.join(process.cwd(), 'package.json')),
  async open(url, name) {
    const make = (concurrency: number) =>
      new Queue<Payload, unknown>({ storage: new RedisStorage({ url }), name, concurrency })
    const producer = make(1)
    await producer.start()
    let worker: Queue<Payload, unknown> | null = null
    return {
      enqueue: (id) => producer.enqueue(id, payload),
      duplicate: (id) => producer.enqueue(id, payload),
      wait: (id) => producer.enqueueAndWait(id, payload),
      async work(concurrency, onRun) {
        worker = make(concurrency)
        worker.execute(async () => {
          await onRun()
          return result
        })
        await worker.start()
      },
      completed: () => worker?.counters.completed ?? 0,
      async close() {
        await worker?.stop()
        await producer.stop()
      },
    }
  },
}

function bullmq({ module, version }: LoadedPeer): System {
  return {
    name: 'bullmq',
    version,
    async open(url, name) {
      const { hostname: host, port } = new URL(url)
      const connection = { host, port: Number(port) }
      const queue = new module['Queue'](name, { connection })
      const events = new module['QueueEvents'](name, { connection })
      await Promise.all([queue.waitUntilReady(), events.waitUntilReady()])
      const add = (id: string) => queue.add('job', payload, { jobId: id, removeOnComplete: { age: 3_600 } })
      let worker: Peer = null
      let completed = 0
      return {
        enqueue: add,
        duplicate: async (id) => {
          await add(id)
          return (await module['Job'].fromId(queue, id)).returnvalue
        },
        wait: async (id) => (await add(id)).waitUntilFinished(events, 60_000),
        async work(concurrency, onRun) {
          const handler = async () => {
            await onRun()
            return result
          }
          worker = new module['Worker'](name, handler, { connection, concurrency })
          worker.on('completed', () => completed++)
          await worker.waitUntilReady()
        },
        completed: () => completed,
        async close() {
          await worker?.close()
          await events.close()
          await queue.close()
        },
      }
    },
  }
}

function beeQueue({ module, version }: LoadedPeer): System {
  const Bee = module['default']
  return {
    name: 'bee-queue',
    version,
    async open(url, name) {
      const producer = new Bee(name, { redis: { url }, isWorker: false })
      // The connections of one that hung, and can't be closed, break when the server ends; a broken one's waits are given up.
      producer.on('error', () => {})
      await producer.ready()
      const make = (id: string) => producer.createJob(payload).setId(id)
      let worker: Peer = null
      let completed = 0
      return {
        enqueue: (id) => make(id).save(),
        duplicate: (id) => make(id).save(),
        wait: (id) =>
          new Promise((resolve, reject) => {
            const job = make(id)
            job.on('succeeded', resolve)
            job.save().catch(reject)
          }),
        async work(concurrency, onRun) {
          worker = new Bee(name, { redis: { url }, getEvents: false })
          worker.on('error', () => {})
          worker.on('succeeded', () => completed++)
          await worker.ready()
          worker.process(concurrency, async () => {
            await onRun()
            return result
          })
        },
        completed: () => completed,
        async close() {
          await worker?.close(5_000)
          await producer.close(5_000)
        },
      }
    },
  }
}

function platformatic({ module, version }: LoadedPeer): System {
  return {
    name: '@platformatic/job-queue',
    version,
    async open(url, name) {
      const make = (concurrency: number) =>
        new module['Queue']({ storage: new module['RedisStorage']({ url, keyPrefix: `${name}:` }), concurrency })
      const producer = make(1)
      await producer.start()
      let worker: Peer = null
      let completed = 0
      return {
        enqueue: (id) => producer.enqueue(id, payload),
        duplicate: (id) => producer.enqueue(id, payload),
        wait: (id) => producer.enqueueAndWait(id, payload, { timeout: 60_000 }),
        async work(concurrency, onRun) {
          worker = make(concurrency)
          worker.on('completed', () => completed++)
          worker.execute(async () => {
            await onRun()
            return result
          })
          await worker.start()
        },
        completed: () => completed,
        async close() {
          await worker?.stop()
          await producer.stop()
        },
      }
    },
  }
}

/** All systems that can be run here; what can't says why. */
export async function systems(): Promise<{ systems: System[]; skipped: string[] }> {
  const found: System[] = [floor, askonce]
  const skipped: string[] = []
  const peers = [
    ['bullmq', bullmq],
    ['bee-queue', beeQueue],
    ['@platformatic/job-queue', platformatic],
  ] as const
  for (const [name, make] of peers) {
    const loaded = await peer(name)
    if (typeof loaded === 'string') skipped.push(loaded)
    else found.push(make(loaded))
  }
  return { systems: found, skipped }
}
