/** start, stop, pause, resume, events, counters: the life of a queue object. */

import type { Logger } from '../../../src/options.ts'
import type { Queue } from '../../../src/queue.ts'
import { gate, ManualHandler, type Scenario } from '../../support/queue-rig.ts'
import { failBefore, replyAfter } from '../support/faulty-storage.ts'

export const lifecycle: readonly Scenario[] = [
  {
    name: 'start and stop: twice is harmless, start after stop works, calls before start work, calls after stop are refused',
    async run(t, rig) {
      const queue = await rig.queue<number, number>()
      t.equal(queue.phase, 'new')
      await rig.drive(queue.enqueue('before', 1))
      queue.execute(({ payload }) => payload + 1)
      await rig.drive(Promise.all([queue.start(), queue.start()]))
      t.equal(queue.phase, 'started')
      t.equal(await rig.drive(queue.enqueueAndWait('before', 1)), 2)
      await rig.drive(Promise.all([queue.stop(), queue.stop()]))
      t.equal(queue.phase, 'stopped')
      const calls = [
        () => queue.enqueue('x', 1),
        () => queue.enqueueMany([{ id: 'x', payload: 1 }]),
        () => queue.enqueueAndWait('x', 1),
        () => queue.run('x', 1, async () => 1),
        () => queue.cancel('x'),
        () => queue.getStatus('x'),
        () => queue.getResult('x'),
        () => queue.updateResultTTL('x', 1),
        () => queue.stats(),
      ]
      for (const call of calls) t.match(await rig.refusal(call()), { name: 'StoppedError', code: 'ASKONCE_STOPPED' })
      await rig.drive(queue.start())
      t.equal(await rig.drive(queue.enqueueAndWait('again', 5)), 6)
      t.equal(await rig.drive(queue.getStatus('x')), null, 'nothing was written')
      for (let n = 0; n < 3; n++) {
        await rig.drive(queue.stop())
        await rig.drive(queue.start())
      }
      t.equal(await rig.drive(queue.enqueueAndWait('and again', 7)), 8)
    },
  },
  {
    name: 'start and stop follow one another however they are called',
    async run(t, rig) {
      const queue = await rig.worker<number, number>(({ payload }) => payload)
      await rig.drive(Promise.all([queue.stop(), queue.start(), queue.stop(), queue.start()]))
      t.equal(queue.phase, 'started')
      t.equal(await rig.drive(queue.enqueueAndWait('id', 1)), 1)
      await rig.drive(Promise.all([queue.start(), queue.stop()]))
      t.equal(queue.phase, 'stopped')
    },
  },
  {
    name: 'stop() of a queue that never started, and of one whose handler was never given',
    async run(t, rig) {
      const queue = await rig.queue()
      await rig.drive(queue.stop())
      t.equal(queue.phase, 'stopped')
      const other = await rig.queue()
      await rig.drive(other.start())
      await rig.drive(other.stop())
      t.equal(other.phase, 'stopped')
    },
  },
  {
    name: 'execute after start begins at once; a second handler is a StateError',
    async run(t, rig) {
      const queue = await rig.queue<number, number>()
      await rig.drive(queue.start())
      queue.execute(({ payload }) => payload)
      t.equal(await rig.drive(queue.enqueueAndWait('id', 1)), 1)
      t.throws(() => queue.execute(() => 1), { name: 'StateError', code: 'ASKONCE_STATE' })
      t.throws(() => queue.executeBatch(() => []), { code: 'ASKONCE_STATE' })
    },
  },
  {
    name: 'await using stops',
    async run(t, rig) {
      let kept: Queue<number, number>
      {
        await using queue = await rig.worker<number, number>(({ payload }) => payload)
        kept = queue
        t.equal(await rig.drive(queue.enqueueAndWait('id', 1)), 1)
      }
      t.equal(kept.phase, 'stopped')
    },
  },
  {
    name: 'pause claims nothing more, running jobs go on; resume goes on at once; pause before start counts',
    async run(t, rig) {
      const handler = new ManualHandler<number, number>()
      const queue = await rig.queue<number, number>({ concurrency: 5 })
      queue.execute(handler.handle)
      queue.pause()
      t.equal(queue.paused, true)
      await rig.drive(queue.start())
      await rig.drive(queue.enqueue('a', 1))
      await rig.advance(rig.virtual ? 20_000 : rig.shortMs)
      t.equal(handler.calls.length, 0)
      const before = rig.clock.monotonic()
      queue.resume()
      t.equal(queue.paused, false)
      await rig.until('it starts', () => handler.calls.length === 1)
      if (rig.virtual) t.equal(rig.clock.monotonic(), before, 'at once')
      queue.pause()
      await rig.drive(queue.enqueue('b', 1))
      handler.calls[0]!.end.open(1)
      await rig.until('it ends', () => queue.counters.completed === 1)
      await rig.advance(rig.virtual ? 20_000 : rig.shortMs)
      t.equal(handler.calls.length, 1)
      await rig.drive(queue.stop())
      await rig.drive(queue.start())
      await rig.calm()
      t.equal(handler.calls.length, 1, 'a stop does not end a pause')
      queue.resume()
      await rig.until('it starts', () => handler.calls.length === 2)
      handler.calls[1]!.end.open(1)
    },
  },
  {
    name: 'case 40: several named queues on one storage, idle for long: each picks a job up without waiting for a poll',
    async run(t, rig) {
      const names = ['a', 'b', 'c', 'd']
      const queues = await Promise.all(names.map((name) => rig.worker<number, string>(async () => name, { name })))
      await rig.advance(rig.virtual ? 100_000 : rig.shortMs)
      for (const [n, name] of names.entries()) {
        const asker = await rig.queue<number, string>({ name })
        const before = rig.clock.monotonic()
        t.equal(await rig.drive(asker.enqueueAndWait('id', n)), name)
        t.ok(rig.clock.monotonic() - before < (rig.prompt ? 1 : 1_000))
      }
      t.equal(queues[0]!.counters.executed, 1)
    },
  },
  {
    name: 'a hint that arrives while a claim is under way is not lost: the job starts at once, not at the next poll',
    async run(t, rig) {
      if (!rig.prompt) return
      const { storage } = await rig.process()
      const worker = await rig.worker<number, string>(async () => 'done', { storage })
      await rig.calm()
      const asker = await rig.queue<number, string>()
      // The storage has answered "nothing" already, but the reply is still on its way when the job and its hint come.
      const onItsWay = gate()
      storage.on('claim', replyAfter(onItsWay.promise))
      worker.pause()
      worker.resume()
      await rig.calm()
      await rig.drive(asker.enqueue('id', 1))
      await rig.calm()
      const before = rig.clock.monotonic()
      onItsWay.open()
      await rig.until('it is done', () => worker.counters.completed === 1)
      t.ok(rig.clock.monotonic() - before < 100, `${rig.clock.monotonic() - before} ms later`)
    },
  },
  {
    name: 'a job enqueued for later while a claim is under way starts at its time',
    async run(t, rig) {
      if (!rig.prompt) return
      const { storage } = await rig.process()
      const starts: number[] = []
      const worker = await rig.worker<number, number>(async () => starts.push(rig.clock.monotonic()), { storage })
      await rig.calm()
      const asker = await rig.queue<number, number>()
      const onItsWay = gate()
      storage.on('claim', replyAfter(onItsWay.promise))
      worker.pause()
      worker.resume()
      await rig.calm()
      const before = rig.clock.monotonic()
      await rig.drive(asker.enqueue('id', 1, { delay: 100 }))
      onItsWay.open()
      await rig.until('it is done', () => worker.counters.completed === 1)
      t.equal(starts[0]! - before, 100)
    },
  },
  {
    name: 'jobs that a claim brings when the queue was stopped meanwhile are given back, at no attempt',
    async run(t, rig) {
      const { storage } = await rig.process()
      const worker = await rig.worker<number, string>(async ({ attempts }) => `a ${attempts}`, { storage })
      await rig.calm()
      const onItsWay = gate()
      storage.on('claim', replyAfter(onItsWay.promise))
      await rig.drive(worker.enqueue('id', 1, { maxAttempts: 1 }))
      await rig.until('the storage has leased it', async () => (await worker.getStatus('id'))?.state === 'processing')
      const stopped = worker.stop()
      await rig.calm()
      onItsWay.open()
      await rig.drive(stopped)
      const before = rig.clock.monotonic()
      const other = await rig.worker<number, string>(async ({ attempts }) => `b ${attempts}`)
      t.equal(await rig.drive(other.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'b 1')
      t.ok(rig.clock.monotonic() - before < rig.leaseMs / 2)
    },
  },
  {
    name: 'taskforcesh/bullmq#1312, case 41: a queue that shares a storage stops; the other works on',
    async run(t, rig) {
      const storage = await rig.storage()
      const [a, b] = [
        await rig.worker<number, string>(async () => 'a', { storage }),
        await rig.worker<number, string>(async () => 'b', { storage, name: 'other' }),
      ]
      t.equal(await rig.drive(b.enqueueAndWait('1', 1)), 'b')
      await rig.drive(a.stop())
      t.equal(await rig.drive(b.enqueueAndWait('2', 1)), 'b')
      const c = await rig.worker<number, string>(async () => 'c', { storage })
      t.equal(await rig.drive(c.enqueueAndWait('2', 1)), 'c')
    },
  },
  {
    name: 'after stop nothing is left: no listeners on the storage, no timers that keep the process alive',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.worker<number, number>(({ payload }) => payload, { storage })
      await rig.drive(queue.enqueueAndWait('id', 1))
      await rig.drive(queue.run('inline', 1, async () => 1))
      t.equal(storage.watching, 1)
      await rig.drive(queue.stop())
      t.equal(storage.count('close'), 1)
      if (rig.virtual) t.equal((rig.clock as unknown as { pending: { ref: number } }).pending.ref, 0)
    },
  },
  {
    name: 'taskforcesh/bullmq#995, case 45: the storage is down at start: start and calls reject, a later start works',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.queue<number, number>({ storage })
      queue.execute(({ payload }) => payload)
      storage.down()
      for (let n = 0; n < 3; n++)
        t.match(await rig.refusal(queue.start()), { code: 'ASKONCE_STORAGE', retryable: true })
      t.equal(queue.phase, 'new')
      t.match(await rig.refusal(queue.enqueue('id', 1)), { code: 'ASKONCE_STORAGE' })
      storage.up()
      await rig.drive(queue.start())
      t.equal(await rig.drive(queue.enqueueAndWait('id', 1)), 1)
      await rig.drive(queue.stop())
      storage.down()
      t.match(await rig.refusal(queue.start()), { code: 'ASKONCE_STORAGE' })
      storage.up()
      t.match(await rig.refusal(queue.enqueue('x', 1)), { code: 'ASKONCE_STOPPED' }, 'a failed start leaves it stopped')
      await rig.drive(queue.start())
      t.equal(await rig.drive(queue.enqueueAndWait('other', 2)), 2)
      await rig.drive(queue.stop())
      t.equal(storage.count('close'), 2, 'every handle that was opened is closed')
    },
  },
  {
    name: 'whatever a storage’s open throws becomes a StorageError that names no secret',
    async run(t, rig) {
      const { storage } = await rig.process()
      storage.on(
        'open',
        failBefore(() => new TypeError('redis://user:hunter2@host')),
      )
      const queue = await rig.queue({ storage })
      const error = await rig.refusal(queue.start())
      t.match(error, { name: 'StorageError', code: 'ASKONCE_STORAGE' })
      t.notMatch(error.message, 'hunter2')
      await rig.drive(queue.start())
    },
  },
  {
    name: 'taskforcesh/bullmq#2964, case 44: the storage goes away and comes back: all go on by themselves within 10 s',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.worker<number, string>(async () => 'done', { storage })
      await rig.calm()
      storage.down()
      t.match(await rig.refusal(queue.enqueue('id', 1)), { code: 'ASKONCE_STORAGE' })
      await rig.advance(rig.virtual ? 60_000 : 1_000)
      storage.up()
      rig.takeErrors()
      const before = rig.clock.monotonic()
      t.equal(await rig.drive(queue.enqueueAndWait('id', 1)), 'done')
      t.ok(rig.clock.monotonic() - before < 10_000)
      rig.takeErrors()
    },
  },
  {
    name: 'a storage that says it is closed, though nobody stopped the queue: told, and no busy loop',
    async run(t, rig) {
      const { StorageClosedError } = await import('../../../src/errors.ts')
      const { storage } = await rig.process()
      const queue = await rig.queue<number, string>({ storage })
      storage.on(
        'claim',
        failBefore(() => new StorageClosedError()),
        1_000_000,
      )
      queue.execute(async () => 'done')
      await rig.drive(queue.start())
      await rig.calm()
      await rig.calm()
      t.ok(storage.count('claim') < 5, `${storage.count('claim')} claims`)
      t.ok(rig.takeErrors().length > 0)
    },
  },
  {
    name: 'a close that fails: the queue is stopped all the same, and can be started anew',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.worker<number, string>(async () => 'done', { storage })
      storage.on('close', failBefore())
      await rig.drive(queue.stop())
      t.equal(queue.phase, 'stopped')
      t.equal(rig.takeErrors().length, 1)
      await rig.drive(queue.start())
      t.equal(await rig.drive(queue.enqueueAndWait('id', 1)), 'done')
    },
  },
  {
    name: 'stop() while the storage is down: it gives up within stopTimeout and a few seconds; start works later',
    async run(t, rig) {
      const { storage } = await rig.process()
      const handler = new ManualHandler<number, string>()
      const queue = await rig.worker(handler.handle, { storage, stopTimeout: rig.shortMs })
      await rig.drive(queue.enqueue('id', 1))
      await rig.until('it starts', () => handler.calls.length === 1)
      storage.down()
      const before = rig.clock.monotonic()
      await rig.drive(queue.stop())
      t.ok(rig.clock.monotonic() - before <= rig.shortMs + 10_000)
      t.match(handler.calls[0]!.job.signal.reason, { code: 'ASKONCE_STOPPED' })
      storage.up()
      rig.takeErrors()
      await rig.drive(queue.start())
      await rig.until('it is recovered', () => handler.calls.length === 2)
      t.equal(handler.calls[1]!.job.attempts, 2)
      handler.calls[1]!.end.open('done')
      await rig.until('it is done', () => queue.counters.completed === 1)
    },
  },
  {
    name: 'a listener that throws, or rejects, hurts nobody: it is told as an error; the job finishes',
    async run(t, rig) {
      const queue = await rig.queue<string, string>({ maxAttempts: 2, retry: () => 1 })
      const names = ['queued', 'duplicate', 'started', 'completed', 'retrying', 'failed', 'cancelled', 'idle'] as const
      const heard = new Set<string>()
      for (const name of names) {
        queue.on(name, () => {
          heard.add(name)
          throw new Error(`listener of ${name}`)
        })
        queue.on(name, (async () => {
          throw new Error(`async listener of ${name}`)
        }) as () => void)
      }
      queue.execute(async ({ payload }) => {
        if (payload === 'bad') throw new Error('bad')
        return payload
      })
      await rig.drive(queue.start())
      await rig.drive(queue.enqueue('cancelled', 'x', { delay: 1_000_000 }))
      await rig.drive(queue.cancel('cancelled'))
      t.equal(await rig.drive(queue.enqueueAndWait('good', 'good')), 'good')
      await rig.drive(queue.enqueue('good', 'good'))
      t.match(await rig.refusal(queue.enqueueAndWait('bad', 'bad')), { code: 'ASKONCE_JOB_FAILED' })
      await rig.calm()
      t.strictSame([...heard].sort(), [...names].sort())
      const errors = new Set(rig.takeErrors().map(({ message }) => message))
      for (const name of names) {
        t.ok(errors.has(`listener of ${name}`), name)
        t.ok(errors.has(`async listener of ${name}`), name)
      }
      t.match(queue.counters, { completed: 1, failed: 1, retried: 1, executed: 3 })
    },
  },
  {
    name: 'an error listener that throws is logged; a logger that throws hurts nobody either',
    async run(t, rig) {
      const lines: string[] = []
      const log = (_fields: object, message: string) => {
        lines.push(message)
        throw new Error('logger')
      }
      const logger: Logger = { debug: log, info: log, warn: log, error: log }
      const queue = await rig.queue<string, string>({ logger })
      queue.on('error', () => {
        throw new Error('error listener')
      })
      queue.on('completed', () => {
        throw new Error('listener')
      })
      queue.on('completed', (async () => {
        throw new Error('async listener')
      }) as () => void)
      queue.execute(async ({ payload }) => payload)
      await rig.drive(queue.start())
      for (const id of ['a', 'b', 'c']) t.equal(await rig.drive(queue.enqueueAndWait(id, id)), id)
      await rig.calm()
      t.ok(lines.length >= 3)
      t.match(queue.counters, { completed: 3, executed: 3, stale_ignored: 0 })
      rig.takeErrors()
    },
  },
  {
    name: 'on, once, off, listenerCount; error without a listener ends no process',
    async run(t, rig) {
      const queue = await rig.worker<number, number>(({ payload }) => payload)
      const heard: string[] = []
      const on = ({ id }: { id: string }) => heard.push(`on ${id}`)
      const off = ({ id }: { id: string }) => heard.push(`off ${id}`)
      t.equal(
        queue.on('completed', on).once('completed', ({ id }) => heard.push(`once ${id}`)),
        queue,
      )
      queue.on('completed', off).off('completed', off)
      t.equal(queue.listenerCount('completed'), 2)
      await rig.drive(queue.enqueueAndWait('a', 1))
      await rig.drive(queue.enqueueAndWait('b', 1))
      await rig.calm()
      t.strictSame(heard, ['on a', 'once a', 'on b'])
      t.equal(queue.listenerCount('completed'), 1)
    },
  },
  {
    name: 'events carry what they say, in their order',
    async run(t, rig) {
      const queue = await rig.queue<string, string>({ maxAttempts: 2, retry: () => 1 })
      const events: unknown[] = []
      queue.on('queued', (event) => events.push(['queued', event]))
      queue.on('duplicate', (event) => events.push(['duplicate', event]))
      queue.on('started', (event) => events.push(['started', event]))
      queue.on('retrying', ({ error, ...event }) => events.push(['retrying', { ...event, message: error.message }]))
      queue.on('completed', ({ durationMs, ...event }) => {
        t.ok(durationMs >= 0)
        events.push(['completed', event])
      })
      queue.on('failed', ({ error, ...event }) => events.push(['failed', { ...event, message: error.message }]))
      queue.execute(async ({ payload, attempts }) => {
        if (payload === 'bad' || attempts === 1) throw new Error(`no ${attempts}`)
        return 'fine'
      })
      await rig.drive(queue.enqueue('id', 'good'))
      await rig.drive(queue.enqueue('id', 'good'))
      await rig.drive(queue.start())
      await rig.until('it completes', () => queue.counters.completed === 1)
      await rig.drive(queue.enqueue('bad', 'bad'))
      await rig.until('it fails', () => queue.counters.failed === 1)
      await rig.calm()
      const expected = [
        ['queued', { id: 'id' }],
        ['duplicate', { id: 'id', existingState: 'queued' }],
        ['started', { id: 'id', attempts: 1 }],
        ['retrying', { id: 'id', attempts: 1, delayMs: 1, message: 'no 1' }],
        ['started', { id: 'id', attempts: 2 }],
        ['completed', { id: 'id', result: 'fine', attempts: 2 }],
        ['queued', { id: 'bad' }],
        ['started', { id: 'bad', attempts: 1 }],
        ['retrying', { id: 'bad', attempts: 1, delayMs: 1, message: 'no 1' }],
        ['started', { id: 'bad', attempts: 2 }],
        ['failed', { id: 'bad', attempts: 2, message: 'no 2' }],
      ]
      // Where replies take their time, a job may start before its enqueue is answered.
      const inOrder = (list: unknown[]) => (rig.prompt ? list : list.map((event) => JSON.stringify(event)).sort())
      t.strictSame(inOrder(events), inOrder(expected))
    },
  },
  {
    name: 'warnings of the storage are passed on; the logger never gets payloads or results',
    async run(t, rig) {
      const { storage } = await rig.process()
      const lines: unknown[] = []
      const log = (fields: object, message: string) => void lines.push([fields, message])
      const logger: Logger = { debug: log, info: log, warn: log, error: log }
      const queue = await rig.worker<string, string>(async () => 'secret result', { storage, logger })
      const warnings: unknown[] = []
      queue.on('warning', (event) => warnings.push(event))
      const original = storage.onHint
      storage.onHint = (hint) => [{ type: 'warning', code: 'DAMAGE', message: 'line 7', detail: { line: 7 } }, hint]
      for (let n = 0; n < 50 && warnings.length === 0; n++) {
        await rig.drive(queue.enqueueAndWait(`id-${n}`, 'secret payload'))
      }
      storage.onHint = original
      t.match(warnings[0], { code: 'DAMAGE', message: 'line 7', detail: { line: 7 } })
      t.ok(lines.length > 0)
      t.notMatch(JSON.stringify(lines), /secret/)
    },
  },
  {
    name: 'counters tell the work and the waste',
    async run(t, rig) {
      const queue = await rig.queue<string, string>({ maxAttempts: 2, retry: () => 1 })
      queue.execute(async ({ payload }) => {
        if (payload === 'bad') throw new Error('no')
        return payload
      })
      await rig.drive(queue.enqueue('a', 'a'))
      await rig.drive(queue.enqueue('a', 'a'))
      await rig.drive(queue.enqueue('a', 'other'))
      await rig.drive(queue.start())
      await rig.until('it completes', () => queue.counters.completed === 1)
      await rig.drive(queue.enqueue('a', 'a'))
      await rig.drive(queue.enqueue('b', 'bad'))
      await rig.until('it fails', () => queue.counters.failed === 1)
      t.match(queue.counters, {
        claimed: 2,
        deduped: 3,
        executed: 3,
        mismatched: 1,
        completed: 1,
        retried: 1,
        failed: 1,
        replayed: 1,
        stale_ignored: 0,
        held: 0,
      })
    },
  },
  {
    name: 'stats counts records by state',
    async run(t, rig) {
      const handler = new ManualHandler<number, number>()
      const queue = await rig.worker(handler.handle, { concurrency: 1 })
      await rig.drive(queue.enqueueMany(['a', 'b', 'c'].map((id) => ({ id, payload: 1 }))))
      await rig.until('one starts', () => handler.calls.length === 1)
      const stats = await rig.drive(queue.stats())
      t.match(stats, { queued: stats.queued ?? null, heldForMs: 0 })
      // A storage says null where it can't count cheaply.
      const counts = { queued: 2, processing: 1, completed: 0, failed: 0, failing: 0 }
      for (const [state, count] of Object.entries(counts)) {
        const counted = stats[state as keyof typeof counts]
        if (counted !== null) t.equal(counted, count, state)
      }
    },
  },
]
