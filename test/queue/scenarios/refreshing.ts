/** refresh: a deliberate new run, while the old result stays readable. */

import { UnrecoverableError } from '../../../src/errors.ts'
import { ManualHandler, type QueueRig, type Scenario } from '../../support/queue-rig.ts'

const patient = { timeout: 1_000_000 }
const refresh = { refresh: true, ...patient }

/** A worker whose job `id` has the result `old`, and a second one under way. */
async function refreshed(rig: QueueRig) {
  const handler = new ManualHandler<number, string>()
  const worker = await rig.worker<number, string>(handler.handle, { maxAttempts: 1 })
  const first = worker.enqueueAndWait('id', 1, patient)
  await rig.until('it starts', () => handler.calls.length === 1)
  handler.calls[0]!.end.open('old')
  await rig.drive(first)
  const second = worker.enqueueAndWait('id', 2, refresh)
  await rig.until('it starts anew', () => handler.calls.length === 2)
  return { worker, handler, second, end: handler.calls[1]!.end, job: handler.calls[1]!.job }
}

export const refreshing: readonly Scenario[] = [
  {
    name: 'refresh runs a completed job anew, with its new payload; until it ends everyone else gets the old result',
    async run(t, rig) {
      const { worker, second, end, job } = await refreshed(rig)
      const other = await rig.queue<number, string>()
      t.match(job, { payload: 2, attempts: 1 })
      t.equal(await rig.drive(other.getResult('id')), 'old')
      t.strictSame(await rig.drive(other.enqueue('id', 1)), { status: 'completed', result: 'old' })
      t.equal(await rig.drive(other.enqueueAndWait('id', 1)), 'old')
      t.equal(await rig.drive(other.run('id', 1, async () => t.fail('must not run') as never)), 'old')
      const status = await rig.drive(other.getStatus('id'))
      t.match(status, { state: 'processing', attempts: 1, previous: { result: 'old' } })
      t.ok(status!.previous!.expiresAt > status!.previous!.settledAt)
      t.match(
        await rig.drive(
          other.enqueueMany([
            { id: 'id', payload: 1 },
            { id: 'id', payload: 1, refresh: true },
          ]),
        ),
        [
          { status: 'completed', result: 'old' },
          { status: 'duplicate', existingState: 'processing' },
        ],
      )
      end.open('new')
      t.equal(await rig.drive(second), 'new')
      t.equal(await rig.drive(other.getResult('id')), 'new')
      t.match(worker.counters, { claimed: 2, executed: 2 }, 'counted as a run of its own')
    },
  },
  {
    name: 'of many that refresh at once one makes the job and the others join it',
    async run(t, rig) {
      let runs = 0
      const worker = await rig.worker<number, number>(async () => ++runs)
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1, patient)), 1)
      const queues = await Promise.all(Array.from({ length: 4 }, () => rig.queue<number, number>()))
      worker.pause()
      const answers = await rig.drive(
        Promise.all(Array.from({ length: 200 }, (_, n) => queues[n % 4]!.enqueue('id', 1, { refresh: true }))),
      )
      t.equal(answers.filter(({ status }) => status === 'queued').length, 1)
      t.equal(answers.filter(({ status }) => status === 'duplicate').length, 199)
      worker.resume()
      await rig.until('it ran again', () => runs === 2)
    },
  },
  {
    name: 'inline, too: one caller runs, others that refresh get its answer, the rest the old one',
    async run(t, rig) {
      const [first, other] = [await rig.queue<number, string>(), await rig.queue<number, string>()]
      t.equal(await rig.drive(first.run('id', 1, async () => 'old', patient)), 'old')
      const handler = new ManualHandler<number, string>()
      const run = first.run('id', 1, handler.handle, refresh)
      await rig.until('it starts', () => handler.calls.length === 1)
      t.equal(await rig.drive(other.run('id', 1, async () => 'not me')), 'old')
      const joined = other.run('id', 1, async () => 'not me', refresh)
      await rig.calm()
      handler.calls[0]!.end.open('new')
      t.equal(await rig.drive(run), 'new')
      t.equal(await rig.drive(joined), 'new')
    },
  },
  {
    name: 'a refresh that fails leaves the old result; who asked for it gets the error, and status tells it',
    async run(t, rig) {
      const { worker, second, end } = await refreshed(rig)
      const other = await rig.queue<number, string>()
      const joined = rig.refusal(other.enqueueAndWait('id', 1, refresh))
      await rig.calm()
      end.fail(new UnrecoverableError('no'))
      t.match(await rig.refusal(second), { code: 'ASKONCE_JOB_FAILED', cause: { message: 'no' } })
      t.match(await joined, { code: 'ASKONCE_JOB_FAILED', cause: { message: 'no' } })
      t.equal(await rig.drive(worker.getResult('id')), 'old')
      t.strictSame(await rig.drive(worker.enqueue('id', 1)), { status: 'completed', result: 'old' })
      t.match(await rig.drive(worker.getStatus('id')), { state: 'completed', result: 'old', error: { message: 'no' } })
      t.match(await rig.drive(worker.enqueue('id', 3, { refresh: true })), { status: 'queued' }, 'and again')
    },
  },
  {
    name: 'inline, a refresh that fails throws, and leaves the old result',
    async run(t, rig) {
      const queue = await rig.queue<number, string>({ maxAttempts: 1 })
      await rig.drive(queue.run('id', 1, async () => 'old', patient))
      const failed = queue.run('id', 1, () => Promise.reject(new Error('no')), refresh)
      t.match(await rig.refusal(failed), { code: 'ASKONCE_JOB_FAILED', cause: { message: 'no' } })
      t.equal(await rig.drive(queue.getResult('id')), 'old')
    },
  },
  {
    name: 'a refresh that is cancelled leaves the old result; who waits for it is told',
    async run(t, rig) {
      const worker = await rig.worker<number, string>(async () => 'old')
      await rig.drive(worker.enqueueAndWait('id', 1, patient))
      worker.pause()
      const waiting = rig.refusal(worker.enqueueAndWait('id', 2, refresh))
      await rig.until('it is queued', async () => (await worker.getStatus('id'))?.state === 'queued')
      t.strictSame(await rig.drive(worker.cancel('id')), { status: 'cancelled' })
      t.match(await waiting, { code: 'ASKONCE_JOB_CANCELLED' })
      t.match(await rig.drive(worker.getStatus('id')), { state: 'completed', result: 'old' })
    },
  },
  {
    name: 'the old result ends with its own TTL, whatever becomes of the refresh',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker<number, string>(handler.handle, { maxAttempts: 1 })
      const first = worker.enqueueAndWait('id', 1, { ...patient, resultTTL: rig.shortMs * 3 })
      await rig.until('it starts', () => handler.calls.length === 1)
      handler.calls[0]!.end.open('old')
      await rig.drive(first)
      await rig.drive(worker.enqueue('id', 2, { refresh: true }))
      await rig.until('it starts anew', () => handler.calls.length === 2)
      await rig.advance(rig.shortMs * 4)
      t.equal(await rig.drive(worker.getResult('id')), null)
      t.strictSame(await rig.drive(worker.enqueue('id', 1)), { status: 'duplicate', existingState: 'processing' })
      handler.calls[1]!.end.fail(new Error('no'))
      await rig.until('it fails', async () => (await worker.getStatus('id'))?.state === 'failed')
    },
  },
  {
    name: 'a failed job is run anew by a refresh; what has not ended is joined; what is unknown is made',
    async run(t, rig) {
      let runs = 0
      const worker = await rig.worker<number, number>(
        async () => {
          if (++runs === 1) throw new Error('once')
          return runs
        },
        { maxAttempts: 1 },
      )
      t.match(await rig.refusal(worker.enqueueAndWait('id', 1, refresh)), { code: 'ASKONCE_JOB_FAILED' })
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1, refresh)), 2)
      worker.pause()
      t.strictSame(await rig.drive(worker.enqueue('new', 1, { refresh: true })), { status: 'queued' })
      t.strictSame(await rig.drive(worker.enqueue('new', 1, { refresh: true })), {
        status: 'duplicate',
        existingState: 'queued',
      })
    },
  },
  {
    name: 'refresh is a boolean, and is refused otherwise before anything is written',
    async run(t, rig) {
      const queue = await rig.queue<number, number>()
      const bad = { refresh: 'yes' } as unknown as { refresh: boolean }
      t.match(await rig.refusal(queue.enqueue('id', 1, bad)), {
        code: 'ASKONCE_INVALID_ARGUMENT',
        field: 'options.refresh',
      })
      t.equal(await rig.drive(queue.getStatus('id')), null)
    },
  },
]
