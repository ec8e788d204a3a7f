/**
 * Fetch handlers as Fastify routes. Fastify itself is not imported.
 *
 * @module
 */

import type { IncomingMessage } from 'node:http'
import { type FetchHandler, isGone, isReadAlready, toRequest, unreadable } from './node.ts'

/** A Fastify reply, as far as it is used. */
interface Reply {
  readonly raw: NodeJS.WritableStream & {
    readonly writableFinished: boolean
    readonly destroyed?: boolean
    destroy(): unknown
  }
  hijack(): unknown
  code(status: number): unknown
  header(name: string, value: unknown): unknown
  send(payload: unknown): unknown
}

/** A Fastify scope, as far as it is used. */
interface Scope {
  removeAllContentTypeParsers(): void
  addContentTypeParser(
    type: string,
    parser: (request: unknown, payload: unknown, done: (error: null, body: unknown) => void) => void,
  ): unknown
  route(options: {
    method: string | string[]
    url: string
    handler: (request: { readonly raw: IncomingMessage }, reply: Reply) => Promise<unknown>
  }): unknown
}

/** Where a handler is put. */
export interface FastifyRoute {
  readonly method?: string | string[]
  readonly url: string
}

/**
 * Makes a plugin with one route: `app.register(toFastifyPlugin(handler, { url: '/decode' }))`. Within it Fastify parses no bodies: the
 * handler reads the bytes itself, within its own bound.
 *
 * @param route - `method` is POST by default
 */
export function toFastifyPlugin(handler: FetchHandler, route: FastifyRoute): (scope: unknown) => Promise<void> {
  return async (given) => {
    const scope = given as Scope
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload))
    scope.route({
      method: route.method ?? 'POST',
      url: route.url,
      handler: ({ raw }, reply) => answer(handler, raw, reply),
    })
  }
}

async function answer(handler: FetchHandler, raw: IncomingMessage, reply: Reply): Promise<unknown> {
  // What has happened already is told by no event any more. Hijacked, the reply expects nothing.
  if (isGone(raw, reply.raw)) {
    reply.hijack()
    return reply.raw.destroy()
  }
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort()
  })
  const request = isReadAlready(raw) ? null : toRequest(raw, gone.signal)
  const response = request === null ? unreadable(raw) : await handler(request)
  reply.code(response.status)
  for (const [name, value] of response.headers) if (name !== 'set-cookie') reply.header(name, value)
  const cookies = response.headers.getSetCookie()
  if (cookies.length > 0) reply.header('set-cookie', cookies)
  if (!raw.complete) reply.header('connection', 'close')
  return reply.send(response.body === null ? null : Buffer.from(await response.arrayBuffer()))
}
