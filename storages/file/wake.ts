/**
 * Notices that another process wrote: by fs.watch, and by looking now and then in case that is deaf, as it is on some
 * mounts, or not to be had.
 *
 * @module
 */

import type { Clock, Timer } from '../../src/clock.ts'
import { storageError } from './errors.ts'
import type { FileSystem, FolderWatch } from './file-system.ts'
import type { Warn } from './loader.ts'

/** Between two looks, ms: while watching works, and while it doesn't. */
const pollMs = { watched: 1_000, unwatched: 50 }
/** News that looking found before watching told of them, after which watching counts as deaf. */
const missesMax = 3

/** What a {@link Wake} needs. */
export interface WakeOptions {
  readonly fs: FileSystem
  readonly clock: Clock
  readonly path: string
  readonly warn: Warn
  /** Called when the folder may have changed; answers whether there was news. */
  readonly look: () => boolean
}

/** See the module's description. Keeps no process alive. */
export class Wake {
  readonly #options: WakeOptions
  #watch: FolderWatch | null = null
  #timer: Timer | null = null
  #misses = 0
  #running = false

  constructor(options: WakeOptions) {
    this.#options = options
  }

  start(): void {
    if (this.#running) return
    this.#running = true
    this.#misses = 0
    this.#startWatch()
    this.#schedule()
  }

  stop(): void {
    this.#running = false
    this.#timer?.clear()
    this.#timer = null
    this.#stopWatch()
  }

  /** Watches anew: the folder may be another one than before. */
  renew(): void {
    if (!this.#running) return
    this.#stopWatch()
    this.#startWatch()
  }

  #startWatch(): void {
    const { fs, path, look } = this.#options
    const changed = () => {
      if (look()) this.#misses = 0
    }
    try {
      this.#watch = fs.watch(path, changed, (error) => this.#lose(error))
    } catch (error) {
      this.#lose(error)
    }
  }

  #stopWatch(): void {
    this.#watch?.close()
    this.#watch = null
  }

  #lose(error: unknown): void {
    const { path, warn } = this.#options
    this.#stopWatch()
    const { message } = storageError('watch', path, error)
    warn('FILE_NOT_WATCHED', `${message}. Until then changes are looked for every ${pollMs.unwatched} ms`, { path })
  }

  #schedule(): void {
    const ms = this.#watch === null || this.#misses >= missesMax ? pollMs.unwatched : pollMs.watched
    this.#timer = this.#options.clock.timer(() => this.#poll(), ms, false)
  }

  #poll(): void {
    if (!this.#running) return
    if (this.#options.look()) this.#misses++
    this.#schedule()
  }
}
