/**
 * The queue's handle on its storage: opened at first use, once; closed by `stop`; opened anew by the next `start`.
 *
 * @module
 */

import { AskonceError, StoppedError, StorageError } from './errors.ts'
import type { HintListener, Storage, StorageHandle } from './storage.ts'

/** Keeps the handle. */
export class Session {
  readonly #storage: Storage
  readonly #name: string
  readonly #listener: HintListener
  #opening: Promise<StorageHandle> | null = null
  #stopped = false

  /** @param listener - gets the handle's hints */
  constructor(storage: Storage, name: string, listener: HintListener) {
    this.#storage = storage
    this.#name = name
    this.#listener = listener
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /**
   * The open handle.
   *
   * @throws {@link StoppedError} after {@link stop}
   * @throws {@link StorageError} if it can't be opened; the next call tries again
   */
  handle(): Promise<StorageHandle> {
    if (this.#opening !== null) return this.#opening
    if (this.#stopped) return Promise.reject(new StoppedError('the call'))
    const opening = this.#open()
    this.#opening = opening
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = null
    })
    return opening
  }

  async #open(): Promise<StorageHandle> {
    const handle = await guarded(() => this.#storage.open(this.#name))
    handle.watch(this.#listener)
    return handle
  }

  /** Allows the handle to be opened again. */
  revive(): void {
    this.#stopped = false
  }

  /** Refuses what is asked from now on, and closes. */
  async stop(): Promise<void> {
    this.#stopped = true
    const opening = this.#opening
    this.#opening = null
    const handle = await opening?.catch(() => null)
    await handle?.close()
  }
}

/** Runs a storage call; whatever it throws becomes a StorageError, unless it is an AskonceError already. */
async function guarded<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (cause) {
    if (cause instanceof AskonceError) throw cause
    throw new StorageError('the storage failed in a way it does not document; see the cause', { cause })
  }
}
