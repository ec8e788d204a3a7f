/** `idempotent` on Memory in virtual time: who is answered what, and what is counted. */

import t from 'tap'
import { httpDefaults, invalidInput } from '../../src/http/index.ts'
import { settle } from '../../storages/conformance/virtual-clock.ts'
import { counted, HttpRig, outcome, post, seen, until } from './support/rig.ts'

t.test('one key: one call, one answer, replays marked', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const first = handle(post('"k"'))
  const call = await rig.upstream.call(0)
  t.equal(call.request.headers.get('idempotency-key'), '"k"')
  t.equal(await call.request.text(), 'body')
  t.equal(call.context.attempts, 1)
  t.match(call.context.id, /^[\w-]{22}\.[\w-]{43}$/)
  const headers = { 'content-type': 'application/octet-stream', 'x-mine': '1', 'set-cookie': 'session=1' }
  call.end.open(new Response(new Uint8Array([0, 255, 128, 10]), { status: 201, headers }))
  const own = await first
  t.equal(own.headers.get('set-cookie'), 'session=1')
  t.notOk(own.headers.has('idempotent-replay'))
  for (const key of ['"k"', 'k', '"k"; v=2']) {
    const replay = await handle(post(key))
    t.equal(replay.status, 201)
    t.equal(replay.headers.get('idempotent-replay'), 'true')
    t.equal(replay.headers.get('x-mine'), '1')
    t.notOk(replay.headers.has('set-cookie'), 'cookies are not replayed')
    t.strictSame([...new Uint8Array(await replay.arrayBuffer())], [0, 255, 128, 10])
  }
  t.equal(rig.upstream.calls.length, 1)
  t.strictSame(counted(handle.counters), { requests: 4, upstream: 1, replayed: 3 })
})

t.test('busy: conflict answers 409 at once, and the first request goes on', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ retryAfterMs: 2_500 })
  const first = handle(post('k'))
  const call = await rig.upstream.call(0)
  const conflict = await seen(handle(post('k')))
  t.strictSame([conflict.status, conflict.code, conflict.headers.get('retry-after')], [409, 'in-progress', '3'])
  call.end.open(new Response('done'))
  t.equal(await outcome(first), '200')
  t.equal(await outcome(handle(post('k'))), '200 replay')
  t.strictSame(counted(handle.counters), { requests: 3, busy: 1, upstream: 1, replayed: 1 })
})

t.test('busy: conflict, of two in one moment: one is asked, one refused', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const both = Promise.all([outcome(handle(post('k'))), outcome(handle(post('k')))])
  const call = await rig.upstream.call(0)
  await untilWaiting(rig, 2)
  call.end.open(new Response('done'))
  t.strictSame((await both).sort(), ['200', '409 in-progress'])
})

t.test('busy: wait answers with the outcome, or 409 after waitMs', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ busy: 'wait', waitMs: 500 })
  const first = handle(post('k'))
  const call = await rig.upstream.call(0)
  const early = outcome(handle(post('k')))
  await untilWaiting(rig, 2)
  await rig.clock.advance(400)
  const late = outcome(handle(post('k')))
  await untilWaiting(rig, 3)
  await rig.clock.advance(100)
  t.equal(await early, '409 in-progress')
  call.end.open(new Response('done'))
  t.equal(await first.then(outcome), '200')
  t.equal(await late, '200 replay')
  t.equal(rig.upstream.calls.length, 1)
})

t.test('its own run is waited for as long as timeoutMs; the run goes on', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ timeoutMs: 1_000 })
  const first = outcome(handle(post('k')))
  const call = await rig.upstream.call(0)
  await rig.clock.advance(1_000)
  t.equal(await first, '409 in-progress')
  t.equal(call.context.signal.aborted, false)
  call.end.open(new Response('done'))
  await settle()
  t.equal(await outcome(handle(post('k'))), '200 replay')
})

t.test('the same key with another method, path or body: 422, whatever state the first is in', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const first = handle(post('k'))
  const call = await rig.upstream.call(0)
  const others = () => [
    post('k', 'other'),
    post('k', 'body', { url: 'http://host/other' }),
    post('k', 'body', { url: 'http://host/decode?x=1' }),
    post('k', 'body', { method: 'PATCH' }),
  ]
  for (const other of others()) t.equal(await outcome(handle(other)), '422 payload-mismatch')
  call.end.open(new Response('done'))
  await first
  for (const other of others()) t.equal(await outcome(handle(other)), '422 payload-mismatch')
  t.equal(await outcome(handle(post('k', 'body', { url: 'https://other-host/decode' }))), '200 replay', 'hosts differ')
  t.strictSame(counted(handle.counters), { requests: 10, mismatched: 8, upstream: 1, replayed: 1 })
})

t.test('another actor with the same key asks for itself', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const answers = ['ada', 'bob'].map((actor) => handle(post('k', 'body', { headers: { 'x-actor': actor } })))
  for (const index of [0, 1]) {
    const { request, end } = await rig.upstream.call(index)
    end.open(new Response(`for ${request.headers.get('x-actor')}`))
  }
  t.strictSame(await Promise.all(answers.map(async (answer) => (await seen(answer)).body)), ['for ada', 'for bob'])
  const again = await seen(handle(post('k', 'body', { headers: { 'x-actor': 'bob' } })))
  t.strictSame([again.replay, again.body], [true, 'for bob'])
})

t.test('no actor, no answer', async (t) => {
  const rig = new HttpRig(t)
  for (const actor of ['', null, undefined, 42, 'a\ud800']) {
    const handle = rig.handler({ actor: () => actor as string })
    t.equal(await outcome(handle(post('k'))), '401 actor-missing')
    t.strictSame(counted(handle.counters), { requests: 1, refused: 1 })
  }
  t.equal(await outcome(rig.handler({ actor: () => null, actorMissingStatus: 400 })(post('k'))), '400 actor-missing')
  t.equal(rig.upstream.calls.length, 0)
  t.equal(rig.queue.counters.claimed, 0, 'nothing was written')
})

t.test('what is refused locally writes no key and is no charge', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({
    bodyBytesMax: 10,
    validate: async (incoming) => {
      if (incoming.url.searchParams.has('throw')) throw new Response('thrown', { status: 418 })
      return incoming.json() === 'bad' ? invalidInput('it is bad') : null
    },
  })
  const refused: [Request, string][] = [
    [post(null), '400 key-missing'],
    [post(''), '400 key-malformed'],
    [post('"a", "a"'), '400 key-malformed'],
    [post('k'.repeat(10_240)), '400 key-malformed'],
    [post('k', 'x'.repeat(11)), '413 body-too-large'],
    [post('k', '"bad"'), '422 invalid-input'],
    [post('k', '{'), '400 invalid-input'],
    [post('k', '1', { url: 'http://host/?throw' }), '418'],
  ]
  for (const [request, expected] of refused) t.equal(await outcome(handle(request)), expected)
  t.strictSame(counted(handle.counters), { requests: 8, refused: 8 })
  t.equal(rig.queue.counters.claimed, 0)
  // The key was not used up.
  const good = handle(post('k', '"good"'))
  ;(await rig.upstream.call(0)).end.open(new Response('done'))
  t.equal(await outcome(good), '200')
})

t.test('other methods are handed on, with no key and no record', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  for (const [index, method] of ['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS'].entries()) {
    const answer = handle(new Request('http://host/x', { method }))
    const call = await rig.upstream.call(index)
    t.equal(call.context.job, null)
    call.end.open(new Response(method === 'HEAD' ? null : 'x', { status: 203 }))
    t.equal(await outcome(answer), '203')
  }
  t.strictSame(counted(handle.counters), { passed: 5, upstream: 5 })
  t.equal(rig.queue.counters.claimed, 0)
  const put = rig.handler({ methods: ['put'] })
  t.equal(await outcome(put(new Request('http://host/x', { method: 'PUT', body: 'x' }))), '400 key-missing')
})

t.test('without a key, where none is required: the subject is the identity', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({
    requireKey: false,
    subject: (incoming) => (incoming.json() as { vin: string }).vin.toUpperCase(),
  })
  const vin = (text: string) => post(null, JSON.stringify({ vin: text }))
  const answer = handle(vin('1hgcm82633a004352'))
  ;(await rig.upstream.call(0)).end.open(new Response('accord'))
  await answer
  t.equal(await outcome(handle(vin('1HGCM82633A004352'))), '200 replay', 'one question, however it was written')
  const other = handle(vin('other'))
  ;(await rig.upstream.call(1)).end.open(new Response('other'))
  t.equal(await outcome(other), '200')
  t.equal(await outcome(handle(post(null, 'no json'))), '400 invalid-input')
  t.equal(await outcome(handle(post('bad key'))), '400 key-malformed', 'a bad key is refused all the same')
  const fresh = handle(post('k', JSON.stringify({ vin: 'other' })))
  ;(await rig.upstream.call(2)).end.open(new Response('asked anew'))
  t.equal((await seen(fresh)).body, 'asked anew', 'with a key of its own it is another request')
})

t.test('without a key and without a subject: handed on', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ requireKey: false })
  for (const index of [0, 1]) {
    const answer = handle(post(null))
    const call = await rig.upstream.call(index)
    t.equal(await call.request.text(), 'body')
    call.end.open(new Response(`${index}`))
    t.equal((await seen(answer)).body, `${index}`)
  }
  t.strictSame(counted(handle.counters), { requests: 2, passed: 2, upstream: 2 })
})

t.test('another schema version replays nothing older', async (t) => {
  const rig = new HttpRig(t)
  for (const [index, schemaVersion] of [1, 2].entries()) {
    const answer = rig.handler({ schemaVersion })(post('k'))
    ;(await rig.upstream.call(index)).end.open(new Response(`v${schemaVersion}`))
    t.equal((await seen(answer)).body, `v${schemaVersion}`)
  }
})

t.test('a client that goes away ends its wait, not the job', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ busy: 'wait' })
  const controllers = [new AbortController(), new AbortController()]
  const first = handle(post('k', 'body', { signal: controllers[0]!.signal }))
  const call = await rig.upstream.call(0)
  const second = outcome(handle(post('k', 'body', { signal: controllers[1]!.signal })))
  await untilWaiting(rig, 2)
  for (const controller of controllers) controller.abort()
  t.equal(await second, '409 in-progress', 'read by nobody')
  t.equal(call.context.signal.aborted, false)
  call.end.open(new Response('done'))
  t.equal(await outcome(first), '200')
  t.equal(await outcome(handle(post('k'))), '200 replay')
  t.equal(rig.upstream.calls.length, 1)
})

t.test('faults of the server itself: 500 or 503, nothing stored, nothing told', async (t) => {
  const rig = new HttpRig(t)
  const broken = () => {
    throw new Error('secret')
  }
  for (const options of [{ actor: broken }, { validate: broken }, { subject: broken }]) {
    const answer = await seen(rig.handler({ requireKey: false, ...options })(post(null)))
    t.strictSame([answer.status, answer.code], [500, 'internal'])
    t.notMatch(answer.body, 'secret')
  }
  t.equal(rig.errors.length, 3)
  await rig.queue.stop()
  const away = rig.handler()
  const answer = await seen(away(post('k')))
  t.strictSame([answer.status, answer.code, answer.headers.get('retry-after')], [503, 'unavailable', '1'])
  t.strictSame(counted(away.counters), { requests: 1, unavailable: 1 })
  t.equal(rig.upstream.calls.length, 0)
})

t.test('an onError that throws hurts nobody', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({
    onError: () => {
      throw new Error('worse')
    },
  })
  const answer = handle(post('k'))
  ;(await rig.upstream.call(0)).end.fail(new Error('bad'))
  t.equal(await outcome(answer), '502 upstream-failed')
})

t.test('defaults', async (t) => {
  t.strictSame(httpDefaults, {
    methods: ['POST', 'PATCH'],
    schemaVersion: 1,
    resultTtlMs: 3_600_000,
    failureTtlMs: 15_000,
    upstreamTimeoutMs: 25_000,
    waitMs: 10_000,
    timeoutMs: 60_000,
    retryAfterMs: 1_000,
    maxAttempts: 3,
    bodyBytesMax: 1_114_112,
  })
})

/** Waits until that many requests have met the queue: their fingerprints are made on another thread. */
function untilWaiting(rig: HttpRig, requests: number): Promise<void> {
  return until(() => rig.queue.counters.claimed + rig.queue.counters.deduped >= requests)
}
