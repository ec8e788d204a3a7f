/**
 * What has to be removed even if the process is told to end: temporary folders, and disks that were mounted.
 *
 * @module
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const tasks = new Set<() => void>()

process.on('exit', () => {
  // The last first: what stands on something else goes before it. Whatever fails, the others are done.
  for (const task of [...tasks].reverse()) {
    try {
      task()
    } catch (error) {
      console.error(error)
    }
  }
})

/** Has something done when the process ends, unless the function that is answered was called before. */
export function atExit(task: () => void): () => void {
  tasks.add(task)
  return () => void tasks.delete(task)
}

/** A folder that is removed at the latest when the process ends. */
export class TemporaryFolder {
  readonly path: string
  readonly #forget: () => void

  constructor(name: string, base: string = tmpdir()) {
    this.path = mkdtempSync(join(base, `askonce-${name}-`))
    this.#forget = atExit(() => this.#remove())
  }

  /** Removes it. */
  end(): void {
    this.#forget()
    this.#remove()
  }

  #remove(): void {
    rmSync(this.path, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** For commands: has a signal end the process as an exit does, so that it leaves nothing behind. */
export function exitOnSignals(): void {
  for (const [signal, number] of [
    ['SIGHUP', 1],
    ['SIGINT', 2],
    ['SIGTERM', 15],
  ] as const) {
    process.once(signal, () => process.exit(128 + number))
  }
}
