/**
 * A producer of a fleet: asks for new jobs and for old ones, waits for some, cancels some, and notes each call and each answer.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { AskonceError } from '../../../src/errors.ts'
import { familyOf, idOf } from './families.ts'
import type { Payload, Post } from './member.ts'
import type { Operation, Result } from './notes.ts'
import { monotonicUs } from './notes.ts'
import { handler } from './worker.ts'

/** Ids asked for in one call at most. */
const batchMax = 200

/** How far back a new producer begins: what its forerunner may not have asked for. */
const overlap = 20

interface Answer {
  readonly status: string
  readonly result?: Result
}

class Producer {
  readonly #post: Post
  readonly #running = new Set<Promise<void>>()
  readonly #handler: ReturnType<typeof handler>
  readonly #filler: string
  #calls = 0
  #tokens = 0
  /** Ids of the round before that are to be cancelled. */
  #doomed: readonly string[] = []
  #next: number
  #ending = false
  #loop: Promise<void>

  constructor(post: Post) {
    this.#post = post
    this.#handler = handler(post.random, post.note)
    this.#filler = 'x'.repeat(post.task.fillerChars)
    this.#next = Math.max(0, this.#newest() - overlap)
    this.#loop = this.#produce()
  }

  /** Ends when every call that it has made is answered. */
  async end(): Promise<void> {
    this.#ending = true
    await this.#loop
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  #newest(): number {
    const { startedAt, idsPerSecond } = this.#post.task
    return Math.floor(((monotonicUs() - startedAt) * idsPerSecond) / 1_000_000) + 1
  }

  async #produce(): Promise<void> {
    const { random, task } = this.#post
    while (!this.#ending) {
      const end = this.#newest()
      const ids: string[] = []
      for (; this.#next < end && ids.length < batchMax; this.#next++) ids.push(idOf(this.#next, task.all))
      // An old one, too: it must be known.
      ids.push(idOf(random.below(this.#next + 1), task.all))
      if (task.all) this.#more(idOf(random.below(this.#next + 1), true), ids)
      await this.#enqueue(ids)
      await sleep(5 + random.next() * 10)
    }
  }

  /** The operations beside `enqueue`. Inline jobs are asked for inline only. */
  #more(old: string, ids: string[]): void {
    const { random, queue } = this.#post
    const inline = ids.filter((id) => familyOf(id).name === 'inline')
    for (const id of inline) {
      ids.splice(ids.indexOf(id), 1)
      this.#start('run', id, async (payload) => ({
        status: 'done',
        result: await queue.run(id, payload, this.#handler, familyOf(id).options),
      }))
    }
    for (const id of ids) {
      if (random.chance(0.1)) {
        const { options } = familyOf(id)
        this.#start('wait', id, async (payload) => ({
          status: 'done',
          result: await queue.enqueueAndWait(id, payload, options),
        }))
      }
    }
    for (const id of this.#doomed) this.#start('cancel', id, async () => ({ status: (await queue.cancel(id)).status }))
    this.#doomed = ids.filter((id) => familyOf(id).name === 'dropped')
    if (random.chance(0.2)) {
      this.#start('status', old, async () => ({ status: (await queue.getStatus(old))?.state ?? 'absent' }))
    }
    if (random.chance(0.2) && familyOf(old).stays) {
      const ttlMs = 3_600_000 + random.below(1_000)
      this.#start('touch', old, async () => ({ status: (await queue.updateResultTTL(old, ttlMs)).status }))
    }
  }

  /** Asks for many at once: one answer, or one failure, for all of them. */
  async #enqueue(ids: readonly string[]): Promise<void> {
    const { queue, note } = this.#post
    const asked = ids.map((id) => ({ id, payload: this.#payload(id), ...familyOf(id).options }))
    const numbers = asked.map(({ id, payload }) => this.#call('enqueue', id, payload.token))
    try {
      const answers = await queue.enqueueMany(asked)
      for (const [index, answer] of answers.entries()) {
        const n = numbers[index] as number
        note({
          kind: 'answer',
          n,
          status: answer.status,
          ...(answer.status === 'completed' ? { result: answer.result } : {}),
        })
      }
    } catch (error) {
      for (const n of numbers) note({ kind: 'answer', n, status: 'error', code: codeOf(error) })
    }
  }

  #start(op: Operation, id: string, make: (payload: Payload) => Promise<Answer>): void {
    const { note } = this.#post
    const payload = this.#payload(id)
    const n = this.#call(op, id, payload.token)
    const running = make(payload)
      .then((answer) => note({ kind: 'answer', n, ...answer }))
      .catch((error: unknown) => note({ kind: 'answer', n, status: 'error', code: codeOf(error) }))
      .finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  #call(op: Operation, id: string, token: string): number {
    const n = this.#calls++
    this.#post.note({ kind: 'call', n, op, id, token })
    return n
  }

  #payload(id: string): Payload {
    return { id, token: `${process.pid}.${this.#post.task.seed}.${this.#tokens++}`, filler: this.#filler }
  }
}

function codeOf(error: unknown): string {
  return error instanceof AskonceError ? error.code : String(error)
}

/** Produces until asked to end. Answers what asks, and waits until every call is answered. */
export function produce(post: Post): () => Promise<void> {
  const producer = new Producer(post)
  return () => producer.end()
}
