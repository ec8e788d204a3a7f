/** cancel: one atomic step, whose answer says exactly what happened. */

import { ManualHandler, type Scenario } from '../../support/queue-rig.ts'

export const cancelling: readonly Scenario[] = [
  {
    name: 'case 21, seed 004: cancel answers by state: not_found, cancelled, processing, completed, failed; errors are kept',
    async run(t, rig) {
      const handler = new ManualHandler<number, number>()
      const worker = await rig.queue({ maxAttempts: 1, concurrency: 2 })
      const cancelled: unknown[] = []
      worker.on('cancelled', (event) => cancelled.push(event))
      t.strictSame(await rig.drive(worker.cancel('id')), { status: 'not_found' })
      await rig.drive(worker.enqueue('id', 1))
      t.strictSame(await rig.drive(worker.cancel('id')), { status: 'cancelled' })
      t.strictSame(await rig.drive(worker.cancel('id')), { status: 'not_found' })
      worker.execute(handler.handle)
      await rig.drive(worker.start())
      await rig.drive(worker.enqueue('good', 1))
      await rig.drive(worker.enqueue('bad', 1))
      await rig.until('they start', () => handler.calls.length === 2)
      t.strictSame(await worker.cancel('good'), { status: 'processing' })
      t.equal(handler.calls[0]!.job.signal.aborted, false)
      handler.calls[0]!.end.open(1)
      handler.calls[1]!.end.fail(new Error('kept'))
      await rig.until('they end', async () => (await worker.getStatus('bad'))?.state === 'failed')
      t.strictSame(await worker.cancel('good'), { status: 'completed' })
      t.equal(await worker.getResult('good'), 1)
      t.strictSame(await worker.cancel('bad'), { status: 'failed' })
      t.equal((await worker.getStatus('bad'))?.error?.message, 'kept')
      t.strictSame(cancelled, [{ id: 'id' }])
    },
  },
  {
    name: 'hibiken/asynq#275: cancel frees the id at once; the new payload runs, the old one never does',
    async run(t, rig) {
      const seen: string[] = []
      const queue = await rig.queue<string, number>()
      await rig.drive(queue.enqueue('job-123', 'old', { delay: rig.shortMs }))
      t.strictSame(await rig.drive(queue.cancel('job-123')), { status: 'cancelled' })
      t.strictSame(await rig.drive(queue.enqueue('job-123', 'new')), { status: 'queued' })
      queue.execute(async ({ payload }) => seen.push(payload))
      await rig.drive(queue.start())
      await rig.until('it ran', () => seen.length > 0)
      await rig.advance(rig.shortMs * 2)
      t.strictSame(seen, ['new'])
    },
  },
  {
    name: 'cancel of a failing job: cancelled, and it is not tried again',
    async run(t, rig) {
      let runs = 0
      const worker = await rig.worker(
        async () => {
          runs++
          throw new Error('no')
        },
        { retry: () => rig.shortMs },
      )
      await rig.drive(worker.enqueue('id', 1))
      await rig.until('it fails', async () => (await worker.getStatus('id'))?.state === 'failing')
      t.strictSame(await worker.cancel('id'), { status: 'cancelled' })
      await rig.advance(rig.shortMs * 2)
      t.equal(runs, 1)
      t.equal(await rig.drive(worker.getStatus('id')), null)
    },
  },
  {
    name: 'case 19: cancel races the claim, 300 times: cancelled exactly if it never runs',
    async run(t, rig) {
      const ran = new Set<string>()
      const a = await rig.worker(async ({ id }) => ran.add(id).size, { concurrency: 3 })
      const b = await rig.worker(async ({ id }) => ran.add(id).size, { concurrency: 3 })
      const canceller = await rig.queue()
      const statuses = new Map<string, string>()
      const jobs = Array.from({ length: 300 }, async (_, n) => {
        const id = `id-${n}`
        await (n % 2 === 0 ? a : b).enqueue(id, n)
        for (let turn = 0; turn < n % 4; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
        statuses.set(id, (await canceller.cancel(id)).status)
      })
      await rig.drive(Promise.all(jobs))
      await rig.until('all are done', async () => {
        const left = await Promise.all([...statuses.keys()].map((id) => canceller.getStatus(id)))
        return left.every((status) => status === null || status.state === 'completed')
      })
      await rig.calm()
      const kinds = new Set(statuses.values())
      if (rig.prompt) {
        t.ok(kinds.has('cancelled'), 'some were cancelled')
        t.ok(kinds.has('processing') || kinds.has('completed'), 'some were too late')
      }
      for (const [id, status] of statuses) {
        if (ran.has(id) === (status === 'cancelled')) t.fail(`${id}: ${status}, ran: ${ran.has(id)}`)
      }
    },
  },
]
