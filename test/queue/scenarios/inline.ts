/** run: asks inline, without a worker. */

import { RateLimitedError, UnrecoverableError } from '../../../src/errors.ts'
import type { Job } from '../../../src/options.ts'
import { gate, ManualHandler, type Scenario } from '../../support/queue-rig.ts'
import { failAfter } from '../support/faulty-storage.ts'

const patient = { timeout: 1_000_000 }

export const inline: readonly Scenario[] = [
  {
    name: 'the first caller runs its handler in one round trip; everyone else, in any process, gets that answer',
    async run(t, rig) {
      const { storage } = await rig.process()
      const first = await rig.queue<number, string>({ storage })
      const others = await Promise.all(Array.from({ length: 3 }, () => rig.queue<number, string>()))
      const handler = new ManualHandler<number, string>()
      const lead = first.run('id', 1, handler.handle, patient)
      await rig.until('it starts', () => handler.calls.length === 1)
      t.equal(storage.count('enqueue'), 1)
      t.equal(storage.count('claim'), 0)
      t.match(handler.calls[0]!.job, { id: 'id', payload: 1, attempts: 1, maxAttempts: 3 })
      const more = Array.from({ length: 30 }, (_, n) =>
        n % 2 === 0
          ? others[n % 3]!.run('id', 1, async () => t.fail('must not run') as never, patient)
          : others[n % 3]!.enqueueAndWait('id', 1, patient),
      )
      await rig.calm()
      handler.calls[0]!.end.open('answer')
      t.equal(await rig.drive(lead), 'answer')
      t.ok((await rig.drive(Promise.all(more))).every((answer) => answer === 'answer'))
      t.equal(await rig.drive(others[0]!.run('id', 1, async () => 'again', patient)), 'answer')
      t.match(await rig.drive(first.enqueue('id', 1)), { status: 'completed', result: 'answer' })
      t.equal(first.counters.executed, 1)
    },
  },
  {
    name: 'case 36, inline: 200 runs of one id at once in 4 processes make one handler call',
    async run(t, rig) {
      const queues = await Promise.all(Array.from({ length: 4 }, () => rig.queue<number, number>()))
      let runs = 0
      const answers = await rig.drive(
        Promise.all(Array.from({ length: 200 }, (_, n) => queues[n % 4]!.run('id', 1, async () => ++runs, patient))),
      )
      t.ok(answers.every((answer) => answer === 1))
      t.equal(runs, 1)
    },
  },
  {
    name: 'it is kept out of the due index: workers do not run it, neither while it runs nor when its lease ended',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const runner = await rig.queue<number, string>({ storage, clock })
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(async () => t.fail('a worker took an inline job'))
      const run = rig.refusal(runner.run('id', 1, handler.handle, { ...patient, resultTTL: rig.leaseMs }))
      await rig.until('it starts', () => handler.calls.length === 1)
      clock.stall()
      storage.down()
      await rig.advance(rig.leaseMs * 1.5)
      t.match(await rig.drive(worker.getStatus('id')), { state: 'processing' })
      t.equal(worker.counters.executed, 0)
      await rig.advance(rig.leaseMs)
      t.equal(await rig.drive(worker.getStatus('id')), null, 'nobody asked again: forgotten a TTL after its lease')
      storage.up()
      clock.resume()
      handler.calls[0]!.end.open('late')
      t.equal((await run).code, 'ASKONCE_RESULT_GONE')
      await rig.counted(t, runner, { stale_ignored: 1 })
      rig.takeErrors()
    },
  },
  {
    name: 'the runner dies: a waiting caller takes over with its own handler when the lease ends; the others get its answer',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const runner = await rig.queue<number, string>({ storage, clock })
      const dead = new ManualHandler<number, string>()
      const lost = runner.run('id', 1, dead.handle, patient)
      await rig.until('it starts', () => dead.calls.length === 1)
      const endsAt = (await rig.drive(runner.getStatus('id')))!.leaseEndsAt!
      const [b, c] = [await rig.queue<number, string>(), await rig.queue<number, string>()]
      const jobs: Job<number>[] = []
      const starts: number[] = []
      const takeOver = async (job: Job<number>) => {
        jobs.push(job)
        starts.push(rig.clock.now())
        return 'taken over'
      }
      const waits = [
        b.run('id', 1, takeOver, patient),
        c.run('id', 1, takeOver, patient),
        c.run('id', 1, takeOver, patient),
        c.enqueueAndWait('other', 1, { timeout: 10 }).catch(() => 'taken over'),
      ]
      await rig.calm()
      clock.stall()
      storage.down()
      const answers = await rig.drive(Promise.all(waits))
      t.ok(answers.every((answer) => answer === 'taken over'))
      t.equal(jobs.length, 1)
      t.equal(jobs[0]!.attempts, 2)
      t.ok(starts[0]! >= endsAt - 20)
      if (rig.prompt) t.ok(starts[0]! - endsAt < 1_500, `promptly: ${starts[0]! - endsAt} ms after the lease ended`)
      storage.up()
      clock.resume()
      dead.calls[0]!.end.open('late')
      t.equal(await rig.drive(lost), 'taken over', 'the late runner gets the answer that stands')
      await rig.counted(t, runner, { stale_ignored: 1 })
      rig.takeErrors()
    },
  },
  {
    name: 'the runner dies with nobody waiting: the next run takes over; an enqueue makes it due for workers',
    async run(t, rig) {
      for (const how of ['run', 'enqueue before', 'enqueue after'] as const) {
        const { storage, clock } = await rig.process()
        const runner = await rig.queue<number, string>({ storage, clock, name: how })
        const dead = new ManualHandler<number, string>()
        const settled = () => 'settled'
        const lost = runner.run('id', 1, dead.handle, { timeout: rig.leaseMs * 3 }).then(settled, settled)
        await rig.until('it starts', () => dead.calls.length === 1)
        const other = await rig.worker<number, string>(async ({ attempts }) => `worker, attempt ${attempts}`, {
          name: how,
        })
        if (how === 'enqueue before') {
          t.match(await rig.drive(other.enqueue('id', 1)), { status: 'duplicate', existingState: 'processing' })
        }
        clock.stall()
        storage.down()
        await rig.advance(rig.leaseMs * 1.2)
        if (how === 'run') {
          const own = async ({ attempts }: Job<number>) => `own, attempt ${attempts}`
          t.equal(await rig.drive(other.run('id', 1, own, patient)), 'own, attempt 2')
          t.equal(other.counters.executed, 1)
        } else {
          t.equal(await rig.drive(other.enqueueAndWait('id', 1, patient)), 'worker, attempt 2')
        }
        storage.up()
        clock.resume()
        dead.calls[0]!.end.open('late')
        await rig.until('the late one is told', () => runner.counters.stale_ignored === 1)
        t.equal(await rig.drive(lost), 'settled')
        rig.takeErrors()
      }
    },
  },
  {
    name: 'failures: retried as a queued job is, then the same error for the runner and all who wait',
    async run(t, rig) {
      const [a, b] = [
        await rig.queue<number, string>({ maxAttempts: 3, retry: () => rig.shortMs / 3 }),
        await rig.queue<number, string>(),
      ]
      const attempts: number[] = []
      const failing = async (job: Job<number>) => {
        attempts.push(job.attempts)
        throw Object.assign(new RangeError(`no ${job.attempts}`), { code: 'E_NO' })
      }
      const run = a.run('id', 1, failing, patient)
      await rig.until('it starts', () => attempts.length > 0)
      const wait = b.enqueueAndWait('id', 1, patient)
      const late = b.run('late', 1, async () => 'x', patient)
      const errors = [await rig.refusal(Promise.all([run, rig.refusal(wait)])), await rig.refusal(wait)]
      t.strictSame(attempts, [1, 2, 3])
      for (const error of errors) {
        t.match(error, { code: 'ASKONCE_JOB_FAILED', id: 'id', attempts: 3 })
        t.match(error.cause, { name: 'RangeError', message: 'no 3', code: 'E_NO' })
      }
      t.equal(await rig.drive(late), 'x')
      await rig.counted(t, a, { executed: 3, retried: 2, failed: 1 })
    },
  },
  {
    name: 'UnrecoverableError, handlerTimeoutMs and undecodable results are what they are of queued jobs',
    async run(t, rig) {
      const queue = await rig.queue<number, unknown>({ handlerTimeoutMs: rig.shortMs, maxAttempts: 2, retry: () => 1 })
      const hopeless = await rig.refusal(
        queue.run('a', 1, () => {
          throw new UnrecoverableError('hopeless')
        }),
      )
      t.match(hopeless, { attempts: 1, cause: { code: 'ASKONCE_UNRECOVERABLE' } })
      const stuck = await rig.refusal(queue.run('b', 1, () => new Promise(() => {}), patient))
      t.match(stuck, { attempts: 2, cause: { code: 'ASKONCE_HANDLER_TIMEOUT' } })
      const big = await rig.refusal(queue.run('c', 1, async () => 1n))
      t.match(big, { attempts: 1, cause: { code: 'ASKONCE_SERIALIZATION' } })
      const odd = await rig.refusal(
        queue.run('d', 1, async () => {
          throw undefined
        }),
      )
      t.match(odd, { code: 'ASKONCE_JOB_FAILED' })
      const calledBack = (_job: Job<number>, done: (error: unknown, result?: unknown) => void) =>
        done(null, 'called back')
      t.equal(await rig.drive(queue.run('e', 1, calledBack)), 'called back')
      t.equal(await rig.drive(queue.run('f', 1, async () => undefined)), undefined)
    },
  },
  {
    name: 'a hold makes run() wait, costs no attempt, and a rate limit of its own holds everybody',
    async run(t, rig) {
      const [a, b] = [await rig.queue<number, string>(), await rig.queue<number, string>()]
      let calls = 0
      let held = false
      a.on('held', () => {
        held = true
      })
      const handler = async ({ attempts }: Job<number>) => {
        if (++calls === 1) throw new RateLimitedError(rig.shortMs * 4)
        return `attempt ${attempts}`
      }
      const first = a.run('first', 1, handler, { ...patient, maxAttempts: 1 })
      await rig.until('it is held', () => held)
      const heldAt = rig.clock.monotonic()
      const startedAt: number[] = []
      const second = b.run(
        'second',
        1,
        async ({ attempts }) => {
          startedAt.push(rig.clock.monotonic())
          return `attempt ${attempts}`
        },
        { ...patient, maxAttempts: 1 },
      )
      await rig.calm()
      t.match(await rig.drive(b.getStatus('second')), { state: 'queued', attempts: 0 })
      t.strictSame(await rig.drive(Promise.all([first, second])), ['attempt 1', 'attempt 1'])
      t.ok(startedAt[0]! - heldAt >= rig.shortMs * 4 - 20)
      t.equal(calls, 2)
    },
  },
  {
    name: 'a held run times out: nothing ran, and no worker runs it later',
    async run(t, rig) {
      const worker = await rig.worker<number, string>(async () => {
        throw new RateLimitedError(rig.shortMs * 8)
      })
      let held = false
      worker.on('held', () => {
        held = true
      })
      await rig.drive(worker.enqueue('limited', 1))
      await rig.until('it is held', () => held)
      const runner = await rig.queue<number, string>({ resultTTL: rig.shortMs })
      let ran = false
      const handler = async () => {
        ran = true
        return 'x'
      }
      t.equal((await rig.refusal(runner.run('id', 1, handler, { timeout: rig.shortMs }))).code, 'ASKONCE_TIMEOUT')
      await rig.drive(worker.stop())
      const other = await rig.worker<number, string>(async ({ id }) => {
        t.equal(id, 'limited')
        return 'x'
      })
      await rig.until('the hold ends', () => other.counters.completed === 1)
      await rig.advance(rig.shortMs * 2)
      t.equal(ran, false)
      t.equal(await rig.drive(other.getStatus('id')), null)
    },
  },
  {
    name: 'run() of an id that a worker has, that is delayed, failing, completed or failed',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(handler.handle, { concurrency: 4, maxAttempts: 2, retry: () => rig.shortMs * 2 })
      const runner = await rig.queue<number, string>()
      const never = async () => t.fail('must not run') as never
      await rig.drive(worker.enqueue('running', 1))
      await rig.until('it starts', () => handler.calls.length === 1)
      const run = runner.run('running', 1, never, patient)
      await rig.calm()
      handler.calls[0]!.end.open('worker’s')
      t.equal(await rig.drive(run), 'worker’s')
      worker.pause()
      await rig.drive(worker.enqueue('queued', 1))
      t.equal(
        await rig.drive(runner.run('queued', 1, async () => 'runner’s', patient)),
        'runner’s',
        'due: taken at once',
      )
      await rig.drive(worker.enqueue('delayed', 1, { delay: rig.shortMs }))
      const before = rig.clock.monotonic()
      t.equal(await rig.drive(runner.run('delayed', 1, async () => 'runner’s', patient)), 'runner’s')
      t.ok(rig.clock.monotonic() - before >= rig.shortMs - 20, 'not before its time')
      worker.resume()
      await rig.drive(worker.enqueue('failing', 1))
      await rig.until('it starts', () => handler.calls.length === 2)
      handler.calls[1]!.end.fail(new Error('once'))
      await rig.until('it fails', async () => (await worker.getStatus('failing'))?.state === 'failing')
      worker.pause()
      const attempt = async ({ attempts }: Job<number>) => `attempt ${attempts}`
      t.equal(await rig.drive(runner.run('failing', 1, attempt, patient)), 'attempt 2')
      t.equal(await rig.drive(runner.run('failing', 1, never, patient)), 'attempt 2')
    },
  },
  {
    name: 'timeout and signal end the caller’s wait, not its handler: the outcome is stored for others',
    async run(t, rig) {
      const queue = await rig.queue<number, string>()
      const handler = new ManualHandler<number, string>()
      const timedOut = await rig.refusal(queue.run('a', 1, handler.handle, { timeout: rig.shortMs }))
      t.equal(timedOut.code, 'ASKONCE_TIMEOUT')
      const controller = new AbortController()
      const aborted = queue.run('b', 1, handler.handle, { signal: controller.signal })
      await rig.until('it starts', () => handler.calls.length === 2)
      const reason = new Error('enough')
      controller.abort(reason)
      t.equal(await rig.refusal(aborted), reason)
      for (const { job, end } of handler.calls) {
        t.equal(job.signal.aborted, false)
        end.open(job.id)
      }
      const again = async () => t.fail('must not run') as never
      t.equal(await rig.drive(queue.run('a', 1, again, patient)), 'a')
      t.equal(await rig.drive(queue.enqueueAndWait('b', 1, patient)), 'b')
    },
  },
  {
    name: 'stop() with a run under way: the handler finishes within stopTimeout and the caller gets its answer',
    async run(t, rig) {
      const queue = await rig.queue<number, string>({ stopTimeout: 1_000_000 })
      const handler = new ManualHandler<number, string>()
      const run = queue.run('id', 1, handler.handle, patient)
      await rig.until('it starts', () => handler.calls.length === 1)
      const stopped = queue.stop()
      await rig.calm()
      handler.calls[0]!.end.open('answer')
      t.equal(await rig.drive(run), 'answer')
      await rig.drive(stopped)
    },
  },
  {
    name: 'stop() beyond its grace with a run under way: the caller is told StoppedError, promptly; the attempt is given back',
    async run(t, rig) {
      for (let turn = 0; turn < 5; turn++) {
        const queue = await rig.queue<number, string>({ stopTimeout: rig.shortMs, name: `stop ${turn}` })
        const handler = new ManualHandler<number, string>()
        const refusal = rig.refusal(queue.run('id', 1, handler.handle, { timeout: Number.POSITIVE_INFINITY }))
        await rig.until('it starts', () => handler.calls.length === 1)
        await rig.drive(queue.stop())
        t.match(await refusal, { code: 'ASKONCE_STOPPED' })
        t.match(handler.calls[0]!.job.signal.reason, { code: 'ASKONCE_STOPPED' })
        const other = await rig.queue<number, string>({ name: `stop ${turn}` })
        const attempt = async ({ attempts }: Job<number>) => `attempt ${attempts}`
        t.equal(await rig.drive(other.run('id', 1, attempt, patient)), 'attempt 1')
        handler.calls[0]!.end.open('late')
        await rig.calm()
      }
    },
  },
  {
    name: 'the reply to the leasing enqueue is lost twice: the caller is told; the job is free when the lease ends',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.queue<number, string>({ storage })
      storage.on('enqueue', failAfter(), 2)
      let runs = 0
      const handler = async () => `run ${++runs}`
      t.equal((await rig.refusal(queue.run('id', 1, handler, patient))).code, 'ASKONCE_STORAGE')
      t.equal(runs, 0)
      t.equal(await rig.drive(queue.run('id', 1, handler, patient)), 'run 1')
    },
  },
  {
    name: 'a retry of run() starts when its back-off ends, not at a later poll',
    async run(t, rig) {
      if (!rig.prompt) return
      const queue = await rig.queue<number, string>({ retry: () => 100 })
      const starts: number[] = []
      const handler = async ({ attempts }: Job<number>) => {
        starts.push(rig.clock.monotonic())
        if (attempts < 3) throw new Error('again')
        return 'done'
      }
      t.equal(await rig.drive(queue.run('id', 1, handler, patient)), 'done')
      for (let n = 1; n < 3; n++) {
        const between = starts[n]! - starts[n - 1]!
        t.ok(between >= 100 && between <= 120, `${between} ms`)
      }
    },
  },
  {
    name: 'a run’s record cancelled while it waits between attempts: JobCancelledError',
    async run(t, rig) {
      const queue = await rig.queue<number, string>({ retry: () => 1_000_000 })
      const other = await rig.queue<number, string>()
      const failing = async () => {
        throw new Error('again')
      }
      const refusal = rig.refusal(queue.run('id', 1, failing, { timeout: 10_000_000 }))
      await rig.until('it fails', () => queue.counters.retried === 1)
      t.match(await rig.drive(other.cancel('id')), { status: 'cancelled' })
      const code = rig.prompt ? 'ASKONCE_JOB_CANCELLED' : /^ASKONCE_(JOB_CANCELLED|RESULT_GONE)$/
      t.match((await refusal).code, code)
    },
  },
  {
    name: 'a long run keeps its lease; its generation is new with each run',
    async run(t, rig) {
      const [a, b] = [await rig.queue<number, string>(), await rig.queue<number, string>()]
      const slow = gate<string>()
      const generations: string[] = []
      const run = a.run(
        'id',
        1,
        (job) => {
          generations.push(job.generation)
          return slow.promise
        },
        { ...patient, resultTTL: rig.shortMs },
      )
      await rig.until('it starts', () => generations.length === 1)
      const wait = b.run('id', 1, async () => t.fail('must not run') as never, patient)
      await rig.advance(rig.leaseMs * 3)
      slow.open('slow')
      t.equal(await rig.drive(run), 'slow')
      t.equal(await rig.drive(wait), 'slow')
      await rig.advance(rig.shortMs * 1.5)
      await rig.drive(
        a.run('id', 1, async (job) => {
          generations.push(job.generation)
          return ''
        }),
      )
      t.equal(new Set(generations).size, 2)
    },
  },
  {
    name: 'a run whose first reply is lost asks again as it was, and runs at once: nobody waits for a lease to end',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.queue<number, string>({ storage, maxAttempts: 1 })
      storage.on('enqueue', failAfter())
      t.equal(await rig.drive(queue.run('id', 1, async () => 'answer', patient)), 'answer')
      t.equal(storage.count('enqueue'), 2)
      t.equal(queue.counters.executed, 1)
    },
  },
]
