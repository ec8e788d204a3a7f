import t from 'tap'
import type { Clock } from '../src/clock.ts'
import { AskonceError, StorageClosedError, StorageError, StorageFullError, TooLargeError } from '../src/errors.ts'
import type { JobRecord, Verdict } from '../src/record.ts'
import { complete, release, retry } from '../src/record.ts'
import type { JobRow, RecordStore, RecordStoreOptions } from '../src/record-store.ts'
import { fromRecordStore } from '../src/record-store.ts'
import type { EnqueueItem, Hint, LeaseTerms, Storage, StorageHandle } from '../src/storage.ts'
import { conformance, settle, VirtualClock } from '../storages/conformance/index.ts'
import type { Faults, RowStoreOptions } from './support/row-store.ts'
import { noFaults, RowStore, RowTable, rowTraits } from './support/row-store.ts'

interface World {
  readonly clock: VirtualClock
  /** The rows of the namespace `q`. */
  readonly table: RowTable
  readonly stores: RowStore[]
  /** A storage as one more process would have it. */
  process(options?: ProcessOptions): Storage
}

type ProcessOptions = Partial<Omit<RecordStoreOptions, 'clock' | 'open' | 'traits'>> &
  Partial<Pick<RowStoreOptions, 'random' | 'interleave'>> & { readonly faults?: Partial<Faults> }

/** Time stands still, but pauses end at once: what waits for another writer must not wait for the test. */
function impatient(clock: VirtualClock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    timer: (callback) => {
      const handle = setImmediate(callback)
      return { clear: () => clearImmediate(handle) }
    },
  }
}

function world(): World {
  const clock = new VirtualClock()
  const tables = new Map<string, RowTable>([['q', new RowTable()]])
  const table = tables.get('q')!
  const stores: RowStore[] = []
  return {
    clock,
    table,
    stores,
    process(options = {}) {
      const { faults, random, interleave, ...rest } = options
      const open = async (namespace: string): Promise<RowStore> => {
        if (!tables.has(namespace)) tables.set(namespace, new RowTable())
        const store = new RowStore({
          table: tables.get(namespace)!,
          clock,
          faults: { ...noFaults, ...faults },
          ...(rest.graceMs === undefined ? {} : { graceMs: rest.graceMs }),
          ...(random === undefined ? {} : { random }),
          ...(interleave === undefined ? {} : { interleave }),
        })
        stores.push(store)
        return store
      }
      return fromRecordStore({ traits: rowTraits, open, clock: impatient(clock), ...rest })
    },
  }
}

let tokens = 0

function item(id: string, more: Partial<EnqueueItem> & { maxAttempts?: number } = {}): EnqueueItem {
  const { maxAttempts = 3, ...rest } = more
  const spec = { id, incarnation: `i${tokens++}`, fingerprint: '', maxAttempts, resultTTL: 5_000, failureTTL: 3_000 }
  return { spec, payload: `"${id}"`, delayMs: 0, rejectMismatch: false, lease: null, wait: false, ...rest }
}

function lease(leaseMs = 1_000): LeaseTerms {
  return { generation: `g${tokens++}`, leaseMs }
}

/** Claims the one job and ends it. */
async function endOne(handle: StorageHandle, verdict: Verdict) {
  const { spec, generation } = await claimOne(handle)
  return (await handle.settle([{ id: spec.id, generation, verdict }], null)).answers
}

/** Leases one outbox. */
async function collectOne(handle: StorageHandle, leaseMs = 1_000) {
  const { collected } = await handle.deliver([], { ...lease(leaseMs), limit: 1 })
  return collected!.records[0]!
}

async function claimOne(handle: StorageHandle, leaseMs = 1_000) {
  const claim = await handle.claim({ ...lease(leaseMs), limit: 1 })
  return claim.jobs[0]!
}

t.test('requests', async (t) => {
  t.test('a new id is one conditional put, a known one a single refused put', async (t) => {
    const { process, stores } = world()
    const handle = await process({ createFirst: true }).open('q')
    await handle.enqueue([item('a'), item('b')])
    t.match(stores[0]!.counts, { load: 0, swap: 1, changes: 2, refused: 0 })
    const { answers } = await handle.enqueue([item('a')])
    t.match(answers[0], { outcome: 'exists', leased: false, record: { payload: '"a"' } })
    t.match(stores[0]!.counts, { load: 0, swap: 2, changes: 3, refused: 1 })
  })

  t.test('without createFirst a known id costs a load and no write', async (t) => {
    const { process, stores } = world()
    const handle = await process().open('q')
    await handle.enqueue([item('a')])
    await handle.enqueue([item('a')])
    t.match(stores[0]!.counts, { load: 2, swap: 1, changes: 1 })
  })

  t.test('the several items of one id share one load and one swap', async (t) => {
    const { process, stores } = world()
    const handle = await process().open('q')
    const { answers } = await handle.enqueue([item('a'), item('b'), item('a'), item('a')])
    t.same(
      answers.map(({ outcome }) => outcome),
      ['created', 'created', 'exists', 'exists'],
    )
    t.match(stores[0]!.counts, { load: 1, loaded: 2, swap: 1, changes: 2 })
  })

  t.test('a holder renews and settles without a load', async (t) => {
    const { process, stores } = world()
    const handle = await process({ holdCacheMs: 1_000, faults: { rows: 1 } }).open('q')
    await handle.enqueue([item('a')])
    const before = { ...stores[0]!.counts }
    const { generation } = await claimOne(handle)
    t.equal(stores[0]!.counts.load, before.load + 1, 'the hold is looked up once')
    t.same(await handle.extend([{ id: 'a', generation, leaseMs: 1_000 }]), ['extended'])
    t.same(await handle.extend([{ id: 'a', generation, leaseMs: 1_000 }]), ['extended'])
    const settled = await handle.settle([{ id: 'a', generation, verdict: complete('1', 1_000) }], null)
    t.same(settled.answers, ['settled'])
    t.equal(stores[0]!.counts.load, before.load + 1)
    t.equal(stores[0]!.counts.swap, before.swap + 4)
    t.equal(stores[0]!.counts.refused, 0)
    await handle.claim({ ...lease(), limit: 1 })
    t.equal(stores[0]!.counts.load, before.load + 1, 'the hold is remembered')
  })

  t.test('the memory of leases is bounded', async (t) => {
    const { process, stores } = world()
    const handle = await process({ leaseCacheMax: 1 }).open('q')
    await handle.enqueue([item('a'), item('b')])
    const { generation } = lease()
    await handle.claim({ generation, leaseMs: 1_000, limit: 2 })
    const loads = stores[0]!.counts.load
    await handle.extend([{ id: 'b', generation, leaseMs: 1_000 }])
    t.equal(stores[0]!.counts.load, loads)
    await handle.extend([{ id: 'a', generation, leaseMs: 1_000 }])
    t.equal(stores[0]!.counts.load, loads + 1)
  })

  t.test('a remembered lease that was taken over is stale, and is looked up before that is said', async (t) => {
    const { process, clock } = world()
    const one = await process().open('q')
    const two = await process().open('q')
    await one.enqueue([item('a')])
    const { generation } = await claimOne(one)
    await clock.advance(1_000)
    const taken = await claimOne(two)
    t.same(await one.extend([{ id: 'a', generation, leaseMs: 1_000 }]), ['stale'])
    t.same((await one.settle([{ id: 'a', generation, verdict: complete('1', 1) }], null)).answers, ['stale'])
    t.same(await one.extend([{ id: 'a', generation: taken.generation, leaseMs: 1_000 }]), ['extended'])
  })

  t.test('a lease that was found lost is not remembered: asking again costs a load and no write', async (t) => {
    const { process, clock, stores } = world()
    const one = await process().open('q')
    const two = await process().open('q')
    await one.enqueue([item('a')])
    const { generation } = await claimOne(one)
    await clock.advance(1_000)
    await claimOne(two)
    const extend = () => one.extend([{ id: 'a', generation, leaseMs: 1_000 }])
    t.same(await extend(), ['stale'])
    t.equal(stores[0]!.counts.refused, 1, 'the first time it was worth a try')
    t.same(await extend(), ['stale'])
    t.equal(stores[0]!.counts.refused, 1)
  })

  t.test('calls of one process for one id take turns instead of failing at each other', async (t) => {
    const { process, stores } = world()
    const interleave = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    const storage = process({ interleave })
    const handles = [await storage.open('q'), await storage.open('q')]
    await handles[0]!.enqueue([item('a')])
    const { generation } = await claimOne(handles[0]!)
    await handles[0]!.settle([{ id: 'a', generation, verdict: complete('1', 1_000) }], null)
    const touches = Array.from({ length: 50 }, (_, i) =>
      handles[i % 2]!.touch([
        { id: i % 3 === 0 ? 'b' : 'a', ttlMs: 1_000 + i },
        { id: i % 3 === 0 ? 'a' : 'b', ttlMs: 1_000 + i },
      ]),
    )
    t.match((await Promise.all(touches))[1], ['updated', 'not_found'])
    t.equal(stores[0]!.counts.refused, 0)
    t.match(await handles[0]!.get(['a']), { records: [{ at: (await handles[0]!.get([])).now + 1_049 }] }, 'in order')
  })

  t.test('nothing asked for costs nothing', async (t) => {
    const { process, stores } = world()
    const handle = await process().open('q')
    await handle.enqueue([])
    await handle.extend([])
    await handle.settle([], null)
    await handle.cancel([])
    await handle.touch([])
    await handle.get([])
    t.match(stores[0]!.counts, { load: 0, swap: 0, due: 0 })
  })

  t.test('claims that come together share one look', async (t) => {
    const { process, stores } = world()
    const handle = await process().open('q')
    await handle.enqueue(Array.from({ length: 50 }, (_, i) => item(`${i}`)))
    const claims = await Promise.all(Array.from({ length: 50 }, () => handle.claim({ ...lease(), limit: 1 })))
    t.same(
      claims.map(({ jobs }) => jobs.map(({ spec }) => spec.id)),
      Array.from({ length: 50 }, (_, i) => [`${i}`]),
    )
    t.equal(stores[0]!.counts.due, 2, 'one for the first, one for all that came meanwhile')
    t.equal(stores[0]!.counts.refused, 0)
  })
})

t.test('other writers', async (t) => {
  t.test('200 callers of 4 processes and one id: one creates', async (t) => {
    const { process } = world()
    const handles: StorageHandle[] = []
    for (let i = 0; i < 4; i++) {
      const interleave = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
      handles.push(await process({ createFirst: i % 2 === 0, interleave }).open('q'))
    }
    const answers = await Promise.all(Array.from({ length: 200 }, (_, i) => handles[i % 4]!.enqueue([item('a')])))
    t.equal(answers.filter((answer) => answer.answers[0]!.outcome === 'created').length, 1)
  })

  t.test('200 claims of 4 processes and 100 jobs: each is leased once, all are', async (t) => {
    const { process } = world()
    const handles: StorageHandle[] = []
    for (let i = 0; i < 4; i++) {
      const interleave = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
      handles.push(await process({ interleave, faults: { rows: i % 2, stale: 0.2, rowless: 0.5 } }).open('q'))
    }
    await handles[0]!.enqueue(Array.from({ length: 100 }, (_, i) => item(`${i}`)))
    const got: string[] = []
    for (let round = 0; round < 20 && got.length < 100; round++) {
      const claims = await Promise.all(
        Array.from({ length: 40 }, (_, i) => handles[i % 4]!.claim({ ...lease(), limit: 3 })),
      )
      for (const { jobs } of claims) for (const { spec } of jobs) got.push(spec.id)
    }
    t.equal(got.length, 100)
    t.equal(new Set(got).size, 100)
  })

  t.test('a row that changes before every swap: a typed error after a bounded number of rounds', async (t) => {
    const { process, table, stores } = world()
    let version = 0
    const interleave = (call: string): void => {
      const row = table.rows.get('a')
      if (call === 'swap' && row !== undefined) table.rows.set('a', { ...row, version: `other ${version++}` })
    }
    const handle = await process({ interleave }).open('q')
    await handle.enqueue([item('a')])
    const before = stores[0]!.counts.swap
    await t.rejects(handle.cancel(['a']), { code: 'ASKONCE_STORAGE', retryable: true, message: /contended/ })
    t.equal(stores[0]!.counts.swap - before, 200)
    const claimed = await handle.claim({ ...lease(), limit: 1 })
    t.same(claimed.jobs, [], 'a claim looks elsewhere instead')
    t.equal(stores[0]!.counts.swap - before, 202)
  })

  t.test('pauses between rounds go by the clock, jittered, and end', async (t) => {
    const { clock, table } = world()
    const pauses: number[] = []
    const slow: Clock = {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      timer: (callback, ms) => {
        pauses.push(ms)
        setImmediate(callback)
        return { clear() {} }
      },
    }
    let version = 0
    const open = async (): Promise<RowStore> =>
      new RowStore({
        table,
        clock,
        interleave: (call) => {
          const row = table.rows.get('a')
          if (call === 'swap' && row !== undefined && version < 12) {
            table.rows.set('a', { ...row, version: `other ${version++}` })
          }
        },
      })
    const handle = await fromRecordStore({ traits: rowTraits, open, clock: slow, random: () => 0.5 }).open('q')
    await handle.enqueue([item('a')])
    t.same(await handle.cancel(['a']), ['cancelled'])
    t.same(pauses, [1, 2, 4, 8, 16, 25, 25, 25, 25, 25, 25])
  })
})

t.test('replies lost', async (t) => {
  for (const fault of ['after', 'echo', 'change'] as const) {
    t.test(`${fault}: every step of a job is answered as it was done`, async (t) => {
      const { table, clock } = world()
      let on = true
      const flip = (): number => {
        on = !on
        return Number(on)
      }
      // Fails every second time: each step meets the fault, and gets through after it.
      const faults: Partial<Faults> = {}
      Object.defineProperty(faults, fault, { enumerable: true, get: flip })
      const store = new RowStore({ table, clock, faults: faults as Faults, random: () => 0.4 })
      const storage = fromRecordStore({ traits: rowTraits, open: async () => store, clock: impatient(clock) })
      const handle = await storage.open('q')
      const { answers } = await handle.enqueue([item('a')])
      t.match(answers, [{ outcome: 'created' }])
      const { generation, attempts } = await claimOne(handle)
      t.equal(attempts, 1)
      t.same(await handle.extend([{ id: 'a', generation, leaseMs: 1_000 }]), ['extended'])
      const back = await handle.settle([{ id: 'a', generation, verdict: release(0) }], { ...lease(), limit: 1 })
      t.same(back.answers, ['settled'])
      t.equal(back.claim?.jobs[0]?.attempts, 1, 'the attempt was given back once, not twice')
      const second = back.claim!.jobs[0]!.generation
      const again = await handle.settle([{ id: 'a', generation: second, verdict: retry('"e"', 0) }], null)
      t.same(again.answers, ['settled'])
      const third = await claimOne(handle)
      const ended = await handle.settle(
        [{ id: 'a', generation: third.generation, verdict: complete('1', 1_000) }],
        null,
      )
      t.same(ended.answers, ['settled'])
      t.same(await handle.touch([{ id: 'a', ttlMs: 2_000 }]), ['updated'])
      t.match(await handle.get(['a']), { records: [{ state: 'completed', attempts: 2, at: clock.now() + 2_000 }] })
    })

    t.test(`${fault}: every step of a refresh and of a delivery is answered as it was done`, async (t) => {
      const { table, clock } = world()
      let on = true
      const faults: Partial<Faults> = {}
      Object.defineProperty(faults, fault, {
        enumerable: true,
        get: () => {
          on = !on
          return Number(on)
        },
      })
      const store = new RowStore({ table, clock, faults: faults as Faults, random: () => 0.4 })
      const storage = fromRecordStore({ traits: rowTraits, open: async () => store, clock: impatient(clock) })
      const handle = await storage.open('q')
      await handle.enqueue([item('a')])
      await endOne(handle, complete('"old"', 9_000))
      t.same(await handle.mark([{ id: 'a', name: 'm', token: 'one' }]), ['marked'])
      const again = await handle.enqueue([item('a', { refresh: true })])
      t.match(again.answers, [{ outcome: 'created', record: { state: 'queued', kept: { result: '"old"' } } }])
      t.same(await handle.mark([{ id: 'a', name: 'm', token: 'two' }]), ['marked'], 'of the new run')
      t.same(await endOne(handle, complete('"new"', 9_000, { rows: 'both', ttlMs: 9_000 })), ['settled'])
      const first = await collectOne(handle)
      t.match(first, { spec: { id: 'a' }, outbox: { rows: 'both', attempts: 1 } })
      const generation = first.outbox!.generation!
      const part = await handle.deliver([{ id: 'a', generation, rows: 'one', delayMs: 0 }], { ...lease(), limit: 1 })
      t.same(part.answers, ['delivered'])
      t.match(part.collected?.records, [{ outbox: { rows: 'one', attempts: 2 } }])
      const second = part.collected!.records[0]!.outbox!.generation!
      const rest = { id: 'a', generation: second, rows: null, delayMs: 0 }
      t.same((await handle.deliver([rest], null)).answers, ['delivered'])
      t.match((await handle.get(['a'])).records, [{ result: '"new"', outbox: undefined }])
    })
  }

  t.test('an exhausted record is told of, once it is settled', async (t) => {
    const { process, clock } = world()
    const handle = await process({ faults: { after: 1 } }).open('q')
    const one = await process().open('q')
    await one.enqueue([item('a', { maxAttempts: 1 })])
    await claimOne(one)
    await clock.advance(1_000)
    const { jobs, exhausted } = await handle.claim({ ...lease(), limit: 1 })
    t.same(jobs, [])
    t.match(exhausted, [{ state: 'failed', reason: 'exhausted' }])
  })

  t.test('a cancel that may have been made by another is not claimed for this caller', async (t) => {
    const { process } = world()
    const plain = await process().open('q')
    const faulty = await process({ faults: { after: 1 } }).open('q')
    await plain.enqueue([item('a')])
    await t.rejects(faulty.cancel(['a']), { code: 'ASKONCE_STORAGE' })
    t.same((await plain.get(['a'])).records, [null], 'it was made')
    t.same(await faulty.cancel(['a']), ['not_found'])
  })

  t.test('a claim whose last try lost its reply still finds the lease it made', async (t) => {
    const { process, table, clock } = world()
    const plain = await process().open('q')
    await plain.enqueue([item('a')])
    const store = new RowStore({ table, clock })
    const swap = store.swap.bind(store)
    let swaps = 0
    store.swap = async (changes) => {
      swaps++
      // First another writer is faster; then the write is made and its reply lost.
      if (swaps === 1) table.rows.set('a', { ...table.rows.get('a')!, version: 'other' } as JobRow)
      const answers = await swap(changes)
      if (swaps === 2) throw new StorageError('the reply was lost')
      return answers
    }
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => store, clock }).open('q')
    t.match((await handle.claim({ ...lease(), limit: 1 })).jobs, [{ spec: { id: 'a' }, attempts: 1 }])
    t.equal(swaps, 2)
  })

  t.test('a claim answers the leases it made, whatever became of others', async (t) => {
    const { process, table } = world()
    const plain = await process().open('q')
    const store = new RowStore({ table, clock: new VirtualClock() })
    let room = 0
    const broken: RecordStore = Object.assign(Object.create(store) as RecordStore, {
      load: (keys: readonly string[]) => store.load(keys),
      due: (...args: Parameters<RowStore['due']>) => store.due(...args),
      swap: async (changes: Parameters<RowStore['swap']>[0]) => {
        const made = await store.swap(changes.slice(0, room))
        room -= made.length
        return changes.map((_, i) => made[i] ?? { ok: false as const, error: new StorageError('throttled') })
      },
    })
    const clock = impatient(new VirtualClock())
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => broken, clock }).open('q')
    await plain.enqueue([item('a'), item('b'), item('c')])
    for (const ids of [undefined, ['b', 'c']]) {
      room = 1
      const { jobs } = await handle.claim({ ...lease(), limit: 3, ...(ids === undefined ? {} : { ids }) })
      t.equal(jobs.length, 1)
    }
  })
})

t.test('a store that fails', async (t) => {
  t.test('its typed errors come as they are, others as the cause of a StorageError', async (t) => {
    const { process } = world()
    const handle = await process({ faults: { before: 1 } }).open('q')
    await t.rejects(handle.enqueue([item('a')]), { code: 'ASKONCE_STORAGE', message: 'failed before writing' })
    const lost = await process({ faults: { load: 1 } }).open('q')
    await t.rejects(lost.get(['a']), { code: 'ASKONCE_STORAGE', message: 'load failed' })
    const blind = await process({ faults: { due: 1 } }).open('q')
    await t.rejects(blind.claim({ ...lease(), limit: 1 }), { code: 'ASKONCE_STORAGE', message: 'due failed' })
    const mute = await process({ faults: { change: 1 }, random: () => 0.9 }).open('q')
    await (await process().open('q')).enqueue([item('b')])
    await t.rejects(mute.claim({ ...lease(), limit: 1 }), { code: 'ASKONCE_STORAGE', message: 'change failed' })
    await t.rejects(blind.sweep(1), { code: 'ASKONCE_STORAGE', message: 'due failed' })
    for (const error of [new Error('odd'), null, 'text']) {
      const open = async (): Promise<RecordStore> => {
        throw error
      }
      const storage = fromRecordStore({ traits: rowTraits, open })
      await t.rejects(storage.open('q'), { code: 'ASKONCE_STORAGE', retryable: true, cause: error ?? null })
    }
  })

  t.test('a change refused for good is not tried again', async (t) => {
    for (const error of [
      new TooLargeError('payload', 2, 1),
      new StorageFullError('recordsMax', 1),
      new StorageError('no', { retryable: false }),
    ]) {
      const store = new RowStore({ table: new RowTable(), clock: new VirtualClock() })
      let swaps = 0
      store.swap = async (changes) => {
        swaps++
        return changes.map(() => ({ ok: false, error }))
      }
      const handle = await fromRecordStore({ traits: rowTraits, open: async () => store }).open('q')
      t.equal(await handle.enqueue([item('a')]).catch((e) => e), error)
      t.equal(swaps, 1)
    }
  })

  t.test('an open that failed can be tried again', async (t) => {
    const { table, clock } = world()
    let fail = true
    const open = async (): Promise<RowStore> => {
      if (fail) throw new StorageError('down')
      return new RowStore({ table, clock })
    }
    const storage = fromRecordStore({ traits: rowTraits, open, clock })
    await t.rejects(Promise.all([storage.open('q'), storage.open('q')]), { message: 'down' })
    fail = false
    const handle = await storage.open('q')
    await handle.enqueue([item('a')])
    await handle.close()
  })
})

t.test('hints of what is due', async (t) => {
  t.test('stale and wrong ones at the head do not hide good ones', async (t) => {
    const { process, table, clock } = world()
    const store = new RowStore({ table, clock })
    const wrong = Array.from({ length: 300 }, (_, i) => `wrong ${i}`)
    let asked = 0
    const due = store.due.bind(store)
    store.due = async (limit, now, kind) => {
      asked++
      const { items, nextAt } = await due(limit, now, kind)
      return { items: [...wrong, ...items].slice(0, limit), nextAt }
    }
    const plain = await process().open('q')
    await plain.enqueue([item('a'), item('b')])
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => store, clock }).open('q')
    const { jobs } = await handle.claim({ ...lease(), limit: 2 })
    t.same(
      jobs.map(({ spec }) => spec.id),
      ['a', 'b'],
    )
    t.ok(asked <= 11, `${asked} looks`)
  })

  t.test('nothing but wrong ones: bounded work', async (t) => {
    const { table, clock } = world()
    const store = new RowStore({ table, clock })
    let asked = 0
    let made = 0
    store.due = async (limit) => {
      asked++
      return { items: Array.from({ length: limit }, () => `wrong ${made++}`), nextAt: null }
    }
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => store, clock }).open('q')
    t.same((await handle.claim({ ...lease(), limit: 1 })).jobs, [])
    t.ok(asked <= 11, `${asked} looks`)
    asked = 0
    t.equal(await handle.sweep(10), 0)
    t.ok(asked <= 11, `${asked} looks`)
  })

  t.test('a row hinted at as it was before is claimed as it is now', async (t) => {
    const { process, table, clock } = world()
    const plain = await process().open('q')
    await plain.enqueue([item('a')])
    const old = table.rows.get('a') as JobRow
    const { generation } = await claimOne(plain)
    await plain.settle([{ id: 'a', generation, verdict: release(0) }], null)
    const store = new RowStore({ table, clock })
    store.due = async () => ({ items: [old], nextAt: null })
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => store, clock }).open('q')
    t.equal((await claimOne(handle)).attempts, 1)
    t.same((await handle.claim({ ...lease(), limit: 1 })).jobs, [], 'not again')
  })

  t.test('an inline record is not claimed on the word of a hint', async (t) => {
    const { table, clock } = world()
    const store = new RowStore({ table, clock })
    store.due = async () => ({ items: ['a', ''], nextAt: null })
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => store, clock }).open('q')
    await handle.enqueue([item('a', { lease: lease() })])
    await clock.advance(1_000)
    t.same((await handle.claim({ ...lease(), limit: 1 })).jobs, [])
    t.equal((await handle.claim({ ...lease(), limit: 1, ids: ['a'] })).jobs.length, 1)
  })

  t.test('the time until the next is told: of others, and of leases just made', async (t) => {
    const { process } = world()
    const handle = await process({ graceMs: 100 }).open('q')
    const claim = () => handle.claim({ ...lease(), limit: 1 })
    t.equal((await claim()).nextInMs, null)
    await handle.enqueue([item('a', { delayMs: 5_000 })])
    t.equal((await claim()).nextInMs, 5_000)
    await handle.enqueue([item('b')])
    t.equal((await claim()).nextInMs, 1_100)
  })
})

t.test('hints of what is to be delivered', async (t) => {
  /** Jobs that have ended with rows, and a store whose hints can be set. */
  async function posted(ids: readonly string[]) {
    const { process, table, clock } = world()
    const plain = await process().open('q')
    await plain.enqueue(ids.map((id) => item(id)))
    const verdict = complete('1', 1_000, { rows: 'rows', ttlMs: 60_000 })
    for (const _ of ids) await endOne(plain, verdict)
    const store = new RowStore({ table, clock })
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => store, clock }).open('q')
    const collect = (limit: number) => handle.deliver([], { ...lease(), limit }).then(({ collected }) => collected!)
    return { plain, table, clock, store, handle, collect }
  }
  const idsOf = (records: readonly JobRecord[]) => records.map(({ spec }) => spec.id)

  t.test('stale and wrong ones at the head do not hide good ones', async (t) => {
    const { store, plain, collect } = await posted(['a', 'b'])
    await plain.enqueue([item('queued'), item('gone')])
    await plain.cancel(['gone'])
    const wrong = ['', 'gone', 'queued', ...Array.from({ length: 300 }, (_, i) => `wrong ${i}`)]
    let asked = 0
    const due = store.due.bind(store)
    store.due = async (limit, now, kind) => {
      asked++
      t.equal(kind, 'deliverable')
      const { items, nextAt } = await due(limit, now, kind)
      return { items: [...wrong, ...items].slice(0, limit), nextAt }
    }
    t.same(idsOf((await collect(2)).records), ['a', 'b'])
    t.ok(asked <= 11, `${asked} looks`)
    t.match((await plain.get(['queued'])).records, [{ state: 'queued' }], 'a wrong hint changes nothing')
  })

  t.test('nothing but wrong ones: bounded work', async (t) => {
    const { store, collect } = await posted([])
    let asked = 0
    let made = 0
    store.due = async (limit) => {
      asked++
      return { items: Array.from({ length: limit }, () => `wrong ${made++}`), nextAt: null }
    }
    t.same((await collect(1)).records, [])
    t.ok(asked <= 11, `${asked} looks`)
  })

  t.test('rows hinted at as they were before are collected as they are now, or not at all', async (t) => {
    const { store, table, plain, handle, collect } = await posted(['part', 'all', 'leased'])
    const old = ['part', 'all', 'leased'].map((id) => table.rows.get(id) as JobRow)
    const { collected } = await plain.deliver([], { ...lease(), limit: 3 })
    const generation = collected!.records[0]!.outbox!.generation!
    const rest = { generation, delayMs: 0 }
    await plain.deliver(
      [
        { ...rest, id: 'part', rows: 'rest' },
        { ...rest, id: 'all', rows: null },
      ],
      null,
    )
    store.due = async () => ({ items: old, nextAt: null })
    const { records } = await collect(3)
    t.match(records, [{ spec: { id: 'part' }, outbox: { rows: 'rest', attempts: 2 } }])
    t.equal(records.length, 1)
    t.match((await handle.get(['leased'])).records, [{ outbox: { generation } }], 'whose lease lives')
  })

  t.test('what a hint left out waits for the next look', async (t) => {
    const { store, collect } = await posted(['a', 'b'])
    const due = store.due.bind(store)
    store.due = async () => ({ items: [], nextAt: null })
    t.match(await collect(2), { records: [], nextInMs: null })
    store.due = due
    t.same(idsOf((await collect(2)).records), ['a', 'b'])
  })

  t.test('those that were given up are not collected, stand in nobody’s way, and are freed on the way', async (t) => {
    const { table, clock, plain, handle, collect } = await posted(['a', 'b', 'c'])
    await clock.advance(60_000)
    t.match(await collect(1), { records: [], nextInMs: null })
    await plain.enqueue([item('d')])
    await endOne(plain, complete('1', 1_000, { rows: 'rows', ttlMs: 1_000 }))
    t.same(idsOf((await collect(1)).records), ['d'])
    t.same([...table.rows.keys()], ['d'])
    t.equal(await handle.sweep(10), 0)
  })

  t.test('the time until the next is told; a relay’s lease counts with the grace', async (t) => {
    const { process } = world()
    const handle = await process({ graceMs: 100 }).open('q')
    const look = async () => (await handle.deliver([], { ...lease(), limit: 1 })).collected!
    t.equal((await look()).nextInMs, null)
    await handle.enqueue([item('a'), item('b')])
    for (const _ of 'ab') await endOne(handle, complete('1', 1_000, { rows: 'rows', ttlMs: 60_000 }))
    const first = await look()
    t.match(first, { records: [{ spec: { id: 'a' } }] })
    t.match(await look(), { records: [{ spec: { id: 'b' } }] })
    t.match(await look(), { records: [], nextInMs: 1_100 })
    const generation = first.records[0]!.outbox!.generation!
    await handle.deliver([{ id: 'a', generation, rows: 'rest', delayMs: 700 }], null)
    t.match(await look(), { records: [], nextInMs: 700 })
  })

  t.test('relays of several processes: each outbox once, whatever their hints', async (t) => {
    const { process } = world()
    const handles: StorageHandle[] = []
    for (let i = 0; i < 4; i++) {
      const interleave = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
      const faults = { rows: i % 2, stale: 0.2, rowless: 0.5, wrong: 0.2, incomplete: 0.2 }
      handles.push(await process({ interleave, faults }).open('q'))
    }
    await handles[0]!.enqueue(Array.from({ length: 60 }, (_, i) => item(`${i}`)))
    const { jobs } = await (await process().open('q')).claim({ ...lease(), limit: 60 })
    const verdict = complete('1', 1_000, { rows: 'rows', ttlMs: 60_000 })
    await handles[0]!.settle(
      jobs.map(({ spec, generation }) => ({ id: spec.id, generation, verdict })),
      null,
    )
    const got: string[] = []
    for (let round = 0; round < 20 && got.length < 60; round++) {
      const looks = await Promise.all(
        Array.from({ length: 20 }, (_, i) => handles[i % 4]!.deliver([], { ...lease(), limit: 3 })),
      )
      for (const { collected } of looks) got.push(...idsOf(collected!.records))
    }
    t.equal(got.length, 60)
    t.equal(new Set(got).size, 60)
  })
})

t.test('the hold', async (t) => {
  t.test('is kept in a row of its own, lasts, is made longer and never shorter, and ends', async (t) => {
    const { process, table, clock } = world()
    const one = await process().open('q')
    const two = await process().open('q')
    await one.enqueue([item('a')])
    await one.hold(1_000)
    t.match(table.rows.get(''), { type: 'hold', heldUntil: clock.now() + 1_000 })
    t.match(await two.claim({ ...lease(), limit: 1 }), { jobs: [], heldForMs: 1_000 })
    t.match(await two.claim({ ...lease(), limit: 1, ids: ['a'] }), { jobs: [], heldForMs: 1_000 })
    await two.hold(500)
    await clock.advance(999)
    t.match(await two.claim({ ...lease(), limit: 1 }), { jobs: [], heldForMs: 1, nextInMs: 0 })
    await two.hold(2_000)
    await clock.advance(1)
    t.match(await one.stats(), { heldForMs: 1_999 })
    await one.hold(0)
    t.notOk(table.rows.has(''))
    t.match(await one.claim({ ...lease(), limit: 1 }), { jobs: [{ attempts: 1 }], heldForMs: 0 })
    await one.hold(0)
  })

  t.test('is remembered for as long as was allowed', async (t) => {
    const { process, clock, stores } = world()
    const one = await process().open('q')
    const two = await process({ holdCacheMs: 100 }).open('q')
    await one.enqueue([item('a')])
    await two.stats()
    await one.hold(1_000)
    await clock.advance(99)
    t.equal((await two.stats()).heldForMs, 0)
    await clock.advance(1)
    t.equal((await two.stats()).heldForMs, 900)
    const { load, due } = stores[1]!.counts
    t.match(await two.claim({ ...lease(), limit: 1 }), { jobs: [], heldForMs: 900 })
    t.match(stores[1]!.counts, { load, due }, 'a namespace known to be held is not looked at')
    await two.hold(0)
    t.equal((await two.claim({ ...lease(), limit: 1 })).jobs.length, 1, "one's own change is known at once")
  })

  t.test('two hold at once: the longer wins; lost replies do not matter', async (t) => {
    const { process } = world()
    const interleave = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    const one = await process({ interleave }).open('q')
    const two = await process({ interleave, faults: { rowless: 1 } }).open('q')
    await Promise.all([one.hold(1_000), two.hold(2_000), one.hold(1_500), two.hold(100)])
    t.equal((await one.stats()).heldForMs, 2_000)
    const lossy = await process({ faults: { after: 1 } }).open('q')
    await lossy.hold(3_000)
    t.equal((await one.stats()).heldForMs, 3_000)
    await lossy.hold(0)
    t.equal((await one.stats()).heldForMs, 0)
    const dead = await process({ faults: { before: 1 } }).open('q')
    await t.rejects(dead.hold(1), { code: 'ASKONCE_STORAGE', message: 'failed before writing' })
  })

  t.test('inline runs: a new one waits for its end, one that runs is answered as before', async (t) => {
    const { process, clock } = world()
    const handle = await process().open('q')
    const running = item('a', { lease: lease() })
    const waiting = item('b', { lease: lease() })
    await handle.enqueue([running])
    await handle.hold(700)
    const { answers } = await handle.enqueue([running, waiting, item('a', { lease: lease() })])
    t.match(answers, [
      { outcome: 'created', leased: true },
      { outcome: 'created', leased: false, record: { state: 'queued', inline: true, at: clock.now() + 700 } },
      { outcome: 'exists', leased: false },
    ])
    const generation = running.lease!.generation
    const again = await handle.claim({ generation, leaseMs: 1_000, limit: 2, ids: ['a', 'b'] })
    t.match(again.jobs, [{ spec: { id: 'a' } }])
    t.equal(again.jobs.length, 1)
  })
})

t.test('hints to watchers', async (t) => {
  t.test('what is done through one storage object reaches all its watchers of that namespace', async (t) => {
    const { process } = world()
    const storage = process()
    const one = await storage.open('q')
    const two = await storage.open('q')
    const hints: Hint[] = []
    const seen = async (action: () => Promise<unknown>): Promise<Hint[]> => {
      hints.length = 0
      await action()
      return [...hints]
    }
    const unwatch = two.watch((hint) => hints.push(hint))
    one.watch(() => {
      throw new Error('must not matter')
    })
    const many = [item('a'), item('b', { delayMs: 50 }), item('c', { delayMs: 70 })]
    t.same(await seen(() => one.enqueue(many)), [{ type: 'due', inMs: 0 }])
    t.same(await seen(() => one.enqueue([item('a')])), [], 'a duplicate is no news')
    const { generation } = await claimOne(one)
    t.same(await seen(() => one.extend([{ id: 'a', generation, leaseMs: 500 }])), [])
    t.same(await seen(() => one.settle([{ id: 'a', generation, verdict: retry('"e"', 30) }], null)), [
      { type: 'due', inMs: 30 },
    ])
    t.match(await seen(() => one.cancel(['a'])), [
      { type: 'cancelled', id: 'a', incarnation: many[0]!.spec.incarnation },
    ])
    const run = item('r', { lease: lease() })
    t.same(await seen(() => one.enqueue([run])), [], 'an inline run is nothing for workers')
    t.same(await seen(() => one.enqueue([item('r')])), [{ type: 'due', inMs: 1_000 }], 'until somebody counts on it')
    const verdict = complete('1', 1_000)
    t.match(await seen(() => one.settle([{ id: 'r', generation: run.lease!.generation, verdict }], null)), [
      { type: 'settled', id: 'r', record: { state: 'completed', result: '1' } },
    ])
    t.same(await seen(() => one.touch([{ id: 'r', ttlMs: 5 }])), [], 'it had ended before')
    await one.enqueue([item('p')])
    const job = await claimOne(one)
    const posted = complete('1', 1_000, { rows: 'rows', ttlMs: 60_000 })
    const done = await seen(() => one.settle([{ id: 'p', generation: job.generation, verdict: posted }], null))
    t.ok(
      done.some((hint) => hint.type === 'outbox' && hint.inMs === 0),
      'rows are posted',
    )
    const leased = await collectOne(one)
    const rest = { id: 'p', generation: leased.outbox!.generation!, rows: 'rest', delayMs: 40 }
    t.same(await seen(() => one.deliver([rest], null)), [{ type: 'outbox', inMs: 40 }], 'some are left for later')
    t.same(await seen(() => one.hold(400)), [{ type: 'due', inMs: 400 }])
    t.same(await seen(() => one.hold(0)), [{ type: 'due', inMs: 0 }])
    unwatch()
    unwatch()
    t.same(await seen(() => one.enqueue([item('z')])), [])
  })

  t.test("the store's own are passed on, while somebody watches", async (t) => {
    const { process, stores } = world()
    const storage = process()
    const handle = await storage.open('q')
    const other = await storage.open('other')
    const hints: Hint[] = []
    const ends = [handle.watch((hint) => hints.push(hint)), handle.watch((hint) => hints.push(hint))]
    t.equal(stores[0]!.listeners.size, 1, 'one subscription for all')
    t.equal(stores[1]!.listeners.size, 0)
    for (const listener of stores[0]!.listeners) listener({ type: 'due', inMs: 3 })
    t.same(hints, [
      { type: 'due', inMs: 3 },
      { type: 'due', inMs: 3 },
    ])
    for (const end of ends) end()
    t.equal(stores[0]!.listeners.size, 0)
    handle.watch(() => {})
    await handle.close()
    t.equal(stores[0]!.listeners.size, 0)
    await other.enqueue([item('a')])
  })
})

t.test('closing', async (t) => {
  t.test('running operations end first, later ones are refused, the last handle closes the store', async (t) => {
    const { process, stores } = world()
    const interleave = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
    const storage = process({ interleave })
    const one = await storage.open('q')
    const two = await storage.open('q')
    t.equal(stores.length, 1, 'handles share a store')
    const running = one.enqueue([item('a')])
    const closing = one.close()
    await t.rejects(one.enqueue([item('b')]), { code: 'ASKONCE_STORAGE_CLOSED' })
    t.throws(() => one.watch(() => {}), StorageClosedError)
    await closing
    t.match((await running).answers, [{ outcome: 'created' }])
    await one.close()
    t.equal(stores[0]!.closed, 0)
    t.match(await two.enqueue([item('a')]), { answers: [{ outcome: 'exists' }] })
    await Promise.all([two.close(), two.close()])
    t.equal(stores[0]!.closed, 1)
  })

  t.test('the store is not closed under an operation that runs', async (t) => {
    const { process, stores } = world()
    let go!: () => void
    const gate = new Promise<void>((resolve) => {
      go = resolve
    })
    const handle = await process({ interleave: () => gate }).open('q')
    const running = handle.enqueue([item('a')])
    const closing = handle.close()
    await settle()
    t.equal(stores[0]!.closed, 0)
    go()
    t.match((await running).answers, [{ outcome: 'created' }])
    await closing
    t.equal(stores[0]!.closed, 1)
  })

  t.test('a namespace can be opened again, also while it is being closed', async (t) => {
    const { process, stores } = world()
    const storage = process()
    const first = await storage.open('q')
    await first.enqueue([item('a')])
    const [, second] = await Promise.all([first.close(), storage.open('q')])
    t.match(await second.enqueue([item('a')]), { answers: [{ outcome: 'exists' }] })
    await second.close()
    const third = await storage.open('q')
    t.match(await third.enqueue([item('a')]), { answers: [{ outcome: 'exists' }] })
    await third.close()
    t.same(
      stores.map(({ closed }) => closed),
      stores.map(() => 1),
    )
  })
})

t.test('what a store may add', async (t) => {
  t.test('payloads kept apart are filled in for whoever leases, and for nobody else', async (t) => {
    const { table, clock } = world()
    const payloads = new Map<string, string>()
    const store = new RowStore({ table, clock })
    const swap = store.swap.bind(store)
    const filled: string[] = []
    const keeping: RecordStore = Object.assign(store, {
      swap: async (changes: Parameters<RowStore['swap']>[0]) =>
        swap(
          changes.map((change) => {
            const { to } = change
            if (to?.type !== 'job' || !('payload' in to.record)) return change
            if (change.from === null) payloads.set(to.key, to.record.payload as string)
            return { ...change, to: { ...to, record: { ...to.record, payload: '' } as JobRecord } }
          }),
        ),
      fill: async (rows: readonly JobRow[]) =>
        rows.map((row) => {
          filled.push(row.key)
          return { ...row, record: { ...row.record, payload: payloads.get(row.key)! } as JobRecord }
        }),
    })
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => keeping, clock }).open('q')
    await handle.enqueue([item('a'), item('b')])
    t.same(filled, [])
    const { generation, payload } = await claimOne(handle)
    t.equal(payload, '"a"')
    const inline = item('c', { lease: lease() })
    t.match((await handle.enqueue([inline])).answers, [{ record: { payload: '"c"' } }])
    t.match((await handle.enqueue([inline])).answers, [{ leased: true, record: { payload: '"c"' } }], 'once more')
    const ids = await handle.claim({ generation, leaseMs: 1_000, limit: 9, ids: ['a', 'b'] })
    t.match(ids.jobs, [{ payload: '"a"' }, { payload: '"b"' }])
    t.same(filled, ['a', 'c', 'c', 'a', 'b'])
    await handle.extend([{ id: 'a', generation, leaseMs: 1_000 }])
    await handle.enqueue([item('b')])
    t.equal(filled.length, 5)
    keeping.fill = async () => {
      throw new StorageError('payload gone')
    }
    await handle.enqueue([item('d')])
    await t.rejects(handle.claim({ ...lease(), limit: 1 }), { message: 'payload gone' })
  })

  t.test('the very rows that a store answered come back to it', async (t) => {
    const { table, clock } = world()
    const store = new RowStore({ table, clock })
    const swap = store.swap.bind(store)
    const given: unknown[] = []
    store.swap = async (changes) => {
      given.push(...changes.map(({ from }) => from))
      const answers = await swap(changes)
      return answers.map((answer, i) =>
        answer.ok && changes[i]!.to !== null
          ? { ok: true, row: { ...(changes[i]!.to as JobRow), extra: 'mine' } as JobRow }
          : answer,
      )
    }
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => store, clock }).open('q')
    await handle.enqueue([item('a')])
    const { generation } = await claimOne(handle)
    await handle.extend([{ id: 'a', generation, leaseMs: 1_000 }])
    t.equal(given[0], null)
    t.match(given[2], { extra: 'mine', record: { state: 'processing' } })
  })

  t.test('counts are the store’s, or unknown', async (t) => {
    const { table, clock } = world()
    const store: RecordStore = new RowStore({ table, clock })
    const handle = await fromRecordStore({ traits: rowTraits, open: async () => store, clock }).open('q')
    const unknown = { queued: null, processing: null, failing: null, completed: null, failed: null }
    t.same(await handle.stats(), { ...unknown, heldForMs: 0 })
    const counts = { queued: 1, processing: 2, failing: 3, completed: null, failed: 5 }
    store.stats = async () => counts
    t.same(await handle.stats(), { ...counts, heldForMs: 0 })
  })
})

t.test('sweep removes what is past its end, and nothing else', async (t) => {
  const { process, table, clock } = world()
  const handle = await process({ faults: { wrong: 1 } }).open('q')
  await handle.enqueue([item('a'), item('b'), item('c')])
  const { jobs } = await handle.claim({ ...lease(), limit: 2 })
  await handle.settle(
    jobs.map(({ spec, generation }, i) => ({ id: spec.id, generation, verdict: complete('1', 100 * (i + 1)) })),
    null,
  )
  t.equal(await handle.sweep(10), 0)
  await clock.advance(100)
  t.equal(await handle.sweep(10), 1)
  t.same([...table.rows.keys()], ['b', 'c'])
  await clock.advance(100)
  t.same((await handle.get(['b'])).records, [null], 'gone for readers before it is swept')
  t.equal(await handle.sweep(1), 1)
  t.same([...table.rows.keys()], ['c'])
  t.ok(new AskonceError('ASKONCE_STATE', '') instanceof Error)
})

for (const createFirst of [false, true]) {
  t.test(`conformance, createFirst: ${createFirst}`, (t) => {
    const worlds = new WeakMap<Storage, World>()
    let current = world()
    conformance({
      test: (name, run) => t.test(name, run),
      create: async () => {
        current = world()
        const storage = current.process({ createFirst, faults: createFirst ? { rows: 1, rowless: 0.5 } : {} })
        worlds.set(storage, current)
        return storage
      },
      createShared: async (storage) => worlds.get(storage)!.process({ createFirst: !createFirst }),
      advance: (ms) => current.clock.advance(ms),
      note: (text) => t.comment(`not tested: ${text}`),
    })
    t.end()
  })
}
