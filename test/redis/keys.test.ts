/** Which keys and channels a queue uses, who shares them, and that none stays behind. */

import { Cluster, Redis } from 'ioredis'
import t from 'tap'
import { complete, fail, release, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { keyBase, partitionOf } from '../../storages/redis/layout.ts'
import { RedisCluster, RedisServer } from '../support/redis-server.ts'
import { Hints, item, token, wish } from './items.ts'
import { skip } from './suite.ts'

/** What Redis takes for the hash tag of a key; null if it has none. */
function hashTag(key: string): string | null {
  const start = key.indexOf('{')
  const end = key.indexOf('}', start + 1)
  return start === -1 || end <= start + 1 ? null : key.slice(start + 1, end)
}

/** Takes records through every state. */
async function exercise(handle: StorageHandle, ttlMs: number): Promise<void> {
  const ids = ['completed', 'failed', 'retried', 'released', 'cancelled', 'a{b}c', '}{', '']
  await handle.enqueue(ids.slice(0, -1).map((id) => item(id, { wait: true, resultTTL: ttlMs, failureTTL: ttlMs })))
  await handle.enqueue([item('later', { delayMs: 50_000 }), item('exhausted', { maxAttempts: 1, failureTTL: ttlMs })])
  const lease = { generation: token(), leaseMs: ttlMs }
  await handle.enqueue([item('inline', { lease, resultTTL: ttlMs }), item('inline done', { lease, resultTTL: ttlMs })])
  await handle.settle([{ id: 'inline done', generation: lease.generation, verdict: complete('x', ttlMs) }], null)
  await handle.cancel(['cancelled', 'later'])
  const { jobs } = await handle.claim(wish(20))
  const verdicts = new Map([
    ['failed', fail('oh', ttlMs)],
    ['retried', retry('oh', 0)],
    ['released', release(0)],
    ['exhausted', release(0)],
  ])
  const settle = (job: { spec: { id: string }; generation: string }) => ({
    id: job.spec.id,
    generation: job.generation,
    verdict: verdicts.get(job.spec.id) ?? complete('done', ttlMs),
  })
  await handle.settle(jobs.map(settle), null)
  verdicts.clear()
  const again = await handle.claim(wish(20))
  await handle.settle(again.jobs.map(settle), null)
  await refreshAndPost(handle, ttlMs)
  await handle.hold(ttlMs)
}

/** The same for what few records have: results that are kept, outboxes, marks. */
async function refreshAndPost(handle: StorageHandle, ttlMs: number): Promise<void> {
  const times = { resultTTL: ttlMs, failureTTL: ttlMs }
  const ids = ['posted', 'delivered', 'refreshed', 'in vain', 'given up']
  await handle.enqueue(ids.map((id) => item(id, times)))
  const { jobs } = await handle.claim(wish(20))
  const verdict = (id: string) =>
    complete('done', ttlMs, ids.indexOf(id) < 2 ? { rows: 'rows', ttlMs: 2 * ttlMs } : undefined)
  const settle = (job: { spec: { id: string }; generation: string }) => ({
    id: job.spec.id,
    generation: job.generation,
    verdict: verdict(job.spec.id),
  })
  await handle.settle(jobs.map(settle), null)
  const { collected } = await handle.deliver([], wish(20, ttlMs))
  for (const { spec, outbox } of collected?.records ?? []) {
    const lease = { id: spec.id, generation: outbox?.generation ?? '' }
    await handle.deliver([{ ...lease, rows: spec.id === 'posted' ? 'left' : null, delayMs: 0 }], null)
  }
  const lease = { generation: token(), leaseMs: ttlMs }
  await handle.enqueue(ids.slice(2, 4).map((id) => item(id, { ...times, refresh: true })))
  await handle.enqueue([item('given up', { ...times, refresh: true, lease })])
  await handle.cancel(['in vain'])
  const again = await handle.claim(wish(20))
  await handle.settle(again.jobs.map(settle), null)
  await handle.mark(ids.map((id) => ({ id, name: 'mail', token: token() })))
  await handle.touch([{ id: 'posted', ttlMs }])
}

t.test('after the TTLs not one key is left', { skip }, async (t) => {
  const server = await RedisServer.start()
  t.teardown(() => server.dispose())
  const storage = new RedisStorage({ url: server.url })
  const handle = await storage.open('q')
  const watcher = new Hints(handle)
  const begun = Date.now()
  await exercise(handle, 2_000)
  await handle.close()
  t.ok(Number(await server.call('DBSIZE')) > 5)
  t.ok(watcher.all.length > 0)
  while (Number(await server.call('DBSIZE')) > 0 && Date.now() < begun + 20_000) {
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.same(await server.call('KEYS', '*'), [])
})

t.test('one hash tag for every key of a queue, whatever the names hold', { skip }, async (t) => {
  const server = await RedisServer.start()
  t.teardown(() => server.dispose())
  const names = ['q', 'a{b}', '}', '{', '{}', '{}x', '%7B', 'a:b', 'a#1', '*?[a]', 'ü\n\0', ' ', 'x'.repeat(128)]
  const prefixes = ['askonce', '', '{', '}{', 'a:', 'a', '%', 'a b']
  const tags = new Map<string, string>()
  for (const keyPrefix of prefixes) {
    for (const name of names) {
      await server.call('FLUSHALL')
      const handle = await new RedisStorage({ url: server.url, keyPrefix }).open(name)
      await exercise(handle, 60_000)
      const keys = (await server.call('KEYS', '*')) as string[]
      await handle.close()
      const own = new Set(keys.map(hashTag))
      t.equal(own.size, 1, `${JSON.stringify([keyPrefix, name])}: one tag`)
      const base = keyBase(keyPrefix, name, null)
      t.ok(
        keys.every((key) => key.startsWith(`${base}:`)),
        'all begin alike',
      )
      t.notOk(tags.has(base), 'and nobody else’s do so')
      tags.set(base, name)
    }
  }
  t.not(keyBase('a', 'b', 1), keyBase('a', 'b#1', null))
  t.not(keyBase('a:', 'b', null), keyBase('a', ':b', null))
})

t.test(
  'prefixes, names and databases share nothing, wake-ups included; the same ones share all',
  { skip },
  async (t) => {
    const server = await RedisServer.start()
    t.teardown(() => server.dispose())
    const one = await new RedisStorage({ url: server.url }).open('q')
    const same = await new RedisStorage({ url: server.url }).open('q')
    const others = [
      await new RedisStorage({ url: server.url }).open('q2'),
      await new RedisStorage({ url: server.url, keyPrefix: 'other' }).open('q'),
      await new RedisStorage({ url: `${server.url}/1` }).open('q'),
    ]
    t.teardown(() => Promise.all([one, same, ...others].map((handle) => handle.close())))
    const heard = others.map((handle) => new Hints(handle))
    const hints = new Hints(same)
    for (const handle of [same, ...others]) t.same((await handle.claim(wish())).jobs, [])
    await one.enqueue([item('id', { wait: true })])
    await hints.first((hint) => hint.type === 'due')
    for (const handle of others) {
      t.same((await handle.get(['id'])).records, [null])
      t.same((await handle.claim(wish())).jobs, [])
      t.equal((await handle.enqueue([item('id', { wait: true })])).answers[0]?.outcome, 'created')
      const [job] = (await handle.claim(wish())).jobs
      await handle.settle([{ id: 'id', generation: job?.generation ?? '', verdict: complete('x', 60_000) }], null)
    }
    t.equal((await one.get(['id'])).records[0]?.state, 'queued')
    await one.hold(60_000)
    t.same(await Promise.all(others.map(async (handle) => (await handle.stats()).heldForMs)), [0, 0, 0])
    // What each heard is of its own doing: its own `due` and `settled`.
    for (const { all } of heard) t.same(new Set(all.map(({ type }) => type)), new Set(['due', 'settled']))
  },
)

t.test('a user with rights on the prefix alone can do everything', { skip }, async (t) => {
  const server = await RedisServer.start({
    users: [
      'alice on >secret ~team:* &team:* -@all +evalsha +eval +time +get +set +getrange +setrange +del +exists +pttl +pexpire +pexpireat +persist +zadd +zrem +zcard +zcount +zrange +zrevrange +zrangebyscore +zrevrangebyscore +zremrangebyrank +zremrangebyscore +zpopmax +sadd +srem +scard +publish +subscribe +unsubscribe +info +client +hello +auth +ping +select',
    ],
  })
  t.teardown(() => server.dispose())
  const url = server.url.replace('redis://', 'redis://alice:secret@')
  const handle = await new RedisStorage({ url, keyPrefix: 'team' }).open('q')
  const hints = new Hints(handle)
  const other = await new RedisStorage({ url, keyPrefix: 'team' }).open('q')
  await exercise(handle, 60_000)
  await other.enqueue([item('heard', { delayMs: 50_000 })])
  await hints.first((hint) => hint.type === 'due' && hint.inMs === 50_000)
  await handle.stats()
  await handle.touch([{ id: 'completed', ttlMs: 5 }])
  await handle.hold(0)
  t.equal(hints.all.filter(({ type }) => type === 'warning').length, 0)
  await handle.close()
  await other.close()
  await t.rejects(new RedisStorage({ url, keyPrefix: 'elsewhere' }).open('q'), { code: 'ASKONCE_STORAGE' })
})

t.test(
  'in a Cluster nothing outside the declared slot is touched, and partitions use all nodes',
  { skip },
  async (t) => {
    const cluster = await RedisCluster.start()
    const client = new Cluster(cluster.addresses)
    t.teardown(async () => {
      client.disconnect()
      await cluster.dispose()
    })
    const handle = await new RedisStorage({ client, partitions: 16 }).open('q')
    await handle.enqueue(Array.from({ length: 300 }, (_, index) => item(`job ${index}`)))
    const { jobs } = await handle.claim(wish(300))
    t.equal(jobs.length, 300)
    const sizes = await Promise.all(cluster.nodes.map((node) => node.call('DBSIZE')))
    t.ok(
      sizes.every((size) => Number(size) > 30),
      `keys on each node: ${sizes.join(', ')}`,
    )
    t.equal(partitionOf('job 1', 16), partitionOf('job 1', 16))
    await handle.close()
  },
)

t.test(
  'while a Cluster moves its slot a queue waits; no id is taken for new, and no job is lost',
  { skip },
  async (t) => {
    const cluster = await RedisCluster.start()
    const client = new Cluster(cluster.addresses)
    t.teardown(async () => {
      client.disconnect()
      await cluster.dispose()
    })
    const handle = await new RedisStorage({ client, commandTimeout: 20_000 }).open('moving')
    const base = keyBase('askonce', 'moving', null)
    const ids = Array.from({ length: 20 }, (_, index) => `job ${index}`)
    await handle.enqueue(ids.map((id) => item(id)))
    const slot = Number(await cluster.nodes[0]?.call('CLUSTER', 'KEYSLOT', base))
    const nodes = await Promise.all(cluster.nodes.map(async (node) => String(await node.call('CLUSTER', 'MYID'))))
    const from = Math.floor((slot * 3) / 16_384)
    const to = (from + 1) % 3
    const [source, target] = [cluster.nodes[from], cluster.nodes[to]] as const
    await target?.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', nodes[from] as string)
    await source?.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', nodes[to] as string)
    const keys = (await source?.call('CLUSTER', 'GETKEYSINSLOT', slot, 100)) as string[]
    // The due set and half of the records have moved: the worst moment to ask.
    const moved = [`${base}:d`, ...keys.filter((key) => key !== `${base}:d`).slice(0, 10)]
    const move = (key: string) => source?.call('MIGRATE', '127.0.0.1', target?.port as number, key, 0, 5_000)
    for (const key of moved) await move(key)
    const again = handle.enqueue(ids.map((id) => item(id)))
    const fresh = handle.enqueue([item('fresh')])
    const claimed = handle.claim(wish(20))
    await new Promise((resolve) => setTimeout(resolve, 300))
    for (const key of keys) if (!moved.includes(key)) await move(key)
    for (const node of [target, source]) await node?.call('CLUSTER', 'SETSLOT', slot, 'NODE', nodes[to] as string)
    t.same(new Set((await again).answers.map(({ outcome }) => outcome)), new Set(['exists']))
    t.equal((await fresh).answers[0]?.outcome, 'created')
    const found = (await claimed).jobs.map(({ spec }) => spec.id)
    if (found.length < 20) found.push(...(await handle.claim(wish(20 - found.length))).jobs.map(({ spec }) => spec.id))
    t.same(found, ids)
    await handle.close()
  },
)

t.test('a client of the same database sees text as it is', { skip }, async (t) => {
  const server = await RedisServer.start()
  const client = new Redis(server.url)
  const handle = await new RedisStorage({ url: server.url }).open('q')
  t.teardown(async () => {
    client.disconnect()
    await handle.close()
    await server.dispose()
  })
  await handle.enqueue([item('id', { payload: '{"a":"ü"}' })])
  t.match(await client.get('askonce:{q}:r:id'), /\{"a":"ü"\}$/)
})
