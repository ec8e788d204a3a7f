/**
 * A worker of a fleet: runs what is due, as each job's family wants it.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import type { Job } from '../../../src/options.ts'
import type { Seeded } from '../seeded.ts'
import { familyOf } from './families.ts'
import type { Payload, Post } from './member.ts'
import type { NoteContent, Result } from './notes.ts'

/** The handler of every job, queued or inline. */
export function handler(random: Seeded, note: (note: NoteContent) => void): (job: Job<Payload>) => Promise<Result> {
  return async (job) => {
    const { id, payload, attempts, maxAttempts, createdAt, generation } = job
    const { token } = payload
    const run = `${generation}/${attempts}`
    if (payload.id !== id) note({ kind: 'problem', message: `${id} has the payload of ${payload.id}` })
    note({ kind: 'ran', id, run, token, createdAt, attempts, maxAttempts })
    const family = familyOf(id)
    await sleep(family.workMs(random), undefined, { signal: job.signal })
    if (family.fails(attempts)) throw new Error(`attempt ${attempts} fails`)
    return { run, token, createdAt }
  }
}

/** Works until the queue is stopped. Answers what has to be done before that. */
export async function work({ queue, random, note }: Post): Promise<() => Promise<void>> {
  queue.execute(handler(random, note))
  // The storage may be away just now: whoever runs a service tries again.
  for (let started = false; !started; ) {
    started = await queue.start().then(
      () => true,
      () => sleep(50, false),
    )
  }
  return async () => {}
}
