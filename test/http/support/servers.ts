/**
 * The matrix's servers: one upstream that counts its calls, and HTTP servers before it that share storages. Run as a program it is
 * one such server; its parent hears its port, and may kill it.
 *
 * @module
 */

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type FetchHandler, idempotent, toNodeHandler } from '../../../src/http/index.ts'
import { Queue } from '../../../src/queue.ts'
import type { Storage } from '../../../src/storage.ts'
import { FileStorage } from '../../../storages/file/index.ts'
import { typescript } from '../../support/typescript.ts'

/** Where the storages of a server are; those that are absent it does not have. */
export interface Places {
  readonly file?: string
  readonly redis?: string
  readonly dynamodb?: { readonly endpoint: string; readonly tableName: string }
}

/** How long a lease is, ms: what a crash costs. */
const leaseMs = 2_000

/** How long outcomes that the tests see the end of are kept, ms. */
const shortMs = 1_000

/**
 * One server's handler for one storage. The path's first part names the storage; upstream is asked for the rest.
 *
 * @param upstream - its origin
 */
export function gateway(storage: Storage, upstream: string): { readonly handle: FetchHandler; readonly queue: Queue } {
  const queue = new Queue({ name: 'gateway', storage, leaseMs })
  const handle = idempotent(queue, {
    actor: (request) => request.headers.get('x-actor'),
    busy: 'wait',
    waitMs: 60_000,
    resultTtlMs: { default: 600_000, 203: shortMs },
    failureTtlMs: { default: 600_000, 503: shortMs },
    upstream: async (request, { signal }) =>
      fetch(upstream, {
        method: 'POST',
        body: await request.arrayBuffer(),
        headers: { 'x-actor': request.headers.get('x-actor') ?? '' },
        signal,
      }),
  })
  return { handle, queue }
}

/** What is asked of upstream: a name to count by, and the statuses to answer with, one after the other. */
export interface Order {
  readonly name: string
  readonly statuses?: readonly number[]
  /** Calls that are never answered, from the first on. */
  readonly unanswered?: number
}

/** A service that answers orders, and counts. */
export class Upstream {
  readonly origin: string
  readonly #server: Server
  readonly #calls = new Map<string, number>()
  readonly #waiting = new Map<string, () => void>()

  private constructor(server: Server) {
    this.#server = server
    this.origin = originOf(server)
    server.on('request', (request, response) => {
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        const { name, statuses = [200], unanswered = 0 } = JSON.parse(body) as Order
        const call = this.calls(name) + 1
        this.#calls.set(name, call)
        this.#waiting.get(name)?.()
        if (call <= unanswered) return
        response.statusCode = statuses[Math.min(call, statuses.length) - 1] as number
        response.setHeader('x-call', call)
        response.end(`${name} for ${request.headers['x-actor']}: call ${call}`)
      })
    })
  }

  static async start(): Promise<Upstream> {
    return new Upstream(await listening(createServer()))
  }

  /** How often it was asked for a name. */
  calls(name: string): number {
    return this.#calls.get(name) ?? 0
  }

  /** Resolves at the next call of a name, or at once if there was one. */
  asked(name: string): Promise<void> {
    if (this.calls(name) > 0) return Promise.resolve()
    return new Promise((resolve) => this.#waiting.set(name, resolve))
  }

  stop(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

/** A server in this process. */
export async function serverHere(listener: RequestListener): Promise<{ origin: string; stop: () => void }> {
  const server = await listening(createServer(listener))
  const stop = () => {
    server.closeAllConnections()
    server.close()
  }
  return { origin: originOf(server), stop }
}

/** A server in a process of its own, which ends with its parent. */
export async function serverProcess(
  places: Places,
  upstream: string,
): Promise<{ origin: string; child: ChildProcess }> {
  const { NODE_OPTIONS: _, ...env } = process.env
  const child = fork(import.meta.filename, [JSON.stringify({ places, upstream })], {
    execArgv: ['--no-warnings', ...typescript],
    env,
  })
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the server ended with ${code} before it listened`)
  })
  ended.catch(() => {})
  const [port] = await Promise.race([once(child, 'message'), ended])
  return { origin: `http://127.0.0.1:${port}`, child }
}

async function listening(server: Server): Promise<Server> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

function originOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** Loaded only where it is used: each costs a process a good part of a second. */
async function storagesAt({ file, redis, dynamodb }: Places): Promise<Map<string, Storage>> {
  const storages = new Map<string, Storage>()
  if (file !== undefined) storages.set('file', new FileStorage({ basePath: file, durability: 'os' }))
  if (redis !== undefined) {
    const { RedisStorage } = await import('../../../storages/redis/index.ts')
    storages.set('redis', new RedisStorage({ url: redis }))
  }
  if (dynamodb !== undefined) {
    const { DynamoDBStorage } = await import('../../../storages/dynamodb/index.ts')
    const { clientConfig } = await import('../../dynamodb/support/server.ts')
    const { endpoint, tableName } = dynamodb
    storages.set('dynamodb', new DynamoDBStorage({ tableName, clientConfig: clientConfig(endpoint) }))
  }
  return storages
}

async function run(): Promise<void> {
  const { places, upstream } = JSON.parse(process.argv[2] as string) as { places: Places; upstream: string }
  const handlers = new Map<string, FetchHandler>()
  for (const [kind, storage] of await storagesAt(places)) handlers.set(kind, gateway(storage, upstream).handle)
  const byKind: FetchHandler = (request) => {
    const kind = new URL(request.url).pathname.split('/')[1] as string
    return handlers.get(kind)?.(request) ?? new Response(null, { status: 404 })
  }
  const server = await listening(createServer(toNodeHandler(byKind)))
  process.on('disconnect', () => process.exit())
  process.send?.((server.address() as AddressInfo).port)
}

if (process.argv[1] === import.meta.filename) await run()
