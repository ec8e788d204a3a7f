/** Leases: one runs at a time, the late are refused, the dead are recovered. */

import type { Queue } from '../../../src/queue.ts'
import { gate, ManualHandler, type Scenario } from '../../support/queue-rig.ts'
import { callAfter, failBefore, outage } from '../support/faulty-storage.ts'

export const fencing: readonly Scenario[] = [
  {
    name: 'case 2: A stalls, B completes, A then succeeds: A’s write is refused, the result is unchanged',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const [slow, quick] = [new ManualHandler<number, string>(), new ManualHandler<number, string>()]
      const a = await rig.worker(slow.handle, { storage, clock })
      const stale: unknown[] = []
      a.on('stale', (event) => stale.push(event))
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => slow.calls.length === 1)
      clock.stall()
      const b = await rig.worker(quick.handle)
      await rig.until('B takes it over', () => quick.calls.length === 1)
      t.equal(quick.calls[0]!.job.attempts, 2)
      t.not(quick.calls[0]!.job.generation, slow.calls[0]!.job.generation)
      quick.calls[0]!.end.open('B')
      await rig.until('B completes', () => b.counters.completed === 1)
      slow.calls[0]!.end.open('A')
      clock.resume()
      await rig.until('A is told', () => a.counters.stale_ignored === 1)
      t.equal(await b.getResult('id'), 'B')
      t.equal(await rig.drive(a.getResult('id')), 'B')
      t.equal(a.counters.completed, 0)
      t.strictSame(stale, [{ id: 'id', attempts: 1 }])
    },
  },
  {
    name: 'case 3: A succeeds while B still runs: refused; B’s result stands. So are A’s failure and its rate limit',
    async run(t, rig) {
      for (const how of ['success', 'failure', 'release'] as const) {
        const { storage, clock } = await rig.process()
        const [slow, quick] = [new ManualHandler<number, string>(), new ManualHandler<number, string>()]
        const a = await rig.worker(slow.handle, { storage, clock, name: how })
        await rig.drive(a.enqueue('id', 1))
        await rig.until('A starts', () => slow.calls.length === 1)
        clock.stall()
        const b = await rig.worker(quick.handle, { name: how })
        await rig.until('B takes it over', () => quick.calls.length === 1)
        if (how === 'success') slow.calls[0]!.end.open('A')
        if (how === 'failure') slow.calls[0]!.end.fail(new Error('A'))
        if (how === 'release') void rig.drive(a.stop())
        clock.resume()
        await rig.until('A is told', () => a.counters.stale_ignored === 1)
        t.match(await rig.drive(b.getStatus('id')), { state: 'processing', attempts: 2 }, how)
        t.equal(quick.calls[0]!.job.signal.aborted, false)
        quick.calls[0]!.end.open('B')
        await rig.until('B completes', () => b.counters.completed === 1)
        t.equal(await rig.drive(b.getResult('id')), 'B', how)
      }
    },
  },
  {
    name: 'case 8: a worker dies between its claim and the first heartbeat: the job is recovered when the lease ends, not before',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const dead = new ManualHandler<number, string>()
      const a = await rig.worker(dead.handle, { storage, clock })
      const b = await rig.queue<number, string>()
      await rig.drive(b.enqueue('id', 1))
      await rig.until('A starts', () => dead.calls.length === 1)
      const claimedAt = (await b.getStatus('id'))!.leaseEndsAt! - rig.leaseMs
      clock.stall()
      storage.down()
      let startedAt = 0
      b.execute(async ({ attempts }) => {
        startedAt = rig.clock.now()
        return `attempt ${attempts}`
      })
      await rig.drive(b.start())
      t.equal(await rig.drive(b.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'attempt 2')
      t.ok(startedAt - claimedAt >= rig.leaseMs - 20, 'not before')
      if (rig.virtual) t.equal(startedAt - claimedAt, rig.leaseMs, 'to the millisecond')
      storage.up()
      clock.resume()
      dead.calls[0]!.end.open('late')
      await rig.until('A is told', () => a.counters.stale_ignored === 1)
      rig.takeErrors()
    },
  },
  {
    name: 'case 11: a worker is up for long, then crashes; another process takes over all it held',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const dead = new ManualHandler<number, string>()
      const a = await rig.worker(dead.handle, { storage, clock, concurrency: 10 })
      await rig.drive(a.enqueueMany(Array.from({ length: 10 }, (_, n) => ({ id: `id-${n}`, payload: n }))))
      await rig.until('A starts', () => dead.calls.length === 10)
      await rig.advance(rig.leaseMs * 4)
      t.equal(dead.calls.length, 10)
      clock.stall()
      storage.down()
      const b = await rig.worker(async ({ id, attempts }) => `${id} ${attempts}`, { concurrency: 3 })
      await rig.until('B has done them', () => b.counters.completed === 10)
      t.equal(await b.getResult('id-7'), 'id-7 2')
      storage.up()
      clock.resume()
      for (const { end } of dead.calls) end.open('late')
      await rig.until('A is told', () => a.counters.stale_ignored === 10)
      rig.takeErrors()
    },
  },
  {
    name: 'case 12: many processes see the same stall: one re-run',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const dead = new ManualHandler<number, string>()
      await rig.worker(dead.handle, { storage, clock })
      const others = await Promise.all(Array.from({ length: 6 }, () => rig.queue<number, string>()))
      await rig.drive(others[0]!.enqueue('id', 1))
      await rig.until('A starts', () => dead.calls.length === 1)
      clock.stall()
      storage.down()
      let runs = 0
      for (const queue of others) {
        queue.execute(async () => `run ${++runs}`)
        await rig.drive(queue.start())
      }
      t.equal(await rig.drive(others[1]!.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'run 1')
      await rig.advance(rig.leaseMs * 2)
      t.equal(runs, 1)
      storage.up()
      clock.resume()
      dead.calls[0]!.end.open('late')
      await rig.calm()
      rig.takeErrors()
    },
  },
  {
    name: 'case 14: a recovered job stalls again: recovered again; its state is processing while it runs',
    async run(t, rig) {
      const processes = [await rig.process(), await rig.process(), await rig.process()]
      const handlers = processes.map(() => new ManualHandler<number, string>())
      const queues: Queue<number, string>[] = []
      for (const [n, { storage, clock }] of processes.entries()) {
        const queue = await rig.worker(handlers[n]!.handle, { storage, clock, maxAttempts: 3 })
        queues.push(queue)
        if (n === 0) await rig.drive(queue.enqueue('id', 1))
        await rig.until(`process ${n} has it`, () => handlers[n]!.calls.length === 1)
        t.equal(handlers[n]!.calls[0]!.job.attempts, n + 1)
        t.match(await rig.drive(queue.getStatus('id')), { state: 'processing', attempts: n + 1 })
        if (n < 2) {
          clock.stall()
          storage.down()
        }
      }
      handlers[2]!.calls[0]!.end.open('third')
      await rig.until('it completes', () => queues[2]!.counters.completed === 1)
      for (const { storage, clock } of processes) {
        storage.up()
        clock.resume()
      }
      for (const handler of handlers) handler.calls[0]!.end.open('late')
      await rig.until(
        'the others are told',
        () => queues[0]!.counters.stale_ignored + queues[1]!.counters.stale_ignored === 2,
      )
      t.equal(await queues[2]!.getResult('id'), 'third')
      rig.takeErrors()
    },
  },
  {
    name: 'case 17, taskforcesh/bullmq#1497: a healthy job lasts 3, and 5 leases: one execution',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(handler.handle, { concurrency: 2 })
      let others = 0
      await rig.worker(async () => ++others)
      const blocked: unknown[] = []
      const lost: unknown[] = []
      worker.on('blocked', (event) => blocked.push(event))
      worker.on('leaseLost', (event) => lost.push(event))
      await rig.calm()
      const waits = [worker.enqueueAndWait('a', 1, { timeout: 1_000_000 })]
      await rig.until('one has it', () => handler.calls.length + others === 1)
      if (handler.calls.length === 1) {
        await rig.advance(rig.leaseMs * 3)
        t.match(await worker.getStatus('a'), { state: 'processing', attempts: 1 })
        await rig.advance(rig.leaseMs * 2)
        t.equal(handler.calls.length, 1)
        t.equal(handler.calls[0]!.job.signal.aborted, false)
        handler.calls[0]!.end.open('done')
      }
      await rig.drive(Promise.all(waits))
      t.equal(handler.calls.length + others, 1)
      t.equal(worker.counters.stale_ignored, 0)
      t.strictSame(lost, [])
      if (rig.virtual) t.strictSame(blocked, [])
    },
  },
  {
    name: 'the heartbeat: many leases are renewed by one call, thrice a lease at most',
    async run(t, rig) {
      const { storage } = await rig.process()
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(handler.handle, { storage, concurrency: 100 })
      const ids = Array.from({ length: 100 }, (_, n) => `id-${n}`)
      await rig.drive(worker.enqueueMany(ids.map((id) => ({ id, payload: 1 }))))
      await rig.until('they start', () => handler.calls.length === 100)
      await rig.advance(rig.leaseMs * 4)
      t.ok(
        storage.count('extend') >= 5 && storage.count('extend') <= 13,
        `${storage.count('extend')} calls in 4 leases`,
      )
      for (const { end } of handler.calls) end.open('done')
      await rig.until('they are done', () => worker.counters.completed === 100)
      const before = storage.count('extend')
      await rig.advance(rig.leaseMs * 2)
      t.equal(storage.count('extend'), before, 'nothing is renewed when nothing is held')
    },
  },
  {
    name: 'mike-marcacci/node-redlock#283: a lease lost in mid-job: typed event, abort, no unhandled rejection',
    async run(t, rig) {
      const { storage } = await rig.process()
      const [cutOff, healthy] = [new ManualHandler<number, string>(), new ManualHandler<number, string>()]
      const a = await rig.worker(cutOff.handle, { storage })
      const events: unknown[] = []
      a.on('leaseLost', (event) => events.push(event))
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => cutOff.calls.length === 1)
      const { job, end } = cutOff.calls[0]!
      storage.down()
      const b = await rig.worker(healthy.handle)
      await rig.until('A gives it up by itself', () => job.signal.aborted)
      t.match(job.signal.reason, { name: 'LeaseLostError', code: 'ASKONCE_LEASE_LOST', id: 'id' })
      t.strictSame(events, [{ id: 'id', attempts: 1 }])
      t.ok(rig.takeErrors().length > 0, 'the failed renewals were told')
      await rig.until('B has it', () => healthy.calls.length === 1)
      end.fail(job.signal.reason)
      storage.up()
      healthy.calls[0]!.end.open('B')
      await rig.until('both are settled', () => b.counters.completed === 1 && a.counters.stale_ignored === 1)
      t.equal(await b.getResult('id'), 'B')
      t.strictSame(events.length, 1, 'told once')
      rig.takeErrors()
    },
  },
  {
    name: 'a lease that can’t be renewed is given up by its holder when it ends',
    async run(t, rig) {
      const { storage } = await rig.process()
      const cutOff = new ManualHandler<number, string>()
      const a = await rig.worker(cutOff.handle, { storage })
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => cutOff.calls.length === 1)
      const endsAt = (await rig.drive(a.getStatus('id')))!.leaseEndsAt!
      storage.down()
      const { signal } = cutOff.calls[0]!.job
      await rig.advance(endsAt - rig.clock.now() - 50)
      t.equal(signal.aborted, false, 'not before')
      await rig.advance(50 + rig.leaseMs / 12)
      t.equal(signal.aborted, true)
      storage.up()
      cutOff.calls[0]!.end.open('in time after all: nobody has taken it over')
      await rig.until('A completes', () => a.counters.completed === 1)
      rig.takeErrors()
    },
  },
  {
    name: 'a renewal that hangs: the lease is given up when it ends all the same',
    async run(t, rig) {
      const { storage } = await rig.process()
      const cutOff = new ManualHandler<number, string>()
      const a = await rig.worker(cutOff.handle, { storage })
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => cutOff.calls.length === 1)
      const hanging = gate()
      storage.on('extend', callAfter(hanging.promise), 100)
      await rig.advance(rig.leaseMs * 1.2)
      const { aborted } = cutOff.calls[0]!.job.signal
      hanging.open()
      cutOff.calls[0]!.end.open('done')
      await rig.until('A completes', () => a.counters.completed === 1)
      t.equal(aborted, true)
    },
  },
  {
    name: 'promise 2: a handler whose answer was refused sees its signal aborted, too',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const slow = new ManualHandler<number, string>()
      const a = await rig.worker(slow.handle, { storage, clock })
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => slow.calls.length === 1)
      clock.stall()
      const b = await rig.worker(async () => 'B')
      await rig.until('B completes', () => b.counters.completed === 1)
      slow.calls[0]!.end.open('A')
      clock.resume()
      await rig.until('A is told', () => a.counters.stale_ignored === 1)
      t.match(slow.calls[0]!.job.signal.reason, { code: 'ASKONCE_LEASE_LOST' })
    },
  },
  {
    name: 'a heartbeat that arrives after the takeover is refused: it lengthens nobody’s lease, and its sender is told',
    async run(t, rig) {
      const [one, two] = [await rig.process(), await rig.process()]
      const [slow, dead] = [new ManualHandler<number, string>(), new ManualHandler<number, string>()]
      const a = await rig.worker(slow.handle, one)
      const lost: unknown[] = []
      a.on('leaseLost', (event) => lost.push(event))
      const onItsWay = gate()
      one.storage.on('extend', callAfter(onItsWay.promise), 100)
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => slow.calls.length === 1)
      a.pause()
      await rig.worker(dead.handle, two)
      await rig.until('B takes it over', () => dead.calls.length === 1)
      two.clock.stall()
      two.storage.down()
      const endsAt = (await rig.drive(a.getStatus('id')))!.leaseEndsAt!
      await rig.advance(rig.leaseMs / 2)
      onItsWay.open()
      await rig.calm()
      t.equal((await rig.drive(a.getStatus('id')))!.leaseEndsAt, endsAt)
      t.match(slow.calls[0]!.job.signal.reason, { code: 'ASKONCE_LEASE_LOST' })
      t.strictSame(lost, [{ id: 'id', attempts: 1 }])
      two.storage.up()
      two.clock.resume()
      for (const { end } of [...slow.calls, ...dead.calls]) end.open('late')
      await rig.until('A is told', () => a.counters.stale_ignored === 1)
      rig.takeErrors()
    },
  },
  {
    name: 'one failed heartbeat is no lost lease: it is repeated in time',
    async run(t, rig) {
      const { storage } = await rig.process()
      storage.on('extend', failBefore(), 2)
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker(handler.handle, { storage })
      const wait = worker.enqueueAndWait('id', 1, { timeout: 1_000_000 })
      await rig.until('it starts', () => handler.calls.length === 1)
      await rig.advance(rig.leaseMs * 2)
      t.equal(handler.calls[0]!.job.signal.aborted, false)
      handler.calls[0]!.end.open('done')
      t.equal(await rig.drive(wait), 'done')
      t.equal(rig.takeErrors().length, 2)
      t.equal(worker.counters.stale_ignored, 0)
    },
  },
  {
    name: 'taskforcesh/bullmq#2857: a process blocked for 3 leases: a stale result never overwrites; a warning event',
    async run(t, rig) {
      if (!rig.virtual) return
      const { storage, clock } = await rig.process()
      const [slow, quick] = [new ManualHandler<number, string>(), new ManualHandler<number, string>()]
      const a = await rig.worker(slow.handle, { storage, clock })
      const blocked: { blockedMs: number; leaseMs: number }[] = []
      a.on('blocked', (event) => blocked.push(event))
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => slow.calls.length === 1)
      clock.stall()
      const b = await rig.worker(quick.handle)
      await rig.advance(rig.leaseMs * 3)
      t.equal(quick.calls.length, 1)
      quick.calls[0]!.end.open('B')
      await rig.until('B completes', () => b.counters.completed === 1)
      slow.calls[0]!.end.open('A')
      clock.resume()
      await rig.until('A is told', () => a.counters.stale_ignored === 1)
      t.equal(await b.getResult('id'), 'B')
      t.equal(blocked.length, 1)
      t.equal(blocked[0]!.leaseMs, rig.leaseMs)
      t.ok(blocked[0]!.blockedMs >= rig.leaseMs * 2)
    },
  },
  {
    name: 'powertools-lambda-java#1281: a lease of 1,500 ms is locked at 1.0 s and free at 2.0 s',
    async run(t, rig) {
      const { storage, clock } = await rig.process()
      const dead = new ManualHandler<number, string>()
      const a = await rig.worker(dead.handle, { storage, clock, leaseMs: 1_500 })
      const b = await rig.queue<number, string>({ leaseMs: 1_500 })
      await rig.drive(b.enqueue('id', 1))
      await rig.until('A starts', () => dead.calls.length === 1)
      const claimedAt = (await b.getStatus('id'))!.leaseEndsAt! - 1_500
      clock.stall()
      storage.down()
      const starts: number[] = []
      b.execute(async () => {
        starts.push(rig.clock.now() - claimedAt)
        return 'B'
      })
      await rig.drive(b.start())
      await rig.advance(1_000 - (rig.clock.now() - claimedAt))
      t.strictSame(starts, [])
      await rig.advance(1_000)
      t.equal(starts.length, 1)
      t.ok(starts[0]! >= 1_490 && starts[0]! <= 2_000, String(starts[0]))
      storage.up()
      clock.resume()
      dead.calls[0]!.end.open('late')
      await rig.until('A is told', () => a.counters.stale_ignored === 1)
      rig.takeErrors()
    },
  },
  {
    name: 'case 6: stop() exceeds its grace with a handler running: it is aborted and recovered elsewhere at once, at no attempt',
    async run(t, rig) {
      const [slow, quick] = [new ManualHandler<number, string>(), new ManualHandler<number, string>()]
      const a = await rig.worker(slow.handle, { stopTimeout: rig.shortMs })
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => slow.calls.length === 1)
      const b = await rig.worker(quick.handle)
      const before = rig.clock.monotonic()
      await rig.drive(a.stop())
      t.match(slow.calls[0]!.job.signal.reason, { code: 'ASKONCE_STOPPED' })
      await rig.until('B has it', () => quick.calls.length === 1)
      t.equal(quick.calls[0]!.job.attempts, 1, 'no attempt was lost')
      if (rig.virtual) t.ok(rig.clock.monotonic() - before < rig.leaseMs, 'nobody waited for the lease to end')
      quick.calls[0]!.end.open('B')
      await rig.until('B completes', () => b.counters.completed === 1)
      slow.calls[0]!.end.open('late')
      await rig.calm()
      t.equal(await b.getResult('id'), 'B')
    },
  },
  {
    name: 'stop() within its grace: the job is let finish, its lease renewed however long that takes',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const a = await rig.worker(handler.handle, { stopTimeout: 1_000_000 })
      const b = await rig.worker(async () => 'B', { name: a.name })
      b.pause()
      await rig.drive(a.enqueueMany([1, 2].map((n) => ({ id: `id-${n}`, payload: n }))))
      await rig.until('A starts', () => handler.calls.length === 1)
      const stopped = a.stop()
      b.resume()
      await rig.until('B does the other one', () => b.counters.completed === 1)
      await rig.advance(rig.leaseMs * 3)
      t.equal(handler.calls.length, 1, 'no new work was taken')
      t.equal(handler.calls[0]!.job.signal.aborted, false)
      handler.calls[0]!.end.open('A')
      await rig.drive(stopped)
      // A claim of B may have been under way when it was paused: A has either of the two.
      t.equal(await rig.drive(b.getResult(handler.calls[0]!.job.id)), 'A')
      t.equal(b.counters.executed, 1)
    },
  },
  {
    name: 'case 35: a worker whose wall clock is wrong by an hour loses no lease by it',
    async run(t, rig) {
      for (const skewMs of [3_600_000, -3_600_000]) {
        const { storage, clock } = await rig.process()
        clock.skewMs = skewMs
        const handler = new ManualHandler<number, string>()
        const worker = await rig.worker(handler.handle, { storage, clock, name: `skew ${skewMs}` })
        const wait = worker.enqueueAndWait('id', 1, { timeout: 1_000_000 })
        await rig.until('it starts', () => handler.calls.length === 1)
        await rig.advance(rig.leaseMs * 2)
        t.equal(handler.calls[0]!.job.signal.aborted, false)
        handler.calls[0]!.end.open('done')
        t.equal(await rig.drive(wait), 'done')
        t.equal(worker.counters.executed, 1)
      }
    },
  },
  {
    name: 'a lease that was given up is not renewed when the storage is back: others get the job, the handler was told',
    async run(t, rig) {
      const { storage } = await rig.process()
      const deaf = new ManualHandler<number, string>()
      const a = await rig.worker(deaf.handle, { storage, handlerTimeoutMs: Number.POSITIVE_INFINITY })
      await rig.drive(a.enqueue('id', 1))
      await rig.until('A starts', () => deaf.calls.length === 1)
      storage.down()
      await rig.until('A gives it up', () => deaf.calls[0]!.job.signal.aborted)
      storage.up()
      await rig.advance(rig.leaseMs * 2)
      const b = await rig.worker(async () => 'B')
      await rig.advance(rig.leaseMs * 2)
      rig.takeErrors()
      t.equal(b.counters.completed, 1)
      deaf.calls[0]!.end.open('late')
      await rig.calm()
    },
  },
  {
    name: 'an error that is no retryable one ends no worker: claims that fail in any way are repeated',
    async run(t, rig) {
      const { storage } = await rig.process()
      storage.on('claim', failBefore(), 3)
      storage.on(
        'claim',
        failBefore(() => new TypeError('not even typed')),
        2,
      )
      const worker = await rig.worker<number, string>(async () => 'done', { storage })
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'done')
      const errors = rig.takeErrors()
      t.equal(errors.length, 5)
      t.match(errors[0], { code: outage().code })
    },
  },
]
