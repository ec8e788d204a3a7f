/** The cached result and the circuit breaker, each alone and one over the other, on Memory in virtual time. */

import { type CircuitBreakerPolicy, ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel'
import t from 'tap'
import { type Breaker, createLayers, type IdempotentOptions, type Work } from '../../src/http/index.ts'
import { settle } from '../../storages/conformance/virtual-clock.ts'
import { gate } from '../support/queue-rig.ts'
import { counted, HttpRig, outcome, post, seen, until } from './support/rig.ts'

const cached: Partial<IdempotentOptions> = {
  subject: (incoming) => incoming.text(),
  cache: { freshMs: 10_000, staleMs: 20_000 },
}

/** Upstream answers a call, and that is stored. */
async function answers(rig: HttpRig, index: number, body: string, status = 200): Promise<void> {
  const { end } = await rig.upstream.call(index)
  const settled = () => rig.queue.counters.completed + rig.queue.counters.failed
  const before = settled()
  end.open(new Response(body, { status }))
  await until(() => settled() > before)
}

t.test('a fresh answer serves every key of the subject', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler(cached)
  const first = handle(post('a'))
  await answers(rig, 0, 'one')
  t.strictSame(await seen(first).then(({ body, replay }) => [body, replay]), ['one', false])
  await rig.clock.advance(9_999)
  const second = await seen(handle(post('b')))
  t.strictSame([second.body, second.replay, second.headers.get('age')], ['one', false, '9'])
  t.equal(await outcome(handle(post('b'))), '200 replay')
  t.equal(await outcome(handle(post('a'))), '200 replay')
  const other = handle(post('c', 'other'))
  await answers(rig, 1, 'two')
  t.equal((await seen(other)).body, 'two', 'another subject is another question')
  t.strictSame(counted(handle.counters), { requests: 5, upstream: 2, cached: 1, replayed: 2 })
})

t.test('keys of one subject in one moment: one call', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler(cached)
  const all = Array.from({ length: 20 }, (_, index) => handle(post(`key-${index}`)))
  const call = await rig.upstream.call(0)
  call.end.open(new Response('one'))
  for (const answer of all) t.equal((await seen(answer)).body, 'one')
  t.equal(handle.counters.upstream, 1)
})

t.test('a stale answer is served while one refresh runs; then the new one is', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler(cached)
  const first = handle(post('a'))
  await answers(rig, 0, 'one')
  await first
  await rig.clock.advance(10_000)
  for (const key of ['b', 'c', 'd']) t.equal((await seen(handle(post(key)))).body, 'one')
  t.equal((await rig.upstream.call(1)).context.attempts, 1)
  t.equal(rig.upstream.calls.length, 2, 'one refresh for all of them')
  await answers(rig, 1, 'two')
  await settle()
  const fresh = await seen(handle(post('e')))
  t.strictSame([fresh.body, fresh.headers.get('age')], ['two', '0'])
  t.equal((await seen(handle(post('b')))).body, 'one', 'a key keeps the answer it was given')
  t.strictSame(counted(handle.counters), { requests: 6, upstream: 2, cached: 4, stale: 3, replayed: 1 })
})

t.test('past fresh and stale: asked anew, and waited for', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler(cached)
  const first = handle(post('a'))
  await answers(rig, 0, 'one')
  await first
  await rig.clock.advance(30_000)
  const second = handle(post('b'))
  await answers(rig, 1, 'two')
  t.equal((await seen(second)).body, 'two')
})

t.test('a refresh that fails leaves the stale answer, and waits before the next', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ ...cached, failureTtlMs: 5_000 })
  const first = handle(post('a'))
  await answers(rig, 0, 'one')
  await first
  await rig.clock.advance(10_000)
  t.equal((await seen(handle(post('b')))).body, 'one')
  await answers(rig, 1, 'down', 503)
  await settle()
  t.equal((await seen(handle(post('c')))).body, 'one')
  await settle()
  t.equal(rig.upstream.calls.length, 2, 'stale answers are no flood of calls')
  await rig.clock.advance(5_000)
  t.equal((await seen(handle(post('d')))).body, 'one')
  await answers(rig, 2, 'two')
  await settle()
  t.equal((await seen(handle(post('e')))).body, 'two')
  await rig.clock.advance(29_999)
  t.equal((await seen(handle(post('f')))).body, 'two', 'kept as long as a new one')
})

t.test('a failure is cached for its own time, for all keys', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ ...cached, failureTtlMs: 5_000 })
  const first = handle(post('a'))
  await answers(rig, 0, 'down', 503)
  t.equal(await outcome(first), '503')
  t.equal((await seen(handle(post('b')))).body, 'down')
  t.equal(rig.upstream.calls.length, 1)
  await rig.clock.advance(5_000)
  const again = handle(post('b'))
  await answers(rig, 1, 'up')
  t.equal((await seen(again)).body, 'up')
})

t.test('answers are of one actor, unless they are shared', async (t) => {
  for (const shared of [false, true]) {
    const rig = new HttpRig(t)
    const handle = rig.handler({ ...cached, cache: { freshMs: 10_000, shared } })
    const first = handle(post('k', 'body', { headers: { 'x-actor': 'ada' } }))
    await answers(rig, 0, 'for ada')
    await first
    const second = handle(post('k', 'body', { headers: { 'x-actor': 'bob' } }))
    if (!shared) await answers(rig, 1, 'for bob')
    t.equal((await seen(second)).body, shared ? 'for ada' : 'for bob')
  }
})

t.test('without a key, the cached result is the record', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ ...cached, requireKey: false })
  const first = handle(post(null))
  t.equal(await outcome(handle(post(null))), '409 in-progress')
  await answers(rig, 0, 'one')
  await first
  await rig.clock.advance(10_000)
  const stale = await seen(handle(post(null)))
  t.strictSame([stale.body, stale.replay, stale.headers.get('age')], ['one', true, '10'])
  await answers(rig, 1, 'two')
  await settle()
  t.equal((await seen(handle(post(null)))).body, 'two')
  t.equal(rig.queue.counters.claimed, 2, 'one record, and its refresh')
})

t.test('Cache-Control: no-cache asks anew, where that is allowed, and a retry of its key does not', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ ...cached, noCache: true, requireKey: false })
  const noCache = { headers: { 'cache-control': 'max-age=0, No-Cache' } }
  const first = handle(post('a'))
  await answers(rig, 0, 'one')
  await first
  const anew = handle(post('b', 'body', noCache))
  const call = await rig.upstream.call(1)
  t.equal((await seen(handle(post('c')))).body, 'one', 'the old answer stays readable')
  call.end.open(new Response('two'))
  t.equal((await seen(anew)).body, 'two')
  t.equal((await seen(handle(post('b', 'body', noCache)))).body, 'two')
  t.equal(rig.upstream.calls.length, 2, 'the retry was no charge')
  t.equal((await seen(handle(post('d')))).body, 'two', 'and the new answer is cached')
  const derived = handle(post(null, 'body', noCache))
  await answers(rig, 2, 'three')
  t.equal((await seen(derived)).body, 'three')
  const deaf = rig.handler({ ...cached, requireKey: false })
  t.equal((await seen(deaf(post(null, 'body', noCache)))).body, 'three', 'not unless the option says so')
  t.equal(handle.counters.upstream, 3)
})

t.test('no-cache without a cache refreshes the record of the subject', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ subject: () => 1, requireKey: false, noCache: true })
  const first = handle(post(null))
  await answers(rig, 0, 'one')
  await first
  const anew = handle(post(null, 'body', { headers: { 'cache-control': 'no-cache' } }))
  await answers(rig, 1, 'two')
  t.strictSame(await seen(anew).then(({ body, replay }) => [body, replay]), ['two', false])
  t.equal((await seen(handle(post(null)))).body, 'two')
})

/** cockatiel's breaker, closed again by hand. */
function breaker(): CircuitBreakerPolicy {
  return circuitBreaker(handleAll, { halfOpenAfter: 60_000, breaker: new ConsecutiveBreaker(2) })
}

t.test('an open breaker: 503 with Retry-After, nothing leaves, nothing is kept', async (t) => {
  const rig = new HttpRig(t)
  const policy = breaker()
  const handle = rig.handler({ breaker: policy, retryAfterMs: 30_000 })
  for (const [index, key] of ['a', 'b'].entries()) {
    const answer = handle(post(key))
    await answers(rig, index, 'down', 500)
    t.equal(await outcome(answer), '500')
  }
  const refused = await seen(handle(post('c')))
  t.strictSame([refused.status, refused.code, refused.headers.get('retry-after')], [503, 'unavailable', '30'])
  t.equal(await outcome(handle(post('a'))), '500 replay', 'what is known is still told')
  const get = await seen(handle(new Request('http://host/x')))
  t.strictSame([get.status, get.code], [503, 'unavailable'], 'nothing leaves without a key either')
  t.strictSame(counted(handle.counters), {
    requests: 4,
    passed: 1,
    upstream: 2,
    failed: 2,
    replayed: 1,
    unavailable: 2,
  })
  await rig.clock.advance(1)
  // Closed again, the same key is asked for at once: the refusal was not stored.
  const closed = rig.handler()
  const answer = closed(post('c'))
  await answers(rig, 2, 'up')
  t.equal(await outcome(answer), '200')
})

t.test('who waits for a call that never leaves is told so, not that it is a replay', async (t) => {
  const rig = new HttpRig(t)
  const tried = gate()
  const open = gate<never>()
  const breaker: Breaker = {
    execute: () => {
      tried.open()
      return open.promise
    },
  }
  const handle = rig.handler({ breaker, busy: 'wait' })
  const first = outcome(handle(post('k')))
  await tried.promise
  const second = outcome(handle(post('k')))
  await until(() => rig.queue.counters.deduped === 1)
  open.fail(Object.assign(new Error(), { isBrokenCircuitError: true }))
  t.strictSame(await Promise.all([first, second]), ['503 unavailable', '503 unavailable'])
  t.strictSame(counted(handle.counters), { requests: 2, unavailable: 2 })
})

t.test('answers below 500 do not open the breaker, what is thrown does', async (t) => {
  const rig = new HttpRig(t)
  const policy = breaker()
  const handle = rig.handler({ breaker: policy })
  for (let index = 0; index < 4; index++) {
    const answer = handle(post(`k${index}`))
    await answers(rig, index, 'no such thing', 404)
    t.equal(await outcome(answer), '404')
  }
  for (let index = 4; index < 6; index++) {
    const answer = handle(post(`k${index}`))
    ;(await rig.upstream.call(index)).end.fail(new Error('ECONNREFUSED'))
    t.equal(await outcome(answer), '502 upstream-failed')
  }
  t.equal(await outcome(handle(post('k6'))), '503 unavailable')
})

t.test('cached results are served while the breaker is open, fresh and stale', async (t) => {
  const rig = new HttpRig(t)
  const policy = breaker()
  const handle = rig.handler({ ...cached, breaker: policy })
  const first = handle(post('a'))
  await answers(rig, 0, 'one')
  await first
  const lock = policy.isolate()
  t.equal((await seen(handle(post('b')))).body, 'one')
  await rig.clock.advance(10_000)
  t.equal((await seen(handle(post('c')))).body, 'one', 'stale, and its refresh did not leave')
  await settle()
  t.equal(await outcome(handle(post('d', 'unknown'))), '503 unavailable')
  t.equal(handle.counters.upstream, 1)
  lock.dispose()
  await rig.clock.advance(1)
  const unknown = handle(post('d', 'unknown'))
  await answers(rig, 1, 'two')
  t.equal((await seen(unknown)).body, 'two', 'closed again, asked at once')
  await rig.clock.advance(19_998)
  t.equal((await seen(handle(post('e')))).body, 'one', 'the refresh that did not leave took nothing away')
})

t.test('any breaker will do: opossum’s error is known, others are named', async (t) => {
  const rig = new HttpRig(t)
  const open = (error: object): Breaker => ({ execute: () => Promise.reject(error) })
  const opossum = rig.handler({ breaker: open(Object.assign(new Error('Breaker is open'), { code: 'EOPENBREAKER' })) })
  t.equal(await outcome(opossum(post('a'))), '503 unavailable')
  class MyOpenError extends Error {}
  const options = { breaker: open(new MyOpenError()), isBreakerOpen: (error: unknown) => error instanceof MyOpenError }
  t.equal(await outcome(rig.handler(options)(post('b'))), '503 unavailable')
  t.equal(rig.upstream.calls.length, 0)
})

t.test('each layer alone', async (t) => {
  const rig = new HttpRig(t)
  const options = { upstream: rig.upstream.handle, clock: rig.clock, cache: { freshMs: 1_000, staleMs: 1_000 } }
  const { record, cached, call, counters } = createLayers(rig.queue, options)
  const request = () => new Request('http://host/x', { method: 'POST', body: 'body' })
  // Breaker and upstream, without a record.
  const called = call(request())
  const first = await rig.upstream.call(0)
  t.equal(first.context.job, null)
  t.equal(await first.request.text(), 'body')
  first.end.open(new Response('one'))
  t.equal((await seen((await called).live)).body, 'one')
  const failing = call(request())
  ;(await rig.upstream.call(1)).end.open(new Response('down', { status: 500 }))
  await t.rejects(failing, { name: 'UpstreamFailure' })
  // The record, without upstream.
  const stored = { status: 200, headers: [], body: 'made here', at: 0, by: '' }
  const work: Work = async ({ generation: by }) => ({ live: new Response('made here'), stored: { ...stored, by } })
  const ask = { id: 'a record', fingerprint: 'f', work }
  const own = await record(ask)
  t.match(own, { kind: 'answer', own: true, failed: false })
  t.match(await record(ask), { kind: 'answer', own: false, stored: { body: 'made here' }, live: null })
  await t.rejects(record({ ...ask, fingerprint: 'g' }), { name: 'PayloadMismatchError' })
  // The cached result.
  const result = { id: 'a result', fingerprint: 'f', work: (job: Parameters<Work>[0]) => call(request(), job) }
  const made = cached(result)
  ;(await rig.upstream.call(2)).end.open(new Response('two'))
  t.match(await made, { kind: 'answer', own: true })
  await rig.clock.advance(1_500)
  t.match(await cached({ ...result, fingerprint: 'g' }), { own: false, ageMs: 1_500, stored: { body: 'two' } })
  ;(await rig.upstream.call(3)).end.open(new Response('three'))
  await until(() => rig.queue.counters.completed === 3)
  t.match(await cached(result), { ageMs: 0, stored: { body: 'three' } })
  t.strictSame(counted(counters), { upstream: 4, failed: 1, cached: 2, stale: 1 })
  const { cached: none } = createLayers(rig.queue, { upstream: rig.upstream.handle })
  await t.rejects(none(result), { name: 'StateError' })
})
