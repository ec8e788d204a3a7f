/**
 * Group commit: one fdatasync serves everything that was appended before it began.
 *
 * @module
 */

import { storageError } from './errors.ts'
import type { FileSystem } from './file-system.ts'
import type { LogFile } from './log-file.ts'

/** Waits for a log to be on disk up to an offset. */
interface Waiter {
  readonly log: LogFile
  readonly end: number
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/** See the module's description. One per open namespace. */
export class Syncer {
  readonly #fs: FileSystem
  #waiters: Waiter[] = []
  #running: Promise<void> | null = null

  constructor(fs: FileSystem) {
    this.#fs = fs
  }

  /** Calls back, maybe at once, when all of the log that was read or appended is on disk, or could not be put there. */
  wait(log: LogFile, done: () => void, failed: (error: unknown) => void): void {
    const { end } = log
    if (end <= log.syncedEnd) {
      done()
      return
    }
    log.retain()
    this.#waiters.push({ log, end, done, failed })
    this.#running ??= this.#run()
  }

  /** Resolves when nothing waits. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running
  }

  async #run(): Promise<void> {
    while (this.#waiters.length > 0) {
      const waiters = this.#waiters
      this.#waiters = []
      const failures = new Map<LogFile, unknown>()
      for (const log of new Set(waiters.map((waiter) => waiter.log))) {
        try {
          await this.#sync(log)
        } catch (error) {
          failures.set(log, error)
        }
      }
      for (const { log, end, done, failed } of waiters) {
        const error = end <= log.syncedEnd ? undefined : failures.get(log)
        log.release()
        if (error === undefined) done()
        else failed(error)
      }
    }
    this.#running = null
  }

  async #sync(log: LogFile): Promise<void> {
    const { end } = log
    try {
      await this.#fs.syncData(log.fd)
    } catch (error) {
      throw storageError('put on disk', log.path, error)
    }
    log.syncedEnd = Math.max(log.syncedEnd, end)
  }
}
