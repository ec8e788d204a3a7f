/**
 * Calls of scripts on one client: bounded in time, repeated while Redis is away for a moment. Every script can be repeated, as
 * its tokens tell its own writes.
 *
 * @module
 */

import { StorageError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type { OwnClient, RedisClient } from './client.ts'
import { boundHandshake, createClient } from './client.ts'
import type { Fault } from './faults.ts'
import { faultOf, storageError } from './faults.ts'
import type { Script } from './scripts/index.ts'

/** How a connection behaves. */
export interface ConnectionOptions {
  readonly url: string | undefined
  readonly client: RedisClient | undefined
  readonly connectTimeoutMs: number
  readonly commandTimeoutMs: number
  readonly random: () => number
}

/** Pause before a call is repeated, ms, doubled up to the longest. */
const repeatMsMin = 10
const repeatMsMax = 250

/** A client, own or given, and the calls on it. */
export class Connection {
  readonly #options: ConnectionOptions
  #client: RedisClient | null
  #own: OwnClient | null = null

  private constructor(options: ConnectionOptions, client: RedisClient | null) {
    this.#options = options
    this.#client = client
  }

  /** Does not wait for the server: the first call does. */
  static async create(options: ConnectionOptions): Promise<Connection> {
    const { url, client, connectTimeoutMs, random } = options
    if (client !== undefined) return new Connection(options, client)
    const own = await createClient(url as string, connectTimeoutMs, random)
    const connection = new Connection(options, own)
    connection.#own = own
    // Every call tells of its own failure; without a listener ioredis would print them.
    own.on('error', () => {})
    boundHandshake(own, connectTimeoutMs)
    own.connect().catch(() => {})
    return connection
  }

  get client(): RedisClient {
    return this.#client as RedisClient
  }

  /**
   * Runs a script.
   *
   * @param timeoutMs - for all tries together
   * @param onRepeat - called before each try that follows one that may have run; may change the arguments
   * @throws StorageError
   */
  async run(
    script: Script,
    args: string[],
    timeoutMs: number = this.#options.commandTimeoutMs,
    onRepeat?: () => void,
  ): Promise<unknown> {
    try {
      return await this.#once(script, args, false, timeoutMs)
    } catch (error) {
      return this.#repeat(script, args, timeoutMs, onRepeat, error)
    }
  }

  /** Ends the client if it is ours. */
  close(): void {
    this.#own?.disconnect()
    this.#own = null
  }

  async #repeat(
    script: Script,
    args: string[],
    timeoutMs: number,
    onRepeat: (() => void) | undefined,
    error: unknown,
  ): Promise<unknown> {
    const end = performance.now() + timeoutMs
    let problem = error
    let load = false
    /** Why the connection was given up by ourselves: tells more than that there is none. */
    let renewed: StorageError | null = null
    for (let times = 0; ; times++) {
      const fault = this.#faultOf(problem)
      if (fault.action === 'fail') throw fault.error
      if (fault.action === 'renew') {
        renewed = fault.error
        this.#own?.disconnect(true)
      }
      const leftMs = end - performance.now()
      load = load || fault.action === 'load'
      if (fault.action !== 'load') {
        const ceiling = Math.min(repeatMsMax, repeatMsMin * 2 ** Math.min(times, 10))
        const pauseMs = ceiling * (0.5 + this.#options.random() / 2)
        if (pauseMs >= leftMs) throw renewed ?? fault.error
        await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
      // Without its script nothing can have run.
      if (fault.action !== 'load') onRepeat?.()
      try {
        return await this.#once(script, args, load, end - performance.now())
      } catch (again) {
        problem = again
      }
    }
  }

  #faultOf(problem: unknown): Fault {
    if (problem instanceof StorageError) return { action: 'fail', error: problem }
    if (this.#client?.status === 'end') {
      const text =
        this.#own === null ? 'the client given to RedisStorage is closed' : 'the connection to Redis is closed'
      return { action: 'fail', error: storageError(text, problem) }
    }
    return faultOf(problem)
  }

  /** One try. Beyond the time an own connection counts as half-open, and is made anew. */
  #once(script: Script, args: string[], load: boolean, timeoutMs: number): Promise<unknown> {
    const client = this.client
    return new Promise((resolve, reject) => {
      const ms = Math.min(Math.max(1, timeoutMs), limits.timerMsMax)
      const timer = setTimeout(() => {
        this.#own?.disconnect(true)
        reject(new StorageError(`Redis did not answer within ${Math.ceil(ms)} ms`))
      }, ms)
      const call = load ? client.eval(script.lua, 2, ...args) : client.evalsha(script.sha, 2, ...args)
      call.then(
        (reply) => {
          clearTimeout(timer)
          resolve(reply)
        },
        (error) => {
          clearTimeout(timer)
          reject(error)
        },
      )
    })
  }
}
