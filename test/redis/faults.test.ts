/** What Redis and the network do to a storage; none of it may lose a job or be told in anything but typed errors. */

import { Redis } from 'ioredis'
import t from 'tap'
import { AskonceError, StorageClosedError, StorageError } from '../../src/errors.ts'
import { complete } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import type { RedisClient } from '../../storages/redis/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { scripts } from '../../storages/redis/scripts/index.ts'
import { RedisServer } from '../support/redis-server.ts'
import { Hints, item, wish } from './items.ts'
import { FaultyProxy } from './proxy.ts'
import { skip } from './suite.ts'
import { VirtualTime } from './virtual-client.ts'

async function failure(call: Promise<unknown>): Promise<AskonceError> {
  try {
    await call
  } catch (error) {
    if (error instanceof AskonceError) return error
    throw error
  }
  throw new Error('it did not fail')
}

async function stateOf(handle: StorageHandle, id: string): Promise<string | null> {
  return (await handle.get([id])).records[0]?.state ?? null
}

/** The same call again while there is no connection: on a busy machine one may take longer than the short times of these tests. */
async function untilDone<T>(call: () => Promise<T>): Promise<T> {
  for (let tries = 0; ; tries++) {
    try {
      return await call()
    } catch (error) {
      if (tries > 50 || !(error instanceof StorageError) || !error.retryable) throw error
    }
  }
}

t.test('SCRIPT FLUSH: the next call of each script brings its text along', { skip }, async (t) => {
  const server = await RedisServer.start()
  const handle = await new RedisStorage({ url: server.url }).open('q')
  t.teardown(async () => {
    await handle.close()
    await server.dispose()
  })
  for (let round = 0; round < 3; round++) {
    const id = `job ${round}`
    await server.call('SCRIPT', 'FLUSH')
    await handle.enqueue([item(id)])
    await server.call('SCRIPT', 'FLUSH')
    const [job] = (await handle.claim(wish())).jobs
    t.equal(job?.spec.id, id)
    await server.call('SCRIPT', 'FLUSH')
    const lease = { id, generation: job?.generation ?? '' }
    t.same(await handle.extend([{ ...lease, leaseMs: 1_000 }]), ['extended'])
    await server.call('SCRIPT', 'FLUSH')
    const settled = await handle.settle([{ ...lease, verdict: complete('done', 60_000) }], null)
    t.same(settled.answers, ['settled'])
    await server.call('SCRIPT', 'FLUSH')
    t.same(await handle.touch([{ id, ttlMs: 5_000 }]), ['updated'])
    await server.call('SCRIPT', 'FLUSH')
    t.same(await handle.cancel([id]), ['completed'])
    await server.call('SCRIPT', 'FLUSH')
    t.equal((await handle.stats()).queued, 0)
    await server.call('SCRIPT', 'FLUSH')
    await handle.hold(0)
  }
})

t.test(
  'maxmemory: an enqueue is refused and leaves nothing; running jobs are renewed and settled',
  { skip },
  async (t) => {
    const server = await RedisServer.start()
    const handle = await new RedisStorage({ url: server.url }).open('q')
    t.teardown(async () => {
      await handle.close()
      await server.dispose()
    })
    await handle.enqueue([item('a'), item('b')])
    const [a] = (await handle.claim(wish())).jobs
    await server.call('CONFIG', 'SET', 'maxmemory', '1')
    const error = await failure(handle.enqueue([item('c'), item('a')]))
    t.ok(error instanceof StorageError && error.retryable)
    t.match(error.message, /maxmemory/)
    const keys = await server.call('KEYS', '*')
    t.notOk(String(keys).includes('r:c'), 'nothing of it was written')
    const lease = { id: 'a', generation: a?.generation ?? '' }
    t.same(await handle.extend([{ ...lease, leaseMs: 60_000 }]), ['extended'])
    const verdict = complete('done', 60_000)
    const { answers, claim } = await handle.settle([{ ...lease, verdict }], wish())
    t.same(answers, ['settled'])
    t.equal(claim?.jobs[0]?.spec.id, 'b', 'the next job is had')
    await server.call('CONFIG', 'SET', 'maxmemory', '0')
    const again = await handle.enqueue([item('c')])
    t.equal(again.answers[0]?.outcome, 'created')
  },
)

t.test('a failover: READONLY for a while, then all goes on', { skip }, async (t) => {
  const server = await RedisServer.start()
  const storage = new RedisStorage({ url: server.url, commandTimeout: 20_000 })
  const handle = await storage.open('q')
  const brief = await new RedisStorage({ url: server.url, commandTimeout: 300 }).open('q')
  t.teardown(async () => {
    await handle.close()
    await brief.close()
    await server.dispose()
  })
  await handle.enqueue([item('before')])
  await server.call('REPLICAOF', '127.0.0.1', '1')
  const error = await failure(brief.enqueue([item('refused')]))
  t.ok(error instanceof StorageError && error.retryable)
  t.match(error.message, /replica/)
  const claimed = handle.claim(wish())
  const made = handle.enqueue([item('during')])
  await server.call('REPLICAOF', 'NO', 'ONE')
  t.equal((await claimed).jobs[0]?.spec.id, 'before')
  t.equal((await made).answers[0]?.outcome, 'created')
})

t.test('a restart: calls under way are repeated, and answer', { skip }, async (t) => {
  const server = await RedisServer.start({ appendonly: true, appendfsync: 'always' })
  const storage = new RedisStorage({ url: server.url, commandTimeout: 20_000 })
  const handle = await storage.open('q')
  const hints = new Hints(handle)
  t.teardown(async () => {
    await handle.close()
    await server.dispose()
  })
  await handle.enqueue([item('kept')])
  await server.kill()
  const seen = hints.all.length
  const made = handle.enqueue([item('made meanwhile')])
  const job = handle.claim(wish())
  await server.start()
  t.equal((await made).answers[0]?.outcome, 'created')
  t.equal((await job).jobs[0]?.spec.id, 'kept')
  await hints.first((hint) => hint.type === 'warning' && hint.code === 'REDIS_SUBSCRIBER_BACK', seen)
  await hints.first((hint) => hint.type === 'due', seen)
  t.pass('the subscriber tells that it is back, and that there may be work')
})

t.test('refused at the start: a typed error within connectTimeout; a later open works', { skip }, async (t) => {
  const server = await RedisServer.start()
  const { url } = server
  await server.stop()
  t.teardown(() => server.dispose())
  const storage = new RedisStorage({ url, connectTimeout: 300 })
  const error = await failure(storage.open('q'))
  t.ok(error instanceof StorageError && error.retryable)
  t.match((error.cause as Error & { code?: string }).message, /ECONNREFUSED|writeable|closed/)
  const lazy = await new RedisStorage({ url, lazyConnect: true, commandTimeout: 200 }).open('q')
  t.teardown(() => lazy.close())
  const lazyHints = new Hints(lazy)
  t.ok((await failure(lazy.enqueue([item('a')]))) instanceof StorageError, 'a lazy one opens, and its calls fail')
  await server.start()
  const handle = await untilDone(() => storage.open('q'))
  t.teardown(() => handle.close())
  t.equal((await handle.enqueue([item('a')])).answers[0]?.outcome, 'created')
  await handle.close()
  await lazyHints.first((hint) => hint.type === 'due')
  t.equal(await untilDone(() => stateOf(lazy, 'a')), 'queued', 'the lazy one has connected by itself')
  await t.rejects(handle.get(['a']), StorageClosedError)
})

t.test(
  'a half-open connection: calls end within commandTimeout, and the next connection works',
  { skip },
  async (t) => {
    const server = await RedisServer.start()
    const proxy = await FaultyProxy.start(server.port)
    const handle = await new RedisStorage({ url: proxy.url, commandTimeout: 300, connectTimeout: 300 }).open('q')
    t.teardown(async () => {
      await handle.close()
      await proxy.stop()
      await server.dispose()
    })
    proxy.mode = 'stall'
    const error = await failure(handle.enqueue([item('a')]))
    t.ok(error instanceof StorageError && error.retryable)
    t.match(error.message, /did not answer/)
    proxy.mode = 'pass'
    for (let tries = 0; ; tries++) {
      const answer = await handle.enqueue([item('b')]).catch((error: Error) => error)
      if (!(answer instanceof Error)) break
      if (tries > 50) throw answer
    }
    t.equal(await stateOf(handle, 'b'), 'queued')
  },
)

t.test('a connection that dies while it is made is given up, too', { skip }, async (t) => {
  const server = await RedisServer.start()
  const proxy = await FaultyProxy.start(server.port)
  const handle = await new RedisStorage({ url: proxy.url, commandTimeout: 200, connectTimeout: 200 }).open('q')
  t.teardown(async () => {
    await handle.close()
    await proxy.stop()
    await server.dispose()
  })
  proxy.mode = 'stall'
  const { connections } = proxy
  proxy.cut()
  // Both clients are connected anew, and get no answer to what they begin with.
  while (proxy.connections < connections + 2) await failure(handle.get(['a']))
  proxy.deaden()
  proxy.mode = 'pass'
  await untilDone(() => handle.enqueue([item('a')]))
  t.equal(await stateOf(handle, 'a'), 'queued')
})

t.test('lost replies: the same call again answers as the first would have', { skip }, async (t) => {
  const server = await RedisServer.start()
  const proxy = await FaultyProxy.start(server.port)
  const handle = await new RedisStorage({ url: proxy.url, commandTimeout: 10_000 }).open('q')
  t.teardown(async () => {
    await handle.close()
    await proxy.stop()
    await server.dispose()
  })
  /** Lets the next call reach Redis, loses its reply and the connection, and lets the repetition through. */
  const lose = async (call: () => Promise<unknown>, done: () => Promise<boolean>) => {
    proxy.mode = 'mute'
    const answer = call()
    while (!(await done())) await new Promise((resolve) => setImmediate(resolve))
    proxy.mode = 'pass'
    proxy.cut()
    return answer
  }
  const other = await new RedisStorage({ url: server.url }).open('q')
  t.teardown(() => other.close())
  // Scripts that Redis does not have yet would be asked for again, and their first replies are not the ones to lose.
  await handle.enqueue([item('warm')])
  const [warm] = (await handle.claim(wish())).jobs
  await handle.settle([{ id: 'warm', generation: warm?.generation ?? '', verdict: complete('', 1) }], null)
  const state = (id: string, wanted: string) => async () => (await stateOf(other, id)) === wanted

  const made = (await lose(() => handle.enqueue([item('a')]), state('a', 'queued'))) as Awaited<
    ReturnType<StorageHandle['enqueue']>
  >
  t.equal(made.answers[0]?.outcome, 'created', 'its own record is not a duplicate')
  await other.enqueue([item('b'), item('c')])
  const claimed = (await lose(() => handle.claim(wish(2)), state('b', 'processing'))) as Awaited<
    ReturnType<StorageHandle['claim']>
  >
  t.same(
    claimed.jobs.map(({ spec, attempts }) => [spec.id, attempts]),
    [
      ['a', 1],
      ['b', 1],
    ],
    'the same jobs, not the next ones, each with one attempt',
  )
  const [a, b] = claimed.jobs
  const lease = { id: 'a', generation: a?.generation ?? '' }
  const verdict = complete('done', 60_000)
  const settled = (await lose(
    () => handle.settle([{ ...lease, verdict }], wish()),
    state('a', 'completed'),
  )) as Awaited<ReturnType<StorageHandle['settle']>>
  t.same(settled.answers, ['settled'])
  t.same(
    settled.claim?.jobs.map(({ spec }) => spec.id),
    ['c'],
  )
  t.same(await handle.extend([{ id: 'b', generation: b?.generation ?? '', leaseMs: 60_000 }]), ['extended'])
})

t.test(
  'a claim given up, its answer lost: what it leased is given back by the next, no attempt counted',
  { skip },
  async (t) => {
    const server = await RedisServer.start()
    const proxy = await FaultyProxy.start(server.port)
    const handle = await new RedisStorage({ url: proxy.url, commandTimeout: 200 }).open('q')
    t.teardown(async () => {
      await handle.close()
      await proxy.stop()
      await server.dispose()
    })
    await handle.enqueue([item('a'), item('b'), item('c')])
    proxy.mode = 'mute'
    t.ok((await failure(handle.claim(wish(2)))) instanceof StorageError)
    proxy.mode = 'pass'
    const answer = await untilDone(() => handle.claim(wish(2)))
    t.same(
      answer.jobs.map(({ spec, attempts }) => [spec.id, attempts]),
      [
        ['a', 1],
        ['b', 1],
      ],
    )
  },
)

t.test('tries of a claim that reach Redis late take nothing from the one that was answered', { skip }, async (t) => {
  const server = await RedisServer.start()
  const real = new Redis(server.url)
  let tries = 0
  let late: (() => Promise<unknown>)[] = []
  const client: RedisClient = {
    get status() {
      return real.status
    },
    isCluster: false,
    eval: (lua, keys, ...values) => real.eval(lua, keys, ...values),
    duplicate: ((options: object) => real.duplicate(options)) as RedisClient['duplicate'],
    evalsha: async (sha, keys, ...values) => {
      if (sha !== scripts.claim.sha) return real.evalsha(sha, keys, ...values)
      tries++
      // The first one runs, and its answer is lost; the next is on its way for long.
      if (tries === 1) await real.evalsha(sha, keys, ...values)
      if (tries === 2) late.push(() => real.evalsha(sha, keys, ...values))
      if (tries < 3) throw new Error('Connection is closed.')
      return real.evalsha(sha, keys, ...values)
    },
  }
  const handle = await new RedisStorage({ client }).open('q')
  t.teardown(async () => {
    await handle.close()
    real.disconnect()
    await server.dispose()
  })
  await server.call('SCRIPT', 'LOAD', scripts.claim.lua)
  await handle.enqueue([item('a'), item('b')])
  const { jobs } = await handle.claim(wish(1))
  t.equal(tries, 3)
  const [job] = jobs
  t.same([job?.spec.id, job?.attempts], ['a', 1], 'given back once, by the third')
  // While the queue is held, what is given back can't be leased again.
  await handle.hold(60_000)
  for (const call of late) await call()
  late = []
  const { records } = await handle.get(['a', 'b'])
  t.equal(records[0]?.state === 'processing' && records[0].generation, job?.generation, 'it keeps its lease')
  t.equal(records[1]?.state, 'queued')
  const settlement = { id: 'a', generation: job?.generation ?? '', verdict: complete('done', 60_000) }
  t.same((await handle.settle([settlement], null)).answers, ['settled'])
})

t.test('a claim that Redis runs twice answers each job once, and never one that is leased', { skip }, async (t) => {
  const server = await RedisServer.start()
  const real = new Redis(server.url)
  const time = new VirtualTime()
  const inner = time.client(real)
  let twice = false
  const client: RedisClient = {
    get status() {
      return real.status
    },
    isCluster: false,
    eval: inner.eval,
    duplicate: inner.duplicate,
    evalsha: async (sha, keys, ...values) => {
      if (twice && sha === scripts.claim.sha) await inner.evalsha(sha, keys, ...values)
      return inner.evalsha(sha, keys, ...values)
    },
  }
  const handle = await new RedisStorage({ client }).open('q')
  t.teardown(async () => {
    await handle.close()
    real.disconnect()
    await server.dispose()
  })
  await handle.enqueue([item('a'), item('b'), item('c'), item('d')])
  twice = true
  const first = wish(1, 1_000)
  const told = (answer: Awaited<ReturnType<StorageHandle['claim']>>) => answer.jobs.map(({ spec }) => spec.id)
  t.same(told(await handle.claim(first)), ['b'], 'the first answer, with a, was lost')
  t.same(told(await handle.claim({ ...wish(1, 1_000), ids: ['c', 'd'] })), ['c'], 'by ids: the same one both times')
  twice = false
  t.same(told(await handle.claim(wish(5, 1_000))), ['d'], 'a is leased, to nobody')
  time.advance(1_000)
  // The very call of then, once more: its leases are over.
  const again = await handle.claim({ ...first, limit: 9 })
  t.same(told(again).toSorted(), ['a', 'b', 'c', 'd'])
  t.ok(
    again.jobs.every((job) => job.at > again.now && job.attempts === 2),
    'each leased anew',
  )
  t.same(told(await handle.claim(wish(9))), [])
})

t.test('credentials and payloads show in no error, nor in its causes', { skip }, async (t) => {
  const secret = 'hunter2-very-secret'
  const server = await RedisServer.start({ users: [`alice on >${secret} ~* &* +@all`] })
  t.teardown(() => server.dispose())
  const texts: string[] = []
  const tell = (error: AskonceError): AskonceError => {
    for (let e: unknown = error; e instanceof Error; e = e.cause) {
      texts.push(
        e.message,
        String(e.stack),
        JSON.stringify(e),
        ...Object.values(e).map((value) => JSON.stringify(value)),
      )
    }
    return error
  }
  const port = server.url.split(':').at(-1)
  const wrong = tell(
    await failure(
      new RedisStorage({ url: `redis://alice:not-${secret}@127.0.0.1:${port}`, connectTimeout: 500 }).open('q'),
    ),
  )
  t.ok(wrong instanceof StorageError)
  tell(await failure(new RedisStorage({ url: `redis://alice:${secret}@127.0.0.1:1`, connectTimeout: 300 }).open('q')))
  tell(
    await failure(
      new RedisStorage({ url: `redis://alice:${secret}@no-such-host.invalid:1`, connectTimeout: 300 }).open('q'),
    ),
  )
  const handle = await new RedisStorage({ url: `redis://alice:${secret}@127.0.0.1:${port}`, commandTimeout: 300 }).open(
    'q',
  )
  await server.call('CONFIG', 'SET', 'maxmemory', '1')
  tell(await failure(handle.enqueue([item('a', { payload: `payload ${secret}` })])))
  await server.call('CONFIG', 'SET', 'maxmemory', '0')
  await server.call('ACL', 'SETUSER', 'alice', '-evalsha')
  const denied = tell(await failure(handle.enqueue([item('a', { payload: `payload ${secret}` })])))
  t.notOk(denied instanceof StorageError && denied.retryable, 'rights do not come back by themselves')
  await server.call('ACL', 'SETUSER', 'alice', '+evalsha')
  await server.stop()
  tell(await failure(handle.enqueue([item('a', { payload: `payload ${secret}` })])))
  await handle.close()
  t.ok(texts.length > 10)
  t.same(
    texts.filter((text) => text.includes(secret)),
    [],
  )
})

t.test('a given client is never closed, reconfigured, or subscribed', { skip }, async (t) => {
  const server = await RedisServer.start()
  const client = new Redis(server.url)
  t.teardown(async () => {
    client.disconnect()
    await server.dispose()
  })
  await client.ping()
  const options = JSON.stringify(client.options)
  const listeners = JSON.stringify(client.eventNames().map((name) => [name, client.listenerCount(name)]))
  const storage = new RedisStorage({ client })
  const one = await storage.open('q')
  const two = await storage.open('other')
  await one.enqueue([item('a')])
  await two.enqueue([item('a')])
  await one.close()
  t.equal((await two.enqueue([item('a')])).answers[0]?.outcome, 'exists', 'the other queue goes on')
  await two.close()
  t.equal(await client.ping(), 'PONG')
  t.equal(client.mode, 'normal')
  t.equal(JSON.stringify(client.options), options)
  t.equal(JSON.stringify(client.eventNames().map((name) => [name, client.listenerCount(name)])), listeners)
  await two.close()
  const clients = String(await client.call('CLIENT', 'LIST'))
  t.equal(clients.trim().split('\n').length, 1, 'no connection of ours is left')
  client.disconnect()
  const error = await failure(storage.open('q'))
  t.ok(error instanceof StorageError, 'a closed client is told of')
})

t.test('what repeating does not mend is told at once, as such', { skip }, async (t) => {
  const server = await RedisServer.start()
  const handle = await new RedisStorage({ url: server.url, commandTimeout: 60_000 }).open('q')
  t.teardown(async () => {
    await handle.close()
    await server.dispose()
  })
  await server.call('SET', 'askonce:{q}:d', 'not ours')
  const error = await failure(handle.claim(wish()))
  t.ok(error instanceof StorageError && !error.retryable)
  await server.call('DEL', 'askonce:{q}:d')
  await handle.claim(wish())
})
