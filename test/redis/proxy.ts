/**
 * A TCP proxy that breaks connections in the ways that networks do.
 *
 * @module
 */

import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/**
 * `pass`; `stall`: connections stay open and nothing goes through, new ones included (half-open); `mute`: what clients send goes
 * through, replies do not.
 */
export type ProxyMode = 'pass' | 'stall' | 'mute'

/** Stands between clients and a server on 127.0.0.1. */
export class FaultyProxy {
  readonly #server: Server
  readonly #pairs = new Set<{ readonly client: Socket; readonly upstream: Socket; dead: boolean }>()
  /** How data is treated from now on. */
  mode: ProxyMode = 'pass'
  /** Called with what clients send, before it goes through. */
  onRequest: ((data: Buffer) => void) | null = null
  /** Connections made so far. */
  connections = 0

  private constructor(target: number) {
    this.#server = createServer((client) => {
      this.connections++
      const upstream = connect({ port: target, host: '127.0.0.1' })
      const pair = { client, upstream, dead: false }
      this.#pairs.add(pair)
      client.on('data', (data) => {
        this.onRequest?.(data)
        if (this.mode !== 'stall' && !pair.dead) upstream.write(data)
      })
      upstream.on('data', (data) => {
        if (this.mode === 'pass' && !pair.dead) client.write(data)
      })
      for (const [one, other] of [
        [client, upstream],
        [upstream, client],
      ] as const) {
        one.on('error', () => {})
        one.on('close', () => {
          this.#pairs.delete(pair)
          other.destroy()
        })
      }
    })
  }

  static async start(target: number): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(target)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get url(): string {
    return `redis://127.0.0.1:${(this.#server.address() as { port: number }).port}`
  }

  /** Makes every present connection half-open; later ones work. */
  deaden(): void {
    for (const pair of this.#pairs) pair.dead = true
  }

  /** Cuts every connection. */
  cut(): void {
    for (const { client, upstream } of this.#pairs) {
      client.destroy()
      upstream.destroy()
    }
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.cut()
    await closed
  }
}
