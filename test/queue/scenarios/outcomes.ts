/** Whatever a handler does, its job alone has a typed outcome. */

import { UnrecoverableError } from '../../../src/errors.ts'
import type { Job, Serde } from '../../../src/options.ts'
import { gate, type Scenario } from '../../support/queue-rig.ts'

/** What handlers throw that no Error is, or no ordinary one. */
function oddities(): Record<string, { thrown: unknown; message: RegExp }> {
  const cycle = new Error('a cycle')
  cycle.cause = cycle
  const long = new Error('x'.repeat(200_000))
  const circular: { self?: unknown } = {}
  circular.self = circular
  return {
    undefined: { thrown: undefined, message: /non-error/ },
    null: { thrown: null, message: /non-error/ },
    string: { thrown: 'just text', message: /^just text$/ },
    'empty string': { thrown: '', message: /^$/ },
    number: { thrown: 42, message: /42/ },
    bigint: { thrown: 42n, message: /42/ },
    symbol: { thrown: Symbol('odd'), message: /odd/ },
    object: { thrown: { reason: 'because' }, message: /because/ },
    'circular object': { thrown: circular, message: /non-error/ },
    function: { thrown: () => 1, message: /non-error/ },
    'frozen error': { thrown: Object.freeze(new TypeError('frozen')), message: /^frozen$/ },
    'error with a cycle of causes': { thrown: cycle, message: /^a cycle$/ },
    'error with a bigint detail': { thrown: Object.assign(new Error('big'), { details: { n: 1n } }), message: /^big$/ },
    'very long error': { thrown: long, message: /^x{1000}/ },
    'error with a lone surrogate': { thrown: new Error('\ud800!'), message: /!$/ },
    'error without a prototype’s name': { thrown: Object.assign(new Error('odd'), { name: 42 }), message: /^odd$/ },
    'aggregate error': { thrown: new AggregateError([new Error('1')], 'many'), message: /^many$/ },
  }
}

/** An object with this `then`. */
function thenable(property: PropertyDescriptor): object {
  return Object.defineProperty({}, 'then', property)
}

/** An error of which nothing can be read. */
function unreadable(): Error {
  const error = new Error('hidden')
  for (const key of ['message', 'name', 'code', 'cause', 'details', 'retryAfterMs']) {
    Object.defineProperty(error, key, {
      get() {
        throw new TypeError('no such luck')
      },
    })
  }
  return error
}

export const outcomes: readonly Scenario[] = [
  {
    name: 'case 23: a handler throws what is no Error, or an odd one: it is retried, failed, its waiter rejected, others live',
    async run(t, rig) {
      const odd = oddities()
      const attempts = new Map<string, number>()
      const worker = await rig.worker<string, string>(
        async ({ id, payload, attempts: n }) => {
          attempts.set(id, n)
          if (payload === 'good') return 'fine'
          throw odd[payload]!.thrown
        },
        { maxAttempts: 2, retry: () => 1, concurrency: 5 },
      )
      for (const [name, { message }] of Object.entries(odd)) {
        const good = worker.enqueueAndWait(`good beside ${name}`, 'good')
        const refusal = await rig.refusal(worker.enqueueAndWait(name, name, { timeout: 100_000 }))
        t.equal(refusal.code, 'ASKONCE_JOB_FAILED', name)
        t.match(refusal.cause.message, message, name)
        t.equal(attempts.get(name), 2, `${name} was retried`)
        const status = await worker.getStatus(name)
        t.equal(status?.state, 'failed', name)
        t.equal(status?.error?.message, refusal.cause.message, name)
        t.equal(await rig.drive(good), 'fine', name)
      }
      t.match((await worker.getStatus('frozen error'))?.error, { name: 'TypeError' })
    },
  },
  {
    name: 'a handler throws an error whose getters throw, or a revoked proxy: that job alone fails, the process lives',
    async run(t, rig) {
      const { proxy, revoke } = Proxy.revocable({}, {})
      revoke()
      const worker = await rig.worker<string, string>(
        async ({ payload }) => {
          if (payload === 'good') return 'fine'
          throw payload === 'getters' ? unreadable() : proxy
        },
        { maxAttempts: 2, retry: () => 1 },
      )
      for (const kind of ['getters', 'proxy']) {
        const refusal = await rig.refusal(worker.enqueueAndWait(kind, kind, { timeout: 100_000 }))
        t.equal(refusal.code, 'ASKONCE_JOB_FAILED', kind)
        t.equal(await rig.drive(worker.enqueueAndWait(`beside ${kind}`, 'good')), 'fine')
      }
    },
  },
  {
    name: 'a handler that throws at once, without a promise, is a handler that failed; so is a callback that is given an error',
    async run(t, rig) {
      const worker = await rig.queue<string, string>({ maxAttempts: 1, concurrency: 3 })
      worker.execute((job: Job<string>, done: (error: unknown, result?: string) => void) => {
        switch (job.payload) {
          case 'sync throw':
            throw new Error('thrown')
          case 'error':
            return setImmediate(done, new Error('given'))
          case 'falsy error':
            return done(0)
          case 'twice':
            done(null, 'first')
            return done(new Error('second'))
          case 'result':
            return done(null, 'result')
          default:
            return done(undefined)
        }
      })
      await rig.drive(worker.start())
      const ask = (kind: string) =>
        worker.enqueueAndWait(kind, kind).then(
          (result) => result,
          (error) => error.cause.message as string,
        )
      t.equal(await rig.drive(ask('sync throw')), 'thrown')
      t.equal(await rig.drive(ask('error')), 'given')
      t.match(await rig.drive(ask('falsy error')), /0/)
      t.equal(await rig.drive(ask('twice')), 'first')
      t.equal(await rig.drive(ask('result')), 'result')
      t.equal(await rig.drive(ask('nothing')), undefined)
    },
  },
  {
    name: 'an async handler with a done parameter: its rejection is a failure, not an unhandled rejection',
    async run(t, rig) {
      const worker = await rig.queue<string, string>({ maxAttempts: 1 })
      worker.execute(async (_job: Job<string>, _done: unknown) => {
        throw new Error('rejected')
      })
      await rig.drive(worker.start())
      const error = await rig.refusal(worker.enqueueAndWait('id', 'x'))
      t.equal(error.cause.message, 'rejected')
    },
  },
  {
    name: 'thenables are waited for; one that throws, or answers twice, is one outcome',
    async run(t, rig) {
      const thenables = {
        late: thenable({ value: (resolve: (v: string) => void) => setImmediate(resolve, 'late') }),
        throws: thenable({
          value() {
            throw new Error('threw')
          },
        }),
        twice: thenable({
          value(resolve: (v: string) => void, reject: (e: Error) => void) {
            resolve('first')
            reject(new Error('second'))
          },
        }),
        getter: thenable({
          get() {
            throw new Error('getter')
          },
        }),
      }
      const worker = await rig.worker<string, unknown>(({ payload }) => thenables[payload as keyof typeof thenables], {
        maxAttempts: 1,
      })
      t.equal(await rig.drive(worker.enqueueAndWait('late', 'late')), 'late')
      t.equal((await rig.refusal(worker.enqueueAndWait('throws', 'throws'))).cause.message, 'threw')
      t.equal(await rig.drive(worker.enqueueAndWait('twice', 'twice')), 'first')
      t.equal((await rig.refusal(worker.enqueueAndWait('getter', 'getter'))).cause.message, 'getter')
    },
  },
  {
    name: 'case 25: a result that can’t be serialized fails the job for good; the handler is not run again, others live',
    async run(t, rig) {
      const cycle: { self?: unknown } = {}
      cycle.self = cycle
      const results: Record<string, unknown> = {
        bigint: 1n,
        cycle,
        'throwing toJSON': {
          toJSON() {
            throw new Error('secret content')
          },
        },
        function: () => 1,
        symbol: Symbol('s'),
      }
      const worker = await rig.worker<string, unknown>(({ payload }) => results[payload] ?? 'fine', {
        maxAttempts: 3,
        retry: () => 1,
        concurrency: 4,
      })
      const failed: unknown[] = []
      worker.on('failed', ({ id, error }) => failed.push([id, (error as { code?: string }).code]))
      for (const name of Object.keys(results)) {
        const good = worker.enqueueAndWait(`beside ${name}`, 'good')
        const error = await rig.refusal(worker.enqueueAndWait(name, name))
        t.match(error.cause, { name: 'SerializationError', code: 'ASKONCE_SERIALIZATION' }, name)
        t.match(error.cause.message, /result/)
        t.notMatch(JSON.stringify([error.message, error.cause.message]), 'secret content')
        t.match(await worker.getStatus(name), { state: 'failed', attempts: 1 }, name)
        t.equal(await rig.drive(good), 'fine')
      }
      t.strictSame(
        failed,
        Object.keys(results).map((name) => [name, 'ASKONCE_SERIALIZATION']),
      )
      t.equal(worker.counters.executed, 2 * Object.keys(results).length)
    },
  },
  {
    name: 'a result beyond payloadBytesMax fails the job with TooLargeError that names field and bound, without a rerun',
    async run(t, rig) {
      const worker = await rig.worker<number, string>(({ payload }) => 'x'.repeat(payload), { payloadBytesMax: 100 })
      t.equal(await rig.drive(worker.enqueueAndWait('fits', 98)), 'x'.repeat(98))
      const error = await rig.refusal(worker.enqueueAndWait('too large', 99))
      t.match(error.cause, { name: 'TooLargeError', code: 'ASKONCE_TOO_LARGE' })
      t.match(error.cause.message, /result.*101.*100/)
      t.equal(worker.counters.executed, 2)
    },
  },
  {
    name: 'case 27: a stored result that can’t be decoded: waiter, enqueue, getResult and getStatus reject; others live',
    async run(t, rig) {
      const worker = await rig.worker<string, string>(({ payload }) => payload)
      const picky: Serde<string> = {
        serialize: (value) => value,
        deserialize: (encoded) => {
          if (encoded === '"bad"') throw new Error('it says bad')
          return String(encoded)
        },
      }
      const asker = await rig.queue<string, string>({ resultSerde: picky })
      const [bad, good] = [asker.enqueueAndWait('bad', 'bad'), asker.enqueueAndWait('good', 'good')]
      t.match(await rig.refusal(bad), { name: 'SerializationError', code: 'ASKONCE_SERIALIZATION', field: 'result' })
      t.equal(await rig.drive(good), '"good"')
      const calls = [() => asker.enqueue('bad', 'bad'), () => asker.getResult('bad'), () => asker.getStatus('bad')]
      for (const call of calls) {
        const error = await rig.refusal(call())
        t.equal(error.code, 'ASKONCE_SERIALIZATION')
        t.notMatch(error.cause?.message, 'it says bad', 'a serde’s error may quote what it choked on')
      }
      t.equal(await rig.drive(asker.run('bad', 'bad', async () => 'x').catch((e) => e.code)), 'ASKONCE_SERIALIZATION')
      t.equal(await rig.drive(worker.getResult('bad')), 'bad')
    },
  },
  {
    name: 'a payload that can’t be decoded fails the job without a run; others live',
    async run(t, rig) {
      const asker = await rig.queue<string, string>({
        payloadSerde: { serialize: (value) => value, deserialize: String },
      })
      const worker = await rig.worker<string, string>(({ payload }) => payload)
      const bad = rig.refusal(asker.enqueueAndWait('bad', '{not JSON'))
      const good = asker.enqueueAndWait('good', '"good"')
      t.match((await bad).cause, { code: 'ASKONCE_SERIALIZATION' })
      t.equal(await rig.drive(good), 'good')
      t.equal(worker.counters.executed, 1)
    },
  },
  {
    name: 'OptimalBits/bull#2681: under JSON a Date becomes a string; a serde of one’s own keeps Date, BigInt and bytes',
    async run(t, rig) {
      const date = new Date(0)
      const json = await rig.worker<unknown, unknown>(({ payload }) => payload, { name: 'json' })
      t.equal(await rig.drive(json.enqueueAndWait('id', date)), '1970-01-01T00:00:00.000Z')
      type Rich = { date: Date; big: bigint; bytes: Uint8Array }
      const serde: Serde<Rich> = {
        serialize: ({ date, big, bytes }) =>
          Buffer.concat([Buffer.from(`${date.getTime()},${big},`), Buffer.from(bytes)]),
        deserialize: (encoded) => {
          const [time, big] = Buffer.from(encoded as Uint8Array)
            .toString('latin1')
            .split(',', 2) as [string, string]
          const bytes = new Uint8Array((encoded as Uint8Array).subarray(time.length + big.length + 2))
          return { date: new Date(Number(time)), big: BigInt(big), bytes }
        },
      }
      const own = await rig.worker<Rich, Rich>(({ payload }) => payload, {
        name: 'own',
        payloadSerde: serde,
        resultSerde: serde,
      })
      const value = { date: new Date(12_345), big: 2n ** 70n, bytes: Uint8Array.from({ length: 256 }, (_, n) => n) }
      t.strictSame(await rig.drive(own.enqueueAndWait('id', value)), value)
      t.strictSame(await rig.drive(own.getResult('id')), value)
      t.match(await rig.drive(own.enqueue('id', value)), { status: 'completed' })
      t.equal(own.counters.mismatched, 0)
    },
  },
  {
    name: 'case 48: a binary serde with a retry: the payload is whole again, no ghosts',
    async run(t, rig) {
      const binary: Serde<Uint8Array> = { serialize: (value) => value, deserialize: (encoded) => encoded as Uint8Array }
      const seen: string[] = []
      const worker = await rig.worker<Uint8Array, Uint8Array>(
        ({ payload, attempts }) => {
          seen.push(Buffer.from(payload).toString('hex'))
          if (attempts < 3) throw new Error('again')
          return payload
        },
        { payloadSerde: binary, resultSerde: binary, retry: () => 1 },
      )
      const bytes = new Uint8Array([0, 255, 128, 10, 13, 0])
      const result = await rig.drive(worker.enqueueAndWait('id', bytes))
      t.equal(Buffer.from(result).toString('hex'), Buffer.from(bytes).toString('hex'))
      t.equal(new Set(seen).size, 1)
      t.equal(seen.length, 3)
    },
  },
  {
    name: 'powertools-lambda-typescript#2944: a class instance is saved by its serde, without a rerun',
    async run(t, rig) {
      class Money {
        readonly cents: number
        constructor(cents: number) {
          this.cents = cents
        }
        get euros() {
          return this.cents / 100
        }
      }
      const serde: Serde<Money> = {
        serialize: (money) => String(money.cents),
        deserialize: (text) => new Money(Number(text)),
      }
      const worker = await rig.worker<number, Money>(({ payload }) => new Money(payload), { resultSerde: serde })
      const result = await rig.drive(worker.enqueueAndWait('id', 250))
      t.type(result, Money)
      t.equal(result.euros, 2.5)
      t.equal(worker.counters.executed, 1)
    },
  },
  {
    name: 'UnrecoverableError: no further attempt; known by its code where another copy of the package threw it',
    async run(t, rig) {
      const worker = await rig.worker<string, never>(({ payload }) => {
        if (payload === 'own') throw new UnrecoverableError('hopeless', { cause: new Error('root') })
        throw Object.assign(new Error('foreign'), { code: 'ASKONCE_UNRECOVERABLE' })
      })
      const own = await rig.refusal(worker.enqueueAndWait('own', 'own'))
      t.match(own, { attempts: 1, cause: { message: 'hopeless', code: 'ASKONCE_UNRECOVERABLE' } })
      t.equal(own.cause.cause.message, 'root')
      t.match(await rig.refusal(worker.enqueueAndWait('foreign', 'foreign')), { attempts: 1 })
      // The worker hears of its verdict being stored after those who wait may have read it.
      await rig.until('both failures are counted', () => worker.counters.failed === 2)
      t.equal(worker.counters.retried, 0)
    },
  },
  {
    name: 'case 16: a handler that never settles: other jobs progress; its time is up at handlerTimeoutMs, with an aborted signal',
    async run(t, rig) {
      const aborted: unknown[] = []
      const worker = await rig.worker<string, string>(
        ({ payload, signal }) => {
          if (payload === 'good') return 'fine'
          signal.addEventListener('abort', () => aborted.push((signal.reason as { code: string }).code))
          return new Promise(() => {})
        },
        { concurrency: 2, maxAttempts: 2, retry: () => 1, handlerTimeoutMs: rig.leaseMs * 2 },
      )
      const refusal = rig.refusal(worker.enqueueAndWait('stuck', 'stuck', { timeout: 1_000_000 }))
      for (let n = 0; n < 10; n++) t.equal(await rig.drive(worker.enqueueAndWait(`good-${n}`, 'good')), 'fine')
      const error = await refusal
      t.match(error.cause, { name: 'HandlerTimeoutError', code: 'ASKONCE_HANDLER_TIMEOUT' })
      t.match(error.cause.message, String(rig.leaseMs * 2))
      t.strictSame(aborted, ['ASKONCE_HANDLER_TIMEOUT', 'ASKONCE_HANDLER_TIMEOUT'])
      t.equal(await rig.drive(worker.enqueueAndWait('after', 'good')), 'fine')
      t.equal(worker.counters.stale_ignored, 0)
    },
  },
  {
    name: 'a handler that answers after its time was up: too late, the first outcome stands',
    async run(t, rig) {
      const late = gate<string>()
      const worker = await rig.worker<number, string>(() => late.promise, {
        maxAttempts: 1,
        handlerTimeoutMs: rig.shortMs,
      })
      const error = await rig.refusal(worker.enqueueAndWait('id', 1, { timeout: 1_000_000 }))
      t.equal(error.cause.code, 'ASKONCE_HANDLER_TIMEOUT')
      late.open('late')
      await rig.calm()
      t.equal((await worker.getStatus('id'))?.state, 'failed')
      t.match(worker.counters, { completed: 0, failed: 1, stale_ignored: 0 })
    },
  },
  {
    name: 'the handler gets id, payload, attempts, maxAttempts, createdAt, generation and a signal; each attempt its own',
    async run(t, rig) {
      const jobs: Job<unknown>[] = []
      const worker = await rig.worker<unknown, number>(
        (job) => {
          jobs.push(job)
          if (job.attempts === 1) throw new Error('again')
          return 1
        },
        { maxAttempts: 5, retry: () => 1 },
      )
      await rig.drive(worker.enqueueAndWait('id', { deep: [1, { a: null }] }))
      const { createdAt } = (await worker.getStatus('id'))!
      t.equal(jobs.length, 2)
      for (const [index, job] of jobs.entries()) {
        t.match(job, { id: 'id', payload: { deep: [1, { a: null }] }, attempts: index + 1, maxAttempts: 5, createdAt })
        t.type(job.signal, AbortSignal)
        t.equal(job.signal, job.signal)
        t.equal(job.signal.aborted, false)
      }
      t.not(jobs[0]!.generation, jobs[1]!.generation)
    },
  },
]
