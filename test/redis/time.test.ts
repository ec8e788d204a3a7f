/** Redis's time decides: a client whose clock is wrong changes nothing. */

import t from 'tap'
import { Queue } from '../../src/index.ts'
import { complete } from '../../src/record.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { RedisServer } from '../support/redis-server.ts'
import { item, wish } from './items.ts'
import { skip } from './suite.ts'

const hour = 3_600_000

for (const [what, skewMs] of [
  ['fast', hour],
  ['slow', -hour],
] as const) {
  t.test(`a client clock an hour ${what}: leases, delays, holds and TTLs are the server's`, { skip }, async (t) => {
    const server = await RedisServer.start()
    const realNow = Date.now
    const straight = await new RedisStorage({ url: server.url }).open('q')
    Date.now = () => realNow() + skewMs
    const wrong = await new RedisStorage({ url: server.url }).open('q')
    t.teardown(async () => {
      Date.now = realNow
      await straight.close()
      await wrong.close()
      await server.dispose()
    })
    const { now, answers } = await wrong.enqueue([item('a'), item('later', { delayMs: hour / 2 })])
    t.ok(Math.abs(now - realNow()) < 60_000, 'the time is not the client’s')
    t.equal(answers[0]?.record.at, now)
    const [job] = (await straight.claim(wish(1, hour / 2))).jobs
    t.equal(job?.spec.id, 'a')
    const early = await wrong.claim(wish(10))
    t.same(early.jobs, [], 'neither a lease nor a delay is over early')
    t.ok(early.nextInMs !== null && early.nextInMs > hour / 4 && early.nextInMs <= hour / 2)
    await wrong.settle([{ id: 'a', generation: job?.generation ?? '', verdict: complete('x', hour / 2) }], null)
    t.equal((await wrong.enqueue([item('a')])).answers[0]?.outcome, 'exists', 'the result is still there')
    await wrong.hold(hour / 2)
    t.ok((await straight.stats()).heldForMs > hour / 4)
  })
}

t.test('queues with a skewed clock work together', { skip }, async (t) => {
  const server = await RedisServer.start()
  const skewed = (ms: number) => ({
    now: () => Date.now() + ms,
    monotonic: () => performance.now(),
    timer: (callback: () => void, ms: number, ref: boolean) => {
      const timer = setTimeout(callback, Math.min(ms, 2 ** 31 - 1))
      if (!ref) timer.unref()
      return { clear: () => clearTimeout(timer) }
    },
  })
  const make = (ms: number) =>
    new Queue<string, string>({
      storage: new RedisStorage({ url: server.url }),
      name: 'q',
      clock: skewed(ms),
      resultTTL: 60_000,
    })
  const worker = make(hour)
  const producer = make(-hour)
  t.teardown(async () => {
    await worker.stop()
    await producer.stop()
    await server.dispose()
  })
  let runs = 0
  worker.execute(async () => `run ${++runs}`)
  await worker.start()
  await producer.start()
  t.equal(await producer.enqueueAndWait('id', 'x'), 'run 1')
  t.same(await producer.enqueue('id', 'x'), { status: 'completed', result: 'run 1' })
  t.same(await worker.enqueue('id', 'x'), { status: 'completed', result: 'run 1' })
})
