/** executeBatch: several jobs in one call, each settled on its own. */

import { RateLimitedError, UnrecoverableError } from '../../../src/errors.ts'
import type { BatchOutcome, Job } from '../../../src/options.ts'
import type { Queue } from '../../../src/queue.ts'
import { gate, type QueueRig, type Scenario } from '../../support/queue-rig.ts'
import { replyAfter } from '../support/faulty-storage.ts'

type Outcomes = readonly BatchOutcome<string>[]

async function batcher(
  rig: QueueRig,
  handler: (jobs: readonly Job<string>[]) => Outcomes | PromiseLike<Outcomes>,
  options: { size?: number; waitMs?: number; concurrency?: number } = {},
  queueOptions: object = {},
): Promise<Queue<string, string>> {
  const queue = await rig.queue<string, string>({ maxAttempts: 2, retry: () => 1, ...queueOptions })
  queue.executeBatch(handler, options)
  await rig.drive(queue.start())
  return queue
}

const echo = (jobs: readonly Job<string>[]): Outcomes => jobs.map(({ payload }) => ({ result: payload.toUpperCase() }))

export const batching: readonly Scenario[] = [
  {
    name: 'jobs travel together, up to size a call; each caller gets the answer to its own',
    async run(t, rig) {
      const sizes: number[] = []
      const queue = await batcher(
        rig,
        (jobs) => {
          sizes.push(jobs.length)
          return echo(jobs)
        },
        { size: 10, waitMs: 5 },
      )
      const answers = await rig.drive(
        Promise.all(Array.from({ length: 25 }, (_, n) => queue.enqueueAndWait(`id-${n}`, `a${n}`))),
      )
      t.strictSame(
        answers,
        Array.from({ length: 25 }, (_, n) => `A${n}`),
      )
      t.ok(sizes.every((size) => size <= 10))
      t.equal(
        sizes.reduce((sum, size) => sum + size, 0),
        25,
      )
      if (rig.prompt) t.strictSame(sizes, [10, 10, 5])
      t.equal(queue.counters.executed, 25)
    },
  },
  {
    name: 'the first job waits waitMs for company, no longer; a full batch does not wait',
    async run(t, rig) {
      if (!rig.prompt) return
      const calls: [number, number][] = []
      const queue = await batcher(
        rig,
        (jobs) => {
          calls.push([rig.clock.monotonic(), jobs.length])
          return echo(jobs)
        },
        { size: 3, waitMs: 100 },
      )
      const start = rig.clock.monotonic()
      await queue.enqueue('a', 'a')
      await rig.advance(60)
      await queue.enqueue('b', 'b')
      await rig.advance(39)
      t.equal(calls.length, 0)
      await rig.advance(1)
      t.strictSame(calls, [[start + 100, 2]])
      await queue.enqueueMany(['c', 'd', 'e'].map((id) => ({ id, payload: id })))
      await rig.calm()
      t.equal(calls.length, 2, 'full: at once')
    },
  },
  {
    name: 'each job settles on its own: results, errors, retries, hopeless ones, unserialisable ones in one call',
    async run(t, rig) {
      const queue = await batcher(
        rig,
        async (jobs) =>
          jobs.map(({ payload, attempts }): BatchOutcome<string> => {
            if (payload === 'bad') return { error: new TypeError(`bad ${attempts}`) }
            if (payload === 'undefined') return { error: undefined }
            if (payload === 'hopeless') return { error: new UnrecoverableError('hopeless') }
            if (payload === 'big') return { result: 1n as unknown as string }
            if (payload === 'once' && attempts === 1) return { error: new Error('once') }
            return { result: `${payload} ${attempts}` }
          }),
        { size: 10, waitMs: 5 },
      )
      const ask = (kind: string) =>
        queue.enqueueAndWait(kind, kind).then(
          (result) => result,
          (error) => `${error.attempts}: ${error.cause.message}`,
        )
      const kinds = ['good', 'bad', 'undefined', 'hopeless', 'big', 'once']
      const answers = await rig.drive(Promise.all(kinds.map(ask)))
      t.match(answers, ['good 1', '2: bad 2', /^2: a non-error/, '1: hopeless', /^1: result could not/, 'once 2'])
    },
  },
  {
    name: 'a batch handler that throws, or answers nonsense, fails or retries every job of the call; the worker lives',
    async run(t, rig) {
      const nonsense: unknown[] = [undefined, null, 'text', 42, {}, [], [{ result: 'one too many' }, { result: '' }]]
      let turn = 0
      const queue = await batcher(
        rig,
        ((jobs: readonly Job<string>[]) => {
          if (jobs[0]!.payload === 'throw') throw new Error('thrown')
          if (jobs[0]!.payload === 'reject') return Promise.reject(new Error('rejected'))
          if (jobs[0]!.payload === 'good') return echo(jobs)
          if (jobs[0]!.payload === 'odd item') return jobs.map(() => (turn++ % 2 === 0 ? null : 'odd'))
          return nonsense[turn++ % nonsense.length]
        }) as never,
        { size: 1, waitMs: 1 },
        { maxAttempts: 1 },
      )
      t.match((await rig.refusal(queue.enqueueAndWait('throw', 'throw'))).cause, { message: 'thrown' })
      t.match((await rig.refusal(queue.enqueueAndWait('reject', 'reject'))).cause, { message: 'rejected' })
      for (let n = 0; n < nonsense.length; n++) {
        const { cause } = await rig.refusal(queue.enqueueAndWait(`nonsense-${n}`, 'nonsense'))
        t.match(cause, { code: 'ASKONCE_INVALID_ARGUMENT' }, `nonsense ${n}`)
      }
      for (let n = 0; n < 2; n++) {
        const { cause } = await rig.refusal(queue.enqueueAndWait(`odd-${n}`, 'odd item'))
        t.match(cause, { code: 'ASKONCE_INVALID_ARGUMENT' })
      }
      t.equal(await rig.drive(queue.enqueueAndWait('good', 'good')), 'GOOD')
    },
  },
  {
    name: 'a rate limit in a batch holds the queue and gives every attempt back',
    async run(t, rig) {
      let calls = 0
      const seen: number[] = []
      const queue = await batcher(
        rig,
        (jobs) => {
          if (++calls === 1) throw new RateLimitedError(rig.shortMs)
          seen.push(...jobs.map(({ attempts }) => attempts))
          return echo(jobs)
        },
        { size: 3, waitMs: 5 },
        { maxAttempts: 1 },
      )
      const ids = ['a', 'b', 'c']
      const answers = await rig.drive(Promise.all(ids.map((id) => queue.enqueueAndWait(id, id))))
      t.strictSame(answers, ['A', 'B', 'C'])
      t.strictSame(seen, [1, 1, 1])
    },
  },
  {
    name: 'concurrency is calls at once; it is kept, also when a claim’s answer comes late',
    async run(t, rig) {
      const { storage } = await rig.process()
      let running = 0
      let most = 0
      const gates: ReturnType<typeof gate<void>>[] = []
      const queue = await rig.queue<string, string>({ storage })
      queue.executeBatch(
        async (jobs) => {
          most = Math.max(most, ++running)
          const end = gate()
          gates.push(end)
          await end.promise
          running--
          return echo(jobs)
        },
        { size: 4, waitMs: 50, concurrency: 1 },
      )
      await rig.drive(queue.start())
      await rig.calm()
      await rig.drive(queue.enqueue('a', 'a'))
      await rig.calm()
      const late = gate()
      storage.on('claim', replyAfter(late.promise))
      await rig.drive(queue.enqueueMany(['b', 'c'].map((id) => ({ id, payload: id }))))
      await rig.advance(60)
      late.open()
      await rig.advance(60)
      for (let n = 0; n < 5; n++) {
        for (const { open } of gates) open()
        await rig.advance(60)
      }
      await rig.until('all are done', () => queue.counters.completed === 3)
      t.equal(most, 1)
    },
  },
  {
    name: 'concurrency of batches: two calls run beside one another, not three',
    async run(t, rig) {
      let running = 0
      let most = 0
      const queue = await batcher(
        rig,
        async (jobs) => {
          most = Math.max(most, ++running)
          await rig.calm()
          running--
          return echo(jobs)
        },
        { size: 2, waitMs: 1, concurrency: 2 },
      )
      await rig.drive(Promise.all(Array.from({ length: 20 }, (_, n) => queue.enqueueAndWait(`id-${n}`, 'x'))))
      t.equal(most, 2)
    },
  },
  {
    name: 'stop() with jobs that wait for company does not wait for it: they are run, or given back, at once',
    async run(t, rig) {
      const queue = await batcher(rig, echo, { size: 10, waitMs: 1_000_000 }, { stopTimeout: 500_000 })
      await rig.drive(queue.enqueue('a', 'a'))
      await rig.until('it is claimed', async () => (await queue.getStatus('a'))?.state === 'processing')
      const before = rig.clock.monotonic()
      await rig.drive(queue.stop())
      t.ok(rig.clock.monotonic() - before < 1_000, `took ${rig.clock.monotonic() - before} ms`)
    },
  },
  {
    name: 'stop() beyond its grace gives gathered and running jobs back; a late answer is ignored',
    async run(t, rig) {
      const end = gate<void>()
      const queue = await rig.queue<string, string>({ stopTimeout: rig.shortMs })
      queue.executeBatch(
        async (jobs) => {
          await end.promise
          return echo(jobs)
        },
        { size: 2, waitMs: 1 },
      )
      await rig.drive(queue.start())
      await rig.drive(queue.enqueueMany(['a', 'b', 'c'].map((id) => ({ id, payload: id }))))
      await rig.until('they run', () => queue.counters.executed >= 2)
      await rig.drive(queue.stop())
      end.open()
      await rig.calm()
      const attempts: number[] = []
      const other = await rig.worker<string, string>(async (job) => {
        attempts.push(job.attempts)
        return 'other'
      })
      await rig.until('all are done', () => other.counters.completed === 3)
      t.strictSame(attempts, [1, 1, 1])
    },
  },
]
