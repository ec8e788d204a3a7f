/**
 * The one connection that hears what other processes tell: a channel a handle.
 *
 * @module
 */

import type { OwnClient, RedisClient } from './client.ts'
import { createSubscriber } from './client.ts'
import { scrubbed } from './faults.ts'

/** What a channel's owner gets. */
export interface ChannelListener {
  message(data: Buffer): void
  /** The channel is heard, from now on or again: what was told before is lost. */
  live(again: boolean): void
  /** The channel is not heard any more. */
  lost(code: string, message: string): void
}

/** Subscribes channels on a connection of its own, again after each reconnect. */
export class Subscriber {
  readonly #client: OwnClient
  readonly #channels = new Map<string, ChannelListener>()
  readonly #live = new Set<string>()
  #closed = false
  #lastError = 'the connection was closed'

  constructor(client: RedisClient, connectTimeoutMs: number, random: () => number) {
    const own = createSubscriber(client, connectTimeoutMs, random)
    this.#client = own
    own.on('messageBuffer', (channel: Buffer, data: Buffer) => {
      this.#channels.get(channel.toString())?.message(data)
    })
    own.on('error', (error: Error) => {
      this.#lastError = scrubbed(error.message)
    })
    own.on('ready', () => void this.#onReady())
    own.on('close', () => this.#onClose())
    own.connect().catch(() => {})
  }

  /** Resolves when the channel is heard, or can't be for now; the listener is told either way. */
  async add(channel: string, listener: ChannelListener): Promise<void> {
    this.#channels.set(channel, listener)
    await this.#subscribe([channel], false)
  }

  remove(channel: string): void {
    this.#channels.delete(channel)
    this.#live.delete(channel)
    if (!this.#closed) this.#client.unsubscribe(channel).catch(() => {})
  }

  close(): void {
    this.#closed = true
    this.#client.disconnect()
  }

  /** Gives the connection up and makes another: it is open, but nothing comes. */
  renew(): void {
    this.#lastError = 'nothing was heard on the connection'
    if (!this.#client.isCluster) this.#client.disconnect(true)
  }

  async #subscribe(channels: readonly string[], again: boolean): Promise<void> {
    try {
      await this.#client.subscribe(...channels)
    } catch (error) {
      if (this.#closed) return
      const message = scrubbed((error as Error).message)
      for (const channel of channels) this.#channels.get(channel)?.lost('REDIS_SUBSCRIBE_FAILED', message)
      return
    }
    for (const channel of channels) {
      const listener = this.#channels.get(channel)
      if (listener === undefined || this.#live.has(channel)) continue
      this.#live.add(channel)
      listener.live(again)
    }
  }

  async #onReady(): Promise<void> {
    // A Cluster client subscribes again by itself, and its first `subscribe` waits until it is ready.
    const missing = [...this.#channels.keys()].filter((channel) => !this.#live.has(channel))
    if (missing.length > 0) await this.#subscribe(missing, true)
  }

  #onClose(): void {
    if (this.#closed) return
    const lost = [...this.#live]
    this.#live.clear()
    for (const channel of lost) this.#channels.get(channel)?.lost('REDIS_SUBSCRIBER_LOST', this.#lastError)
  }
}
