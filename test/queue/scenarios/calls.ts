/** What single calls answer, and that what goes in and comes out is nobody else's. */

import type { Serde } from '../../../src/options.ts'
import { defaults } from '../../../src/options.ts'
import { gate, ManualHandler, type Scenario } from '../../support/queue-rig.ts'
import { callAfter } from '../support/faulty-storage.ts'

export const calls: readonly Scenario[] = [
  {
    name: 'getStatus: what each state has, and nothing else; null for an unknown id',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const queue = await rig.queue<number, string>({ maxAttempts: 2, retry: () => 1_000_000, resultTTL: 5_000 })
      const common = ['attempts', 'createdAt', 'id', 'maxAttempts', 'state']
      const status = async (state: string, ...more: string[]) => {
        const found = (await rig.drive(queue.getStatus('id')))!
        t.equal(found.state, state)
        t.strictSame(Object.keys(found).sort(), [...common, ...more].sort(), state)
        return found
      }
      t.equal(await rig.drive(queue.getStatus('id')), null)
      t.equal(await rig.drive(queue.getResult('id')), null)
      await rig.drive(queue.enqueue('id', 1, { delay: 10 }))
      const queued = await status('queued', 'availableAt')
      t.match(queued, { attempts: 0, maxAttempts: 2, availableAt: queued.createdAt + 10 })
      t.equal(await rig.drive(queue.getResult('id')), null)
      queue.execute(handler.handle)
      await rig.drive(queue.start())
      await rig.until('it starts', () => handler.calls.length === 1)
      const processing = await status('processing', 'leaseEndsAt')
      t.equal(processing.attempts, 1)
      t.ok(processing.leaseEndsAt! > processing.createdAt)
      handler.calls[0]!.end.fail(new Error('first'))
      await rig.until('it fails', () => queue.counters.retried === 1)
      const failing = await status('failing', 'availableAt', 'error')
      t.equal(failing.error?.message, 'first')
      t.ok(failing.availableAt! >= failing.createdAt + 1_000_000)
      await rig.drive(queue.cancel('id'))
      await rig.drive(queue.enqueue('id', 1))
      await rig.until('it starts', () => handler.calls.length === 2)
      handler.calls[1]!.end.open('done')
      await rig.until('it completes', () => queue.counters.completed === 1)
      const completed = await status('completed', 'result', 'settledAt', 'expiresAt')
      t.match(completed, { result: 'done', attempts: 1, expiresAt: completed.settledAt! + 5_000 })
    },
  },
  {
    name: 'waits end after the default time-out, the queue’s, or the call’s',
    async run(t, rig) {
      if (!rig.virtual) return
      const [plain, own] = [await rig.queue(), await rig.queue({ timeout: 700 })]
      const took = async (call: () => Promise<unknown>) => {
        const before = rig.clock.monotonic()
        t.equal((await rig.refusal(call())).code, 'ASKONCE_TIMEOUT')
        return rig.clock.monotonic() - before
      }
      t.equal(await took(() => plain.enqueueAndWait('a', 1)), defaults.timeout)
      t.equal(await took(() => own.enqueueAndWait('b', 1)), 700)
      t.equal(await took(() => own.enqueueAndWait('c', 1, { timeout: 30 })), 30)
      t.equal(await took(() => own.run('d', 1, () => new Promise(() => {}), { timeout: 1 })), 1)
    },
  },
  {
    name: 'concurrency: as many handlers as were asked for run beside one another, never more; the default is one',
    async run(t, rig) {
      for (const [options, expected] of [
        [{}, 1],
        [{ concurrency: 7 }, 7],
      ] as const) {
        const handler = new ManualHandler<number, number>()
        const queue = await rig.worker(handler.handle, { ...options, name: `concurrency ${expected}` })
        await rig.drive(queue.enqueueMany(Array.from({ length: 20 }, (_, n) => ({ id: `id-${n}`, payload: n }))))
        for (let ended = 0; ended < 20; ended++) {
          await rig.until('slots are full', () => handler.calls.length === Math.min(20, ended + expected))
          await rig.calm()
          t.equal(handler.calls.length, Math.min(20, ended + expected))
          handler.calls[ended]!.end.open(1)
        }
        await rig.until('all are done', () => queue.counters.completed === 20)
      }
    },
  },
  {
    name: 'execute’s own concurrency goes before the queue’s',
    async run(t, rig) {
      const handler = new ManualHandler<number, number>()
      const queue = await rig.queue<number, number>({ concurrency: 9 })
      queue.execute(handler.handle, { concurrency: 2 })
      await rig.drive(queue.start())
      await rig.drive(queue.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ id: `id-${n}`, payload: n }))))
      await rig.until('they start', () => handler.calls.length === 2)
      await rig.calm()
      t.equal(handler.calls.length, 2)
      for (let ended = 0; ended < 5; ended++) {
        await rig.until('it starts', () => handler.calls.length > ended)
        handler.calls[ended]!.end.open(1)
      }
    },
  },
  {
    name: 'values are copies: what a caller, a handler or a hook changes later reaches nobody else',
    async run(t, rig) {
      type Value = { list: number[] }
      const queue = await rig.queue<Value, Value>({ retry: () => 1 })
      const seen: number[][] = []
      queue.execute(({ payload, attempts }) => {
        seen.push([...payload.list])
        payload.list.push(99)
        if (attempts === 1) throw new Error('again')
        return payload
      })
      const payload = { list: [1] }
      const wait = queue.enqueueAndWait('id', payload)
      payload.list.push(2)
      await rig.drive(queue.start())
      const [first, second] = [await rig.drive(wait), await rig.drive(queue.enqueueAndWait('id', { list: [1] }))]
      t.strictSame(seen, [[1], [1]])
      t.strictSame(first, { list: [1, 99] })
      first.list.push(3)
      t.strictSame(second, { list: [1, 99] })
      t.strictSame(await rig.drive(queue.getResult('id')), { list: [1, 99] })
    },
  },
  {
    name: 'bytes are values, too: changed in place by caller or handler, the record keeps what it was given',
    async run(t, rig) {
      const binary: Serde<Uint8Array> = { serialize: (value) => value, deserialize: (encoded) => encoded as Uint8Array }
      const seen: number[] = []
      const queue = await rig.queue<Uint8Array, Uint8Array>({
        payloadSerde: binary,
        resultSerde: binary,
        retry: () => 1,
      })
      queue.execute(({ payload, attempts }) => {
        seen.push(payload[0]!)
        payload[0] = 99
        if (attempts === 1) throw new Error('again')
        return payload
      })
      const payload = new Uint8Array([1, 2])
      const wait = queue.enqueueAndWait('id', payload)
      await rig.calm()
      payload[0] = 50
      await rig.drive(queue.start())
      const result = await rig.drive(wait)
      t.strictSame(seen, [1, 1])
      result[0] = 7
      t.equal((await rig.drive(queue.getResult('id')))![0], 99)
    },
  },
  {
    name: 'OptimalBits/bull#738: 1,000 waiters of one id are one watch: each poll asks for one id, one call answers all',
    async run(t, rig) {
      const { storage } = await rig.process()
      storage.onHint = () => []
      const asked: number[] = []
      const opened = storage.open.bind(storage)
      storage.open = async (namespace) => {
        const inner = await opened(namespace)
        return {
          ...inner,
          get: (ids) => {
            asked.push(ids.length)
            return inner.get(ids)
          },
        }
      }
      const queue = await rig.queue<number, string>({ storage })
      const waits = Array.from({ length: 1_000 }, () => queue.enqueueAndWait('id', 1, { timeout: 1_000_000 }))
      await rig.calm()
      t.equal(storage.count('enqueue'), 1, 'the enqueues of one tick are one call')
      await rig.until('it was polled for', () => asked.length >= 2)
      t.ok(asked.every((ids) => ids === 1))
      await rig.worker(async () => 'answer')
      const answers = await rig.drive(Promise.all(waits))
      t.ok(answers.every((answer) => answer === 'answer'))
      const polls = asked.length
      await rig.advance(rig.virtual ? 60_000 : rig.shortMs)
      t.equal(asked.length, polls, 'nothing is polled when nobody waits')
    },
  },
  {
    name: 'calls of one tick are one storage call: 500 enqueues, reads, cancels, TTLs',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.queue<number, string>({ storage })
      await rig.drive(queue.getStatus('open it'))
      const all = <T>(call: (id: string) => Promise<T>) =>
        rig.drive(Promise.all(Array.from({ length: 500 }, (_, n) => call(`id-${n}`))))
      await all((id) => queue.enqueue(id, 1))
      t.equal(storage.count('enqueue'), 1)
      const before = storage.count('get')
      t.ok((await all((id) => queue.getStatus(id))).every((status) => status?.state === 'queued'))
      t.equal(storage.count('get') - before, 1)
      await all((id) => queue.updateResultTTL(id, 5))
      t.equal(storage.count('touch'), 1)
      t.ok((await all((id) => queue.cancel(id))).every(({ status }) => status === 'cancelled'))
      t.equal(storage.count('cancel'), 1)
    },
  },
  {
    name: 'a call that hangs in the storage holds up nobody but its own callers',
    async run(t, rig) {
      const { storage } = await rig.process()
      const queue = await rig.worker<number, string>(async () => 'done', { storage })
      const hanging = gate()
      storage.on('get', callAfter(hanging.promise))
      const stuck = queue.getStatus('x')
      await rig.calm()
      t.equal(await rig.drive(queue.enqueueAndWait('id', 1)), 'done')
      t.equal((await rig.drive(queue.getStatus('id')))?.state, 'completed')
      hanging.open()
      t.equal(await rig.drive(stuck), null)
    },
  },
  {
    name: 'seed 004: cancel and enqueue anew; content-addressed and entity ids; the cached result until its TTL ends',
    async run(t, rig) {
      let sent = 0
      const worker = await rig.worker<{ x: number; y: number }, { sum: number }>(
        async ({ payload }) => {
          sent++
          return { sum: payload.x + payload.y }
        },
        { resultTTL: rig.shortMs },
      )
      t.strictSame(await rig.drive(worker.enqueue('calc-123', { x: 5, y: 10 })), { status: 'queued' })
      await rig.until('it completes', () => worker.counters.completed === 1)
      t.strictSame(await worker.enqueue('calc-123', { x: 5, y: 10 }), { status: 'completed', result: { sum: 15 } })
      t.strictSame(await worker.cancel('calc-123'), { status: 'completed' })
      await rig.advance(rig.virtual ? rig.shortMs : rig.shortMs * 1.5)
      t.strictSame(await rig.drive(worker.enqueue('calc-123', { x: 5, y: 10 })), { status: 'queued' })
      await rig.until('it ran again', () => sent === 2)
      const results = await rig.drive(
        Promise.all([1, 2, 1, 2].map((user) => worker.enqueueAndWait(`sum:${user}`, { x: user, y: user }))),
      )
      t.strictSame(results, [{ sum: 2 }, { sum: 4 }, { sum: 2 }, { sum: 4 }])
      t.equal(sent, 4)
    },
  },
]
