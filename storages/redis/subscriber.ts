/**
 * The one connection that hears what other processes tell: a channel a handle.
 *
 * @module
 */

import type { OwnClient, RedisClient } from './client.ts'
import { boundHandshake, createSubscriber } from './client.ts'
import { scrubbed } from './faults.ts'

const closedText = 'the connection was closed'

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
  readonly #make: () => OwnClient
  readonly #channels = new Map<string, ChannelListener>()
  readonly #live = new Set<string>()
  #client: OwnClient
  #closed = false
  #lastError = closedText

  constructor(client: RedisClient, connectTimeoutMs: number, random: () => number) {
    this.#make = () => {
      const made = createSubscriber(client, connectTimeoutMs, random)
      boundHandshake(made, connectTimeoutMs)
      return made
    }
    this.#client = this.#connect()
  }

  #connect(): OwnClient {
    const client = this.#make()
    client.on('messageBuffer', (channel: Buffer, data: Buffer) => {
      this.#channels.get(channel.toString())?.message(data)
    })
    client.on('error', (error: Error) => {
      this.#lastError = scrubbed(error.message)
    })
    client.on('ready', () => void this.#onReady(client))
    client.on('close', () => this.#onClose(client))
    client.connect().catch(() => {})
    return client
  }

  /** Resolves when the channel is heard, or can't be for now; the listener is told either way. */
  async add(channel: string, listener: ChannelListener): Promise<void> {
    this.#channels.set(channel, listener)
    await this.#subscribe(this.#client, [channel], false)
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

  /** Makes another connection: this one is open, but nothing comes. */
  renew(): void {
    if (this.#closed) return
    const old = this.#client
    this.#lastError = 'nothing was heard on the connection'
    this.#onClose(old)
    this.#client = this.#connect()
    old.disconnect()
  }

  async #subscribe(client: OwnClient, channels: readonly string[], again: boolean): Promise<void> {
    try {
      await client.subscribe(...channels)
    } catch (error) {
      if (this.#closed || client !== this.#client) return
      const message = scrubbed((error as Error).message)
      for (const channel of channels) this.#channels.get(channel)?.lost('REDIS_SUBSCRIBE_FAILED', message)
      return
    }
    if (client !== this.#client) return
    for (const channel of channels) {
      const listener = this.#channels.get(channel)
      if (listener === undefined || this.#live.has(channel)) continue
      this.#live.add(channel)
      listener.live(again)
    }
  }

  async #onReady(client: OwnClient): Promise<void> {
    if (client !== this.#client) return
    this.#lastError = closedText
    // A Cluster client subscribes again by itself, but tells of it in no way; another time does no harm.
    const missing = [...this.#channels.keys()].filter((channel) => !this.#live.has(channel))
    if (missing.length > 0) await this.#subscribe(client, missing, true)
  }

  #onClose(client: OwnClient): void {
    if (this.#closed || client !== this.#client) return
    const lost = [...this.#live]
    this.#live.clear()
    for (const channel of lost) this.#channels.get(channel)?.lost('REDIS_SUBSCRIBER_LOST', this.#lastError)
  }
}
