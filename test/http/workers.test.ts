/** Answers that take their time: 202 with a status URL, and requests that workers do. On Memory in virtual time. */

import t, { type Test } from 'tap'
import {
  buildKey,
  type ExecuteUpstreamOptions,
  executeUpstream,
  type IdempotentOptions,
  type Incoming,
  idempotent,
  statusOf,
} from '../../src/http/index.ts'
import { Queue } from '../../src/queue.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { counted, HttpRig, ManualUpstream, outcome, post, seen, until } from './support/rig.ts'

const actor = (request: Request) => request.headers.get('x-actor') ?? 'ada'
const get = (path: string, as = 'ada') => new Request(`http://host${path}`, { headers: { 'x-actor': as } })
const idIn = (location: string | null) => String(location).split('/').pop() as string
const accepted: Partial<IdempotentOptions> = {
  busy: 'accepted',
  statusUrl: (id) => `/status/${id}`,
  retryAfterMs: 2_000,
}

t.test('accepted: 202 with a status URL, for the first request too, until the outcome is there', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler(accepted)
  const status = statusOf(rig.queue, { actor, retryAfterMs: 3_000 })
  const first = handle(post('k'))
  const call = await rig.upstream.call(0)
  await rig.clock.advance(0)
  const answer = await seen(first)
  const location = answer.headers.get('location')
  t.strictSame([answer.status, answer.headers.get('retry-after')], [202, '2'])
  t.strictSame(JSON.parse(answer.body), { state: 'processing', location })
  const id = idIn(location)
  t.equal(id, buildKey({ actor: 'ada', subject: null, schemaVersion: 1, attempt: 'k' }))
  const second = await seen(handle(post('k')))
  t.strictSame([second.status, second.headers.get('location')], [202, location])
  const asked = await seen(status(get(`/status/${id}`), id))
  t.strictSame([asked.status, asked.body, asked.headers.get('retry-after')], [202, '{"state":"processing"}', '3'])
  t.equal(call.context.signal.aborted, false)
  call.end.open(new Response('done', { status: 201 }))
  await until(() => rig.queue.counters.completed === 1)
  for (const done of [status(get('/'), id), handle(post('k'))]) {
    const { status, body, replay } = await seen(done)
    t.strictSame([status, body, replay], [201, 'done', true])
  }
  t.equal(rig.upstream.calls.length, 1)
  t.strictSame(counted(handle.counters), { requests: 3, busy: 2, upstream: 1, replayed: 1 })
})

t.test('accepted after waitMs: who is quick is answered at once', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ ...accepted, waitMs: 1_000 })
  const quick = handle(post('a'))
  ;(await rig.upstream.call(0)).end.open(new Response('quick'))
  t.equal(await outcome(quick), '200')
  const slow = outcome(handle(post('b')))
  await rig.upstream.call(1)
  await rig.clock.advance(1_000)
  t.equal(await slow, '202')
})

t.test('a status URL tells the older outcome while a new one is made', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ requireKey: false, subject: () => 1, noCache: true })
  const status = statusOf(rig.queue, { actor })
  const first = handle(post(null))
  const { end, context } = await rig.upstream.call(0)
  end.open(new Response('one'))
  await first
  void handle(post(null, 'body', { headers: { 'cache-control': 'no-cache' } }))
  await rig.upstream.call(1)
  t.equal((await seen(status(get('/'), context.id))).body, 'one')
})

t.test('a status URL tells failures as they were, and nothing to others', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ failureTtlMs: 5_000 })
  const status = statusOf(rig.queue, { actor })
  const answer = handle(post('k'))
  const { end, context } = await rig.upstream.call(0)
  end.open(new Response('down', { status: 503 }))
  await answer
  const failed = await seen(status(get('/'), context.id))
  t.strictSame([failed.status, failed.body, failed.replay], [503, 'down', true])
  t.equal(await outcome(status(get('/', 'bob'), context.id)), '404 not-found', 'an id proves nothing')
  t.equal(await outcome(status(get('/', ''), context.id)), '401 actor-missing')
  for (const id of [
    '',
    'x',
    '../..',
    `${context.id}x`,
    context.id.slice(0, -1),
    'shared.x',
    '\u0000',
    'x'.repeat(9_999),
  ]) {
    t.equal(await outcome(status(get('/'), id)), '404 not-found', JSON.stringify(id.slice(0, 80)))
  }
  await rig.clock.advance(5_000)
  t.equal(await outcome(status(get('/'), context.id)), '404 not-found', 'gone with its time')
  await rig.queue.stop()
  t.equal(await outcome(status(get('/'), context.id)), '503 unavailable')
  t.throws(() => statusOf(rig.queue, {} as never), { message: /options.actor/ })
})

/** A server and a worker, each with a queue of its own on one storage. */
async function pair(t: Test, options: Partial<IdempotentOptions> = {}, more: Partial<ExecuteUpstreamOptions> = {}) {
  const rig = new HttpRig(t)
  const { clock } = rig
  const storage = new MemoryStorage({ clock })
  const [front, back] = [new Queue({ clock, storage }), new Queue({ clock, storage, retry: () => 1_000 })]
  const upstream = new ManualUpstream()
  const workers = executeUpstream(back, { upstream: upstream.handle, clock, concurrency: 4, ...more })
  const handle = idempotent(front, { actor, mode: 'workers', clock, ...options })
  await back.start()
  t.teardown(async () => {
    for (const { end } of upstream.calls) end.open(new Response())
    const stopped = Promise.all([front.stop(), back.stop()])
    await clock.advance(60_000)
    await stopped
  })
  return { rig, clock, front, back, upstream, workers, handle }
}

t.test('workers: the request travels, and everybody gets the one answer', async (t) => {
  const { handle, upstream, workers } = await pair(t, { busy: 'wait', workerHeaders: ['Content-Type', 'x-tenant'] })
  const body = new Uint8Array([0, 159, 146, 150])
  const headers = { 'content-type': 'application/x-bytes', 'x-tenant': '7', authorization: 'secret' }
  const ask = () => handle(post('k', body, { headers, url: 'http://host/decode?x=1' }))
  const answers = [ask(), ask(), ask()]
  const { request, context, end } = await upstream.call(0)
  t.strictSame([request.method, request.url], ['POST', 'http://host/decode?x=1'])
  t.strictSame(
    [...request.headers],
    [
      ['content-type', 'application/x-bytes'],
      ['x-tenant', '7'],
    ],
  )
  t.strictSame(new Uint8Array(await request.arrayBuffer()), body)
  t.equal(context.attempts, 1)
  end.open(new Response(body, { status: 201 }))
  const seenAll = await Promise.all(answers.map(seen))
  t.strictSame(
    seenAll.map(({ status }) => status),
    [201, 201, 201],
  )
  t.strictSame(seenAll.map(({ replay }) => replay).sort(), [false, true, true])
  t.equal(await outcome(ask()), '201 replay')
  t.equal(await outcome(handle(post('k', 'other'))), '422 payload-mismatch')
  t.equal(upstream.calls.length, 1)
  t.strictSame(counted(workers.counters), { upstream: 1 })
})

t.test('workers: conflict and time-out', async (t) => {
  const { handle, upstream, clock } = await pair(t, { timeoutMs: 1_000 })
  const first = outcome(handle(post('k')))
  const { end } = await upstream.call(0)
  t.equal(await outcome(handle(post('k'))), '409 in-progress')
  await clock.advance(1_000)
  t.equal(await first, '409 in-progress')
  end.open(new Response('done'))
  await until(() => upstream.calls.length === 1)
  t.equal(await outcome(handle(post('k'))), '200 replay')
})

t.test('workers: accepted at once, stored before it is said', async (t) => {
  const { handle, upstream, front, back } = await pair(t, accepted, { failureTtlMs: 5_000 })
  back.pause()
  const answer = await seen(handle(post('k')))
  t.equal(answer.status, 202)
  const id = idIn(answer.headers.get('location'))
  t.equal((await front.getStatus(id))?.state, 'queued')
  t.equal(await outcome(handle(post('k'))), '202')
  back.resume()
  const { end } = await upstream.call(0)
  end.open(new Response('down', { status: 503 }))
  await until(() => back.counters.failed === 1)
  t.equal(await outcome(handle(post('k'))), '503 replay', 'a failure that is there is told, not accepted again')
})

t.test('workers: failures, times by status, and what never left', async (t) => {
  let isOpen = false
  const open = Object.assign(new Error(), { isBrokenCircuitError: true })
  const breaker = { execute: <T>(call: () => Promise<T>) => (isOpen ? Promise.reject(open) : call()) }
  const times = { resultTtlMs: { default: 60_000, 404: 2_000 }, failureTtlMs: { default: 10_000, 429: 1_000 } }
  const { handle, upstream, clock, back } = await pair(t, times, { ...times, breaker })
  const ask = async (status: number) => {
    const ended = back.counters.completed + back.counters.failed
    const answer = handle(post(`k${status}`))
    ;(await upstream.call(upstream.calls.length)).end.open(new Response('x', { status }))
    const result = await outcome(answer)
    await until(() => back.counters.completed + back.counters.failed > ended)
    return result
  }
  t.equal(await ask(404), '404')
  t.equal(await ask(429), '429')
  t.equal(await ask(500), '500')
  t.equal(await outcome(handle(post('k429'))), '429 replay')
  await clock.advance(1_000)
  t.equal(await ask(429), '429', 'asked anew after 1 s')
  await clock.advance(1_000)
  t.equal(await ask(404), '404', 'asked anew after 2 s')
  t.equal(await outcome(handle(post('k500'))), '500 replay')
  isOpen = true
  t.equal(await outcome(handle(post('never'))), '503 unavailable')
  await until(() => back.counters.failed === 4)
  isOpen = false
  await clock.advance(1)
  const again = handle(post('never'))
  ;(await upstream.call(upstream.calls.length)).end.open(new Response('left'))
  t.equal(await outcome(again), '200')
})

t.test('workers: the cached result is theirs', async (t) => {
  const cache = { freshMs: 10_000, staleMs: 10_000 }
  const options = { subject: () => 'one', cache, requireKey: false, noCache: true }
  const { handle, upstream, clock, workers, back } = await pair(t, options, { cache })
  const first = handle(post('a'))
  ;(await upstream.call(0)).end.open(new Response('one'))
  t.equal((await seen(first)).body, 'one')
  t.equal((await seen(handle(post('b')))).body, 'one')
  await clock.advance(10_000)
  t.equal((await seen(handle(post('c')))).body, 'one')
  ;(await upstream.call(1)).end.open(new Response('two'))
  await until(() => workers.counters.upstream === 2 && back.counters.completed === 5)
  t.equal((await seen(handle(post('d')))).body, 'two')
  const derived = await seen(handle(post(null)))
  t.strictSame([derived.body, derived.replay], ['two', true], 'without a key it is the record itself')
  const anew = handle(post('e', 'body', { headers: { 'cache-control': 'no-cache' } }))
  ;(await upstream.call(2)).end.open(new Response('three'))
  t.equal((await seen(anew)).body, 'three')
  await clock.advance(10_000)
  t.equal((await seen(handle(post(null)))).body, 'three', 'stale')
  ;(await upstream.call(3)).end.open(new Response('four'))
  await until(() => workers.counters.upstream === 4)
  await until(() => back.counters.completed === 9)
  t.equal((await seen(handle(post(null)))).body, 'four')
})

t.test('workers: times by status are of keys, never of cached results', async (t) => {
  const cache = { freshMs: 10_000, staleMs: 10_000 }
  const times = { resultTtlMs: { default: 60_000, 200: 1_000 }, failureTtlMs: { default: 2_000, 503: 3_000 } }
  const options = { subject: (incoming: Incoming) => incoming.text(), cache, requireKey: false, ...times }
  const { handle, upstream, clock, back } = await pair(t, options, { cache, ...times })
  const first = handle(post('a'))
  ;(await upstream.call(0)).end.open(new Response('one'))
  await first
  await until(() => back.counters.completed === 2)
  await clock.advance(1_000)
  t.equal(await outcome(handle(post('a'))), '200', 'the key is forgotten, and answered from the cache')
  t.equal(upstream.calls.length, 1)
  await clock.advance(9_000)
  t.equal((await seen(handle(post(null)))).body, 'one', 'stale')
  ;(await upstream.call(1)).end.open(new Response('down', { status: 503 }))
  await until(() => back.counters.failed === 1)
  await clock.advance(9_999)
  t.equal((await seen(handle(post('b')))).body, 'one', 'a refresh that failed left it its time')
  await upstream.call(2)
  const other = handle(post(null, 'other'))
  ;(await upstream.call(3)).end.open(new Response('two'))
  await other
  await until(() => back.counters.completed === 5)
  await clock.advance(9_999)
  t.equal((await seen(handle(post(null, 'other')))).body, 'two', 'kept as long as the cache says')
})

t.test('workers: what has no upstream hands nothing on', async (t) => {
  const { handle } = await pair(t)
  const answer = await seen(handle(new Request('http://host/x')))
  t.strictSame([answer.status, answer.code, answer.headers.get('allow')], [405, 'method-not-allowed', 'POST, PATCH'])
})

t.test('workers: a request larger than a record is 413', async (t) => {
  const rig = new HttpRig(t, { payloadBytesMax: 1_000 })
  const handle = rig.handler({ mode: 'workers' })
  t.equal(await outcome(handle(post('k', 'x'.repeat(1_000)))), '413 body-too-large')
})
