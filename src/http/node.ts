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
 * Makes a listener for `http.createServer`. When the client goes away, `request.signal` aborts.
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
  const gone = new AbortController()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort()
  })
  // A socket that breaks while it is written to is no trouble of ours: `close` tells.
  outgoing.on('error', () => {})
  let answer: Response
  try {
    const request = toRequest(incoming, gone.signal, already)
    answer = request === null ? unreadable() : await handler(request)
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
  const isBodyless = method === 'GET' || method === 'HEAD'
  try {
    const headers = headersOf(incoming)
    const init = { method, headers, signal }
    if (isBodyless) return new Request(urlOf(incoming, url), init)
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

function unreadable(): Response {
  return problem(400, 'invalid-input', 'The request can not be read')
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
