/** What is kept of an outcome and for how long, crashes, and the effects behind a key: on Memory in virtual time. */

import t from 'tap'
import { buildKey, idempotent } from '../../src/http/index.ts'
import { RateLimitedError, UnrecoverableError } from '../../src/index.ts'
import { Queue } from '../../src/queue.ts'
import { settle, VirtualClock } from '../../storages/conformance/virtual-clock.ts'
import { gate } from '../support/queue-rig.ts'
import { counted, HttpRig, outcome, post, seen, until } from './support/rig.ts'

t.test('an outcome ends with its time', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ resultTtlMs: { default: 60_000, 404: 5_000 } })
  const ask = async (status: number, key: string) => {
    const answer = handle(post(key))
    ;(await rig.upstream.call(rig.upstream.calls.length)).end.open(new Response('x', { status }))
    return outcome(answer)
  }
  t.equal(await ask(200, 'a'), '200')
  t.equal(await ask(404, 'b'), '404')
  await rig.clock.advance(4_999)
  t.equal(await outcome(handle(post('b'))), '404 replay')
  await rig.clock.advance(1)
  t.equal(await ask(404, 'b'), '404', 'asked anew')
  await rig.clock.advance(54_999)
  t.equal(await outcome(handle(post('a'))), '200 replay')
  await rig.clock.advance(1)
  t.equal(await ask(200, 'a'), '200', 'asked anew')
})

t.test('failures are replayed as they were, and end sooner', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ failureTtlMs: { default: 10_000, 429: 2_000 } })
  for (const [status, ttlMs] of [
    [503, 10_000],
    [500, 10_000],
    [429, 2_000],
  ] as const) {
    const answer = handle(post('k', `${status}`))
    const { end } = await rig.upstream.call(rig.upstream.calls.length)
    end.open(new Response(`upstream says ${status}`, { status, headers: { 'retry-after': '7', 'x-why': 'load' } }))
    t.equal(await outcome(answer), `${status}`)
    await rig.clock.advance(ttlMs - 1)
    const replay = await seen(handle(post('k', `${status}`)))
    t.strictSame([replay.status, replay.replay, replay.body], [status, true, `upstream says ${status}`])
    t.strictSame([replay.headers.get('retry-after'), replay.headers.get('x-why')], ['7', 'load'])
    await rig.clock.advance(1)
  }
  const again = handle(post('k', '503'))
  ;(await rig.upstream.call(3)).end.open(new Response('well'))
  t.equal(await outcome(again), '200', 'a retry after the time asks anew')
  t.strictSame(counted(handle.counters), { requests: 7, upstream: 4, failed: 3, replayed: 3 })
})

t.test('a large failure is replayed with its status, its body told as too large', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const answer = handle(post('k'))
  ;(await rig.upstream.call(0)).end.open(new Response('x'.repeat(100_000), { status: 500 }))
  const own = await seen(answer)
  t.strictSame([own.status, own.body.length], [500, 100_000])
  t.equal(await outcome(handle(post('k'))), '500 replay response-too-large')
})

t.test('an upstream that throws, or answers no Response: 502 for everybody, told to onError alone', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const throws: [unknown, string][] = [
    [new Error('secret: ECONNRESET'), 'a'],
    ['a string', 'b'],
    [undefined, 'c'],
    [new UnrecoverableError('secret'), 'd'],
  ]
  for (const [error, key] of throws) {
    const answer = handle(post(key))
    ;(await rig.upstream.call(rig.upstream.calls.length)).end.fail(error)
    const own = await seen(answer)
    t.strictSame([own.status, own.code, own.replay], [502, 'upstream-failed', false])
    t.notMatch(own.body, 'secret')
    const replay = await seen(handle(post(key)))
    t.strictSame([replay.status, replay.replay, replay.body], [502, true, own.body])
  }
  for (const odd of [null, 'text', { status: 200 }, Response.error()]) {
    const answer = handle(post(`odd ${typeof odd}`.replaceAll(' ', '-') + rig.upstream.calls.length))
    ;(await rig.upstream.call(rig.upstream.calls.length)).end.open(odd as Response)
    t.equal(await outcome(answer), '502 upstream-failed')
  }
  t.equal(rig.errors.length, 8)
  t.equal(handle.counters.failed, 8)
})

t.test('a Response that is thrown is an answer', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const answer = handle(post('k'))
  ;(await rig.upstream.call(0)).end.fail(new Response('none', { status: 404 }))
  t.equal(await outcome(answer), '404')
  t.equal(await outcome(handle(post('k'))), '404 replay')
  const get = handle(new Request('http://host/x'))
  ;(await rig.upstream.call(1)).end.fail(new Response('none', { status: 404 }))
  t.equal(await outcome(get), '404')
})

t.test('a request costs two calls of the storage, its replay one', async (t) => {
  const rig = new HttpRig(t)
  const calls: string[] = []
  const open = rig.storage.open.bind(rig.storage)
  rig.storage.open = async (namespace) => {
    const handle = await open(namespace)
    return new Proxy(handle, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          calls.push(String(name))
          return Reflect.apply(value, target, args) as unknown
        }
      },
    })
  }
  const handle = rig.handler()
  const answer = handle(post('k'))
  ;(await rig.upstream.call(0)).end.open(new Response('done'))
  await answer
  const asked = () => calls.splice(0).filter((name) => name !== 'watch')
  t.strictSame(asked(), ['enqueue', 'settle'])
  t.equal(await outcome(handle(post('k'))), '200 replay')
  t.strictSame(asked(), ['enqueue'])
  for (const refused of [post(null), post('k'.repeat(300))]) await handle(refused)
  t.strictSame(asked(), [])
})

t.test('failures can be repeated by the queue, each a charge', async (t) => {
  const rig = new HttpRig(t, { retry: () => 1_000 })
  const handle = rig.handler({ retryFailures: true, maxAttempts: 2, timeoutMs: Number.POSITIVE_INFINITY })
  const answer = outcome(handle(post('k')))
  ;(await rig.upstream.call(0)).end.open(new Response('no', { status: 503 }))
  await settle()
  await rig.clock.advance(1_000)
  const second = await rig.upstream.call(1)
  t.equal(second.context.attempts, 2)
  second.end.open(new Response('yes'))
  t.equal(await answer, '200')
  t.strictSame(counted(handle.counters), { requests: 1, upstream: 2, failed: 1 })
})

t.test('an upstream out of time: 504 for everybody', async (t) => {
  const own = { rig: new HttpRig(t), options: { upstreamTimeoutMs: 5_000 } }
  const ofQueue = { rig: new HttpRig(t, { handlerTimeoutMs: 5_000 }), options: { maxAttempts: 1 } }
  for (const { rig, options } of [own, ofQueue]) {
    const handle = rig.handler(options)
    const answer = seen(handle(post('k')))
    const { context, request } = await rig.upstream.call(0)
    await rig.clock.advance(5_000)
    const first = await answer
    t.strictSame([first.status, first.code, first.replay], [504, 'upstream-timeout', false])
    t.strictSame([context.signal.aborted, request.signal.aborted], [true, true])
    const replay = await seen(handle(post('k')))
    t.strictSame([replay.status, replay.replay, replay.body], [504, true, first.body])
  }
})

t.test('an upstream that is rate-limited holds the queue, and is asked again', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const answer = outcome(handle(post('k')))
  ;(await rig.upstream.call(0)).end.fail(new RateLimitedError(2_000))
  await settle()
  await rig.clock.advance(2_000)
  ;(await rig.upstream.call(1)).end.open(new Response('done'))
  t.equal(await answer, '200')
  t.equal(handle.counters.failed, 0)
})

t.test('a response beyond what the storage takes: whole for who asked first, its status for others', async (t) => {
  const rig = new HttpRig(t, { payloadBytesMax: 4_000 })
  const handle = rig.handler()
  const answer = handle(post('k'))
  const large = new Response('x'.repeat(4_000), { status: 201, headers: { location: '/orders/1' } })
  ;(await rig.upstream.call(0)).end.open(large)
  const own = await seen(answer)
  t.strictSame([own.status, own.body.length], [201, 4_000])
  const replay = await seen(handle(post('k')))
  t.strictSame([replay.status, replay.code, replay.headers.get('location')], [201, 'response-too-large', '/orders/1'])
  t.equal(rig.upstream.calls.length, 1, 'and never a second call')
})

t.test('a response that the queue fails to store: whole for who asked first, never carried out twice', async (t) => {
  const resultSerde = {
    serialize: (value: unknown) => `${JSON.stringify(value)}${' '.repeat(5_000)}`,
    deserialize: (text: unknown) => JSON.parse(String(text)) as unknown,
  }
  const rig = new HttpRig(t, { payloadBytesMax: 5_000, resultSerde })
  const handle = rig.handler({ resultTtlMs: 60_000, failureTtlMs: 1_000 })
  const answer = handle(post('k'))
  ;(await rig.upstream.call(0)).end.open(new Response('created', { status: 201 }))
  const own = await seen(answer)
  t.strictSame([own.status, own.body, own.replay], [201, 'created', false])
  await rig.clock.advance(59_999)
  t.equal(await outcome(handle(post('k'))), '502 replay response-too-large')
  t.equal(rig.upstream.calls.length, 1)
})

t.test('a crash in mid-call: taken over as long as runs are left, else told as unknown', async (t) => {
  for (const maxAttempts of [2, 1]) {
    const rig = new HttpRig(t)
    // Its process stands still: it renews no lease.
    const clock = new VirtualClock()
    const dead = new Queue({ clock, storage: rig.storage })
    const options = { actor: () => 'ada', maxAttempts, upstream: rig.upstream.handle }
    void idempotent(dead, { ...options, clock })(post('k'))
    await rig.upstream.call(0)
    const handle = rig.handler(options)
    t.equal(await outcome(handle(post('k'))), '409 in-progress')
    await rig.clock.advance(30_000)
    const answer = handle(post('k'))
    if (maxAttempts === 2) (await rig.upstream.call(1)).end.open(new Response('done'))
    t.equal(await outcome(answer), maxAttempts === 2 ? '200' : '500 replay outcome-unknown')
    t.equal(await outcome(handle(post('k'))), maxAttempts === 2 ? '200 replay' : '500 replay outcome-unknown')
  }
})

t.test('a worker that comes late does not overwrite: it is answered with what counts', async (t) => {
  const rig = new HttpRig(t)
  const clock = new VirtualClock()
  const late = new Queue({ clock, storage: rig.storage })
  const stalled = idempotent(late, { actor: () => 'ada', upstream: rig.upstream.handle, clock })(post('k'))
  const first = await rig.upstream.call(0)
  await rig.clock.advance(30_000)
  const handle = rig.handler()
  const taken = handle(post('k'))
  ;(await rig.upstream.call(1)).end.open(new Response('second'))
  t.equal((await seen(taken)).body, 'second')
  first.end.open(new Response('first'))
  await until(() => late.counters.stale_ignored === 1)
  await clock.advance(5_000)
  const answer = await seen(stalled)
  t.strictSame([answer.body, answer.replay], ['second', true])
  await late.stop()
})

t.test('effects behind the key: once, however often the request comes', async (t) => {
  const rig = new HttpRig(t)
  let effects = 0
  const handle = rig.handler({
    upstream: async (_request, { job }) => {
      await job?.once('stamp', () => effects++)
      await job?.once('stamp', () => effects++)
      return new Response('done')
    },
  })
  t.equal(await outcome(handle(post('k'))), '200')
  t.equal(await outcome(handle(post('k'))), '200 replay')
  t.equal(effects, 1)
})

t.test(
  'effects outside the process: a row a request, delivered with its key, however often the request comes',
  async (t) => {
    const rig = new HttpRig(t)
    const delivered: string[] = []
    const done = gate()
    const relay = rig.queue.relay(({ id, name, payload }) => {
      delivered.push(`${id} ${name} ${payload}`)
      done.open()
    })
    t.teardown(() => relay.stop())
    let fails = true
    const handle = rig.handler({
      failureTtlMs: 1,
      upstream: async (request, { job }) => {
        job?.outbox('mail', await request.text())
        return new Response('done', { status: fails ? 503 : 200 })
      },
    })
    t.equal(await outcome(handle(post('k'))), '503')
    fails = false
    await rig.clock.advance(1)
    t.equal(await outcome(handle(post('k'))), '200')
    t.equal(await outcome(handle(post('k'))), '200 replay')
    await rig.clock.advance(10_000)
    await done.promise
    const id = buildKey({ actor: 'ada', subject: null, schemaVersion: 1, attempt: 'k' })
    t.strictSame(delivered, [`${id} mail body`], 'nothing of the failure, one row of the success')
  },
)
