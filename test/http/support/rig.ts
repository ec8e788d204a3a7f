/**
 * What the HTTP tests begin with: a queue on Memory in virtual time, an upstream that answers when it is told to, and requests.
 */

import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import {
  type HttpCounters,
  type IdempotentHandler,
  type IdempotentOptions,
  idempotent,
  type UpstreamContext,
} from '../../../src/http/index.ts'
import type { QueueOptions } from '../../../src/options.ts'
import { Queue } from '../../../src/queue.ts'
import { settle, VirtualClock } from '../../../storages/conformance/virtual-clock.ts'
import { MemoryStorage } from '../../../storages/memory/index.ts'
import { type Gate, gate } from '../../support/queue-rig.ts'

/** One call that reached upstream. */
export interface UpstreamCall {
  readonly request: Request
  readonly context: UpstreamContext
  readonly end: Gate<Response>
}

/** An upstream under the test's control. */
export class ManualUpstream {
  readonly calls: UpstreamCall[] = []
  readonly #waiting: (() => void)[] = []

  readonly handle = (request: Request, context: UpstreamContext): Promise<Response> => {
    const end = gate<Response>()
    this.calls.push({ request, context, end })
    for (const resolve of this.#waiting.splice(0)) resolve()
    return end.promise
  }

  /** The call with this number, from 0, as soon as it is there. */
  async call(index: number): Promise<UpstreamCall> {
    for (;;) {
      const call = this.calls[index]
      if (call !== undefined) return call
      await new Promise<void>((resolve) => this.#waiting.push(resolve))
    }
  }
}

/** A queue, and handlers on it. */
export class HttpRig {
  readonly clock = new VirtualClock()
  readonly storage = new MemoryStorage({ clock: this.clock })
  readonly queue: Queue
  readonly upstream = new ManualUpstream()
  readonly errors: unknown[] = []

  constructor(t: Test, options: QueueOptions<unknown, unknown> = {}) {
    const { clock, storage } = this
    this.queue = new Queue({
      clock,
      storage,
      random: () => 0.5,
      stopTimeout: 0,
      ...options,
    })
    t.teardown(async () => {
      for (const { end } of this.upstream.calls) end.open(new Response())
      const stopped = this.queue.stop()
      await clock.advance(60_000)
      await stopped
    })
  }

  /** A handler of which the actor is the header `x-actor`, `ada` if there is none. */
  handler(options: Partial<IdempotentOptions> = {}): IdempotentHandler {
    return idempotent(this.queue, {
      actor: (request) => request.headers.get('x-actor') ?? 'ada',
      upstream: this.upstream.handle,
      clock: this.clock,
      onError: (error) => this.errors.push(error),
      ...options,
    })
  }
}

/** A POST with a key. */
export function post(
  key: string | null,
  body: string | Uint8Array<ArrayBuffer> = 'body',
  more: RequestInit & { url?: string } = {},
): Request {
  const { url = 'http://host/decode', headers, ...rest } = more
  const all = new Headers(headers)
  if (key !== null) all.set('idempotency-key', key)
  return new Request(url, { method: 'POST', headers: all, body, ...rest })
}

/** What a response says, in a form that compares. */
export interface Seen {
  readonly status: number
  readonly body: string
  readonly replay: boolean
  /** Of a problem; null for others. */
  readonly code: string | null
  readonly headers: Headers
}

/** Reads a response. */
export async function seen(response: Response | Promise<Response>): Promise<Seen> {
  const { status, headers } = await response
  const body = await (await response).text()
  const isProblem = headers.get('content-type') === 'application/problem+json'
  return {
    status,
    body,
    replay: headers.get('idempotent-replay') === 'true',
    code: isProblem ? (JSON.parse(body) as { code: string }).code : null,
    headers,
  }
}

/** Status, replay and code in one line: `200`, `200 replay`, `409 in-progress`. */
export async function outcome(response: Response | Promise<Response>): Promise<string> {
  const { status, replay, code } = await seen(response)
  return [status, replay && 'replay', code].filter(Boolean).join(' ')
}

/** The counters that are not zero. */
export function counted(counters: Readonly<HttpCounters>): Partial<HttpCounters> {
  return Object.fromEntries(Object.entries(counters).filter(([, value]) => value !== 0))
}

/** Lets the event loop turn until something is so, and what follows from it has had its turns, too. */
export async function until(isSo: () => boolean): Promise<void> {
  for (let turn = 0; !isSo(); turn++) {
    if (turn > 10_000) throw new Error('it never came to be so')
    await settle(1)
  }
  await settle(5)
}

/** Serves on a free port until the test ends; answers the origin. */
export async function listen(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}
