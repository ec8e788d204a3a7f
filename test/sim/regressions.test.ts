/** Faults that the simulation found, each as small as it could be made. */

import t from 'tap'
import { Queue } from '../../src/queue.ts'
import { complete, retry } from '../../src/record.ts'
import type { RecordStore } from '../../src/record-store.ts'
import { fromRecordStore } from '../../src/record-store.ts'
import type { ClaimRequest, EnqueueItem, Storage, StorageHandle } from '../../src/storage.ts'
import { faultyStorage, noFaults, VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { Rows, rowTraits } from './rows.ts'

/** Memory behind a network in which every request and every reply takes 10 ms. */
function distant(clock: VirtualClock): { memory: MemoryStorage; storage: Storage } {
  const memory = new MemoryStorage({ clock })
  const faults = { ...noFaults, latencyMs: 10 }
  return { memory, storage: faultyStorage(memory, { clock, random: () => 0.999, faults }) }
}

t.test(
  'stop() while a run is being asked for: the lease that comes late is given back, and costs no attempt',
  async (t) => {
    const clock = new VirtualClock()
    const { memory, storage } = distant(clock)
    const queue = new Queue<number, string>({ storage, clock, name: 'q' })
    await Promise.all([queue.start(), clock.advance(50)])
    const asked = queue.run('id', 1, () => 'done')
    const refused = t.rejects(asked, { code: 'ASKONCE_STOPPED' })
    const stopped = queue.stop()
    await clock.advance(200)
    await stopped
    await refused
    const { records } = await (await memory.open('q')).get(['id'])
    t.match(records[0], { state: 'queued', attempts: 0 })
  },
)

t.test('a renewal that hangs: leases are given up when they end, those too that were claimed meanwhile', async (t) => {
  const clock = new VirtualClock()
  const memory = new MemoryStorage({ clock })
  const storage: Storage = {
    traits: memory.traits,
    open: async (name) => hanging(await memory.open(name)),
  }
  const leaseMs = 300
  const queue = new Queue<number, string>({ storage, clock, leaseMs, concurrency: 2, stopTimeout: 0 })
  const signals: AbortSignal[] = []
  queue.execute((job) => {
    signals.push(job.signal)
    return new Promise(() => {})
  })
  await queue.start()
  await queue.enqueue('first', 1)
  await clock.advance(150)
  await queue.enqueue('second', 2)
  await clock.advance(140)
  t.same(
    signals.map((signal) => signal.aborted),
    [false, false],
  )
  await clock.advance(160 + leaseMs / 3)
  t.same(
    signals.map((signal) => signal.aborted),
    [true, true],
  )
  await Promise.all([queue.stop(), clock.advance(10_000)])
})

function hanging(handle: StorageHandle): StorageHandle {
  return new Proxy(handle, {
    get(target, name: keyof StorageHandle) {
      if (name === 'extend') return () => new Promise(() => {})
      return target[name]?.bind(target as never)
    },
  })
}

t.test(
  'record stores: what was read early and answered late is not taken as ended, for it may have been kept longer',
  async (t) => {
    const clock = new VirtualClock()
    const rows = new Rows(0, false)
    let slowMs = 0
    const store = (slow: boolean): RecordStore => {
      const inner = rows.store(() => {})
      return {
        ...inner,
        load: async (keys) => {
          const loaded = await inner.load(keys)
          const ms = slow ? slowMs : 0
          if (ms > 0) await new Promise<void>((resolve) => void clock.timer(resolve, ms, true))
          return loaded
        },
      }
    }
    const open = (slow: boolean) =>
      fromRecordStore({ traits: rowTraits(false), clock, open: async () => store(slow) }).open('q')
    const [slow, quick] = [await open(true), await open(false)]
    const lease = { generation: 'g', leaseMs: 1_000 }
    const spec = { id: 'id', incarnation: 'i', fingerprint: '', maxAttempts: 1, resultTTL: 100, failureTTL: 100 }
    const item: EnqueueItem = { spec, payload: '1', delayMs: 0, rejectMismatch: false, lease, wait: false }
    await quick.enqueue([item])
    await quick.settle([{ id: 'id', generation: 'g', verdict: complete('result', 100) }], null)
    slowMs = 150
    const answers = Promise.all([slow.get(['id']), slow.cancel(['id']), slow.touch([{ id: 'id', ttlMs: 500 }])])
    await clock.advance(50)
    t.same(await quick.touch([{ id: 'id', ttlMs: 1_000 }]), ['updated'])
    await clock.advance(1_000)
    const [got, cancelled, touched] = await answers
    t.match(got.records[0], { state: 'completed' })
    t.same(cancelled, ['completed'])
    t.same(touched, ['updated'])
  },
)

t.test('a run that is asked for while the queue is held begins when the hold ends, not at the next poll', async (t) => {
  const clock = new VirtualClock()
  const memory = new MemoryStorage({ clock })
  const handle = await memory.open('q')
  await handle.hold(75)
  const queue = new Queue<number, string>({ storage: memory, clock, name: 'q' })
  // Not to be had at the next poll: by then the record would be forgotten.
  const asked = queue.run('id', 1, () => 'done', { resultTTL: 50 })
  await clock.advance(100)
  t.equal(await Promise.race([asked, Promise.resolve('not yet')]), 'done')
  await Promise.all([queue.stop(), clock.advance(10_000)])
})

t.test('a run whose attempt ends while the queue stops begins no other: it is told of the stop', async (t) => {
  const clock = new VirtualClock()
  const memory = new MemoryStorage({ clock })
  const queue = new Queue<number, string>({ storage: memory, clock, name: 'q', retry: () => 0 })
  let calls = 0
  let end: (error: Error) => void = () => {}
  const asked = queue.run('id', 1, () => {
    calls++
    return new Promise((_, reject) => {
      end = reject
    })
  })
  const refused = t.rejects(asked, { code: 'ASKONCE_STOPPED' })
  // Another one, that the stop waits for.
  const other = t.rejects(
    queue.run('other', 1, () => new Promise(() => {})),
    { code: 'ASKONCE_STOPPED' },
  )
  await clock.advance(10)
  const stopped = queue.stop()
  await clock.advance(10)
  end(new Error('says the handler'))
  await clock.advance(60_000)
  await Promise.all([stopped, refused, other])
  t.equal(calls, 1)
  const { records } = await (await memory.open('q')).get(['id'])
  t.match(records[0], { state: 'failing', attempts: 1 })
})

t.test('a renewal that hung before a stop does not keep the next start’s leases from being renewed', async (t) => {
  const clock = new VirtualClock()
  const memory = new MemoryStorage({ clock })
  let hangs = true
  const storage: Storage = {
    traits: memory.traits,
    open: async (name) => {
      const handle = await memory.open(name)
      return hangs ? hanging(handle) : handle
    },
  }
  const queue = new Queue<number, string>({ storage, clock, name: 'q', leaseMs: 300, stopTimeout: 0, maxAttempts: 9 })
  const signals: AbortSignal[] = []
  queue.execute((job) => {
    signals.push(job.signal)
    return new Promise(() => {})
  })
  await queue.start()
  await queue.enqueue('id', 1)
  await clock.advance(150)
  await Promise.all([queue.stop(), clock.advance(10)])
  hangs = false
  await Promise.all([queue.start(), clock.advance(10)])
  await clock.advance(2_000)
  t.same(
    signals.map((signal) => signal.aborted),
    [true, false],
  )
  const { records } = await (await memory.open('q')).get(['id'])
  t.match(records[0], { state: 'processing', attempts: 1 })
  t.ok((records[0]?.at ?? 0) > clock.now(), 'the lease lives')
  await Promise.all([queue.stop(), clock.advance(10_000)])
})

t.test('a run that takes over what has meanwhile become another job gives it back, and is told', async (t) => {
  const clock = new VirtualClock()
  const memory = new MemoryStorage({ clock })
  const admin = await memory.open('q')
  const item = (incarnation: string, generation: string | null): EnqueueItem => ({
    spec: { id: 'id', incarnation, fingerprint: '', maxAttempts: 3, resultTTL: 60_000, failureTTL: 60_000 },
    payload: '1',
    delayMs: 0,
    rejectMismatch: false,
    lease: generation === null ? null : { generation, leaseMs: 1_000 },
    wait: false,
  })
  // An inline job that waits for its next attempt, its runner gone.
  await admin.enqueue([item('first', 'g')])
  await admin.settle([{ id: 'id', generation: 'g', verdict: retry('"error"', 500) }], null)
  const storage: Storage = {
    traits: memory.traits,
    open: async (name) => {
      const handle = await memory.open(name)
      return new Proxy(handle, {
        get(target, name: keyof StorageHandle) {
          if (name !== 'claim') return target[name]?.bind(target as never)
          return async (request: ClaimRequest) => {
            t.same(await admin.cancel(['id']), ['cancelled'])
            await admin.enqueue([item('second', null)])
            return target.claim(request)
          }
        },
      })
    },
  }
  const queue = new Queue<number, string>({ storage, clock, name: 'q' })
  const asked = t.rejects(
    queue.run('id', 1, () => 'not to be run'),
    { name: 'JobCancelledError' },
  )
  await clock.advance(700)
  await asked
  const { records } = await admin.get(['id'])
  t.match(records[0], { state: 'queued', attempts: 0, spec: { incarnation: 'second' } })
  await Promise.all([queue.stop(), clock.advance(10_000)])
})

t.test('Memory: a claim that arrives a second time, after its lease is over, answers each job once', async (t) => {
  const clock = new VirtualClock()
  const handle = await new MemoryStorage({ clock }).open('q')
  const spec = { id: 'id', incarnation: 'i', fingerprint: '', maxAttempts: 3, resultTTL: 1_000, failureTTL: 1_000 }
  await handle.enqueue([{ spec, payload: '1', delayMs: 0, rejectMismatch: false, lease: null, wait: false }])
  const claim: ClaimRequest = { generation: 'g', leaseMs: 100, limit: 3 }
  for (const when of ['first', 'again', 'over']) {
    if (when === 'over') await clock.advance(200)
    const { jobs } = await handle.claim(claim)
    t.same(
      jobs.map(({ spec, attempts }) => [spec.id, attempts]),
      when === 'again' ? [] : [['id', 1]],
      when,
    )
  }
})

t.test(
  'record stores: an inline run that is asked for twice, the second time past its end, gets no lease while the queue is held',
  async (t) => {
    const clock = new VirtualClock()
    const open = async () => new Rows(0, false).store(() => {})
    const handle = await fromRecordStore({ traits: rowTraits(false), clock, open }).open('q')
    const spec = { id: 'id', incarnation: 'i', fingerprint: '', maxAttempts: 1, resultTTL: 10, failureTTL: 10 }
    const lease = { generation: 'g', leaseMs: 10 }
    const item: EnqueueItem = { spec, payload: '1', delayMs: 0, rejectMismatch: false, lease, wait: false }
    t.match((await handle.enqueue([item])).answers, [{ outcome: 'created', leased: true }])
    await clock.advance(20)
    await handle.hold(50)
    t.match((await handle.enqueue([item])).answers, [
      { outcome: 'created', leased: false, record: { state: 'queued' } },
    ])
  },
)
