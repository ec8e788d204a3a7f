/** Retries and rate limits. */

import { RateLimitedError } from '../../../src/errors.ts'
import { ManualHandler, type Scenario } from '../../support/queue-rig.ts'
import { failAfter, failBefore } from '../support/faulty-storage.ts'

export const retrying: readonly Scenario[] = [
  {
    name: 'by default: exponential back-off with full jitter, from 0 to 1 s, 2 s, 4 s … at most 5 min',
    async run(t, rig) {
      const delays: number[] = []
      const randoms = [0, 0.5, 0.999, 0.999, 0.999, 0.999, 0.999, 0.999, 0.999, 0.999, 0.999, 0.999]
      let drawn = 0
      const draws: number[] = []
      const failing = async () => {
        throw new Error('no')
      }
      // Polls and sweeps draw, too: the draw that the policy got is the one last before the event.
      const random = () => {
        const value = randoms[drawn++ % randoms.length]!
        draws.push(value)
        return value
      }
      const worker = await rig.queue({ maxAttempts: 12, random })
      worker.on('retrying', ({ attempts, delayMs }) => {
        const ceiling = Math.min(300_000, 1_000 * 2 ** (attempts - 1))
        delays.push(delayMs)
        t.ok(delayMs >= 0 && delayMs < ceiling, `attempt ${attempts}: ${delayMs} < ${ceiling}`)
        t.ok(
          draws.some((draw) => Math.floor(draw * ceiling) === delayMs),
          'full jitter: random x ceiling',
        )
      })
      if (!rig.virtual) return
      worker.execute(failing)
      await rig.drive(worker.start())
      await rig.refusal(worker.enqueueAndWait('id', 1, { timeout: Number.POSITIVE_INFINITY }))
      await rig.until('all are told', () => worker.counters.failed === 1)
      t.equal(delays.length, 11)
      if (rig.prompt) t.ok(delays.some((delay) => delay > 256_000))
    },
  },
  {
    name: 'a policy of one’s own gets attempt, error and a random number; null ends it; the wait is what it says',
    async run(t, rig) {
      const calls: unknown[] = []
      const starts: number[] = []
      const worker = await rig.worker<number, never>(
        async ({ attempts }) => {
          starts.push(rig.clock.monotonic())
          throw new Error(`no ${attempts}`)
        },
        {
          maxAttempts: 10,
          random: () => 0.25,
          retry: (attempt, error, random) => {
            calls.push([attempt, (error as Error).message, random])
            return attempt < 3 ? rig.shortMs : null
          },
        },
      )
      const error = await rig.refusal(worker.enqueueAndWait('id', 1, { timeout: 1_000_000 }))
      t.equal(error.attempts, 3)
      t.strictSame(calls, [
        [1, 'no 1', 0.25],
        [2, 'no 2', 0.25],
        [3, 'no 3', 0.25],
      ])
      for (let n = 1; n < starts.length; n++) {
        const between = starts[n]! - starts[n - 1]!
        t.ok(between >= rig.shortMs - 5, 'not before')
        if (rig.virtual) t.equal(between, rig.shortMs)
      }
      await rig.counted(t, worker, { executed: 3, retried: 2, failed: 1 })
    },
  },
  {
    name: 'a policy that throws or answers nonsense is told as an error; the job gets its further attempts',
    async run(t, rig) {
      const all = [Number.NaN, -1, Number.POSITIVE_INFINITY, 'soon', undefined, 2 ** 53, {}, 0.5, 0]
      // Each nonsense costs a second, which real time has few of.
      const answers = rig.virtual ? all : [Number.NaN, 0]
      const worker = await rig.worker<number, string>(
        async ({ attempts }) => {
          if (attempts <= answers.length + 1) throw new Error('again')
          return 'at last'
        },
        {
          maxAttempts: 50,
          retry: (attempt) => {
            if (attempt > answers.length) throw new Error('policy')
            return answers[attempt - 1] as number
          },
        },
      )
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'at last')
      t.equal(rig.takeErrors().length, rig.virtual ? 8 : 2)
    },
  },
  {
    name: 'maxAttempts 1 means one run; attempts of a queue, and of a call',
    async run(t, rig) {
      const seen: Record<string, number> = {}
      const worker = await rig.worker<number, never>(
        async ({ id }) => {
          seen[id] = (seen[id] ?? 0) + 1
          throw new Error('no')
        },
        { maxAttempts: 4, retry: () => 0 },
      )
      const waits = [worker.enqueueAndWait('queue', 1), worker.enqueueAndWait('call', 1, { maxAttempts: 1 })]
      for (const refusal of waits.map((wait) => rig.refusal(wait)))
        t.match(await refusal, { code: 'ASKONCE_JOB_FAILED' })
      t.strictSame(seen, { queue: 4, call: 1 })
    },
  },
  {
    name: 'case 43: the backend refuses writes during a retry, or loses the reply: the job is kept and its attempts are right',
    async run(t, rig) {
      for (const [rule, times] of [
        [failBefore(), 3],
        [failAfter(), 1],
      ] as const) {
        const { storage } = await rig.process()
        const seen: number[] = []
        const worker = await rig.worker<number, string>(
          async ({ attempts }) => {
            seen.push(attempts)
            if (attempts < 3) {
              storage.on('settle', rule, times)
              throw new Error('again')
            }
            return 'done'
          },
          { storage, retry: () => 1, name: String(rule) },
        )
        t.equal(await rig.drive(worker.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'done')
        await rig.until('the worker knows', () => worker.counters.completed === 1)
        t.strictSame(seen, [1, 2, 3])
        t.equal(rig.takeErrors().length, 2 * times)
        await rig.counted(t, worker, { executed: 3, retried: 2, completed: 1, stale_ignored: 0 })
        await rig.drive(worker.stop())
      }
    },
  },
  {
    name: 'the replies to a verdict are lost three times over: it is stored once and not told as stale',
    async run(t, rig) {
      const { storage } = await rig.process()
      const worker = await rig.worker<number, string>(
        async ({ attempts }) => {
          if (attempts > 1) return 'done'
          storage.on('settle', failAfter(), 3)
          throw new Error('again')
        },
        { storage, retry: () => 1 },
      )
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'done')
      await rig.until('the last verdict is answered', () => worker.counters.completed === 1)
      t.equal(rig.takeErrors().length, 3)
      await rig.counted(t, worker, { executed: 2, retried: 1, completed: 1, stale_ignored: 0 })
    },
  },
  {
    name: 'RateLimitedError gives the attempt back and holds the whole queue, in every process, until then',
    async run(t, rig) {
      const starts: [string, number, number][] = []
      let limited = true
      const work = async ({ id, attempts }: { id: string; attempts: number }) => {
        starts.push([id, attempts, rig.clock.monotonic()])
        if (id === 'limited' && limited) {
          limited = false
          throw new RateLimitedError(rig.shortMs * 4)
        }
        return id
      }
      const a = await rig.queue<number, string>()
      const b = await rig.queue<number, string>()
      const otherName = await rig.worker<number, string>(async ({ id }) => id, { name: 'another queue' })
      const held: unknown[] = []
      for (const queue of [a, b]) {
        queue.on('held', (event) => held.push(event))
        queue.execute(work)
      }
      await rig.drive(a.start())
      const first = a.enqueueAndWait('limited', 1, { timeout: 1_000_000, maxAttempts: 1 })
      await rig.until('it is held', () => held.length === 1)
      const heldAt = rig.clock.monotonic()
      await rig.drive(b.start())
      const second = b.enqueueAndWait('other', 1, { timeout: 1_000_000 })
      await rig.calm()
      t.equal(starts.length, 1, 'nobody starts anything')
      t.equal(await rig.drive(otherName.enqueueAndWait('id', 1)), 'id', 'another queue is not held')
      t.match(await rig.drive(a.getStatus('limited')), { state: 'queued', attempts: 0 })
      t.ok((await rig.drive(b.stats())).heldForMs > 0)
      t.strictSame(await rig.drive(Promise.all([first, second])), ['limited', 'other'])
      t.equal(starts.length, 3)
      for (const [, attempts, at] of starts.slice(1)) {
        t.equal(attempts, 1, 'the attempt was given back')
        t.ok(at - heldAt >= rig.shortMs * 4 - 10, 'not before the hold ends')
        if (rig.virtual) t.equal(at - heldAt, rig.shortMs * 4, 'and then at once')
      }
      t.strictSame(held, [{ id: 'limited', retryAfterMs: rig.shortMs * 4 }])
      await rig.until('the hold is counted', () => a.counters.held + b.counters.held > 0)
      t.equal(a.counters.held + b.counters.held, 1)
      t.equal(a.counters.retried, 0)
    },
  },
  {
    name: 'a hold leaves running jobs alone; a shorter hold does not end a longer one',
    async run(t, rig) {
      const handler = new ManualHandler<number, string>()
      const worker = await rig.worker<number, string>(handler.handle, { concurrency: 3 })
      let holds = 0
      worker.on('held', () => {
        holds++
      })
      const waits = ['long', 'short', 'running'].map((id) => worker.enqueueAndWait(id, 1, { timeout: 1_000_000 }))
      await rig.until('they start', () => handler.calls.length === 3)
      const end = (id: string) => handler.calls.findLast(({ job }) => job.id === id)!.end
      const heldAt = rig.clock.monotonic()
      end('long').fail(new RateLimitedError(rig.shortMs * 4))
      await rig.until('it is held', () => holds === 1)
      end('short').fail(new RateLimitedError(1))
      await rig.until('it is held', () => holds === 2)
      t.equal(handler.calls[2]!.job.signal.aborted, false)
      end('running').open('fine')
      t.equal(await rig.drive(waits[2]!), 'fine')
      await rig.until('they start again', () => handler.calls.length === 5)
      t.ok(rig.clock.monotonic() - heldAt >= rig.shortMs * 4 - 10)
      end('long').open('long')
      end('short').open('short')
      t.strictSame(await rig.drive(Promise.all(waits)), ['long', 'short', 'fine'])
    },
  },
  {
    name: 'the storage fails the hold: told as an error; the attempt is given back all the same and waits its time',
    async run(t, rig) {
      const { storage } = await rig.process()
      storage.on('hold', failBefore())
      const starts: number[] = []
      const worker = await rig.worker<number, string>(
        async () => {
          starts.push(rig.clock.monotonic())
          if (starts.length === 1) throw new RateLimitedError(rig.shortMs)
          return 'fine'
        },
        { storage, maxAttempts: 1 },
      )
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1, { maxAttempts: 1, timeout: 1_000_000 })), 'fine')
      t.equal(rig.takeErrors().length, 1)
      t.ok(starts[1]! - starts[0]! >= rig.shortMs - 10)
    },
  },
  {
    name: 'a rate limit from another copy of the package is known by its code; a nonsense one is an ordinary failure',
    async run(t, rig) {
      const worker = await rig.worker<unknown, string>(
        async ({ payload, attempts }) => {
          if (worker.counters.executed === 1) {
            throw Object.assign(new Error('slow'), { code: 'ASKONCE_RATE_LIMITED', retryAfterMs: rig.shortMs })
          }
          if (payload === 'odd' && attempts === 1) {
            throw Object.assign(new Error('slow'), { code: 'ASKONCE_RATE_LIMITED', retryAfterMs: -1 })
          }
          return `attempt ${attempts}`
        },
        { retry: () => 1 },
      )
      t.equal(await rig.drive(worker.enqueueAndWait('id', 1, { timeout: 1_000_000 })), 'attempt 1')
      t.equal(await rig.drive(worker.enqueueAndWait('odd', 'odd', { timeout: 1_000_000 })), 'attempt 2')
      await rig.counted(t, worker, { held: 1, retried: 1 })
    },
  },
]
