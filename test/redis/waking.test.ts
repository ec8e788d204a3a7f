/** Idle is silent, work is heard of at once, and a lost subscriber costs time, not results. */

import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { Queue } from '../../src/index.ts'
import { complete, release, retry } from '../../src/record.ts'
import type { Hint } from '../../src/storage.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { RedisServer } from '../support/redis-server.ts'
import { Hints, item, wish } from './items.ts'
import { FaultyProxy } from './proxy.ts'
import { skip } from './suite.ts'

/** Commands from clients so far, those inside scripts and the rig's own left out. */
async function commands(server: RedisServer): Promise<number> {
  const lines = String(await server.call('INFO', 'commandstats')).split('\n')
  let sum = 0
  for (const line of lines) {
    const found = /^cmdstat_(evalsha|eval|subscribe|unsubscribe|ping)[:|].*?calls=(\d+)/.exec(line)
    if (found !== null) sum += Number(found[2])
  }
  return sum
}

t.test('idle queues of any concurrency send at most one command a second each', { skip }, async (t) => {
  const server = await RedisServer.start()
  const storage = new RedisStorage({ url: server.url })
  const queues = [1, 1_000].map((concurrency) => new Queue({ storage, name: `q${concurrency}`, concurrency }))
  t.teardown(async () => {
    await Promise.all(queues.map((queue) => queue.stop()))
    await server.dispose()
  })
  for (const queue of queues) {
    const idle = new Promise<void>((resolve) => queue.once('idle', resolve))
    queue.execute(async () => 'done')
    await queue.start()
    await idle
  }
  await sleep(200)
  const before = await commands(server)
  await sleep(4_000)
  const sent = (await commands(server)) - before
  t.ok(sent > 0, 'polling goes on')
  t.ok(sent <= 2 * 5, `${sent} commands of two queues in 4 s`)
})

t.test('one idle worker is told of one job, and told again only when it is idle again', { skip }, async (t) => {
  const server = await RedisServer.start()
  const producer = await new RedisStorage({ url: server.url }).open('q')
  const workers = await Promise.all([0, 1, 2].map(() => new RedisStorage({ url: server.url }).open('q')))
  t.teardown(async () => {
    await Promise.all([producer, ...workers].map((handle) => handle.close()))
    await server.dispose()
  })
  for (const worker of workers) await worker.claim(wish(2))
  const heard = workers.map((worker) => new Hints(worker))
  const due = () => heard.map(({ all }) => all.filter(({ type }) => type === 'due').length)
  await producer.enqueue([item('a')])
  await heard[2]?.first(({ type }) => type === 'due')
  t.same(due(), [0, 0, 1], 'the one that asked last')
  await producer.enqueue([item('b'), item('c')])
  await heard[1]?.first(({ type }) => type === 'due')
  t.same(due(), [0, 1, 1], 'the next one')
  // It takes what it can, and as there is more, the next is told.
  t.equal((await workers[1]?.claim(wish(2)))?.jobs.length, 2)
  await heard[0]?.first(({ type }) => type === 'due')
  t.same(due(), [1, 1, 1])
  t.equal((await workers[0]?.claim(wish(2)))?.jobs.length, 1)
  await producer.enqueue([item('later', { delayMs: 5_000 })])
  const hint = await heard[0]?.first((hint) => hint.type === 'due' && hint.inMs > 0)
  t.same(hint, { type: 'due', inMs: 5_000 })
  t.same(due(), [2, 1, 1])
  await workers[0]?.close()
  await producer.enqueue([item('d')])
  t.same(
    (await workers[1]?.claim(wish(5)))?.jobs.map(({ spec }) => spec.id),
    ['d'],
  )
  t.same(due(), [2, 1, 1], 'who is closed, busy or told already is not told')
})

t.test('what settles gives back is told of, and so is the end of a hold', { skip }, async (t) => {
  const server = await RedisServer.start()
  const one = await new RedisStorage({ url: server.url }).open('q')
  const two = await new RedisStorage({ url: server.url }).open('q')
  t.teardown(async () => {
    await one.close()
    await two.close()
    await server.dispose()
  })
  const hints = new Hints(two)
  for (const verdict of [release(0), retry('oh', 0)]) {
    await one.enqueue([item(verdict.kind)])
    const [job] = (await one.claim(wish())).jobs
    await two.claim(wish())
    const seen = hints.all.length
    await one.settle([{ id: verdict.kind, generation: job?.generation ?? '', verdict }], null)
    await hints.first(({ type }) => type === 'due', seen)
    const back = (await two.claim(wish())).jobs[0]
    t.equal(back?.spec.id, verdict.kind)
  }
  await one.hold(60_000)
  t.ok((await two.claim(wish())).heldForMs > 0)
  const seen = hints.all.length
  await one.hold(0)
  await hints.first(({ type }) => type === 'due', seen)
  t.pass('the hold’s end was told')
})

t.test(
  'relays hear of rows at once, and so do those who only listen; who was told stays on the list',
  { skip },
  async (t) => {
    const server = await RedisServer.start()
    const worker = await new RedisStorage({ url: server.url }).open('q')
    const relay = await new RedisStorage({ url: server.url }).open('q')
    const listener = await new RedisStorage({ url: server.url }).open('q')
    const elsewhere = await new RedisStorage({ url: server.url }).open('q2')
    t.teardown(async () => {
      await Promise.all([worker, relay, listener, elsewhere].map((handle) => handle.close()))
      await server.dispose()
    })
    const heard = [worker, relay, listener, elsewhere].map((handle) => new Hints(handle))
    t.same((await relay.deliver([], wish())).collected?.records, [])
    const post = async (id: string) => {
      await worker.enqueue([item(id)])
      const [job] = (await worker.claim(wish())).jobs
      const verdict = complete('done', 60_000, { rows: 'rows', ttlMs: 60_000 })
      const { answers } = await worker.settle([{ id, generation: job?.generation ?? '', verdict }], null)
      t.same(answers, ['settled'])
    }
    const outbox = (inMs: number) => (hint: Hint) => hint.type === 'outbox' && hint.inMs === inMs
    for (const id of ['a', 'b']) {
      const seen = heard.map(({ all }) => all.length)
      await post(id)
      for (const index of [1, 2]) await heard[index]?.first(outbox(0), seen[index])
    }
    const { collected } = await relay.deliver([], wish(2))
    const [first, second] = (collected?.records ?? []).map(({ spec, outbox }) => {
      return { id: spec.id, generation: outbox?.generation ?? '', delayMs: 5_000 }
    })
    if (first === undefined || second === undefined) throw new Error('both are due')
    await relay.deliver(
      [
        { ...first, rows: 'left' },
        { ...second, rows: null },
      ],
      null,
    )
    for (const index of [1, 2]) await heard[index]?.first(outbox(5_000))
    t.equal(heard[3]?.all.filter(({ type }) => type === 'outbox').length, 0, 'another queue hears nothing')
  },
)

t.test('waiters cost no command beyond the enqueue, and get the record itself', { skip }, async (t) => {
  const server = await RedisServer.start()
  const worker = await new RedisStorage({ url: server.url }).open('q')
  const waiter = await new RedisStorage({ url: server.url }).open('q')
  t.teardown(async () => {
    await worker.close()
    await waiter.close()
    await server.dispose()
  })
  const hints = new Hints(waiter)
  await waiter.enqueue([item('a', { wait: true }), item('ü {b}\n', { wait: true })])
  const { jobs } = await worker.claim(wish(2))
  const before = await commands(server)
  const verdict = complete('"the result: ü"', 60_000)
  await worker.settle(
    jobs.map(({ spec, generation }) => ({ id: spec.id, generation, verdict })),
    null,
  )
  for (const { spec } of jobs) {
    const hint = await hints.first((hint) => hint.type === 'settled' && hint.id === spec.id)
    if (hint.type !== 'settled') continue
    t.equal(hint.record?.state === 'completed' && hint.record.result, '"the result: ü"')
  }
  t.ok((await commands(server)) - before <= 2, 'the settlement, and maybe its script’s text')
  const large = 'x'.repeat(100_000)
  await waiter.enqueue([item('large', { wait: true })])
  const [job] = (await worker.claim(wish())).jobs
  await worker.settle([{ id: 'large', generation: job?.generation ?? '', verdict: complete(large, 60_000) }], null)
  const hint = await hints.first((hint) => hint.type === 'settled' && hint.id === 'large')
  t.notOk(hint.type === 'settled' && hint.record, 'a large record is not sent around')
})

t.test('a job enqueued elsewhere starts by the wake-up, not by the poll', { skip }, async (t) => {
  const server = await RedisServer.start()
  const worker = new Queue({ storage: new RedisStorage({ url: server.url }), name: 'q' })
  const producer = new Queue<string, string>({ storage: new RedisStorage({ url: server.url }), name: 'q' })
  t.teardown(async () => {
    await worker.stop()
    await producer.stop()
    await server.dispose()
  })
  worker.execute(async () => 'done')
  const idle = () => new Promise<void>((resolve) => worker.once('idle', resolve))
  const first = idle()
  await worker.start()
  await producer.start()
  await first
  const before = await commands(server)
  for (let i = 0; i < 20; i++) {
    const again = idle()
    t.equal(await producer.enqueueAndWait(`job ${i}`, 'x', { timeout: 20_000 }), 'done')
    await again
  }
  const sent = (await commands(server)) - before
  t.ok(sent < 20 * 5, `${sent} commands for 20 jobs: polls would be more, or take more than a second each`)
})

for (const [what, harm] of [
  ['CLIENT KILL', async (server: RedisServer) => void (await server.call('CLIENT', 'KILL', 'TYPE', 'pubsub'))],
  [
    'every connection killed',
    async (server: RedisServer) => void (await server.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
  ],
  ['a restart', (server: RedisServer) => server.restart('kill')],
] as const) {
  t.test(`${what} during a wait: it resolves all the same`, { skip }, async (t) => {
    const server = await RedisServer.start({ appendonly: true, appendfsync: 'always' })
    const worker = new Queue<string, string>({
      storage: new RedisStorage({ url: server.url }),
      name: 'q',
      leaseMs: 5_000,
    })
    const producer = new Queue<string, string>({ storage: new RedisStorage({ url: server.url }), name: 'q' })
    for (const queue of [worker, producer]) queue.on('error', () => {})
    t.teardown(async () => {
      await worker.stop()
      await producer.stop()
      await server.dispose()
    })
    let finish: (() => void) | null = null
    const running = new Promise<void>((begun) => {
      worker.execute(async () => {
        begun()
        await new Promise<void>((resolve) => {
          finish = resolve
        })
        return 'done'
      })
    })
    await worker.start()
    await producer.start()
    const answer = producer.enqueueAndWait('job', 'x', { timeout: 60_000 })
    await running
    await harm(server)
    ;(finish as (() => void) | null)?.()
    t.equal(await answer, 'done')
  })
}

t.test('a subscriber on a half-open connection is found out and made anew', { skip }, async (t) => {
  const server = await RedisServer.start()
  const proxy = await FaultyProxy.start(server.port)
  const handle = await new RedisStorage({ url: proxy.url, commandTimeout: 300 }).open('q')
  const other = await new RedisStorage({ url: server.url }).open('q')
  t.teardown(async () => {
    await handle.close()
    await other.close()
    await proxy.stop()
    await server.dispose()
  })
  const hints = new Hints(handle)
  await handle.claim(wish())
  proxy.deaden()
  // The connection for calls is made anew by its own time-out; the one that listens hears nothing, and says nothing.
  const warned = hints.first((hint) => hint.type === 'warning' && hint.code === 'REDIS_SUBSCRIBER_LOST')
  let done = false
  const back = warned.then(() =>
    hints.first((hint) => hint.type === 'warning' && hint.code === 'REDIS_SUBSCRIBER_BACK'),
  )
  void back.then(() => {
    done = true
  })
  while (!done) {
    await handle.claim(wish()).catch(() => {})
    await sleep(20)
  }
  await handle.claim(wish())
  const seen = hints.all.length
  await other.enqueue([item('heard')])
  await hints.first(({ type }) => type === 'due', seen)
  t.pass('the new one hears')
})
