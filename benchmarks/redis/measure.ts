/**
 * One case on one system: rate, CPU of both sides, latencies, commands and bytes.
 *
 * @module
 */

import { performance } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Session } from '../backends/backend.ts'
import type { Probe } from './probe.ts'
import type { System } from './systems.ts'

/** What a measurement came to. Times in microseconds of CPU a job, latencies in ms. */
export interface Figures {
  readonly rate: number
  readonly nodeUs: number
  readonly redisUs: number
  readonly p50?: number
  readonly p95?: number
  readonly p99?: number
}

/** Runs `job` `count` times, `inFlight` at once; answers each one's ms. */
async function pool(count: number, inFlight: number, job: (index: number) => Promise<unknown>): Promise<Float64Array> {
  const times = new Float64Array(count)
  let next = 0
  const loop = async () => {
    while (next < count) {
      const index = next++
      const begun = performance.now()
      await job(index)
      times[index] = performance.now() - begun
    }
  }
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, loop))
  return times
}

function nodeUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

async function timed(probe: Probe, count: number, work: () => Promise<Float64Array | undefined>): Promise<Figures> {
  globalThis.gc?.()
  const redisBefore = await probe.redisUs()
  const nodeBefore = nodeUs()
  const begun = performance.now()
  const times = await work()
  const ms = performance.now() - begun
  const node = nodeUs() - nodeBefore
  const redis = (await probe.redisUs()) - redisBefore
  const base = { rate: (count / ms) * 1_000, nodeUs: node / count, redisUs: redis / count }
  if (times === undefined) return base
  const sorted = times.toSorted()
  const at = (share: number) => sorted[Math.min(count - 1, Math.floor(count * share))] as number
  return { ...base, p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}

/** A queue of the system on an empty server, closed afterwards. */
async function session<T>(
  system: System,
  url: string,
  probe: Probe,
  use: (session: Session) => Promise<T>,
): Promise<T> {
  await probe.empty()
  const opened = await system.open(url, 'bench')
  try {
    return await use(opened)
  } finally {
    await opened.close()
  }
}

async function until(condition: () => boolean, timeoutMs: number): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not done in ${timeoutMs} ms`)
    await sleep(1)
  }
}

const patienceMs = 120_000

export interface Case {
  readonly name: string
  run(system: System, url: string, probe: Probe): Promise<Figures>
}

function enqueueCase(count: number, inFlight: number): Case {
  return {
    name: `enqueue, ${inFlight} in flight`,
    run: (system, url, probe) =>
      session(system, url, probe, async (queue) => {
        await pool(200, inFlight, (index) => queue.enqueue(`warm ${index}`))
        return timed(probe, count, () => pool(count, inFlight, (index) => queue.enqueue(`job-${index}`)))
      }),
  }
}

/** Processes `count` of the `depth` that are queued. */
function processCase(name: string, count: number, concurrency: number, depth = count): Case {
  return {
    name,
    run: (system, url, probe) =>
      session(system, url, probe, async (queue) => {
        await pool(depth + 500, 500, (index) => queue.enqueue(`job-${index}`))
        let warm = 0
        let go: (() => void) | undefined
        const started = new Promise<void>((resolve) => {
          go = resolve
        })
        await queue.work(concurrency, () => {
          if (++warm === 500) go?.()
        })
        await started
        const before = queue.completed()
        const left = Math.min(count, depth) - 200
        return timed(probe, left, async () => {
          await until(() => queue.completed() - before >= left, patienceMs)
          return undefined
        })
      }),
  }
}

function waitCase(count: number, inFlight: number): Case {
  return {
    name: `enqueue and wait, ${inFlight} in flight`,
    run: (system, url, probe) =>
      session(system, url, probe, async (queue) => {
        await queue.work(64, () => {})
        await pool(100, inFlight, (index) => queue.wait(`warm-${index}`))
        return timed(probe, count, () => pool(count, inFlight, (index) => queue.wait(`job-${index}`)))
      }),
  }
}

function duplicateCase(count: number, inFlight: number): Case {
  return {
    name: `duplicate of a completed job, ${inFlight} in flight`,
    run: (system, url, probe) =>
      session(system, url, probe, async (queue) => {
        await queue.work(16, () => {})
        await pool(500, 50, (index) => queue.enqueue(`job-${index}`))
        await until(() => queue.completed() >= 500, patienceMs)
        await sleep(50)
        return timed(probe, count, () => pool(count, inFlight, (index) => queue.duplicate(`job-${index % 500}`)))
      }),
  }
}

/** A thousand jobs are held while others go through. */
function heldCase(count: number): Case {
  return {
    name: 'process, 64 at once, beside 1,000 leases held',
    run: (system, url, probe) =>
      session(system, url, probe, async (queue) => {
        let release: (() => void) | undefined
        const held = new Promise<void>((resolve) => {
          release = resolve
        })
        let running = 0
        await pool(1_000 + count + 200, 500, (index) => queue.enqueue(`job-${index}`))
        await queue.work(1_064, () => (running++ < 1_000 ? held : undefined))
        await until(() => queue.completed() >= 200, patienceMs)
        const before = queue.completed()
        const left = count - 200
        const figures = await timed(probe, left, async () => {
          await until(() => queue.completed() - before >= left, patienceMs)
          return undefined
        })
        release?.()
        await until(() => queue.completed() >= 1_000 + count, patienceMs)
        return figures
      }),
  }
}

/** An idle worker is woken by one job at a time: until its handler runs. */
function wakeCase(count: number): Case {
  return {
    name: 'wake-up of an idle worker',
    run: (system, url, probe) =>
      session(system, url, probe, async (queue) => {
        let ran: ((at: number) => void) | undefined
        await queue.work(1, () => ran?.(performance.now()))
        await sleep(300)
        const times = new Float64Array(count)
        const figures = await timed(probe, count, async () => {
          for (let index = 0; index < count; index++) {
            const begun = performance.now()
            const woken = new Promise<number>((resolve) => {
              ran = resolve
            })
            await queue.enqueue(`job-${index}`)
            times[index] = (await woken) - begun
            // Idle again.
            await sleep(5)
          }
          return times
        })
        return { ...figures, rate: Number.NaN }
      }),
  }
}

export function cases(scale: number): Case[] {
  const n = (count: number) => Math.max(500, Math.round(count * scale))
  return [
    enqueueCase(n(5_000), 1),
    enqueueCase(n(30_000), 100),
    processCase('process, 1 at once', n(5_000), 1),
    processCase('process, 16 at once', n(20_000), 16),
    processCase('process, 64 at once', n(30_000), 64),
    waitCase(n(2_000), 1),
    waitCase(n(10_000), 50),
    duplicateCase(n(5_000), 1),
    duplicateCase(n(20_000), 100),
    heldCase(n(10_000)),
    wakeCase(Math.min(300, n(300))),
  ]
}

/** Cost with few and with many queued: 1,000 jobs of each. */
export function depthCases(deep: number): Case[] {
  return [
    processCase('process 1,000 at 64, 1,000 queued', 1_200, 64),
    processCase(`process 1,000 at 64, ${deep.toLocaleString('en-US')} queued`, 1_200, 64, deep),
  ]
}

/** What a system costs besides time. */
export interface Costs {
  /** A whole life: enqueue, claim, complete, at 16 at once. */
  readonly clientCommands: number
  readonly innerCommands: number
  readonly bytesIn: number
  readonly bytesQueued: number
  readonly bytesCompleted: number
  readonly idleCommandsPerSecond: number
}

/** Counts by MONITOR what clients send and what scripts do. */
async function monitored(probe: Probe, use: () => Promise<void>): Promise<{ client: number; inner: number }> {
  const monitor = await probe.redis.monitor()
  let client = 0
  let inner = 0
  monitor.on('monitor', (_time: string, args: string[], source: string) => {
    if (source === 'lua') inner++
    else if (!['info', 'flushall', 'monitor'].includes(String(args[0]).toLowerCase())) client++
  })
  try {
    await use()
    await sleep(200)
  } finally {
    monitor.disconnect()
  }
  return { client, inner }
}

export async function costs(system: System, url: string, probe: Probe): Promise<Costs> {
  const jobs = 1_000
  const life = await session(system, url, probe, async (queue) => {
    await queue.work(16, () => {})
    await pool(100, 16, (index) => queue.enqueue(`warm-${index}`))
    await until(() => queue.completed() >= 100, patienceMs)
    const before = await probe.bytesIn()
    const counts = await monitored(probe, async () => {
      await pool(jobs, 16, (index) => queue.enqueue(`job-${index}`))
      await until(() => queue.completed() >= 100 + jobs, patienceMs)
    })
    return { ...counts, bytesIn: (await probe.bytesIn()) - before }
  })
  const memory = await session(system, url, probe, async (queue) => {
    const many = 20_000
    await pool(100, 100, (index) => queue.enqueue(`warm-${index}`))
    const empty = await probe.bytesUsed()
    await pool(many, 500, (index) => queue.enqueue(`job-${index}`))
    await sleep(300)
    const queued = await probe.bytesUsed()
    await queue.work(64, () => {})
    await until(() => queue.completed() >= many + 100, patienceMs)
    await sleep(300)
    return { queued: (queued - empty) / many, completed: ((await probe.bytesUsed()) - empty) / many }
  })
  const idle = await session(system, url, probe, async (queue) => {
    await queue.work(64, () => {})
    await sleep(1_500)
    const seconds = 10
    const { client } = await monitored(probe, () => sleep(seconds * 1_000))
    return client / seconds
  })
  return {
    clientCommands: life.client / jobs,
    innerCommands: life.inner / jobs,
    bytesIn: life.bytesIn / jobs,
    bytesQueued: memory.queued,
    bytesCompleted: memory.completed,
    idleCommandsPerSecond: idle,
  }
}
