/**
 * Fetch handlers on `node:http`, and on what is made like it (Express, Connect, `node:https`, `node:http2`'s compatible API).
 *
 * @module
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { problem } from './problem.ts'

/** A handler in Fetch terms: what `idempotent` makes, or any other. */
export type FetchHandler = (request: Request) => Response | PromiseLike<Response>

/** A request listener. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void

/** What a request may have, where something ran before. */
export interface ReadAlready {
  /** The path and query as the client sent them; routers cut `url`. */
  readonly url?: string
  /** The body, if it was read. */
  readonly body?: Uint8Array<ArrayBuffer>
}

/** How long what a client still sends is thrown away after an early answer, ms: closing at once would take the answer away. */
const lingerMs = 1_000

/**
 * Makes a listener for `http.createServer`. When the client goes away, `request.signal` aborts; if it went before, the handler is not
 * called. A body that was read before, and is not at hand, is answered with 400.
 *
 * @param handler - should never reject; a rejection is answered with 500
 */
export function toNodeHandler(handler: FetchHandler): NodeListener {
  return (request, response) => void serve(handler, request, response)
}

/** Answers one request. Never rejects. */
export async function serve(
  handler: FetchHandler,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  already: ReadAlready = {},
): Promise<void> {
  // What has happened already is told by no event any more.
  if (isGone(incoming, outgoing)) return void outgoing.destroy()
  const gone = new AbortController()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort()
  })
  // A socket that breaks while it is written to is no trouble of ours: `close` tells.
  outgoing.on('error', () => {})
  let answer: Response
  try {
    const request = isReadAlready(incoming, already) ? null : toRequest(incoming, gone.signal, already)
    answer = request === null ? unreadable(incoming, already) : await handler(request)
  } catch {
    answer = problem(500, 'internal', 'The server failed')
  }
  await send(answer, incoming, outgoing).catch(() => outgoing.destroy())
}

/** The request in Fetch terms; null for what Fetch has no form for. */
export function toRequest(
  incoming: IncomingMessage,
  signal: AbortSignal,
  { url = incoming.url ?? '/', body }: ReadAlready = {},
): Request | null {
  const { method = 'GET' } = incoming
  const isWithout = method === 'GET' || method === 'HEAD' || (body === undefined && incoming.readableEnded)
  try {
    const headers = headersOf(incoming)
    const init = { method, headers, signal }
    if (isWithout) return new Request(urlOf(incoming, url), init)
    if (body !== undefined) {
      // What was read may be shorter or longer than what was sent: compressed, or decoded and written anew.
      headers.delete('content-length')
      return new Request(urlOf(incoming, url), { ...init, body })
    }
    return new Request(urlOf(incoming, url), { ...init, body: streamOf(incoming), duplex: 'half' })
  } catch {
    return null
  }
}

/** Whether nobody is there any more to be answered. */
export function isGone(incoming: IncomingMessage, outgoing: { readonly destroyed?: boolean }): boolean {
  // A request that has waited for its turn on a connection has no socket in its response yet: hence that of the request.
  return outgoing.destroyed === true || incoming.readableAborted || incoming.socket?.destroyed === true
}

/** Whether something has read the body, or some of it, and has not kept it: what is left of it would be taken for the whole. */
export function isReadAlready(incoming: IncomingMessage, { body }: ReadAlready = {}): boolean {
  if (body !== undefined || isBodyless(incoming)) return false
  return incoming.readableEnded || incoming.readableDidRead
}

/** Why a request got no handler. */
export function unreadable(incoming: IncomingMessage, already: ReadAlready = {}): Response {
  if (!isReadAlready(incoming, already)) return problem(400, 'invalid-input', 'The request can not be read')
  const detail = 'Something on the server has read it before. Put the handler before whatever reads bodies.'
  return problem(400, 'body-unreadable', 'The body could not be read', detail)
}

/** Whether a request can have no body, or says that it has none. */
function isBodyless(incoming: IncomingMessage): boolean {
  const { method, headers, httpVersionMajor } = incoming
  if (method === 'GET' || method === 'HEAD' || headers['content-length'] === '0') return true
  // HTTP/2 announces no body; its stream tells whether one followed.
  const { stream } = incoming as { stream?: { readonly endAfterHeaders?: boolean } }
  if (httpVersionMajor >= 2) return stream?.endAfterHeaders === true
  return headers['content-length'] === undefined && headers['transfer-encoding'] === undefined
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers()
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    // HTTP/2 has its pseudo headers among them.
    if (!name.startsWith(':')) headers.append(name, rawHeaders[index + 1] as string)
  }
  return headers
}

/** Host headers can hold anything: what is none is left out of the URL. */
function urlOf({ headers, socket }: IncomingMessage, path: string): URL {
  const host = headers.host ?? String(headers[':authority'] ?? '')
  const scheme = (socket as { encrypted?: boolean }).encrypted === true ? 'https' : 'http'
  const origin = `${scheme}://${/^[\w.-]+(:\d{1,5})?$|^\[[\da-fA-F:.]+\](:\d{1,5})?$/.test(host) ? host : 'localhost'}`
  // Not `new URL(path, origin)`: `//elsewhere/path` would be read as another host.
  return path.startsWith('/') ? new URL(origin + path) : new URL(path, origin)
}

/**
 * A request's body as a stream. Not `Readable.toWeb`: cancelled, that destroys the connection, and no answer could be sent.
 */
function streamOf(incoming: IncomingMessage): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    start(controller) {
      let isOver = false
      const end = (finish: () => void) => {
        if (isOver) return
        isOver = true
        finish()
      }
      incoming.on('data', (chunk: Uint8Array) => {
        if (isOver) return
        controller.enqueue(chunk)
        if ((controller.desiredSize ?? 0) <= 0) incoming.pause()
      })
      const breakOff = () => end(() => controller.error(new Error('the body broke off')))
      // HTTP/2's requests end as if they were whole when their stream was reset: only `aborted` tells.
      incoming.once('end', () => (incoming.aborted ? breakOff() : end(() => controller.close())))
      for (const event of ['aborted', 'error', 'close']) incoming.once(event, breakOff)
      incoming.pause()
    },
    pull() {
      incoming.resume()
    },
  })
}

/** Sends a response. */
async function send(answer: Response, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  outgoing.statusCode = answer.status
  for (const [name, value] of answer.headers) if (name !== 'set-cookie') outgoing.setHeader(name, value)
  const cookies = answer.headers.getSetCookie()
  if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies)
  const isEarly = !incoming.complete
  if (isEarly && incoming.httpVersionMajor < 2) outgoing.setHeader('connection', 'close')
  if (answer.body === null || incoming.method === 'HEAD') outgoing.end()
  else await pipe(answer.body, outgoing)
  if (isEarly) linger(incoming)
}

async function pipe(body: ReadableStream<Uint8Array>, outgoing: ServerResponse): Promise<void> {
  // Leaving the loop by throwing cancels the stream.
  for await (const chunk of body) {
    if (outgoing.destroyed) throw new Error('the client is gone')
    if (!outgoing.write(chunk)) await writable(outgoing)
  }
  outgoing.end()
}

/** Resolves when more can be written, or nothing ever can. */
function writable(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      outgoing.off('drain', done)
      outgoing.off('close', done)
      resolve()
    }
    outgoing.once('drain', done)
    outgoing.once('close', done)
  })
}

function linger(incoming: IncomingMessage): void {
  incoming.resume()
  const timer = setTimeout(() => incoming.destroy(), lingerMs)
  timer.unref()
  incoming.once('close', () => clearTimeout(timer))
}
