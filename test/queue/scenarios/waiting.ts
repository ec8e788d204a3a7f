/** enqueueAndWait: whoever asks gets the answer, or is told promptly and clearly why not. */

import { gate, ManualHandler, type Scenario } from '../../support/queue-rig.ts'
import { callAfter, failBefore, replyAfter } from '../support/faulty-storage.ts'

export const waiting: readonly Scenario[] = [
  {
    name: 'case 29: two waiters on one id, the first times out; the second resolves, and the job went on',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(handler.handle)
      const first = worker.enqueueAndWait('id', 1, { timeout: rig.shortMs })
      const second = worker.enqueueAndWait('id', 1, { timeout: 1_000_000 })
      const error = await rig.refusal(first)
      t.match(error, { name: 'TimeoutError', code: 'ASKONCE_TIMEOUT' })
      t.match(error.message, String(rig.shortMs))
      t.equal((await rig.drive(worker.getStatus('id')))?.state, 'processing')
      handler.calls[0]!.end.open('answer')
      t.equal(await rig.drive(second), 'answer')
    },
  },
  {
    name: 'case 30: a resultTTL shorter than the delivery: the result, or a clear error, never a time-out',
    async run(t, rig) {
      const worker = await rig.worker(async () => 'answer', { resultTTL: 1 })
      const { storage } = await rig.process()
      storage.onHint = () => []
      const deaf = await rig.queue({ storage, resultTTL: 1 })
      const outcomes = await rig.drive(
        Promise.all(
          [worker, deaf].map((queue, n) =>
            queue.enqueueAndWait(`id-${n}`, 1, { timeout: 100_000 }).catch((error) => error.code as string),
          ),
        ),
      )
      for (const outcome of outcomes) t.ok(['answer', 'ASKONCE_RESULT_GONE'].includes(outcome), outcome)
      if (rig.prompt) t.strictSame(outcomes, ['answer', 'ASKONCE_RESULT_GONE'])
    },
  },
  {
    name: 'case 31: stop() with waiters rejects them promptly and clearly; the job is kept',
    async run(t, rig) {
      const queue = await rig.queue()
      const waits = ['a', 'a', 'b'].map((id) => queue.enqueueAndWait(id, 1, { timeout: Number.POSITIVE_INFINITY }))
      const refusals = waits.map((wait) => wait.then(t.fail, (error) => error))
      await rig.until('they are queued', async () => (await queue.getStatus('b')) !== null)
      await rig.drive(queue.stop())
      for (const error of await Promise.all(refusals)) t.match(error, { name: 'StoppedError', code: 'ASKONCE_STOPPED' })
      const other = await rig.queue()
      t.equal((await rig.drive(other.getStatus('a')))?.state, 'queued')
    },
  },
  {
    name: 'stop() tells waiters at once, however long the jobs under way still take',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(handler.handle, { stopTimeout: 1_000_000 })
      const refusal = rig.refusal(worker.enqueueAndWait('id', 1, { timeout: 2_000_000 }))
      await rig.until('it starts', () => handler.calls.length === 1)
      const before = rig.clock.monotonic()
      const stopped = worker.stop()
      t.match(await refusal, { code: 'ASKONCE_STOPPED' })
      t.ok(rig.clock.monotonic() - before < 1_000)
      handler.calls[0]!.end.open('done')
      await rig.drive(stopped)
      t.equal(worker.counters.completed, 1)
    },
  },
  {
    name: 'case 20: a waiter on a cancelled job is told JobCancelledError, promptly, whoever cancels',
    async run(t, rig) {
      // Where the hint may get lost, all that can be told is that the record is gone.
      const code = rig.prompt ? 'ASKONCE_JOB_CANCELLED' : /^ASKONCE_(JOB_CANCELLED|RESULT_GONE)$/
      const asker = await rig.queue()
      const other = await rig.queue()
      const wait = asker.enqueueAndWait('id', 1, { timeout: 1_000_000 })
      const run = asker.enqueueAndWait('id', 1, { timeout: 1_000_000 })
      await rig.until('it is queued', async () => (await other.getStatus('id')) !== null)
      const before = rig.clock.monotonic()
      const refusals = [rig.refusal(wait), rig.refusal(run)]
      t.strictSame(await rig.drive(other.cancel('id')), { status: 'cancelled' })
      for (const error of await Promise.all(refusals)) {
        t.match(error, { code, id: 'id' })
      }
      t.ok(rig.clock.monotonic() - before < 1_000, 'promptly')
    },
  },
  {
    name: 'a job cancelled and enqueued anew: who waited for the old one is not told the new one’s result',
    async run(t, rig) {
      const queue = await rig.queue<string, string>()
      const old = queue.enqueueAndWait('id', 'old', { timeout: 1_000_000 })
      await rig.until('it is queued', async () => (await queue.getStatus('id')) !== null)
      await rig.drive(queue.cancel('id'))
      const fresh = queue.enqueueAndWait('id', 'new', { timeout: 1_000_000 })
      const refusal = rig.refusal(old)
      queue.execute(async ({ payload }) => payload)
      await rig.drive(queue.start())
      t.match((await refusal).code, rig.prompt ? 'ASKONCE_JOB_CANCELLED' : /^ASKONCE_(JOB_CANCELLED|RESULT_GONE)$/)
      t.equal(await rig.drive(fresh), 'new')
    },
  },
  {
    name: 'taskforcesh/bullmq#85: instant handlers, 500 ids at once: 0 time-outs',
    async run(t, rig) {
      const worker = await rig.worker<number, number>(({ payload }) => payload * 2, { concurrency: 50 })
      const results = await rig.drive(
        Promise.all(Array.from({ length: 500 }, (_, n) => worker.enqueueAndWait(`id-${n}`, n))),
      )
      t.strictSame(
        results,
        Array.from({ length: 500 }, (_, n) => n * 2),
      )
    },
  },
  {
    name: 'waits resolve with the result whoever enqueued the job, whenever it finished, without another run',
    async run(t, rig) {
      let runs = 0
      const worker = await rig.worker(async () => `run ${++runs}`)
      const asker = await rig.queue()
      await rig.drive(asker.enqueue('id', 1))
      t.equal(await rig.drive(asker.enqueueAndWait('id', 1)), 'run 1')
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1)), 'run 1')
      await rig.advance(rig.shortMs)
      t.equal(await rig.drive(asker.enqueueAndWait('id', 1)), 'run 1')
      t.equal(runs, 1)
      t.ok(asker.counters.replayed >= 1)
    },
  },
  {
    name: 'case 26: of a failure, waiters, late waiters and getStatus are told the same name, message, code and causes',
    async run(t, rig) {
      class OutOfPaper extends Error {
        override name = 'OutOfPaper'
        code = 'E_PAPER'
        details = { tray: 2 }
      }
      const worker = await rig.worker(
        async () => {
          throw new OutOfPaper('tray 2 is empty', { cause: new TypeError('no sheet', { cause: 'string cause' }) })
        },
        { maxAttempts: 2, retry: () => 1 },
      )
      const asker = await rig.queue({ maxAttempts: 2 })
      const early = await rig.refusal(asker.enqueueAndWait('id', 1))
      const late = await rig.refusal(asker.enqueueAndWait('id', 1))
      const inline = await rig.refusal(asker.run('id', 1, async () => t.fail('a failed job is not run again')))
      const status = (await rig.drive(asker.getStatus('id')))!
      for (const error of [early, late, inline]) {
        t.match(error, { name: 'JobFailedError', code: 'ASKONCE_JOB_FAILED', id: 'id', attempts: 2 })
        t.match(error.message, 'tray 2 is empty')
      }
      for (const cause of [early.cause, late.cause, inline.cause, status.error as any]) {
        t.ok(cause instanceof Error)
        t.match(cause, { name: 'OutOfPaper', message: 'tray 2 is empty', code: 'E_PAPER', details: { tray: 2 } })
        t.match(cause.cause, { name: 'TypeError', message: 'no sheet' })
        t.match(cause.cause.cause, { message: 'string cause' })
      }
      t.match(status, { attempts: 2, maxAttempts: 2 })
      t.ok(status.createdAt <= status.settledAt!)
      t.equal(worker.counters.executed, 2)
    },
  },
  {
    name: 'a signal: aborted before, nothing is written; aborted while waiting, its reason is thrown and the job goes on',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(handler.handle)
      const reason = new Error('enough')
      t.equal(await rig.refusal(worker.enqueueAndWait('id', 1, { signal: AbortSignal.abort(reason) })), reason)
      t.equal(await rig.refusal(worker.run('id', 1, async () => 'x', { signal: AbortSignal.abort(reason) })), reason)
      t.equal(await rig.drive(worker.getStatus('id')), null)
      const controller = new AbortController()
      const wait = worker.enqueueAndWait('id', 1, { signal: controller.signal })
      await rig.until('it starts', () => handler.calls.length === 1)
      controller.abort(reason)
      t.equal(await rig.refusal(wait), reason)
      t.equal(handler.calls[0]!.job.signal.aborted, false)
      handler.calls[0]!.end.open('answer')
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1)), 'answer')
    },
  },
  {
    name: 'case 49: an infinite wait waits',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(handler.handle)
      const wait = worker.enqueueAndWait('id', 1, { timeout: Number.POSITIVE_INFINITY })
      await rig.until('it starts', () => handler.calls.length === 1)
      await rig.advance(rig.virtual ? 400_000 : rig.shortMs)
      handler.calls[0]!.end.open('answer')
      t.equal(await rig.drive(wait), 'answer')
    },
  },
  {
    name: 'hints are hints: lost, doubled, or late, every wait is answered right, once',
    async run(t, rig) {
      const worker = await rig.worker<number, number>(({ payload }) => payload + 1, { concurrency: 5 })
      const late: (() => void)[] = []
      for (const kind of ['lost', 'doubled', 'late', 'needless']) {
        const { storage } = await rig.process()
        storage.onHint = (hint) => {
          if (kind === 'lost') return []
          if (kind === 'doubled') return [hint, hint]
          if (kind === 'late' && hint.type === 'settled') return []
          if (kind === 'needless') return [{ type: 'settled', id: 'id-3' }, { type: 'due', inMs: 0 }, hint]
          return [hint]
        }
        const asker = await rig.queue({ storage })
        const waits = Array.from({ length: 20 }, (_, n) =>
          asker.enqueueAndWait(`${kind}-${n}`, n, { timeout: 1_000_000 }),
        )
        t.strictSame(
          await rig.drive(Promise.all(waits)),
          Array.from({ length: 20 }, (_, n) => n + 1),
          kind,
        )
      }
      t.equal(late.length, 0)
      t.equal(worker.counters.executed, 80)
    },
  },
  {
    name: 'a hint that tells of another record of the same id answers nobody',
    async run(t, rig) {
      const { storage } = await rig.process()
      const asker = await rig.queue({ storage })
      const worker = await rig.worker<string, string>(({ payload }) => payload)
      let foreign: unknown
      storage.onHint = (hint) => {
        if (hint.type === 'settled') foreign ??= hint
        return foreign === undefined ? [hint] : [foreign as typeof hint, hint]
      }
      t.equal(await rig.drive(asker.enqueueAndWait('id', 'first', { resultTTL: 1 }).catch(() => 'first')), 'first')
      await rig.advance(rig.virtual ? 1 : 30)
      worker.pause()
      await rig.calm()
      const second = asker.enqueueAndWait('id', 'second', { timeout: 1_000_000, resultTTL: 1_000_000 })
      await rig.calm()
      await rig.until('it is queued', async () => (await worker.getStatus('id'))?.state === 'queued')
      worker.resume()
      t.equal(await rig.drive(second), 'second')
    },
  },
  {
    name: 'a storage that does not answer the enqueue: the wait times out all the same',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.queue({ storage })
      const late = gate()
      storage.on('enqueue', callAfter(late.promise))
      const error = await rig.refusal(queue.enqueueAndWait('id', 1, { timeout: rig.shortMs }))
      t.equal(error.code, 'ASKONCE_TIMEOUT')
      late.open()
    },
  },
  {
    name: 'polls that fail are told as errors and repeated; the wait is answered',
    async run(t, rig) {
      const { storage } = await rig.process()
      storage.onHint = () => []
      const asker = await rig.queue({ storage })
      storage.on('get', failBefore(), 3)
      const worker = await rig.worker(async () => 'answer')
      t.equal(await rig.drive(asker.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'answer')
      t.equal(rig.takeErrors().length, 3)
      t.equal(worker.counters.executed, 1)
    },
  },
  {
    name: 'a poll that read before the enqueue was answered says nothing about the new record',
    async run(t, rig) {
      const { storage } = await rig.process()
      storage.onHint = () => []
      const asker = await rig.queue({ storage })
      const slowGet = gate()
      const slowEnqueue = gate()
      storage.on('get', replyAfter(slowGet.promise))
      storage.on('enqueue', callAfter(slowEnqueue.promise))
      const wait = asker.enqueueAndWait('id', 1, { timeout: 1_000_000 })
      const outcome = wait.then(
        (result) => result,
        (error) => error,
      )
      await rig.until('a poll has read nothing', () => storage.count('get') === 1)
      slowEnqueue.open()
      await rig.calm()
      slowGet.open()
      await rig.calm()
      await rig.worker(async () => 'answer')
      t.equal(await rig.drive(outcome), 'answer')
    },
  },
  {
    name: 'a waiter is told when the job’s attempts run out without a verdict',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const handler = new ManualHandler()
      const doomed = await rig.worker(handler.handle, { storage, clock, maxAttempts: 1 })
      const asker = await rig.queue()
      const wait = asker.enqueueAndWait('id', 1, { timeout: 1_000_000, maxAttempts: 1 })
      const refusal = rig.refusal(wait)
      await rig.until('it starts', () => handler.calls.length === 1)
      clock.stall()
      storage.down()
      const healthy = await rig.worker(async () => t.fail('it must not run a second time'))
      const failures: unknown[] = []
      healthy.on('failed', (event) => failures.push(event))
      const error = await refusal
      t.equal(error.code, 'ASKONCE_JOB_FAILED')
      t.match(error.cause, { name: 'AttemptsExhaustedError', code: 'ASKONCE_ATTEMPTS_EXHAUSTED' })
      t.match((await healthy.getStatus('id'))?.error, { code: 'ASKONCE_ATTEMPTS_EXHAUSTED' })
      t.equal(failures.length, 1)
      storage.up()
      clock.resume()
      handler.calls[0]!.end.open(1)
      await rig.until('the late verdict is refused', () => doomed.counters.stale_ignored === 1)
      rig.takeErrors()
    },
  },
]
