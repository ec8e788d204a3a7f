/** afterExecution: runs once, after the last attempt, before the outcome is stored; can't hurt the job. */

import { UnrecoverableError } from '../../../src/errors.ts'
import type { AfterExecutionContext } from '../../../src/options.ts'
import type { Queue } from '../../../src/queue.ts'
import { gate, type QueueRig, type Scenario } from '../../support/queue-rig.ts'

async function keptFor(rig: QueueRig, queue: Queue<any, any>, id: string): Promise<number> {
  await rig.until('it ends', async () => (await queue.getStatus(id))?.settledAt !== undefined)
  const { expiresAt, settledAt } = (await queue.getStatus(id))!
  return expiresAt! - settledAt!
}

export const hooks: readonly Scenario[] = [
  {
    name: 'seed 004: the hook gets all that is documented, once a job, after the last attempt, before the outcome is stored',
    async run(t, rig) {
      const contexts: AfterExecutionContext<string, string>[] = []
      const states: unknown[] = []
      const worker: Queue<string, string> = await rig.worker<string, string>(
        async ({ payload, attempts }) => {
          await rig.clock.monotonic()
          if (payload === 'bad' || attempts === 1) throw new Error(`attempt ${attempts}`)
          return 'fine'
        },
        {
          maxAttempts: 2,
          retry: () => 1,
          resultTTL: 5_000,
          afterExecution: async (context) => {
            contexts.push({ ...context })
            states.push((await worker.getStatus(context.id))?.state)
          },
        },
      )
      await rig.drive(worker.enqueueAndWait('good', 'good'))
      await rig.refusal(worker.enqueueAndWait('bad', 'bad'))
      t.equal(contexts.length, 2)
      t.strictSame(states, ['processing', 'processing'])
      const { createdAt } = (await worker.getStatus('good'))!
      const [good, bad] = contexts as [AfterExecutionContext<string, string>, AfterExecutionContext<string, string>]
      t.match(good, { id: 'good', payload: 'good', attempts: 2, maxAttempts: 2, createdAt, status: 'completed' })
      t.match(good, { result: 'fine', ttl: 5_000, workerId: worker.workerId })
      t.notOk('error' in good)
      t.match(bad, { id: 'bad', payload: 'bad', attempts: 2, status: 'failed', ttl: 5_000 })
      t.equal(bad.error?.message, 'attempt 2')
      t.notOk('result' in bad)
      for (const context of contexts) {
        t.ok(context.createdAt <= context.startedAt && context.startedAt <= context.finishedAt)
        t.equal(context.durationMs >= 0, true)
      }
    },
  },
  {
    name: 'seed 004: the hook sets the TTL by result; mahendraHegde/node-idempotency#36: by error, apart from the result’s',
    async run(t, rig) {
      const worker = await rig.worker<string, { cacheControl: string }>(
        async ({ payload }) => {
          if (payload === 'gone') throw new UnrecoverableError('404')
          if (payload === 'busy') throw new UnrecoverableError('503')
          return { cacheControl: 'max-age=7' }
        },
        {
          resultTTL: 60_000,
          failureTTL: 30_000,
          afterExecution: async (context) => {
            if (context.status === 'completed') {
              context.ttl = Number(context.result!.cacheControl.match(/max-age=(\d+)/)![1]) * 1_000
            } else if (context.error!.message === '404') {
              context.ttl = 90_000
            }
          },
        },
      )
      await rig.drive(worker.enqueueMany(['fine', 'gone', 'busy'].map((id) => ({ id, payload: id }))))
      t.equal(await keptFor(rig, worker, 'fine'), 7_000)
      t.equal(await keptFor(rig, worker, 'gone'), 90_000)
      t.equal(await keptFor(rig, worker, 'busy'), 30_000)
    },
  },
  {
    name: 'the hook replaces the result, or the error: that is what is stored and told to all',
    async run(t, rig) {
      const events: unknown[] = []
      const worker = await rig.worker<string, string>(
        async ({ payload }) => {
          if (payload === 'bad') throw new UnrecoverableError('raw')
          return 'raw'
        },
        {
          afterExecution: (context) => {
            if (context.status === 'completed') context.result = 'refined'
            else context.error = Object.assign(new TypeError('refined'), { code: 'E_FINE' })
          },
        },
      )
      worker.on('completed', ({ result }) => events.push(result))
      worker.on('failed', ({ error }) => events.push(error.message))
      t.equal(await rig.drive(worker.enqueueAndWait('good', 'good')), 'refined')
      const error = await rig.refusal(worker.enqueueAndWait('bad', 'bad'))
      t.match(error.cause, { name: 'TypeError', message: 'refined', code: 'E_FINE' })
      await rig.until('all are told', () => events.length === 2)
      t.strictSame(events, ['refined', 'refined'])
      t.equal(await rig.drive(worker.run('inline', 'x', async () => 'raw')), 'refined', 'of inline runs, too')
    },
  },
  {
    name: 'a hook that throws, rejects, or sets a bad TTL or error restores what was, and emits error; the outcome stands',
    async run(t, rig) {
      const sabotage: Record<string, (context: AfterExecutionContext<string, string>) => unknown> = {
        throws: (context) => {
          context.ttl = 1
          context.result = 'spoilt'
          throw new Error('hook')
        },
        'rejects with undefined': () => Promise.reject(undefined),
        'TTL 0': (context) => {
          context.ttl = 0
        },
        'TTL -1': (context) => {
          context.ttl = -1
        },
        'TTL NaN': (context) => {
          context.ttl = Number.NaN
        },
        'TTL Infinity': (context) => {
          context.ttl = Number.POSITIVE_INFINITY
        },
        'TTL 1.5': (context) => {
          context.ttl = 1.5
        },
        'TTL text': (context) => {
          context.ttl = '1000' as unknown as number
        },
        'TTL undefined': (context) => {
          context.ttl = undefined as unknown as number
        },
        'TTL and result': (context) => {
          context.result = 'spoilt'
          context.ttl = -5
        },
        'error string': (context) => {
          if (context.status === 'failed') context.error = 'text' as unknown as Error
          else throw new Error('hook')
        },
      }
      const worker = await rig.worker<string, string>(
        async ({ id }) => {
          if (id.startsWith('bad')) throw new UnrecoverableError('raw')
          return 'raw'
        },
        {
          resultTTL: 50_000,
          failureTTL: 40_000,
          afterExecution: (context) => void sabotage[context.payload]!(context),
        },
      )
      const promised = await rig.worker<string, string>(async () => 'raw', {
        name: 'promised',
        resultTTL: 50_000,
        afterExecution: async (context) => {
          await sabotage[context.payload]!(context)
        },
      })
      for (const kind of Object.keys(sabotage)) {
        if (kind !== 'rejects with undefined') {
          t.equal(await rig.drive(worker.enqueueAndWait(`good ${kind}`, kind)), 'raw', kind)
          t.equal(await keptFor(rig, worker, `good ${kind}`), 50_000, kind)
          t.equal(rig.takeErrors().length, 1, kind)
          const error = await rig.refusal(worker.enqueueAndWait(`bad ${kind}`, kind))
          t.equal(error.cause.message, 'raw', kind)
          t.equal(await keptFor(rig, worker, `bad ${kind}`), 40_000, kind)
          t.equal(rig.takeErrors().length, 1, kind)
        }
        t.equal(await rig.drive(promised.enqueueAndWait(kind, kind)), 'raw', kind)
        t.equal(await keptFor(rig, promised, kind), 50_000, kind)
        t.equal(rig.takeErrors().length, 1, kind)
      }
      const completed = Object.keys(sabotage).length
      await rig.counted(t, promised, { completed })
    },
  },
  {
    name: 'a hook that replaces the result by what can’t be serialized: the job fails, typed, without a rerun',
    async run(t, rig) {
      const worker = await rig.worker<string, unknown>(async () => 'raw', {
        afterExecution: (context) => {
          context.result = 1n
        },
      })
      const error = await rig.refusal(worker.enqueueAndWait('id', 'x'))
      t.equal(error.cause.code, 'ASKONCE_SERIALIZATION')
      t.equal(worker.counters.executed, 1)
    },
  },
  {
    name: 'a long hook keeps its lease: no second run, the outcome is stored when it ends',
    async run(t, rig) {
      const hook = gate()
      const worker = await rig.worker<string, string>(async () => 'fine', { afterExecution: () => hook.promise })
      const other = await rig.worker<string, string>(async () => 'other')
      const wait = worker.enqueueAndWait('id', 'x', { timeout: 1_000_000 })
      await rig.until('one runs', () => worker.counters.executed + other.counters.executed === 1)
      if (worker.counters.executed === 1) {
        await rig.advance(rig.leaseMs * 3)
        t.equal((await worker.getStatus('id'))?.state, 'processing')
        hook.open()
      }
      await rig.drive(wait)
      t.equal(worker.counters.executed + other.counters.executed, 1)
    },
  },
  {
    name: 'the hook is not called for attempts that will be repeated, nor for cancelled jobs',
    async run(t, rig) {
      let calls = 0
      const worker = await rig.worker<string, string>(
        async ({ attempts }) => {
          if (attempts < 3) throw new Error('again')
          return 'fine'
        },
        { retry: () => 1, afterExecution: () => void calls++ },
      )
      await rig.drive(worker.enqueue('cancelled', 'x', { delay: 1_000_000 }))
      await rig.drive(worker.cancel('cancelled'))
      await rig.drive(worker.enqueueAndWait('id', 'x'))
      t.equal(calls, 1)
    },
  },
  {
    name: 'promise 5: a hook that never settles does not keep its job for ever: the outcome stands and is stored',
    async run(t, rig) {
      const worker = await rig.worker<string, string>(async () => 'fine', {
        handlerTimeoutMs: rig.leaseMs * 2,
        afterExecution: ({ id }) => (id === 'stuck' ? new Promise(() => {}) : undefined),
      })
      t.equal(await rig.drive(worker.enqueueAndWait('stuck', 'x', { timeout: rig.leaseMs * 10 })), 'fine')
      t.ok(rig.takeErrors().length > 0)
    },
  },
  {
    name: 'a job whose hook still runs has its slot still: slow hooks do not pile up beyond the concurrency',
    async run(t, rig) {
      const hook = gate()
      const worker = await rig.worker<number, string>(async () => 'fine', {
        concurrency: 2,
        afterExecution: () => hook.promise,
      })
      await rig.drive(worker.enqueueMany(Array.from({ length: 20 }, (_, n) => ({ id: `id-${n}`, payload: n }))))
      await rig.until('the slots are taken', () => worker.counters.executed >= 2)
      await rig.calm()
      await rig.calm()
      const { executed } = worker.counters
      hook.open()
      await rig.until('all are done', () => worker.counters.completed === 20)
      t.equal(executed, 2)
    },
  },
]
