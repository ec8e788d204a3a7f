/** What Memory promises beyond the contract: order, self-expiry, one timer, bounds. */

import t from 'tap'
import type { Clock, Timer } from '../../src/clock.ts'
import { systemClock } from '../../src/clock.ts'
import { StorageFullError } from '../../src/errors.ts'
import { Queue } from '../../src/queue.ts'
import { complete } from '../../src/record.ts'
import { settle, VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'

type AnyQueue = Queue<any, any>

t.test('first in, first out: by time, then by arrival; delayed jobs among them in their turn', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock })
  const queue: AnyQueue = new Queue<any, any>({ storage, clock })
  const seen: string[] = []
  await queue.enqueue('d 20', 1, { delay: 20 })
  await queue.enqueue('a', 1)
  await queue.enqueue('d 10', 1, { delay: 10 })
  await queue.enqueueMany([
    { id: 'b', payload: 1 },
    { id: 'c', payload: 1, delay: 10 },
    { id: 'd', payload: 1 },
  ])
  await queue.enqueue('e', 1)
  await clock.advance(30)
  await queue.enqueue('f', 1)
  queue.execute(({ id }) => seen.push(id))
  await queue.start()
  await settle(30)
  t.strictSame(seen, ['a', 'b', 'd', 'e', 'd 10', 'c', 'd 20', 'f'])
  await queue.stop()
})

t.test('a retried job comes by its new time; one given back, by when it is claimable again', async (t) => {
  const clock = new VirtualClock()
  const queue: AnyQueue = new Queue<any, any>({ storage: new MemoryStorage({ clock }), clock, retry: () => 5 })
  const seen: string[] = []
  queue.execute(({ id, attempts }) => {
    seen.push(`${id}${attempts}`)
    if (id === 'a' && attempts === 1) throw new Error('again')
  })
  await queue.enqueueMany(['a', 'b', 'c'].map((id) => ({ id, payload: 1 })))
  await queue.start()
  await clock.advance(10)
  t.strictSame(seen, ['a1', 'b1', 'c1', 'a2'])
  await queue.stop()
})

t.test('expired records leave by themselves: no worker, no call, one unref’ed timer for all namespaces', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock })
  const queues: AnyQueue[] = ['a', 'b', 'c'].map((name) => new Queue<any, any>({ storage, clock, name }))
  for (const [n, queue] of queues.entries()) {
    queue.execute(() => 1, { concurrency: 100 })
    await queue.start()
    const items = Array.from({ length: 100 }, (_, k) => ({ id: `id-${k}`, payload: 1, resultTTL: 100 + 10 * n + k }))
    await queue.enqueueMany(items)
    await settle(10)
    t.equal(queue.counters.completed, 100)
    await queue.stop()
  }
  t.equal(storage.size, 300)
  t.strictSame(clock.pending, { all: 1, ref: 0 }, 'one timer, and none that keeps a process alive')
  await clock.advance(99)
  t.equal(storage.size, 300)
  await clock.advance(1)
  t.equal(storage.size, 299)
  await clock.advance(50)
  t.equal(storage.size, 299 - 50 - 41 - 31)
  t.ok(clock.pending.all <= 1)
  await clock.advance(200)
  t.equal(storage.size, 0)
  t.strictSame(clock.pending, { all: 0, ref: 0 })
})

t.test('a TTL set shorter moves the timer forward', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock })
  const queue: AnyQueue = new Queue<any, any>({ storage, clock })
  await queue.run('id', 1, async () => 1, { resultTTL: 1_000_000 })
  await queue.updateResultTTL('id', 5)
  await clock.advance(5)
  t.equal(storage.size, 0)
})

t.test('many that expire at once are freed in slices, all of them', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock })
  const queue: AnyQueue = new Queue<any, any>({ storage, clock, resultTTL: 50, concurrency: 1_000 })
  queue.execute(() => 1)
  await queue.start()
  await queue.enqueueMany(Array.from({ length: 25_000 }, (_, n) => ({ id: `id-${n}`, payload: 1 })))
  for (let turn = 0; turn < 1_000 && queue.counters.completed < 25_000; turn++) await settle()
  t.equal(queue.counters.completed, 25_000)
  await queue.stop()
  await clock.advance(60)
  t.equal(storage.size, 0)
})

t.test('recordsMax: a typed error that names the bound; other callers of the same tick are not affected', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock, recordsMax: 3 })
  const [a, b]: AnyQueue[] = ['a', 'b'].map((name) => new Queue<any, any>({ storage, clock, name, resultTTL: 100 }))
  await b!.enqueue('other namespace', 1)
  const outcomes = await Promise.allSettled(['1', '2', '1', '3', '4'].map((id) => a!.enqueue(id, 1)))
  t.strictSame(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'],
  )
  const { reason } = outcomes[3] as PromiseRejectedResult
  t.type(reason, StorageFullError)
  t.match(reason, { code: 'ASKONCE_STORAGE_FULL', field: 'recordsMax', bound: 3 })
  t.equal(storage.size, 3)
  t.match(await a!.enqueue('1', 1), { status: 'duplicate' }, 'known ids are answered all the same')
  t.match(await a!.getStatus('1'), { state: 'queued' })
  await t.rejects(b!.enqueueAndWait('5', 1), { code: 'ASKONCE_STORAGE_FULL' })
  t.rejects(
    b!.run('5', 1, async () => 1),
    { code: 'ASKONCE_STORAGE_FULL' },
  )
  t.match(await a!.cancel('2'), { status: 'cancelled' })
  t.match(await a!.enqueue('3', 1), { status: 'queued' }, 'room again')
  a!.execute(() => 1, { concurrency: 9 })
  await a!.start()
  await settle(5)
  t.equal(a!.counters.completed, 2, 'jobs run and settle in a full storage')
  await clock.advance(100)
  t.match(await a!.enqueue('6', 1), { status: 'queued' }, 'expired records make room')
  await a!.stop()
})

t.test('bytesMax: payloads and ids count; what was freed does not', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock, bytesMax: 10_000 })
  const queue: AnyQueue = new Queue<any, any>({ storage, clock })
  t.match(await queue.enqueue('small', 'x'.repeat(1_000)), { status: 'queued' })
  await t.rejects(queue.enqueue('big', 'x'.repeat(10_000)), {
    code: 'ASKONCE_STORAGE_FULL',
    field: 'bytesMax',
    bound: 10_000,
  })
  const outcomes = await Promise.allSettled([
    queue.enqueue('big', 'x'.repeat(20_000)),
    queue.enqueue('fits', 'x'.repeat(1_000)),
  ])
  t.strictSame(
    outcomes.map(({ status }) => status),
    ['rejected', 'fulfilled'],
  )
  for (let n = 0; n < 100; n++) {
    t.match(await queue.enqueue(`turn ${n}`, 'x'.repeat(5_000)), { status: 'queued' })
    t.match(await queue.cancel(`turn ${n}`), { status: 'cancelled' })
  }
})

t.test('bytesMax counts the overhead of a record, as documented', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock, bytesMax: 1_000 })
  const queue: AnyQueue = new Queue<any, any>({ storage, clock })
  t.match(await queue.enqueue('a', 1), { status: 'queued' })
  t.match(await queue.enqueue('b', 1), { status: 'queued' })
  await t.rejects(queue.enqueue('c', 1), { code: 'ASKONCE_STORAGE_FULL' }, '3 x 400 bytes are more than 1,000')
})

t.test('the system clock: expiry by real time', async (t) => {
  const timers: number[] = []
  const clock: Clock = {
    now: () => systemClock.now(),
    monotonic: () => systemClock.monotonic(),
    timer(callback: () => void, ms: number, ref: boolean): Timer {
      if (!ref) timers.push(ms)
      return systemClock.timer(callback, ms, ref)
    },
  }
  const storage = new MemoryStorage({ clock })
  const queue: AnyQueue = new Queue<any, any>({ storage })
  await queue.run('id', 1, async () => 1, { resultTTL: 20 })
  t.equal(storage.size, 1)
  for (let turn = 0; turn < 500 && storage.size > 0; turn++) await new Promise((resolve) => setTimeout(resolve, 5))
  t.equal(storage.size, 0)
})

t.test('records with rows to deliver leave by themselves: when these are delivered, or given up', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock })
  const handle = await storage.open('q')
  const lease = { generation: 'worker', leaseMs: 1_000 }
  for (const id of ['delivered', 'given up']) {
    const spec = { id, incarnation: id, fingerprint: '', maxAttempts: 1, resultTTL: 10, failureTTL: 10 }
    await handle.enqueue([{ spec, payload: '', delayMs: 0, rejectMismatch: false, lease, wait: false }])
    const verdict = complete('r', 10, { rows: 'rows', ttlMs: 100 })
    await handle.settle([{ id, generation: lease.generation, verdict }], null)
  }
  await clock.advance(50)
  t.equal(storage.size, 2, 'past their TTL, for their rows’ sake')
  const { collected } = await handle.deliver([], { generation: 'relay', leaseMs: 1_000, limit: 1 })
  t.same(
    collected!.records.map(({ spec }) => spec.id),
    ['delivered'],
  )
  await handle.deliver([{ id: 'delivered', generation: 'relay', rows: null, delayMs: 0 }], null)
  await clock.advance(1)
  t.equal(storage.size, 1, 'delivered')
  await clock.advance(48)
  t.equal(storage.size, 1)
  await clock.advance(1)
  t.equal(storage.size, 0, 'given up')
  t.equal(clock.pending.all, 0)
})

t.test('what a refresh keeps leaves with its record, and weighs in the bound until then', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock, bytesMax: 9_700 })
  const handle = await storage.open('q')
  const lease = (generation: string) => ({ generation, leaseMs: 1_000 })
  const enqueue = (id: string, generation: string, refresh: boolean) => {
    const spec = { id, incarnation: generation, fingerprint: '', maxAttempts: 1, resultTTL: 10, failureTTL: 10 }
    const item = {
      spec,
      payload: 'p',
      delayMs: 0,
      rejectMismatch: false,
      lease: lease(generation),
      wait: false,
      refresh,
    }
    return handle.enqueue([item])
  }
  await enqueue('a', 'g1', false)
  await handle.settle([{ id: 'a', generation: 'g1', verdict: complete('r'.repeat(9_000), 5_000) }], null)
  await enqueue('a', 'g2', true)
  await t.rejects(enqueue('b', 'g3', false), { code: 'ASKONCE_STORAGE_FULL' })
  await handle.settle([{ id: 'a', generation: 'g2', verdict: complete('small', 5_000) }], null)
  t.match(await enqueue('b', 'g4', false), { answers: [{ outcome: 'created' }] })
  await clock.advance(6_000)
  t.equal(storage.size, 0)
})
