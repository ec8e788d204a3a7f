/** What cached results may be given to whom, and refreshes that an outbox holds up. On Memory in virtual time. */

import t, { type Test } from 'tap'
import {
  createLayers,
  executeUpstream,
  type IdempotentOptions,
  type Incoming,
  idempotent,
  type Upstream,
  type Work,
} from '../../src/http/index.ts'
import { Queue } from '../../src/queue.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { counted, HttpRig, outcome, post, seen, until } from './support/rig.ts'

const shared: Partial<IdempotentOptions> = {
  subject: (incoming: Incoming) => incoming.text(),
  cache: { freshMs: 10_000, staleMs: 20_000, shared: true },
}

const as = (actor: string) => ({ headers: { 'x-actor': actor } })

/** An upstream that answers each call with its number, and headers of the test's. */
function numbered(headers: () => Record<string, string>, status = 200): Upstream & { calls: number } {
  const upstream = Object.assign(
    async () => {
      upstream.calls++
      return new Response(`answer ${upstream.calls}`, { status, headers: headers() })
    },
    { calls: 0 },
  )
  return upstream
}

const bodyOf = async (answer: Promise<Response>) => (await seen(answer)).body

t.test('an answer that upstream marks as one actor’s is given to no other', async (t) => {
  const marks: [Record<string, string>, number][] = [
    [{ 'cache-control': 'private, max-age=60' }, 200],
    [{ 'cache-control': 'max-age=60, No-Store' }, 404],
    [{ 'cache-control': 'private="set-cookie"' }, 200],
    [{ vary: 'authorization' }, 200],
    [{ vary: '*' }, 503],
  ]
  for (const [headers, status] of marks) {
    const rig = new HttpRig(t)
    const upstream = numbered(() => headers, status)
    const handle = rig.handler({ ...shared, upstream })
    t.equal(await bodyOf(handle(post('a', 'body', as('ada')))), 'answer 1')
    t.equal(await bodyOf(handle(post('a', 'body', as('bob')))), 'answer 2')
    t.equal(await bodyOf(handle(post('b', 'body', as('bob')))), 'answer 2', 'but cached for its own')
    t.equal(await bodyOf(handle(post('b', 'body', as('ada')))), 'answer 1')
    t.equal(upstream.calls, 2)
  }
})

t.test('the same for those who waited for one call together, with a key and without', async (t) => {
  for (const key of ['k', null]) {
    const rig = new HttpRig(t)
    const handle = rig.handler({ ...shared, requireKey: false, busy: 'wait' })
    const answers = ['ada', 'bob'].map((actor) => handle(post(key, 'body', as(actor))))
    const first = await rig.upstream.call(0)
    await until(() => rig.queue.counters.deduped === 1)
    first.end.open(new Response('first', { headers: { 'cache-control': 'private' } }))
    const second = await rig.upstream.call(1)
    second.end.open(new Response('second', { headers: { 'cache-control': 'private' } }))
    t.strictSame(await Promise.all(answers.map(bodyOf)), ['first', 'second'])
  }
})

t.test('an unmarked answer is shared, and so are our own problems', async (t) => {
  const rig = new HttpRig(t)
  const upstream = numbered(() => ({ 'cache-control': 'max-age=60', 'x-private': 'no' }))
  const handle = rig.handler({ ...shared, upstream })
  for (const actor of ['ada', 'bob']) t.equal(await bodyOf(handle(post('a', 'body', as(actor)))), 'answer 1')
  let thrown = 0
  const fails = () => {
    thrown++
    throw new Error('down')
  }
  const failing = rig.handler({ ...shared, upstream: fails, schemaVersion: 2 })
  for (const actor of ['ada', 'bob']) {
    t.equal((await seen(failing(post('a', 'body', as(actor))))).code, 'upstream-failed')
  }
  t.equal(thrown, 1)
})

t.test('another method about the same subject is another question, with a key and without', async (t) => {
  for (const isShared of [true, false]) {
    const rig = new HttpRig(t)
    const upstream = numbered(() => ({}))
    const cache = { freshMs: 10_000, shared: isShared }
    const handle = rig.handler({ ...shared, cache, upstream, requireKey: false })
    t.equal(await bodyOf(handle(post(null))), 'answer 1')
    t.equal(await bodyOf(handle(post(null, 'body', { method: 'PATCH' }))), 'answer 2')
    t.equal(await bodyOf(handle(post('a'))), 'answer 1')
    t.equal(await bodyOf(handle(post('b', 'body', { method: 'PATCH' }))), 'answer 2')
  }
})

/** A server and a worker on one storage. */
async function workers(t: Test, options: Partial<IdempotentOptions>, upstream: Upstream) {
  const rig = new HttpRig(t)
  const { clock } = rig
  const storage = new MemoryStorage({ clock })
  const [front, back] = [new Queue({ clock, storage }), new Queue({ clock, storage })]
  const { cache } = options
  executeUpstream(back, { upstream, clock, ...(cache !== undefined && { cache }) })
  await back.start()
  t.teardown(async () => {
    const stopped = Promise.all([front.stop(), back.stop()])
    await clock.advance(60_000)
    await stopped
  })
  const actor = (request: Request) => request.headers.get('x-actor') ?? 'ada'
  return { clock, front, back, handle: idempotent(front, { actor, mode: 'workers', clock, ...options }) }
}

t.test('workers: answers of one actor are given to no other, with a key and without', async (t) => {
  for (const key of ['k', null]) {
    const upstream = numbered(() => ({ 'cache-control': 'private' }))
    const { handle } = await workers(t, { ...shared, requireKey: false }, upstream)
    const ask = (actor: string) => bodyOf(handle(post(key, 'body', as(actor))))
    t.strictSame([await ask('ada'), await ask('bob')], ['answer 1', 'answer 2'])
    t.strictSame([await ask('ada'), await ask('bob')], ['answer 1', 'answer 2'])
    t.equal(upstream.calls, 2)
  }
})

t.test('a layer’s fingerprint may be any text, an empty one too', async (t) => {
  const rig = new HttpRig(t)
  const { record } = createLayers(rig.queue, { upstream: rig.upstream.handle })
  const stored = { status: 200, headers: [], body: '', at: 0 }
  const work: Work = async ({ generation: by }) => ({ live: new Response(), stored: { ...stored, by } })
  for (const [id, fingerprint] of ['', '\ud800', 'x'.repeat(1_000)].entries()) {
    const ask = { id: `id ${id}`, fingerprint, work }
    t.match(await record(ask), { own: true })
    t.match(await record(ask), { own: false })
    await t.rejects(record({ ...ask, fingerprint: `${fingerprint}y` }), { code: 'ASKONCE_PAYLOAD_MISMATCH' })
  }
})

/** An upstream that posts a row, as long as nobody relays it. */
const posting: Upstream = async (_request, { job }) => {
  job?.outbox('mail', 'row')
  return new Response('posted')
}

const noCache = { headers: { 'cache-control': 'no-cache' } }

t.test('a refresh that an outbox holds up: the older answer, with its age, and no loop', async (t) => {
  const rig = new HttpRig(t)
  let calls = 0
  const upstream: Upstream = (...args) => {
    calls++
    return posting(...args)
  }
  const { subject } = shared
  const cache = { freshMs: 10_000, staleMs: 20_000 }
  const options = { subject: subject!, cache, requireKey: false, noCache: true, upstream, failureTtlMs: 5_000 }
  const handle = rig.handler(options)
  await handle(post(null))
  await rig.clock.advance(7_000)
  for (const key of [null, 'k']) {
    const anew = await seen(handle(post(key, 'body', noCache)))
    t.strictSame([anew.status, anew.body, anew.headers.get('age')], [200, 'posted', '7'], 'no-cache')
  }
  t.strictSame(
    rig.errors.map((error) => (error as { code?: string }).code),
    ['ASKONCE_STATE', 'ASKONCE_STATE'],
  )
  rig.errors.length = 0
  await rig.clock.advance(4_000)
  for (let count = 0; count < 3; count++) {
    const stale = await seen(handle(post(null)))
    t.strictSame([stale.status, stale.headers.get('age')], [200, '11'])
    await rig.clock.advance(0)
  }
  t.equal(rig.errors.length, 1, 'one try in the background')
  await rig.clock.advance(5_000)
  t.equal(await outcome(handle(post(null))), '200 replay')
  await until(() => rig.errors.length === 2)
  t.equal(calls, 1)
  const relay = rig.queue.relay(() => {})
  await rig.clock.advance(1_000)
  await until(() => rig.queue.counters.delivered === 1)
  const anew = await seen(handle(post(null, 'body', noCache)))
  t.strictSame([anew.body, anew.headers.get('age'), calls], ['posted', null, 2], 'delivered, it is refreshed')
  await relay.stop()
})

t.test('the same of a record without a cache, and where workers do the asking', async (t) => {
  const options: Partial<IdempotentOptions> = { subject: () => 1, requireKey: false, noCache: true }
  const rig = new HttpRig(t)
  const inline = rig.handler({ ...options, upstream: posting })
  t.equal(await outcome(inline(post(null))), '200')
  t.equal(await outcome(inline(post(null, 'body', noCache))), '200 replay')
  for (const more of [{}, { busy: 'accepted', statusUrl: (id: string) => `/${id}` }] as Partial<IdempotentOptions>[]) {
    const { handle, back } = await workers(t, { ...options, ...more }, posting)
    await handle(post(null))
    await until(() => back.counters.completed === 1)
    t.equal(await outcome(handle(post(null, 'body', noCache))), '200 replay')
    t.strictSame(counted(handle.counters).unavailable, undefined)
  }
})

t.test('workers: host, forwarded headers and no-cache differ from try to try, and are no mismatch', async (t) => {
  const upstream = numbered(() => ({}))
  const { handle } = await workers(t, { noCache: true }, upstream)
  t.equal(await outcome(handle(post('k'))), '200')
  for (const more of [{ url: 'https://other.example/decode' }, { headers: { accept: 'application/json' } }, noCache]) {
    t.equal(await outcome(handle(post('k', 'body', more))), '200 replay')
  }
  t.equal(await outcome(handle(post('k', 'body', { url: 'http://host/other' }))), '422 payload-mismatch')
  t.equal(await outcome(handle(post('k', 'other'))), '422 payload-mismatch')
  t.equal(upstream.calls, 1)
})

t.test('the fingerprint is the layer’s own, whatever the queue’s serde makes of payloads', async (t) => {
  const serde = (fingerprint: (value: unknown) => string) => ({
    serialize: (value: unknown) => JSON.stringify(value),
    deserialize: (text: unknown) => JSON.parse(String(text)) as unknown,
    fingerprint,
  })
  let count = 0
  for (const payloadSerde of [serde(() => 'all alike'), serde(() => `all different ${count++}`)]) {
    const rig = new HttpRig(t, { payloadSerde })
    const handle = rig.handler({ upstream: numbered(() => ({})) })
    t.equal(await outcome(handle(post('k'))), '200')
    t.equal(await outcome(handle(post('k'))), '200 replay')
    t.equal(await outcome(handle(post('k', 'other'))), '422 payload-mismatch')
  }
})

t.test('a fingerprint given with a payload counts in the payload’s place', async (t) => {
  const rig = new HttpRig(t)
  const ask = (payload: unknown, fingerprint?: unknown) =>
    rig.queue.enqueue('id', payload, { payloadMismatch: 'reject', fingerprint: fingerprint as string })
  const long = 'x'.repeat(100)
  t.equal((await ask(1, long)).status, 'queued')
  t.equal((await ask(2, long)).status, 'duplicate')
  await t.rejects(ask(1, `${long}y`), { code: 'ASKONCE_PAYLOAD_MISMATCH' })
  for (const bad of ['', '\ud800', 5, null]) {
    await t.rejects(ask(1, bad), { code: 'ASKONCE_INVALID_ARGUMENT', field: 'options.fingerprint' })
  }
})

t.test(
  'workers: a success that is too large to be kept is told as a failure, kept, and never carried out again',
  async (t) => {
    const rig = new HttpRig(t, { payloadBytesMax: 4_000 })
    const large = (status: number) => async () =>
      new Response('x'.repeat(5_000), { status, headers: { location: '/orders/1', etag: '"e"', 'set-cookie': 'a=1' } })
    const handle = rig.handler({ mode: 'workers' })
    let status = 201
    let calls = 0
    executeUpstream(rig.queue, {
      clock: rig.clock,
      failureTtlMs: 1_000,
      upstream: () => {
        calls++
        return large(status)()
      },
    })
    await rig.queue.start()
    const lost = await seen(handle(post('a')))
    t.strictSame([lost.status, lost.code, lost.headers.get('location')], [502, 'response-too-large', '/orders/1'])
    t.strictSame([lost.headers.get('etag'), lost.headers.getSetCookie()], [null, []])
    t.match(lost.body, 'status 201')
    await rig.clock.advance(60_000)
    t.equal(await outcome(handle(post('a'))), '502 replay response-too-large')
    t.equal(calls, 1)
    status = 404
    t.equal(await outcome(handle(post('b'))), '404 response-too-large', 'a refusal is one without its body, too')
  },
)

t.test('a body that is not kept is nowhere said to have been received', async (t) => {
  const rig = new HttpRig(t, { payloadBytesMax: 4_000 })
  const handle = rig.handler({ upstream: async () => new Response('x'.repeat(5_000)) })
  const controller = new AbortController()
  await handle(post('k', 'body', { signal: controller.signal }))
  const replay = await seen(handle(post('k')))
  t.equal(replay.code, 'response-too-large')
  t.notMatch(replay.body, /asked first|sent to/)
})
