/**
 * `npm run bench -- memory`: whole jobs through the Queue on Memory, against a bare Map and array in the same run.
 *
 * @module
 */

import { parseArgs } from 'node:util'
import { Queue } from '../../src/index.ts'
import { bytesInUse, figure, machine, spread, table } from '../support/report.ts'

interface Payload {
  n: number
}

/** The floor: what any queue in memory has to do at the least, one await a job. */
async function bare(jobs: number): Promise<void> {
  const records = new Map<string, { state: string; payload?: Payload; result?: Payload }>()
  const waiting: string[] = []
  for (let n = 0; n < jobs; n++) {
    const id = `job-${n}`
    if (records.has(id)) continue
    records.set(id, { state: 'queued', payload: { n } })
    waiting.push(id)
  }
  const handler = async (payload: Payload) => payload
  for (const id of waiting) {
    const record = records.get(id)
    const result = await handler(record?.payload as Payload)
    records.set(id, { state: 'completed', result })
  }
  if (records.size !== jobs) throw new Error('the bare loop lost jobs')
}

interface Phases {
  readonly enqueueMs: number
  readonly processMs: number
}

/** Enqueues all, then starts; resolves when the last is completed. */
async function whole(jobs: number, concurrency: number, many: boolean): Promise<Phases> {
  const queue = new Queue<Payload, Payload>({ concurrency })
  let left = jobs
  const done = new Promise<void>((resolve) => {
    queue.execute((job) => {
      if (--left === 0) resolve()
      return Promise.resolve(job.payload)
    })
  })
  const begun = performance.now()
  await fill(queue, jobs, many)
  const filled = performance.now()
  await queue.start()
  await done
  await queue.stop()
  const ended = performance.now()
  if (queue.counters.completed !== jobs) throw new Error(`completed ${queue.counters.completed} of ${jobs}`)
  return { enqueueMs: filled - begun, processMs: ended - filled }
}

async function fill(queue: Queue<Payload, Payload>, jobs: number, many: boolean): Promise<void> {
  const slice = 1_000
  for (let from = 0; from < jobs; from += slice) {
    const ns = Array.from({ length: Math.min(slice, jobs - from) }, (_, index) => from + index)
    if (many) await queue.enqueueMany(ns.map((n) => ({ id: `job-${n}`, payload: { n } })))
    else await Promise.all(ns.map((n) => queue.enqueue(`job-${n}`, { n })))
  }
}

async function bytesPerRecord(jobs: number): Promise<{ queued: number; completed: number }> {
  const queue = new Queue<Payload, Payload>({ concurrency: 64 })
  await queue.start()
  const before = bytesInUse()
  await fill(queue, jobs, true)
  const queued = bytesInUse()
  let left = jobs
  await new Promise<void>((resolve) => {
    queue.on('completed', () => {
      if (--left === 0) resolve()
    })
    queue.execute((job) => job.payload)
  })
  const completed = bytesInUse()
  await queue.stop()
  return { queued: (queued - before) / jobs, completed: (completed - before) / jobs }
}

/** `npm run bench -- memory`: takes no options. */
export async function run(argv: readonly string[] = []): Promise<void> {
  parseArgs({ args: [...argv] })
  const jobs = 100_000
  const rounds = 5
  // First, while nothing of other rounds is left to be collected.
  const bytes = await bytesPerRecord(jobs)
  console.log(`# Memory: ${figure(jobs)} no-op jobs\n\n${machine()}; ${rounds} alternating rounds, medians (min–max)\n`)
  const systems: [string, () => Promise<Phases | undefined>][] = [
    ['bare Map + array', async () => void (await bare(jobs))],
    ...[1, 16, 64].flatMap((concurrency): [string, () => Promise<Phases>][] => [
      [`askonce, enqueue, concurrency ${concurrency}`, () => whole(jobs, concurrency, false)],
    ]),
    ['askonce, enqueueMany, concurrency 64', () => whole(jobs, 64, true)],
  ]
  const times = systems.map((): number[] => [])
  const phases = systems.map((): Phases[] => [])
  for (let round = -1; round < rounds; round++) {
    for (const [index, [, runSystem]] of systems.entries()) {
      const begun = performance.now()
      const phase = await runSystem()
      // Round -1 warms up.
      if (round < 0) continue
      times[index]?.push(performance.now() - begun)
      if (phase !== undefined) phases[index]?.push(phase)
    }
  }
  const floor = spread(times[0] ?? []).median
  const rows = systems.map(([name], index) => {
    const { median, min, max } = spread(times[index] ?? [])
    const enqueueMs = spread((phases[index] ?? []).map((phase) => phase.enqueueMs)).median
    const processMs = spread((phases[index] ?? []).map((phase) => phase.processMs)).median
    const rate = (ms: number) => figure((jobs / ms) * 1_000)
    return [
      name,
      `${rate(median)} (${rate(max)}–${rate(min)})`,
      `${figure(median / floor)}x`,
      enqueueMs > 0 ? rate(enqueueMs) : '',
      processMs > 0 ? rate(processMs) : '',
    ]
  })
  console.log(table(['whole jobs', 'jobs/s', 'time against bare', 'enqueues/s', 'processed/s'], rows))

  console.log('\nGrowth: cost of a whole job by depth, concurrency 64, enqueueMany\n')
  const depths = [1_000, 10_000, 100_000, 1_000_000]
  const costs: number[] = []
  for (const depth of depths) {
    const repeats = Math.max(1, Math.min(100, Math.round(100_000 / depth)))
    const samples: number[] = []
    for (let round = 0; round < 3; round++) {
      globalThis.gc?.()
      const begun = performance.now()
      for (let repeat = 0; repeat < repeats; repeat++) await whole(depth, 64, true)
      samples.push(((performance.now() - begun) * 1_000) / (depth * repeats))
    }
    costs.push(spread(samples).median)
  }
  console.log(
    table(
      ['queued', 'us per job', 'against 1,000'],
      depths.map((depth, index) => [
        depth.toLocaleString('en-US'),
        figure(costs[index] ?? 0),
        `${figure((costs[index] ?? 0) / (costs[0] ?? 1))}x`,
      ]),
    ),
  )
  console.log(`\nBytes per queued record: ${figure(bytes.queued)}; per completed record: ${figure(bytes.completed)}`)
}
