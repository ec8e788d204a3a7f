/**
 * The matrix: three servers before one upstream, on every storage. Three processes on File, Redis and DynamoDB; three servers of
 * one process on Memory.
 */

import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { toNodeHandler } from '../../src/http/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { LocalDynamoDB } from '../dynamodb/support/server.ts'
import { tempFolder } from '../file/support/temp.ts'
import { RedisServer, redisServerPath, skippedForRedis } from '../support/redis-server.ts'
import { outcome, seen } from './support/rig.ts'
import { gateway, type Order, type Places, serverHere, serverProcess, Upstream } from './support/servers.ts'

t.setTimeout(120_000)

const requestsMax = 200

const upstream = await Upstream.start()
t.teardown(() => upstream.stop())

/** Asks a server. */
function ask(origin: string, kind: string, key: string, order: Order, actor = 'ada'): Promise<Response> {
  const headers = { 'idempotency-key': `"${key}"`, 'x-actor': actor }
  return fetch(`${origin}/${kind}/orders`, { method: 'POST', headers, body: JSON.stringify(order) })
}

/** Repeats until the answer is the next call's: its record has come to its end. Answers what came before. */
async function untilCall(call: number, again: () => Promise<Response>): Promise<string[]> {
  const before: string[] = []
  for (;;) {
    const { headers, status, replay, body } = await seen(again())
    if (headers.get('x-call') === `${call}`) return before
    before.push(`${status} ${replay} ${body}`)
    await sleep(100)
  }
}

/** What must hold on any storage, whichever server is asked. */
async function holds(t: Test, kind: string, origins: readonly string[]): Promise<void> {
  const [first, second, third] = origins as [string, string, string]

  await t.test(
    `${kind}: ${requestsMax} requests of one key at once over three servers: one call, one answer`,
    async (t) => {
      const order = { name: `${kind} burst` }
      const requests = Array.from({ length: requestsMax }, (_, n) =>
        ask(origins[n % 3] as string, kind, 'burst', order),
      )
      const answers = await Promise.all(requests.map(seen))
      t.equal(upstream.calls(order.name), 1)
      t.strictSame(
        new Set(answers.map(({ status, body }) => `${status} ${body}`)),
        new Set([`200 ${order.name} for ada: call 1`]),
      )
      t.equal(answers.filter(({ replay }) => replay).length, requestsMax - 1)
    },
  )

  await t.test(`${kind}: the same key with another body: 422, on every server`, async (t) => {
    await ask(first, kind, 'body', { name: `${kind} body` })
    for (const origin of origins) {
      t.equal(await outcome(ask(origin, kind, 'body', { name: `${kind} other body` })), '422 payload-mismatch')
    }
    t.equal(upstream.calls(`${kind} other body`), 0)
  })

  await t.test(`${kind}: another actor with the same key: its own call, its own answer`, async (t) => {
    const order = { name: `${kind} actor` }
    await ask(first, kind, 'actor', order)
    t.equal((await seen(ask(second, kind, 'actor', order, 'bob'))).body, `${order.name} for bob: call 2`)
    t.equal((await seen(ask(third, kind, 'actor', order))).body, `${order.name} for ada: call 1`)
    t.equal(await outcome(ask(third, kind, 'actor', order, '')), '401 actor-missing')
  })

  await t.test(`${kind}: an outcome ends, and its key is asked for anew`, async (t) => {
    const order = { name: `${kind} expiry`, statuses: [203] }
    t.equal(await outcome(ask(first, kind, 'expiry', order)), '203')
    const before = await untilCall(2, () => ask(second, kind, 'expiry', order))
    t.strictSame(new Set(before), new Set(before.length > 0 ? [`203 true ${order.name} for ada: call 1`] : []))
    t.equal(upstream.calls(order.name), 2)
  })

  await t.test(`${kind}: a failure is replayed as it was; after its time a retry asks anew`, async (t) => {
    const order = { name: `${kind} failure`, statuses: [503, 200] }
    t.equal(await outcome(ask(first, kind, 'failure', order)), '503')
    const before = await untilCall(2, () => ask(second, kind, 'failure', order))
    t.strictSame(new Set(before), new Set(before.length > 0 ? [`503 true ${order.name} for ada: call 1`] : []))
    t.equal(await outcome(ask(third, kind, 'failure', order)), '200 replay')
    t.equal(upstream.calls(order.name), 2)
  })
}

t.test('Memory', async (t) => {
  const storage = new MemoryStorage()
  const origins: string[] = []
  for (let count = 0; count < 3; count++) {
    const { handle, queue } = gateway(storage, upstream.origin)
    const server = await serverHere(toNodeHandler(handle))
    origins.push(server.origin)
    t.teardown(async () => {
      server.stop()
      await queue.stop()
    })
  }
  await holds(t, 'memory', origins)
})

t.test('three processes', async (t) => {
  const folder = tempFolder(true)
  t.teardown(folder.remove)
  const redis = redisServerPath() === null ? null : await RedisServer.start()
  t.teardown(() => redis?.dispose())
  const dynamodb = await LocalDynamoDB.start()
  t.teardown(() => dynamodb.stop())
  const tableName = 'gateway'
  const { DynamoDBStorage } = await import('../../storages/dynamodb/index.ts')
  await new DynamoDBStorage({ tableName, client: dynamodb.client() }).createTable()
  const places: Places = {
    file: folder.path,
    ...(redis !== null && { redis: redis.url }),
    dynamodb: { endpoint: dynamodb.endpoint, tableName },
  }
  const servers = await Promise.all(Array.from({ length: 3 }, () => serverProcess(places, upstream.origin)))
  t.teardown(async () => {
    for (const { child } of servers) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  })
  const origins = servers.map(({ origin }) => origin)
  const kinds = ['file', 'redis', 'dynamodb']
  for (const kind of kinds) {
    const skip = kind === 'redis' && redis === null ? skippedForRedis : false
    await t.test(kind, { skip }, (t) => holds(t, kind, origins))
  }

  await t.test('a server killed in mid-call: who waits elsewhere is answered, and so is the retry', async (t) => {
    const [victim, second, third] = servers as [(typeof servers)[0], (typeof servers)[0], (typeof servers)[0]]
    const living = kinds.filter((kind) => kind in places)
    const orders = living.map((kind) => ({ kind, order: { name: `${kind} crash`, unanswered: 1 } }))
    const cutOff = orders.map(({ kind, order }) => ask(victim.origin, kind, 'crash', order).then(seen))
    for (const request of cutOff) request.catch(() => {})
    await Promise.all(orders.map(({ order }) => upstream.asked(order.name)))
    const waiting = orders.map(({ kind, order }) => ask(second.origin, kind, 'crash', order).then(seen))
    victim.child.kill('SIGKILL')
    for (const request of cutOff) await t.rejects(request)
    for (const [index, { kind, order }] of orders.entries()) {
      const answer = await waiting[index]
      const said = `${order.name} for ada: call 2`
      t.strictSame([answer?.status, answer?.body, answer?.replay], [200, said, false], `${kind}: taken over`)
      const retry = await seen(ask(third.origin, kind, 'crash', order))
      t.strictSame([retry.status, retry.body, retry.replay], [200, said, true], `${kind}: retried`)
      t.equal(upstream.calls(order.name), 2, `${kind}: one call that was lost, one that counts`)
    }
  })
})
