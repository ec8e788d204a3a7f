/**
 * One process of a fleet, a worker or a producer. It is started without a task, so that it is ready when another is killed; gets its
 * task as a message; and ends with the process that started it.
 *
 * @module
 */

import { Queue } from '../../../src/index.ts'
import { fixed } from '../../../src/retry.ts'
import { Seeded } from '../seeded.ts'
import { notingLeases } from './leases.ts'
import type { NoteContent, Result } from './notes.ts'
import { noteTo } from './notes.ts'
import { produce } from './producer.ts'
import { type Stage, skewedClock, storageOf } from './stage.ts'
import { work } from './worker.ts'

/** What a process is to do. */
export interface Task {
  readonly role: 'worker' | 'producer'
  readonly stage: Stage
  /** The queue's name. */
  readonly queue: string
  /** The file for its notes. */
  readonly notes: string
  readonly seed: number
  /** New ids a second: producers ask for the same ones. */
  readonly idsPerSecond: number
  /** When the first id was new, microseconds of the monotonic clock. */
  readonly startedAt: number
  /** Whether jobs of all families are made and all operations called; else steady ones are enqueued. */
  readonly all: boolean
  /** Characters of a payload beside its names. */
  readonly fillerChars: number
  /** By how much its clock is wrong, ms. Can be set anew by a message. */
  readonly skewMs: number
}

/** A message to a process. */
export type Message = { readonly task: Task } | { readonly skewMs: number }

/** What handlers get. */
export interface Payload {
  readonly id: string
  readonly token: string
  readonly filler: string
}

/** What both roles need. */
export interface Post {
  readonly task: Task
  readonly queue: Queue<Payload, Result>
  readonly random: Seeded
  readonly note: (note: NoteContent) => void
}

/** Length of a lease, ms: what a killed worker held starts again after it. */
const leaseMs = 1_000

/** How long a wait may take, ms: far longer than anything that is done to a fleet. */
const waitMs = 60_000

/**
 * Settled when the process is asked to end. Not by `once`: signal-exit, which write-file-atomic uses, ends a process whose only listener
 * has just removed itself.
 */
const ending = new Promise<void>((resolve) => void process.on('SIGTERM', () => resolve()))

async function begin(task: Task): Promise<void> {
  const note = noteTo(task.notes)
  let { skewMs } = task
  process.on('message', (message: Message) => {
    if ('skewMs' in message) skewMs = message.skewMs
  })
  const clock = skewedClock(() => skewMs)
  const queue = new Queue<Payload, Result>({
    storage: notingLeases(storageOf(task.stage, clock), note),
    clock,
    name: task.queue,
    concurrency: 8,
    leaseMs,
    timeout: waitMs,
    stopTimeout: 3_000,
    retry: fixed(20),
  })
  queue.on('warning', ({ code, message }) => note({ kind: 'warning', code, message }))
  // What fails while faults are made is not worth a line; what was acknowledged is.
  queue.on('error', () => {})
  queue.on('completed', ({ id, result }) => note({ kind: 'completed', id, result }))
  queue.on('failed', ({ id, attempts }) => note({ kind: 'failed', id, attempts }))
  const post: Post = { task, queue, random: new Seeded(task.seed), note }
  note({ kind: 'up', role: task.role })
  const end = task.role === 'worker' ? await work(post) : produce(post)
  await ending
  await end()
  await queue.stop()
  note({ kind: 'down' })
  // It has to end by itself: the channel may not keep it, and nothing else should.
  process.channel?.unref()
}

process.once('disconnect', () => process.exit(1))
process.once('message', (message: Message) => {
  if ('task' in message) void begin(message.task)
})
