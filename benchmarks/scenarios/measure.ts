/**
 * How cases measure: jobs by the pool, time and processor time around them.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Session } from '../backends/backend.ts'
import type { Figures } from '../results/metrics.ts'
import type { Trial } from './scenario.ts'

const patienceMs = 90_000

/** Runs `job` `count` times, `inFlight` at once; answers each one's ms. */
export async function pool(
  count: number,
  inFlight: number,
  job: (index: number) => Promise<unknown>,
): Promise<Float64Array> {
  const times = new Float64Array(count)
  let next = 0
  const lane = async () => {
    while (next < count) {
      const index = next++
      const begun = performance.now()
      await job(index)
      times[index] = performance.now() - begun
    }
  }
  await Promise.all(Array.from({ length: Math.min(inFlight, count) }, lane))
  return times
}

/** Percentiles of times in ms. */
export function latencies(times: Float64Array): Figures {
  const sorted = times.toSorted()
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  // Of fewer, one in a hundred would be the slowest.
  return { p50: at(0.5), p95: at(0.95), ...(sorted.length >= 200 && { p99: at(0.99) }) }
}

/** Does `work`, which is `count` jobs: their rate, processor time and calls. */
async function timed({ site, watch }: Trial, count: number, work: () => Promise<unknown>): Promise<Figures> {
  globalThis.gc?.()
  const before = await site.spent()
  const cpuBefore = process.cpuUsage()
  const begun = performance.now()
  await watch(work)
  const seconds = (performance.now() - begun) / 1_000
  const { user, system } = process.cpuUsage(cpuBefore)
  const after = await site.spent()
  return {
    rate: count / seconds,
    cpu: (user + system + after.serverUs - before.serverUs) / count,
    ...(before.calls !== null && after.calls !== null && { calls: (after.calls - before.calls) / count }),
  }
}

/** As `timed`, of calls made `inFlight` at once, with their latencies. */
export async function timedPool(
  trial: Trial,
  inFlight: number,
  job: (index: number) => Promise<unknown>,
): Promise<Figures> {
  // Fewer would not be that many in flight.
  const jobs = Math.max(trial.jobs, inFlight * 2)
  const times: Float64Array[] = []
  const figures = await timed(trial, jobs, async () => {
    times.push(await pool(jobs, inFlight, job))
  })
  return { ...figures, ...latencies(times[0] as Float64Array) }
}

/** A session for the time of `use`. */
export async function withSession(trial: Trial, use: (session: Session) => Promise<Figures>): Promise<Figures> {
  const session = await trial.open()
  try {
    return await use(session)
  } finally {
    await session.close()
  }
}

/** Resolves when the condition holds; looks each millisecond. */
export async function until(condition: () => boolean, timeoutMs = patienceMs): Promise<void> {
  const end = performance.now() + timeoutMs
  while (!condition()) {
    if (performance.now() > end) throw new Error(`not done in ${timeoutMs / 1_000} s`)
    await sleep(1)
  }
}

/** Queues jobs as quickly as the system can. */
export async function fill(session: Session, ids: readonly string[]): Promise<void> {
  if (session.fill !== undefined) await session.fill(ids)
  else await pool(ids.length, 500, (index) => session.enqueue(ids[index] as string))
}

/** `count` ids of a kind. */
export function ids(kind: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${kind}-${index}`)
}

/** Starts a worker on what is queued and measures `count` jobs, once the first `warm` have gone through. */
export async function processed(
  trial: Trial,
  session: Session,
  concurrency: number,
  warm: number,
  count: number,
): Promise<Figures> {
  let ran = 0
  let warmed: (() => void) | undefined
  const started = new Promise<void>((resolve) => {
    warmed = resolve
  })
  await session.work(concurrency, () => {
    if (++ran === warm) warmed?.()
  })
  if (warm > 0) await started
  const before = session.completed()
  let left = 0
  const figures = await timed(trial, 1, async () => {
    await until(() => session.completed() - before >= count)
    left = session.completed() - before
  })
  // More than `count` may have ended by the time it was seen.
  const { rate = 0, cpu = 0, calls } = figures
  return { rate: rate * left, cpu: cpu / left, ...(calls !== undefined && { calls: calls / left }) }
}
