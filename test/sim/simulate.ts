/**
 * Runs one seed from its beginning to the last record's end.
 *
 * @module
 */

import { noFaults } from '../../storages/conformance/testing/faults.ts'
import { withImmediates } from './scheduler.ts'
import type { Tier, Weather } from './setting.ts'
import type { Violation } from './world.ts'
import { boundMs, World } from './world.ts'

/** What came of one seed. */
export interface Outcome {
  readonly seed: number
  readonly steps: number
  /** Of the whole history. */
  readonly hash: number
  readonly virtualMs: number
  readonly faults: Readonly<Record<string, number>>
  readonly jobs: number
  readonly handlerCalls: number
  readonly violation: Violation | null
}

/** How to run a seed. */
export interface SimulateOptions {
  readonly seed: number
  /** Steps until the faults stop and the clients fall silent. */
  readonly ops: number
  readonly weather?: Weather
  readonly tier?: Tier
  readonly trace?: (line: string) => void
}

/** The same seed is the same history, in every process and on every machine. */
export async function simulate(options: SimulateOptions): Promise<Outcome> {
  const world = new World(options.seed, options)
  const onRejection = (reason: unknown): void => {
    const text = reason instanceof Error ? reason.stack : String(reason)
    world.fail('errors', `rejected without a listener: ${text}`)
  }
  process.on('unhandledRejection', onRejection)
  const startedAt = world.now
  try {
    await withImmediates(world.scheduler, () => live(world, options.ops))
  } finally {
    process.removeListener('unhandledRejection', onRejection)
  }
  const { scheduler, ledger, violation } = world
  return {
    seed: options.seed,
    steps: scheduler.steps,
    hash: world.hash,
    virtualMs: world.now - startedAt,
    faults: world.faultCounts as Record<string, number>,
    jobs: ledger.lives.length,
    handlerCalls: ledger.runs.size,
    violation,
  }
}

async function live(world: World, ops: number): Promise<void> {
  const { scheduler, setting } = world
  world.say(() => JSON.stringify(setting))
  for (let slot = 0; slot < setting.processes; slot++) world.spawn(slot)
  await scheduler.run(() => scheduler.steps >= ops)
  if (world.violation !== null) return

  world.say(() => 'THE FAULTS STOP')
  world.stormy = false
  Object.assign(world.faults, noFaults)
  const calmAt = world.now
  let atEnd = false
  // Looked for by an event of its own, so that the loop stays what it is.
  const look = (): void => {
    atEnd = world.processes.every((process) => process.dead || process.clients.unanswered.length === 0)
    atEnd &&= world.open.length === 0
    if (!atEnd) scheduler.schedule(scheduler.nobody, 100, look)
  }
  // What is on its way must arrive first: nobody need wait for it any more.
  scheduler.schedule(scheduler.nobody, world.setting.faults.slowMs * 3 + 1_000, look)
  for (const process of world.processes) {
    // As events of their own: what a process does must be its own.
    scheduler.schedule(process, 0, () => {
      process.resume()
      void process.start()
    })
  }
  await scheduler.run(() => atEnd || scheduler.now > calmAt + boundMs)
  if (world.violation !== null) return
  if (!atEnd) {
    const open = world.open.map(({ spec, state }) => `'${spec.id}' is ${state}`)
    const unanswered = world.processes.flatMap((process) => process.clients.unanswered)
    world.fail('liveness', `${boundMs} ms after the last fault: ${[...open, ...unanswered].join('; ')}`)
    return
  }
  await end(world)
}

/** Stops all queues, and looks for what they leave behind. */
async function end(world: World): Promise<void> {
  const { scheduler } = world
  const alive = world.processes.filter((process) => !process.dead)
  let stopped = 0
  const stoppingAt = world.now
  for (const process of alive) {
    scheduler.schedule(process, 0, () => {
      process.end().then(
        () => stopped++,
        (error: unknown) => process.judgeError('stop', error),
      )
    })
  }
  await scheduler.run(() => stopped === alive.length || scheduler.now > stoppingAt + boundMs)
  if (world.violation !== null) return
  if (stopped < alive.length) {
    world.fail('liveness', `${boundMs} ms after stop(), ${alive.length - stopped} queues have not stopped`)
    return
  }
  for (const process of alive) {
    if (process.timers > 0) world.fail('leftovers', `${process.name}: ${process.timers} timers wait in a stopped queue`)
  }
  // The longest TTL that anybody asked for, twice.
  const until = world.now + 3_600_000
  scheduler.schedule(scheduler.nobody, 3_600_000, () => {})
  await scheduler.run(() => scheduler.now >= until)
  const remains = await world.remains()
  if (remains.length > 0) world.fail('leftovers', `past every end there is still ${remains.join(', ')}`)
}
