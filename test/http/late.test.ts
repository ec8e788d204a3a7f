/** Handlers that get a request late: its client has gone, or something else has read its body. On real sockets. */

import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import http2 from 'node:http2'
import { type AddressInfo, connect, type Socket } from 'node:net'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import t from 'tap'
import {
  type FetchHandler,
  idempotent,
  toExpressHandler,
  toFastifyPlugin,
  toHonoHandler,
  toNodeHandler,
} from '../../src/http/index.ts'
import { Queue } from '../../src/queue.ts'
import { gate } from '../support/queue-rig.ts'
import { listen, outcome, seen } from './support/rig.ts'

/** Reads the whole body, as `idempotent` does first of all. */
function reader(): { readonly handle: FetchHandler; begun: number; ended: number } {
  const counts = {
    begun: 0,
    ended: 0,
    async handle(request: Request): Promise<Response> {
      counts.begun++
      try {
        return new Response(await request.text())
      } catch {
        return new Response('broken', { status: 400 })
      } finally {
        counts.ended++
      }
    },
  }
  return counts
}

const head = (length: number) => `POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`

/** A client that sends something and goes away as soon as the server has seen it. */
function leaver(origin: string, text: string): Socket {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  socket.write(text)
  return socket
}

/** Part of a body, all of it, and none. */
const sendings = [`${head(10)}abc`, `${head(2)}hi`, head(0)]

t.test('node: a client that has gone before the handler runs: it does not run, and nothing stays open', async (t) => {
  for (const text of sendings) {
    const counts = reader()
    const arrived = gate()
    const handled = gate<ServerResponse>()
    const origin = await listen(t, async (request, response) => {
      arrived.open()
      await once(response, 'close')
      toNodeHandler(counts.handle)(request, response)
      handled.open(response)
    })
    const socket = leaver(origin, text)
    await arrived.promise
    socket.destroy()
    t.equal((await handled.promise).destroyed, true)
    t.strictSame([counts.begun, counts.ended], [0, 0])
  }
})

t.test('node: a request that waited behind another on a connection that broke', async (t) => {
  for (const isRead of [false, true]) {
    const counts = reader()
    const both = gate()
    const handled = gate()
    let waiting = 0
    const origin = await listen(t, async (request, response) => {
      if (isRead) await once(request.resume(), 'end')
      if (++waiting < 2) return
      both.open()
      await once(request.socket, 'close')
      toNodeHandler(counts.handle)(request, response)
      handled.open()
    })
    const socket = leaver(origin, (isRead ? head(0) : `${head(2)}hi`).repeat(2))
    await both.promise
    socket.destroy()
    await handled.promise
    t.equal(counts.begun, 0)
  }
})

t.test('node: a response that something else has ended, on a connection that stays', async (t) => {
  const counts = reader()
  const handled = gate()
  const origin = await listen(t, async (request, response) => {
    response.writeHead(503).end('too late')
    await once(response, 'close')
    toNodeHandler(counts.handle)(request, response)
    handled.open()
  })
  t.equal((await fetch(origin)).status, 503)
  await handled.promise
  t.equal(counts.begun, 0)
})

t.test('node:http2: a stream that was reset before the handler runs, and a body that was read', async (t) => {
  const counts = reader()
  const handled = gate()
  const arrived = gate()
  const server = http2
    .createServer(async (request, response) => {
      const listener = toNodeHandler(counts.handle) as unknown as (...args: unknown[]) => void
      if (request.url === '/read') for await (const _ of request);
      else {
        arrived.open()
        await once(request.stream, 'close')
      }
      listener(request, response)
      if (request.url !== '/read') handled.open()
    })
    .listen(0, '127.0.0.1')
  await once(server, 'listening')
  const session = http2.connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  t.teardown(() => {
    session.destroy()
    server.close()
  })
  const leaving = session.request({ ':method': 'POST', ':path': '/x' }).on('error', () => {})
  leaving.write('abc')
  await arrived.promise
  leaving.destroy()
  await handled.promise
  t.equal(counts.begun, 0)
  for (const [body, status] of [
    ['body', 400],
    ['', 200],
  ] as const) {
    const options = { endStream: body === '' }
    const stream = session.request({ ':method': 'POST', ':path': '/read' }, options)
    if (body !== '') stream.end(body)
    const [headers] = (await once(stream, 'response')) as [{ ':status': number }]
    t.equal(headers[':status'], status)
    stream.resume()
  }
})

t.test('node: a body that was read before is told, never waited for', async (t) => {
  const readers: Record<string, (request: IncomingMessage) => Promise<unknown>> = {
    whole: async (request) => {
      for await (const _ of request);
    },
    part: async (request) => {
      await once(request, 'readable')
      request.read(1)
    },
  }
  for (const [name, read] of Object.entries(readers)) {
    const counts = reader()
    const origin = await listen(t, async (request, response) => {
      await read(request)
      toNodeHandler(counts.handle)(request, response)
    })
    const answer = await seen(fetch(origin, { method: 'POST', body: 'body' }))
    t.strictSame([answer.status, answer.code], [400, 'body-unreadable'], name)
    t.equal(counts.begun, 0)
    if (name === 'part') continue
    const empty = await seen(fetch(origin, { method: 'POST' }))
    t.strictSame([empty.status, empty.body], [200, ''], 'there was none to be lost')
    t.equal((await fetch(origin)).status, 200)
  }
})

t.test('Express: the same, behind a middleware that is slow, or reads', async (t) => {
  for (const text of sendings) {
    const counts = reader()
    const arrived = gate()
    const handled = gate()
    const app = express()
    app.use(async (_request, response, next) => {
      arrived.open()
      await once(response, 'close')
      next()
      handled.open()
    })
    app.post('/x', toExpressHandler(counts.handle))
    const socket = leaver(await listen(t, app), text)
    await arrived.promise
    socket.destroy()
    await handled.promise
    t.equal(counts.begun, 0)
  }
  const counts = reader()
  const app = express()
  app.use((request, _response, next) => void request.resume().on('end', next))
  app.post('/x', toExpressHandler(counts.handle))
  const answer = await seen(fetch(`${await listen(t, app)}/x`, { method: 'POST', body: 'body' }))
  t.strictSame([answer.status, answer.code], [400, 'body-unreadable'])
})

t.test('Hono and plain Fetch: a body that was read, or is being read', async (t) => {
  const queue = new Queue()
  t.teardown(() => queue.stop())
  const handle = idempotent(queue, { actor: () => 'ada', upstream: () => new Response() })
  const request = () => new Request('http://host/x', { method: 'POST', body: 'b', headers: { 'idempotency-key': 'k' } })
  const app = new Hono()
  app.use(async ({ req }, next) => {
    await req.raw.text()
    await next()
  })
  app.post('/x', toHonoHandler(handle))
  t.equal(await outcome(app.request(request())), '400 body-unreadable')
  const locked = request()
  locked.body?.getReader()
  t.equal(await outcome(handle(locked)), '400 body-unreadable')
})

t.test('Fastify: the same, behind a hook', async (t) => {
  for (const text of sendings) {
    const counts = reader()
    const arrived = gate()
    const closed = gate()
    const app = fastify()
    app.addHook('preHandler', async (_request, reply) => {
      arrived.open()
      await once(reply.raw, 'close')
      setImmediate(() => closed.open())
    })
    app.register(toFastifyPlugin(counts.handle, { url: '/x' }))
    const socket = leaver(await app.listen({ port: 0, host: '127.0.0.1' }), text)
    await arrived.promise
    socket.destroy()
    await closed.promise
    await app.close()
    t.strictSame([counts.begun, counts.ended], [0, 0])
  }
  const counts = reader()
  const app = fastify()
  t.teardown(() => app.close())
  app.addHook('preHandler', async ({ raw }) => {
    for await (const _ of raw);
  })
  app.register(toFastifyPlugin(counts.handle, { url: '/x' }))
  const origin = await app.listen({ port: 0, host: '127.0.0.1' })
  const answer = await seen(fetch(`${origin}/x`, { method: 'POST', body: 'body' }))
  t.strictSame([answer.status, answer.code], [400, 'body-unreadable'])
})
