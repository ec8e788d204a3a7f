/** Fetch handlers on real servers: `node:http` over sockets, Express, Fastify, Hono. */

import { once } from 'node:events'
import { type IncomingMessage, request as send } from 'node:http'
import http2 from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import t, { type Test } from 'tap'
import {
  type FetchHandler,
  httpDefaults,
  type IdempotentHandler,
  idempotent,
  toExpressHandler,
  toFastifyPlugin,
  toHonoHandler,
  toNodeHandler,
} from '../../src/http/index.ts'
import { Queue } from '../../src/queue.ts'
import { gate } from '../support/queue-rig.ts'
import { counted, listen, ManualUpstream, outcome, seen } from './support/rig.ts'

/** A handler that echoes bodies, each key once. */
function echo(t: Test, more: Partial<Parameters<typeof idempotent>[1]> = {}): IdempotentHandler {
  const queue = new Queue()
  t.teardown(() => queue.stop())
  return idempotent(queue, {
    actor: (request) => request.headers.get('x-actor') ?? 'ada',
    upstream: async (request) => {
      const headers = new Headers({
        'content-type': 'application/octet-stream',
        'x-path': new URL(request.url).pathname,
      })
      headers.append('set-cookie', 'a=1')
      headers.append('set-cookie', 'b=2; Path=/')
      return new Response(await request.arrayBuffer(), { status: 201, headers })
    },
    ...more,
  })
}

/** Writes bytes to a server and answers what it says until it closes. */
async function raw(origin: string, text: string): Promise<string> {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  socket.setEncoding('latin1')
  socket.on('error', () => {})
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk
  })
  socket.write(text, 'latin1')
  await once(socket, 'close')
  return answer
}

function posting(headers: string, body = '', target = '/decode'): string {
  const fixed = `Host: x\r\nConnection: close\r\nContent-Length: ${body.length}\r\n`
  return `POST ${target} HTTP/1.1\r\n${fixed}${headers}\r\n\r\n${body}`
}

const statusOf = (answer: string) => Number(answer.split(' ')[1])

t.test('node: a megabyte goes through and comes back, replayed too', async (t) => {
  const origin = await listen(t, toNodeHandler(echo(t)))
  const body = new Uint8Array(1_048_576).map((_, index) => (index * 31) & 255)
  const post = () => fetch(`${origin}/decode`, { method: 'POST', body, headers: { 'idempotency-key': 'k' } })
  for (const replay of [null, 'true']) {
    const response = await post()
    t.equal(response.status, 201)
    t.equal(response.headers.get('idempotent-replay'), replay)
    t.equal(response.headers.get('content-length'), '1048576')
    t.strictSame(response.headers.getSetCookie(), replay === null ? ['a=1', 'b=2; Path=/'] : [])
    t.ok(Buffer.from(await response.arrayBuffer()).equals(Buffer.from(body)))
  }
})

t.test('node: a streamed body of a megabyte, in many pieces and of no announced length', async (t) => {
  const origin = await listen(t, toNodeHandler(echo(t)))
  const headers = { 'idempotency-key': 'k' }
  const request = send(`${origin}/decode`, { method: 'POST', headers })
  for (let piece = 0; piece < 64; piece++) request.write(Buffer.alloc(16_384, piece))
  request.end()
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  let bytes = 0
  for await (const chunk of response) bytes += chunk.length
  t.strictSame([response.statusCode, bytes], [201, 1_048_576])
})

t.test(
  'node: a body beyond the bound is answered with 413, announced or streamed, before it is all there',
  async (t) => {
    const handle = echo(t, { bodyBytesMax: 1_000 })
    const origin = await listen(t, toNodeHandler(handle))
    const announced = await raw(
      origin,
      'POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 1001\r\n\r\nx',
    )
    t.equal(statusOf(announced), 413)
    t.match(announced.toLowerCase(), 'connection: close')
    const chunks = `3e8\r\n${'x'.repeat(1_000)}\r\n1\r\nx\r\n`
    const start = 'POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n'
    const streamed = await raw(origin, start + chunks)
    t.equal(statusOf(streamed), 413)
    t.match(streamed, '"code":"body-too-large"')
    t.strictSame(counted(handle.counters), { requests: 2, refused: 2 })
  },
)

t.test('node: hostile headers', async (t) => {
  const handle = echo(t)
  const origin = await listen(t, toNodeHandler(handle))
  const hostile: [string, number][] = [
    ['', 400],
    ['Idempotency-Key:', 400],
    [`Idempotency-Key: ${'k'.repeat(10_240)}`, 400],
    [`Idempotency-Key: "${'k'.repeat(10_240)}"`, 400],
    ['Idempotency-Key: a\r\nIdempotency-Key: a', 400],
    ['Idempotency-Key: "a"\r\nidempotency-key: "b"', 400],
    ['Idempotency-Key: a\u0001b', 400],
    ['Idempotency-Key: "a\u0000b"', 400],
    ['Idempotency-Key: "a\u007fb"', 400],
    ['Idempotency-Key: caf\u00e9', 400],
    ['Idempotency-Key: "\u00f0\u009f\u0098\u0080"', 400],
    ['Idempotency-Key: "a\r\n b"', 400],
    ['Idempotency-Key: ../../etc/passwd', 400],
    ['Idempotency-Key: __proto__', 400],
  ]
  for (const [headers, status] of hostile) {
    t.equal(statusOf(await raw(origin, posting(headers))), status, JSON.stringify(headers.slice(0, 60)))
  }
  t.equal(handle.counters.upstream, 0)
  const odd = ['"../../etc/passwd"', '"__proto__"', 'constructor', '"k:1/2|3"']
  for (const key of odd) t.equal(statusOf(await raw(origin, posting(`Idempotency-Key: ${key}`))), 201, key)
  t.equal(handle.counters.upstream, odd.length)
})

t.test('node: odd targets and hosts become no other host’s URL', async (t) => {
  const urls: string[] = []
  const handler: FetchHandler = (request) => {
    urls.push(request.url)
    return new Response('x')
  }
  const origin = await listen(t, toNodeHandler(handler))
  const get = (target: string, host: string) =>
    raw(origin, `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  await get('//evil/path?q', 'good:81')
  await get('/a%2Fb/../c', 'bad host/@evil')
  await get('/', '[::1]:82')
  t.strictSame(urls, ['http://good:81//evil/path?q', 'http://localhost/c', 'http://[::1]:82/'])
  t.equal(statusOf(await get('*', 'x')), 200)
  t.equal(statusOf(await raw(origin, 'TRACE / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')), 400)
})

t.test('node: a client that goes away aborts its request, and the job goes on', async (t) => {
  const upstream = new ManualUpstream()
  const handle = echo(t, { upstream: upstream.handle })
  const gone = gate()
  const origin = await listen(
    t,
    toNodeHandler((request) => {
      request.signal.addEventListener('abort', () => gone.open())
      return handle(request)
    }),
  )
  const controller = new AbortController()
  const init = { method: 'POST', body: 'x', headers: { 'idempotency-key': 'k' } }
  const first = fetch(origin, { ...init, signal: controller.signal })
  const { end, context } = await upstream.call(0)
  controller.abort()
  await t.rejects(first)
  await gone.promise
  t.equal(context.signal.aborted, false)
  end.open(new Response('done'))
  for (;;) {
    const again = await seen(fetch(origin, init))
    if (again.status === 409) continue
    t.strictSame([again.status, again.body, again.replay], [200, 'done', true])
    break
  }
  t.equal(upstream.calls.length, 1)
})

t.test('node: a body that breaks off writes no key', async (t) => {
  const handle = echo(t)
  const answered = gate<Response>()
  const origin = await listen(
    t,
    toNodeHandler(async (request) => {
      const response = await handle(request)
      answered.open(response.clone())
      return response
    }),
  )
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  socket.write('POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 10\r\n\r\nx')
  await once(socket, 'connect')
  setImmediate(() => socket.destroy())
  t.equal(await outcome(answered.promise), '400 body-unreadable')
  t.strictSame(counted(handle.counters), { requests: 1, refused: 1 })
})

t.test('node: streams, HEAD, no bodies, and handlers that reject', async (t) => {
  const handlers: Record<string, FetchHandler> = {
    '/stream': () => {
      let sent = 0
      return new Response(
        new ReadableStream({
          pull(controller) {
            if (sent++ < 40) controller.enqueue(new Uint8Array(65_536))
            else controller.close()
          },
        }),
      )
    },
    '/head': () => new Response('hidden'),
    '/none': () => new Response(null, { status: 204 }),
    '/reject': () => Promise.reject(new Error('secret')),
    '/break': () =>
      new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode('begun'))
          },
          pull(controller) {
            controller.error(new Error('secret'))
          },
        }),
      ),
  }
  const origin = await listen(
    t,
    toNodeHandler((request) => handlers[new URL(request.url).pathname]!(request)),
  )
  t.equal((await (await fetch(`${origin}/stream`)).arrayBuffer()).byteLength, 40 * 65_536)
  t.equal((await fetch(`${origin}/head`, { method: 'HEAD' })).status, 200)
  t.equal((await fetch(`${origin}/none`)).status, 204)
  const rejected = await seen(fetch(`${origin}/reject`))
  t.strictSame([rejected.status, rejected.code], [500, 'internal'])
  t.notMatch(rejected.body, 'secret')
  await t.rejects(fetch(`${origin}/break`).then((response) => response.text()))
})

t.test('node:http2, by its compatible API: answers, early ones, and bodies that break off', async (t) => {
  const handle = echo(t, { bodyBytesMax: 1_000 })
  const broken = gate<Response>()
  const listener = toNodeHandler(async (request) => {
    const response = await handle(request)
    if (request.url.endsWith('/broken')) broken.open(response.clone())
    return response
  })
  const server = http2
    .createServer(listener as unknown as Parameters<typeof http2.createServer>[1])
    .listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const session = http2.connect(`http://127.0.0.1:${port}`)
  t.teardown(() => {
    session.destroy()
    server.close()
  })
  const open = (path: string) => session.request({ ':method': 'POST', ':path': path, 'idempotency-key': 'k' })
  for (const [body, status, replay] of [
    ['body', 201, undefined],
    ['body', 201, 'true'],
    ['x'.repeat(1_001), 413, undefined],
  ] as const) {
    const stream = open('/decode')
    stream.end(body)
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders & { ':status': number }]
    t.strictSame([headers[':status'], headers['idempotent-replay']], [status, replay])
    let answer = ''
    for await (const chunk of stream.setEncoding('utf8')) answer += chunk
    if (status === 201) t.equal(answer, body)
  }
  const stream = open('/broken')
  stream.on('error', () => {})
  stream.write('x', () => stream.destroy())
  t.equal(await outcome(broken.promise), '400 body-unreadable')
})

/** What each framework must do alike. */
async function exchange(t: Test, post: (init: RequestInit) => Promise<Response>, handle: IdempotentHandler) {
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'k' }
  const body = '{ "vin":\t"1HGCM82633A004352" }'
  const first = await post({ method: 'POST', headers, body })
  t.strictSame([first.status, await first.text()], [201, body], 'the very bytes')
  t.equal(first.headers.get('x-path'), '/api/decode', 'the whole path')
  t.strictSame(first.headers.getSetCookie(), ['a=1', 'b=2; Path=/'])
  const again = await seen(post({ method: 'POST', headers, body }))
  t.strictSame([again.status, again.body, again.replay], [201, body, true])
  t.equal(again.headers.get('content-type'), 'application/octet-stream')
  t.equal(await outcome(post({ method: 'POST', headers, body: '{}' })), '422 payload-mismatch')
  t.equal(await outcome(post({ method: 'POST', body })), '400 key-missing')
  const large = 'x'.repeat(httpDefaults.bodyBytesMax + 1)
  t.equal(
    await outcome(post({ method: 'POST', headers: { ...headers, 'idempotency-key': 'l' }, body: large })),
    '413 body-too-large',
  )
  const megabyte = 'y'.repeat(1_048_576)
  t.equal((await post({ method: 'POST', headers: { 'idempotency-key': 'm' }, body: megabyte })).status, 201)
  t.equal(handle.counters.upstream, 2)
}

t.test('Express', async (t) => {
  const handle = echo(t)
  const app = express()
  const router = express.Router()
  router.post('/decode', toExpressHandler(handle))
  app.use('/api', router)
  const origin = await listen(t, app)
  await exchange(t, (init) => fetch(`${origin}/api/decode`, init), handle)
})

t.test('Express behind body parsers: raw bytes as they came, JSON as it was read', async (t) => {
  const handle = echo(t)
  const app = express()
  app.post('/raw', express.raw({ type: '*/*' }), toExpressHandler(handle))
  app.post('/text', express.text({ type: '*/*' }), toExpressHandler(handle))
  app.post('/json', express.json(), toExpressHandler(handle))
  const origin = await listen(t, app)
  const post = async (path: string, body: string, type = 'application/json') => {
    const headers = { 'idempotency-key': path.replace(/\W/g, ''), 'content-type': type }
    return (await fetch(origin + path, { method: 'POST', body, headers })).text()
  }
  t.equal(await post('/raw', '{ "a": 1 }'), '{ "a": 1 }')
  t.equal(await post('/text', 'caf\u00e9'), 'caf\u00e9')
  t.equal(await post('/json', '{ "a": 1 }'), '{"a":1}')
  t.equal(
    await post('/json?x', 'not read', 'text/plain'),
    'not read',
    'a parser that does not apply takes nothing away',
  )
})

t.test('Fastify', async (t) => {
  const handle = echo(t)
  const app = fastify()
  t.teardown(() => app.close())
  // Beside a route that goes on parsing as Fastify does.
  app.post('/other', async (request) => request.body)
  app.register(toFastifyPlugin(handle, { url: '/api/decode' }))
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  await exchange(t, (init) => fetch(`${origin}/api/decode`, init), handle)
  const headers = { 'content-type': 'application/json' }
  t.equal(await (await fetch(`${origin}/other`, { method: 'POST', headers, body: '{ "a": 1 }' })).text(), '{"a":1}')
})

t.test('Hono, whether or not something has read the body before', async (t) => {
  for (const reads of [false, true]) {
    const handle = echo(t)
    const app = new Hono()
    app.use(async (context, next) => {
      if (reads) await context.req.text()
      await next()
    })
    app.post('/api/decode', toHonoHandler(handle))
    await exchange(t, async (init) => app.request('/api/decode', init), handle)
  }
})
