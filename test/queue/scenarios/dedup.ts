/** One record an id: who is told `queued`, what the others are told, and for how long. */

import { PayloadMismatchError } from '../../../src/errors.ts'
import type { Queue } from '../../../src/queue.ts'
import { gate, ManualHandler, type Scenario } from '../../support/queue-rig.ts'
import { failBefore } from '../support/faulty-storage.ts'

export const dedup: readonly Scenario[] = [
  {
    name: 'case 36, graphile/worker#580: one id enqueued at once by 200 callers in 4 processes is queued once and runs once',
    async run(t, rig) {
      let runs = 0
      const worker = await rig.worker(async () => ++runs)
      const queues = await Promise.all(Array.from({ length: 4 }, () => rig.queue()))
      const answers = await rig.drive(
        Promise.all(Array.from({ length: 200 }, (_, n) => queues[n % 4]!.enqueue('one', { n: 1 }))),
      )
      t.equal(answers.filter(({ status }) => status === 'queued').length, 1)
      t.equal(answers.filter(({ status }) => status !== 'queued').length, 199)
      await rig.until('it completes', async () => (await worker.getStatus('one'))?.state === 'completed')
      await rig.advance(rig.leaseMs * 3)
      t.equal(runs, 1)
      t.equal(
        queues.reduce((sum, queue) => sum + queue.counters.claimed, 0),
        1,
      )
      t.equal(
        queues.reduce((sum, queue) => sum + queue.counters.deduped, 0),
        199,
      )
    },
  },
  {
    name: 'case 50: 100 concurrent enqueues of 100 ids: none hang, all are queued',
    async run(t, rig) {
      const queue = await rig.queue()
      const answers = await rig.drive(Promise.all(Array.from({ length: 100 }, (_, n) => queue.enqueue(`id-${n}`, n))))
      t.ok(answers.every(({ status }) => status === 'queued'))
      t.equal((await rig.drive(queue.stats())).queued ?? 100, 100)
    },
  },
  {
    name: 'taskforcesh/bullmq#458: a bulk of [a, a, b] makes 2 runs and answers a status an item',
    async run(t, rig) {
      const seen: string[] = []
      const worker = await rig.worker(async ({ id }) => seen.push(id))
      const answers = await rig.drive(
        worker.enqueueMany([
          { id: 'a', payload: 1 },
          { id: 'a', payload: 1 },
          { id: 'b', payload: 2 },
        ]),
      )
      t.strictSame(answers, [
        { status: 'queued' },
        { status: 'duplicate', existingState: 'queued' },
        { status: 'queued' },
      ])
      await rig.until('both ran', () => seen.length >= 2)
      await rig.calm()
      t.strictSame(seen.sort(), ['a', 'b'])
    },
  },
  {
    name: 'enqueueMany answers in order beyond one storage call (2,500 items), takes any iterable, and an empty one',
    async run(t, rig) {
      const queue = await rig.queue()
      function* items() {
        for (let n = 0; n < 2_500; n++) yield { id: `id-${n % 2_000}`, payload: n % 2_000 }
      }
      const answers = await rig.drive(queue.enqueueMany(items()))
      t.equal(answers.length, 2_500)
      t.ok(answers.slice(0, 2_000).every(({ status }) => status === 'queued'))
      t.ok(answers.slice(2_000).every(({ status }) => status === 'duplicate'))
      t.strictSame(await rig.drive(queue.enqueueMany([])), [])
    },
  },
  {
    name: 'OptimalBits/bull#1828, seed 004: every enqueue answers a status, in each state of the record',
    async run(t, rig) {
      const handler = new ManualHandler<string, unknown>()
      // Long enough to be seen in, even by a process that has little of the processor.
      const worker = await rig.queue<string, unknown>({ maxAttempts: 2, retry: () => 4 * rig.shortMs })
      t.strictSame(await rig.drive(worker.enqueue('email-123', 'x')), { status: 'queued' })
      t.strictSame(await rig.drive(worker.enqueue('email-123', 'x')), { status: 'duplicate', existingState: 'queued' })
      worker.execute(handler.handle)
      await rig.drive(worker.start())
      await rig.until('it starts', () => handler.calls.length === 1)
      t.strictSame(await worker.enqueue('email-123', 'x'), { status: 'duplicate', existingState: 'processing' })
      handler.calls[0]!.end.fail(new Error('first'))
      await rig.until('it fails', async () => (await worker.getStatus('email-123'))?.state === 'failing')
      t.strictSame(await worker.enqueue('email-123', 'x'), { status: 'duplicate', existingState: 'failing' })
      await rig.until('it starts again', () => handler.calls.length === 2)
      handler.calls[1]!.end.open({ sum: 15 })
      await rig.until('it completes', async () => (await worker.getStatus('email-123'))?.state === 'completed')
      t.strictSame(await worker.enqueue('email-123', 'x'), { status: 'completed', result: { sum: 15 } })
      await rig.drive(worker.enqueue('failing-job', 'y', { maxAttempts: 1 }))
      await rig.until('it starts', () => handler.calls.length === 3)
      handler.calls[2]!.end.fail(new Error('for good'))
      await rig.until('it fails', async () => (await worker.getStatus('failing-job'))?.state === 'failed')
      t.strictSame(await worker.enqueue('failing-job', 'y'), { status: 'duplicate', existingState: 'failed' })
      const status = await worker.getStatus('failing-job')
      t.match(status, { id: 'failing-job', state: 'failed', attempts: 1, maxAttempts: 1 })
      t.equal(status?.error?.message, 'for good')
      t.equal(handler.calls.length, 3)
    },
  },
  {
    name: 'results that are falsy are answers: undefined, null, 0, "", false, NaN-free, each told apart',
    async run(t, rig) {
      const results = { undefined: undefined, null: null, zero: 0, empty: '', false: false, list: [], object: {} }
      const worker = await rig.worker<string, unknown>(async ({ payload }) => results[payload as keyof typeof results])
      for (const [name, result] of Object.entries(results)) {
        t.strictSame(await rig.drive(worker.enqueueAndWait(name, name)), result)
        t.strictSame(await worker.enqueue(name, name), { status: 'completed', result })
        t.strictSame((await worker.getStatus(name))?.result, result)
        t.strictSame(await worker.getResult(name), result)
      }
    },
  },
  {
    name: 'graphile/worker#312, case 39: the same id in two queues runs in both; two queues of one name share it',
    async run(t, rig) {
      const seen: string[] = []
      const a = await rig.worker(async () => seen.push('a'), { name: 'a' })
      const b = await rig.worker(async () => seen.push('b'), { name: 'b' })
      const a2 = await rig.queue({ name: 'a' })
      t.strictSame(await rig.drive(a.enqueue('same', 1)), { status: 'queued' })
      t.strictSame(await rig.drive(b.enqueue('same', 1)), { status: 'queued' })
      await rig.until('both ran', () => seen.length === 2)
      await rig.until('a has it', async () => (await a.getStatus('same'))?.state === 'completed')
      t.match(await rig.drive(a2.enqueue('same', 1)), { status: 'completed' })
      await rig.calm()
      t.strictSame(seen.sort(), ['a', 'b'])
    },
  },
  {
    name: 'case 39: names with any characters have no crosstalk, prefixes of one another among them',
    async run(t, rig) {
      const names = ['a', 'a:', 'a:b', 'a/b', '..', 'a}', '{a}', '__proto__', 'é', 'e\u0301', '😀', ' ', 'A']
      const queues = await Promise.all(names.map((name) => rig.queue({ name })))
      for (const queue of queues) t.match(await rig.drive(queue.enqueue('id', queue.name)), { status: 'queued' })
      for (const queue of queues) {
        t.match(await rig.drive(queue.cancel('id')), { status: 'cancelled' }, queue.name)
        t.equal(await rig.drive(queue.getStatus('id')), null)
      }
    },
  },
  {
    name: 'oban-bg/oban#1093: the first enqueue’s write fails; the retry says queued, not duplicate',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.queue({ storage })
      storage.on('enqueue', failBefore())
      const error = await rig.refusal(queue.enqueue('id', 1))
      t.equal(error.code, 'ASKONCE_STORAGE')
      t.strictSame(await rig.drive(queue.enqueue('id', 1)), { status: 'queued' })
      t.equal(queue.counters.claimed, 1)
    },
  },
  {
    name: 'hibiken/asynq#492: after the failure TTL the id runs again, and not before',
    async run(t, rig) {
      let runs = 0
      const worker = await rig.worker(
        async () => {
          runs++
          throw new Error('no')
        },
        { maxAttempts: 1, failureTTL: rig.shortMs, resultTTL: 1_000_000 },
      )
      await rig.drive(worker.enqueue('id', 1))
      await rig.until('it fails', async () => (await worker.getStatus('id'))?.state === 'failed')
      if (rig.virtual) await rig.advance(rig.shortMs - 1)
      t.match(await worker.enqueue('id', 1), { status: 'duplicate', existingState: 'failed' })
      await rig.advance(rig.virtual ? 1 : rig.shortMs * 1.5)
      t.strictSame(await rig.drive(worker.enqueue('id', 1)), { status: 'queued' })
      await rig.until('it runs again', () => runs === 2)
    },
  },
  {
    name: 'agenda/agenda#1575: three leases after completion it is still one run',
    async run(t, rig) {
      let runs = 0
      const workers = await Promise.all([rig.worker(async () => ++runs), rig.worker(async () => ++runs)])
      await rig.drive(workers[0]!.enqueueAndWait('id', 1))
      await rig.advance(rig.leaseMs * 3)
      t.equal(runs, 1)
      t.match(await workers[1]!.enqueue('id', 1), { status: 'completed', result: 1 })
    },
  },
  {
    name: 'seed 004: the first accepted enqueue fixes TTL and attempts; later ones change nothing',
    async run(t, rig) {
      const queue = await rig.queue<number, number>({ retry: () => 1 })
      await rig.drive(queue.enqueue('id', 1, { resultTTL: rig.shortMs, maxAttempts: 2 }))
      await rig.drive(queue.enqueue('id', 1, { resultTTL: 1_000_000, maxAttempts: 9, delay: 1_000_000 }))
      let attempts = 0
      queue.execute(async (job) => {
        attempts = job.attempts
        t.equal(job.maxAttempts, 2)
        if (job.attempts === 1) throw new Error('once more')
        return 7
      })
      await rig.drive(queue.start())
      await rig.until('it completes', async () => (await queue.getStatus('id'))?.state === 'completed')
      t.equal(attempts, 2)
      const status = await queue.getStatus('id')
      t.equal(status!.expiresAt! - status!.settledAt!, rig.shortMs)
      await rig.advance(rig.virtual ? rig.shortMs : rig.shortMs * 1.5)
      t.equal(await rig.drive(queue.getStatus('id')), null)
      t.equal(await rig.drive(queue.getResult('id')), null)
    },
  },
  {
    name: 'TTLs: failures are kept as long as results unless failureTTL says else; the call’s before the queue’s',
    async run(t, rig) {
      const kept = async (queue: Queue<any, any>, id: string) => {
        await rig.until('it ends', async () => (await queue.getStatus(id))?.settledAt !== undefined)
        const { expiresAt, settledAt } = (await queue.getStatus(id))!
        return expiresAt! - settledAt!
      }
      const fails = async (): Promise<unknown> => {
        throw new Error('no')
      }
      const a = await rig.worker(fails, { name: 'a', maxAttempts: 1, resultTTL: 5_000 })
      await rig.drive(a.enqueue('default', 1))
      t.equal(await kept(a, 'default'), 5_000)
      await rig.drive(a.enqueue('own result', 1, { resultTTL: 6_000 }))
      t.equal(await kept(a, 'own result'), 6_000)
      await rig.drive(a.enqueue('own failure', 1, { resultTTL: 6_000, failureTTL: 7_000 }))
      t.equal(await kept(a, 'own failure'), 7_000)
      const b = await rig.worker(fails, { name: 'b', maxAttempts: 1, resultTTL: 5_000, failureTTL: 8_000 })
      await rig.drive(b.enqueue('queue’s failure', 1))
      t.equal(await kept(b, 'queue’s failure'), 8_000)
    },
  },
  {
    name: 'another payload: ignored, with an event and a counter; or rejected, leaving the record wholly alone',
    async run(t, rig) {
      const queue = await rig.queue()
      const mismatches: unknown[] = []
      queue.on('mismatch', (event) => mismatches.push(event))
      await rig.drive(queue.enqueue('id', { a: 1, b: [1, 2] }))
      t.match(await rig.drive(queue.enqueue('id', { b: [1, 2], a: 1 })), { status: 'duplicate' })
      t.equal(queue.counters.mismatched, 0, 'the order of keys makes no other payload')
      t.match(await rig.drive(queue.enqueue('id', { a: 2 })), { status: 'duplicate', existingState: 'queued' })
      t.equal(queue.counters.mismatched, 1)
      t.strictSame(mismatches, [{ id: 'id', existingState: 'queued' }])
      const error = await rig.refusal(queue.enqueue('id', { a: 3 }, { payloadMismatch: 'reject' }))
      t.type(error, PayloadMismatchError)
      t.match(error, { code: 'ASKONCE_PAYLOAD_MISMATCH', id: 'id' })
      t.equal(queue.counters.mismatched, 2)
      const waited = await rig.refusal(queue.enqueueAndWait('id', { a: 3 }, { payloadMismatch: 'reject' }))
      t.equal(waited.code, 'ASKONCE_PAYLOAD_MISMATCH')
      const ran = await rig.refusal(queue.run('id', { a: 3 }, async () => 1, { payloadMismatch: 'reject' }))
      t.equal(ran.code, 'ASKONCE_PAYLOAD_MISMATCH')
      t.equal((await rig.drive(queue.getStatus('id')))?.state, 'queued', 'a rejected run leases nothing')
      const strict = await rig.queue({ payloadMismatch: 'reject' })
      t.strictSame(
        await rig.drive(
          strict.enqueueMany([
            { id: 'id', payload: { a: 4 } },
            { id: 'id', payload: { a: 1, b: [1, 2] } },
            { id: 'id', payload: { a: 4 }, payloadMismatch: 'ignore' },
          ]),
        ),
        [
          { status: 'payload_mismatch', existingState: 'queued' },
          { status: 'duplicate', existingState: 'queued' },
          { status: 'duplicate', existingState: 'queued' },
        ],
      )
      const seen: unknown[] = []
      queue.execute(async ({ payload }) => seen.push(payload))
      await rig.drive(queue.start())
      await rig.until('it runs', () => seen.length > 0)
      t.strictSame(seen, [{ a: 1, b: [1, 2] }], 'the first payload is the one that runs')
      await rig.until('it completes', async () => (await queue.getStatus('id'))?.state === 'completed')
      const late = await rig.refusal(queue.enqueue('id', { a: 5 }, { payloadMismatch: 'reject' }))
      t.equal(late.code, 'ASKONCE_PAYLOAD_MISMATCH', 'a completed job is another payload’s, too')
    },
  },
  {
    name: 'case 38: ids with any characters each have their own record; results go to the right one',
    async run(t, rig) {
      const ids = [
        '/',
        '../../etc/passwd',
        '..',
        '.',
        'a\u0000b',
        'a',
        'A',
        'a ',
        ' a',
        '😀',
        '👨‍👩‍👧',
        'é',
        'e\u0301',
        '__proto__',
        'constructor',
        'hasOwnProperty',
        '{a}',
        'a:b:c',
        'con',
        'x'.repeat(240),
        'x'.repeat(255),
        'x'.repeat(256),
        'x'.repeat(1_024),
        '€'.repeat(341),
        '\n\r\t',
        '*?[a-z]',
        '%00',
        '\ufeff',
        'true',
        '0',
      ]
      const worker = await rig.worker<number, string>(async ({ id, payload }) => `${id.length}:${payload}`)
      const results = await rig.drive(Promise.all(ids.map((id, n) => worker.enqueueAndWait(id, n))))
      t.strictSame(
        results,
        ids.map((id, n) => `${id.length}:${n}`),
      )
      t.equal(worker.counters.executed, ids.length)
      for (const id of ids) t.equal((await worker.getStatus(id))?.id, id)
    },
  },
  {
    name: 'seed 004: updateResultTTL answers not_found, not_terminal, updated; longer and shorter, of one id alone',
    async run(t, rig) {
      const handler = new ManualHandler<number, number>()
      const worker = await rig.worker(handler.handle, { resultTTL: rig.shortMs, concurrency: 3 })
      t.strictSame(await rig.drive(worker.updateResultTTL('job-123', 7_200_000)), { status: 'not_found' })
      await rig.drive(worker.enqueue('delayed', 1, { delay: 1_000_000 }))
      t.strictSame(await rig.drive(worker.updateResultTTL('delayed', 7_200_000)), { status: 'not_terminal' })
      await rig.drive(worker.enqueueMany(['job-123', 'other', 'third'].map((id) => ({ id, payload: 1 }))))
      await rig.until('they start', () => handler.calls.length === 3)
      t.strictSame(await worker.updateResultTTL('job-123', 7_200_000), { status: 'not_terminal' })
      for (const { end } of handler.calls) end.open(1)
      await rig.until('they end', async () => (await worker.getStatus('third'))?.state === 'completed')
      t.strictSame(
        await Promise.all([
          worker.updateResultTTL('job-123', 7_200_000),
          worker.updateResultTTL('unknown', 5),
          worker.updateResultTTL('third', 1),
        ]),
        [{ status: 'updated' }, { status: 'not_found' }, { status: 'updated' }],
      )
      await rig.advance(rig.virtual ? 1 : 30)
      t.equal(await rig.drive(worker.getStatus('third')), null, 'shortened')
      t.not(await rig.drive(worker.getStatus('other')), null, 'the TTL of one id never touches another')
      await rig.advance(rig.shortMs * 1.5)
      t.equal(await rig.drive(worker.getStatus('other')), null)
      t.equal(await rig.drive(worker.getResult('job-123')), 1, 'lengthened')
    },
  },
  {
    name: 'seed 004: a failed job’s TTL can be set, too, and its error stays',
    async run(t, rig) {
      const worker = await rig.worker(
        () => {
          throw new Error('no')
        },
        { maxAttempts: 1, failureTTL: rig.shortMs },
      )
      await rig.drive(worker.enqueue('id', 1))
      await rig.until('it fails', async () => (await worker.getStatus('id'))?.state === 'failed')
      t.strictSame(await worker.updateResultTTL('id', 1_000_000), { status: 'updated' })
      await rig.advance(rig.shortMs * 2)
      t.equal((await rig.drive(worker.getStatus('id')))?.error?.message, 'no')
    },
  },
  {
    name: 'a delayed job is not run before its time, and is run then',
    async run(t, rig) {
      let runs = 0
      const worker = await rig.worker(async () => ++runs)
      await rig.drive(worker.enqueue('id', 1, { delay: rig.shortMs }))
      const { createdAt, availableAt } = (await rig.drive(worker.getStatus('id')))!
      t.equal(availableAt! - createdAt, rig.shortMs)
      if (rig.virtual) {
        await rig.advance(rig.shortMs - 1)
        t.equal(runs, 0)
        await rig.advance(1)
        t.equal(runs, 1, 'to the millisecond')
      }
      await rig.until('it ran', () => runs === 1)
    },
  },
  {
    name: 'promise 6: a terminal record is gone to the millisecond, and nothing of it stays behind',
    async run(t, rig) {
      const worker = await rig.worker(async () => 1, { resultTTL: rig.shortMs })
      await rig.drive(Promise.all(Array.from({ length: 50 }, (_, n) => worker.enqueueAndWait(`id-${n}`, n))))
      if (rig.virtual) {
        await rig.advance((await worker.getStatus('id-49'))!.expiresAt! - rig.clock.now() - 1)
        t.equal(await worker.getResult('id-49'), 1)
        await rig.advance(1)
      } else {
        await rig.advance(rig.shortMs * 2)
      }
      t.equal(await rig.drive(worker.getResult('id-49')), null)
      const { completed } = await rig.drive(worker.stats())
      t.equal(completed ?? 0, 0)
    },
  },
  {
    name: 'case 33: expired, cancelled and retried jobs leave the storage as empty as it was',
    async run(t, rig) {
      const worker = await rig.worker<string, number>(
        async ({ payload, attempts }) => {
          if (payload === 'retry' && attempts < 3) throw new Error('again')
          return 1
        },
        { resultTTL: rig.shortMs, retry: () => 1, concurrency: 10 },
      )
      const ids = Array.from({ length: 30 }, (_, n) => n)
      await rig.drive(worker.enqueueMany(ids.map((n) => ({ id: `cancel-${n}`, payload: 'x', delay: 1_000_000 }))))
      const cancelled = await rig.drive(Promise.all(ids.map((n) => worker.cancel(`cancel-${n}`))))
      t.ok(cancelled.every(({ status }) => status === 'cancelled'))
      await rig.drive(Promise.all(ids.map((n) => worker.enqueueAndWait(`retry-${n}`, 'retry'))))
      await rig.drive(Promise.all(ids.map((n) => worker.enqueueAndWait(`expire-${n}`, 'x'))))
      await rig.advance(rig.shortMs * 2)
      const { heldForMs: _, ...counts } = await rig.drive(worker.stats())
      t.equal(
        Object.values(counts).reduce<number>((sum, count) => sum + (count ?? 0), 0),
        0,
      )
    },
  },
  {
    name: 'promise 1: while a record lives only one enqueue says queued, also when it fails, retries and is recovered',
    async run(t, rig) {
      const first = gate()
      const worker = await rig.worker<number, string>(
        async ({ attempts }) => {
          await first.promise
          if (attempts < 3) throw new Error('again')
          return 'done'
        },
        { retry: () => rig.shortMs / 4 },
      )
      const answers: string[] = []
      const ask = async () => answers.push((await worker.enqueue('id', 1)).status)
      await rig.drive(ask())
      for (let n = 0; n < 5; n++) await rig.drive(ask())
      first.open()
      await rig.until('it completes', async () => {
        await ask()
        return answers.at(-1) === 'completed'
      })
      t.equal(answers.filter((status) => status === 'queued').length, 1)
    },
  },
]
