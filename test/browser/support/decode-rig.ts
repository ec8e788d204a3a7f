/**
 * The example's server as a test needs it: what it was asked, and when its decoder answers, is in the test's hands.
 *
 * @module
 */

import { EventEmitter, once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createDecodeApp, type DecodeApp, type DecodeAppOptions } from '../../../docs/examples/decode-server/app.ts'
import { toNodeHandler } from '../../../src/http/index.ts'
import { createVpicClient } from '../../../src/presets/vin/index.ts'
import { FileStorage } from '../../../storages/file/index.ts'
import { startVpic, type VpicStandIn } from '../../support/vpic/index.ts'

/** How long something that must happen may take, ms. */
const eventMsMax = 20_000

/** One question of the page. */
export interface Post {
  readonly key: string | null
  readonly body: string
  /** Null until it is answered. */
  status: number | null
  replayed: boolean
}

/** A running server. Made by {@link DecodeRig.start}. */
export class DecodeRig {
  readonly posts: Post[] = []
  readonly standIn: VpicStandIn
  readonly #app: DecodeApp
  readonly #server: Server
  readonly #events = new EventEmitter()
  readonly #gate: Gate
  readonly #folder: string
  #isCutOff = false

  private constructor(standIn: VpicStandIn, app: DecodeApp, gate: Gate, folder: string) {
    this.standIn = standIn
    this.#app = app
    this.#gate = gate
    this.#folder = folder
    this.#server = createServer(toNodeHandler((request) => this.#serve(request)))
    // Chromium itself sends a request anew whose connection broke, also while it calls the device off line.
    this.#server.on('connection', (socket) => {
      if (this.#isCutOff) socket.destroy()
    })
  }

  static async start(options: Partial<DecodeAppOptions> = {}): Promise<DecodeRig> {
    const standIn = await startVpic()
    const gate = new Gate()
    const client = createVpicClient({
      baseUrl: standIn.baseUrl,
      fetch: async (url, init) => {
        await gate.passed()
        return fetch(url, init)
      },
    })
    const policy = { maxAttempts: 1, rules: { UPSTREAM: { retry: 'never', ttlMs: 1 } } } as const
    const decoder = { client, minIntervalMs: 0, policy }
    const folder = await mkdtemp(join(tmpdir(), 'askonce-decode-'))
    const storage = new FileStorage({ basePath: folder })
    // A loaded machine is no reason for a 409; the test of that says so itself.
    const app = await createDecodeApp({ storage, decoder, waitMs: 20_000, ...options })
    const rig = new DecodeRig(standIn, app, gate, folder)
    rig.#server.listen(0, '127.0.0.1')
    await once(rig.#server, 'listening')
    return rig
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  /** Different keys that were sent. */
  get keys(): (string | null)[] {
    return [...new Set(this.posts.map(({ key }) => key))]
  }

  /** Calls that reached the decoder's service. */
  get upstreamCalls(): number {
    return this.standIn.calls.length
  }

  /** From now on the service answers nobody. */
  hold(): void {
    this.#gate.shut()
  }

  /** It answers again, those who wait first. */
  release(): void {
    this.#gate.open()
  }

  /** Resolves when the decoder has begun to ask the service so often. */
  async calling(times: number): Promise<void> {
    while (this.#gate.calls < times) await event(this.#gate, 'call')
  }

  /** Resolves when the page has asked so often. */
  async asked(times: number): Promise<void> {
    while (this.posts.length < times) await event(this.#events, 'post')
  }

  /** Resolves when so many questions were answered, heard or not. */
  async answered(times: number): Promise<void> {
    while (this.posts.filter(({ status }) => status !== null).length < times) await event(this.#events, 'answer')
  }

  /** Breaks every connection, as a mobile network does; with `lasting`, lets no new one through until `reconnect`. */
  cutOff(how: 'once' | 'lasting'): void {
    this.#isCutOff = how === 'lasting'
    this.#server.closeAllConnections()
  }

  reconnect(): void {
    this.#isCutOff = false
  }

  /** Nobody listens there any more. */
  async shutDown(): Promise<void> {
    if (!this.#server.listening) return
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  async close(): Promise<void> {
    this.release()
    await this.shutDown()
    await this.#app.close()
    await this.standIn.close()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #serve(request: Request): Promise<Response> {
    if (request.method !== 'POST') return this.#app.handle(request)
    const body = await request.clone().text()
    const post: Post = { key: request.headers.get('idempotency-key'), body, status: null, replayed: false }
    this.posts.push(post)
    this.#events.emit('post')
    const response = await this.#app.handle(request)
    post.status = response.status
    post.replayed = response.headers.get('idempotent-replay') === 'true'
    this.#events.emit('answer')
    return response
  }
}

class Gate extends EventEmitter {
  /** Calls that came to it. */
  calls = 0
  #passed: Promise<void> = Promise.resolve()
  #open: () => void = () => {}

  shut(): void {
    this.#passed = new Promise((resolve) => {
      this.#open = resolve
    })
  }

  open(): void {
    this.#open()
    this.#passed = Promise.resolve()
  }

  passed(): Promise<void> {
    this.calls++
    this.emit('call')
    return this.#passed
  }
}

function event(emitter: EventEmitter, name: string): Promise<unknown> {
  return once(emitter, name, { signal: AbortSignal.timeout(eventMsMax) })
}
