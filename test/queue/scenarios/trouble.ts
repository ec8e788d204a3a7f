/** A storage in trouble, call by call: no job is lost, none runs twice at once, whoever asked is told. */

import { TooLargeError } from '../../../src/errors.ts'
import { gate, ManualHandler, type Process, type Scenario } from '../../support/queue-rig.ts'
import { Seeded } from '../../support/seeded.ts'
import { failAfter, failBefore, type Operation, outage, type Rule, refusal } from '../support/faulty-storage.ts'

const kinds: readonly (readonly [string, () => Rule])[] = [
  ['fails, retryable', () => failBefore()],
  ['fails, not retryable', () => failBefore(refusal)],
  ['fails with an untyped error', () => failBefore(() => new TypeError('untyped'))],
  ['loses its reply', () => failAfter()],
  ['loses its reply, not retryable', () => failAfter(refusal)],
]

/** What a storage says that can't take one item, however often it is asked. */
function tooLarge(): TooLargeError {
  return new TooLargeError('result', 2, 1)
}

function matrix(operation: Operation, times: number): Scenario[] {
  return kinds.map(([kind, rule]) => ({
    name: `${operation} ${kind}, ${times} time(s): the job is not lost, does not run twice at once, and the failure is told`,
    async run(t, rig) {
      const { storage } = await rig.process()
      let running = 0
      let most = 0
      const worker = await rig.queue<number, string>({ storage, maxAttempts: 20, retry: () => 1, leaseMs: rig.leaseMs })
      worker.execute(async ({ attempts }) => {
        most = Math.max(most, ++running)
        await rig.clock.monotonic()
        const end = gate()
        rig.clock.timer(end.open, rig.leaseMs * 0.8, true)
        await end.promise
        running--
        if (attempts === 1) throw new Error('again')
        return 'done'
      })
      await rig.drive(worker.start())
      await rig.calm()
      storage.on(operation, rule(), times)
      const asker = await rig.queue<number, string>()
      await rig.drive(asker.enqueue('id', 1, { maxAttempts: 20 }))
      t.equal(await rig.drive(asker.enqueueAndWait('id', 1, { timeout: 10_000_000 })), 'done')
      await rig.until('it is told', () => rig.errors.length >= 1)
      rig.takeErrors()
      t.equal(most, 1)
      t.equal(worker.counters.completed + worker.counters.stale_ignored >= 1, true)
      t.equal(await rig.drive(worker.enqueueAndWait('after', 1, { timeout: 10_000_000 })), 'done')
      rig.takeErrors()
    },
  }))
}

/** Calls whose failure is told to their own caller; repeated, they do what the first should have done. */
const callers: readonly Scenario[] = kinds.map(([kind, rule]) => ({
  name: `calls: a storage call that ${kind} rejects its own caller alone; the same call again works`,
  async run(t, rig) {
    const { storage } = await rig.process()
    const queue = await rig.queue<number, string>({ storage, retry: () => 1 })
    const lost = kind.includes('loses')
    const again = async <T>(operation: Operation, call: () => Promise<T>): Promise<T> => {
      storage.on(operation, rule())
      await rig.refusal(call())
      return rig.drive(call())
    }
    t.match(await again('enqueue', () => queue.enqueue('id', 1)), { status: lost ? 'duplicate' : 'queued' })
    t.equal((await again('get', () => queue.getStatus('id')))?.state, 'queued')
    t.equal(await again('get', () => queue.getResult('id')), null)
    t.match(await again('cancel', () => queue.cancel('id')), { status: lost ? 'not_found' : 'cancelled' })
    t.match(await again('touch', () => queue.updateResultTTL('id', 5)), { status: 'not_found' })
    t.match(await again('enqueue', () => queue.enqueueMany([{ id: 'many', payload: 1 }])), [
      { status: lost ? 'duplicate' : 'queued' },
    ])
    t.ok(await again('stats', () => queue.stats()))
    // Calls that wait ask once more by themselves, where that may help.
    const tries = kind.includes('not retryable') || kind.includes('untyped') ? 1 : 2
    storage.on('enqueue', rule(), tries)
    const waited = await rig.refusal(queue.enqueueAndWait('waited', 1, { timeout: 1_000_000 }))
    t.not(waited.code, 'ASKONCE_TIMEOUT')
    storage.on('enqueue', rule(), tries)
    let runs = 0
    const handler = async () => `run ${++runs}`
    await rig.refusal(queue.run('inline', 1, handler, { timeout: 1_000_000 }))
    t.equal(await rig.drive(queue.run('inline', 1, handler, { timeout: 1_000_000 })), 'run 1')
  },
}))

export const trouble: readonly Scenario[] = [
  ...matrix('claim', 1),
  ...matrix('claim', 4),
  ...matrix('settle', 1),
  ...matrix('extend', 1),
  ...callers,
  {
    name: 'one item that the storage will never take fails alone: the others of its tick are stored',
    async run(t, rig) {
      const { storage } = await rig.process()
      const opened = storage.open.bind(storage)
      storage.open = async (namespace) => {
        const inner = await opened(namespace)
        return {
          ...inner,
          enqueue: async (items) => {
            if (items.some(({ spec }) => spec.id === 'bad')) throw tooLarge()
            return inner.enqueue(items)
          },
        }
      }
      const queue = await rig.queue<number, string>({ storage })
      const outcomes = await rig.drive(
        Promise.allSettled(['a', 'b', 'bad', 'c', 'd', 'e'].map((id) => queue.enqueue(id, 1))),
      )
      t.strictSame(
        outcomes.map(({ status }) => status),
        ['fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled', 'fulfilled'],
      )
    },
  },
  {
    name: 'a verdict that the storage will never take fails its job alone, with that error; verdicts beside it are stored',
    async run(t, rig) {
      const { storage } = await rig.process()
      const opened = storage.open.bind(storage)
      storage.open = async (namespace) => {
        const inner = await opened(namespace)
        return {
          ...inner,
          settle: async (items, claim) => {
            if (items.some(({ verdict }) => verdict.kind === 'complete' && verdict.result === '"indigestible"')) {
              throw tooLarge()
            }
            return inner.settle(items, claim)
          },
        }
      }
      const queue = await rig.worker<string, string>(async ({ payload }) => payload, { storage, concurrency: 5 })
      const ids = ['a', 'b', 'indigestible', 'c', 'd']
      const outcomes = await rig.drive(Promise.allSettled(ids.map((id) => queue.enqueueAndWait(id, id))))
      t.strictSame(
        outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : outcome.reason.cause.code)),
        ['a', 'b', 'ASKONCE_TOO_LARGE', 'c', 'd'],
      )
      t.equal(rig.takeErrors().length, 1)
      await rig.counted(t, queue, { completed: 4, failed: 1, executed: 5 })
    },
  },
  {
    name: 'case 9: workers killed in mid-job again and again: all jobs complete, each once',
    async run(t, rig) {
      const asker = await rig.queue<number, string>()
      const completions = new Map<string, number>()
      const ids = Array.from({ length: 30 }, (_, n) => `id-${n}`)
      await rig.drive(asker.enqueueMany(ids.map((id, n) => ({ id, payload: n, maxAttempts: 1_000 }))))
      const dead: { process: Process; handler: ManualHandler<number, string> }[] = []
      for (let life = 0; life < (rig.virtual ? 12 : 2); life++) {
        const process = await rig.process()
        const handler = new ManualHandler<number, string>()
        const worker = await rig.worker(handler.handle, { ...process, concurrency: 5 })
        worker.on('completed', ({ id }) => completions.set(id, (completions.get(id) ?? 0) + 1))
        await rig.until('it has work', () => handler.calls.length >= 5)
        for (const { job, end } of handler.calls.slice(0, 2)) end.open(job.id)
        await rig.until('some complete', () => worker.counters.completed >= 2)
        process.clock.stall()
        process.storage.down()
        dead.push({ process, handler })
      }
      const last = await rig.worker<number, string>(async ({ id }) => id, { concurrency: 5 })
      last.on('completed', ({ id }) => completions.set(id, (completions.get(id) ?? 0) + 1))
      const answers = await rig.drive(
        Promise.all(ids.map((id, n) => asker.enqueueAndWait(id, n, { timeout: 10_000_000 }))),
      )
      t.strictSame(answers, ids)
      await rig.until('all are told', () => completions.size === ids.length)
      t.ok([...completions.values()].every((count) => count === 1))
      for (const { process, handler } of dead) {
        process.storage.up()
        process.clock.resume()
        for (const { end } of handler.calls) end.fail(new Error('late'))
      }
      await rig.calm()
      t.ok([...completions.values()].every((count) => count === 1))
      rig.takeErrors()
    },
  },
  {
    name: 'case 46: the process dies before or after each step of enqueue, complete, retry: the id is usable afterwards',
    async run(t, rig) {
      for (const step of ['enqueue', 'complete', 'retry'] as const) {
        for (const [when, rule] of [
          ['before', failBefore()],
          ['after', failAfter()],
        ] as const) {
          const name = `${step} ${when}`
          const process = await rig.process()
          const die: Rule = async (call) => {
            process.clock.stall()
            try {
              return await rule(call)
            } finally {
              process.storage.down()
            }
          }
          const doomed = await rig.queue<number, string>({ ...process, name, retry: () => 1 })
          if (step === 'enqueue') {
            process.storage.on('enqueue', die)
            await rig.refusal(doomed.enqueue('id', 1))
          } else {
            await rig.drive(doomed.enqueue('id', 1))
            doomed.execute(async () => {
              process.storage.on('settle', die)
              if (step === 'retry') throw new Error('again')
              return 'doomed'
            })
            await rig.drive(doomed.start())
            await rig.until('it is dead', () => process.storage.count('settle') > 0)
          }
          await rig.calm()
          const next = await rig.worker<number, string>(async ({ attempts }) => `attempt ${attempts}`, { name })
          const { status } = await rig.drive(next.enqueue('id', 1))
          const answer = await rig.drive(next.enqueueAndWait('id', 1, { timeout: 1_000_000 }))
          const expected = {
            'enqueue before': ['queued', 'attempt 1'],
            'enqueue after': ['duplicate', 'attempt 1'],
            'complete before': ['duplicate', 'attempt 2'],
            'complete after': ['completed', 'doomed'],
            'retry before': ['duplicate', 'attempt 2'],
            'retry after': ['duplicate', 'attempt 2'],
          }[name]
          // The worker may have run the surviving job before it was asked for again.
          const known = status === 'completed' && answer !== 'doomed' ? 'duplicate' : status
          t.strictSame([known, answer], expected, name)
          process.storage.up()
          process.clock.resume()
          await rig.calm()
          rig.takeErrors()
        }
      }
    },
  },
  {
    name: 'sweeps that fail are told, and repeated',
    async run(t, rig) {
      const { storage } = await rig.process()
      await rig.worker(async () => 1, { storage, sweepIntervalMs: rig.shortMs })
      storage.on('sweep', failBefore(), 2)
      await rig.until('three sweeps', () => storage.count('sweep') >= 3)
      t.equal(rig.takeErrors().length, 2)
    },
  },
  {
    name: 'at random: every call may fail before or after its work; all jobs end, none runs twice at once, none completes twice',
    async run(t, rig) {
      if (!rig.virtual) return
      const seeded = new Seeded()
      t.comment(`ASKONCE_SEED=${seeded.seed} replays`)
      const running = new Map<string, number>()
      const completions = new Map<string, number>()
      const overlaps: string[] = []
      const workers = []
      const jobs = 60
      for (let n = 0; n < 3; n++) {
        const { storage, clock } = await rig.process()
        const handle = storage.do.bind(storage)
        storage.do = async (operation, call) => {
          if (!['close', 'open', 'stats'].includes(operation)) {
            if (seeded.chance(0.1)) throw seeded.chance(0.8) ? outage() : new TypeError('untyped')
            if (seeded.chance(0.1)) {
              await handle(operation, call)
              throw outage()
            }
          }
          return handle(operation, call)
        }
        storage.onHint = (hint) => (seeded.chance(0.3) ? [] : seeded.chance(0.2) ? [hint, hint] : [hint])
        const queue = await rig.queue<number, string>({
          storage,
          clock,
          concurrency: 4,
          maxAttempts: 1_000,
          retry: () => seeded.below(200),
        })
        queue.on('completed', ({ id }) => completions.set(id, (completions.get(id) ?? 0) + 1))
        queue.execute(async ({ id, signal }) => {
          running.set(id, (running.get(id) ?? 0) + 1)
          if (running.get(id)! > 1) overlaps.push(id)
          const end = gate()
          rig.clock.timer(end.open, seeded.below(rig.leaseMs * 2), true)
          signal.addEventListener('abort', () => end.open())
          await end.promise
          running.set(id, running.get(id)! - 1)
          if (seeded.chance(0.3)) throw new Error('again')
          return id
        })
        await rig.drive(queue.start())
        workers.push(queue)
      }
      const asker = await rig.queue<number, string>({ maxAttempts: 1_000 })
      for (let n = 0; n < jobs; n++) await rig.drive(asker.enqueue(`id-${n}`, n, { maxAttempts: 1_000 }))
      const answers = await rig.drive(
        Promise.all(
          Array.from({ length: jobs }, (_, n) =>
            asker.enqueueAndWait(`id-${n}`, n, { timeout: Number.POSITIVE_INFINITY }),
          ),
        ),
      )
      await rig.advance(rig.leaseMs * 3)
      const seed = `seed ${seeded.seed}`
      t.strictSame(
        answers,
        Array.from({ length: jobs }, (_, n) => `id-${n}`),
        seed,
      )
      t.strictSame(overlaps, [], seed)
      t.ok(
        [...completions.values()].every((count) => count === 1),
        seed,
      )
      rig.takeErrors()
      for (const queue of workers) await rig.drive(queue.stop())
      rig.takeErrors()
    },
  },
]
