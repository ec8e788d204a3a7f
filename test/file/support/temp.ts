/** Folders that tests work in. */

import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Where there is memory that looks like a disk: syncs cost nothing there. */
const memory = '/dev/shm'

/**
 * Makes an empty folder, and the function that removes it.
 *
 * @param fast - in memory, if the system offers that: for tests with thousands of syncs
 */
export function tempFolder(fast = false): { path: string; remove: () => void } {
  const folder = mkdtempSync(path.join(fast && existsSync(memory) ? memory : tmpdir(), 'askonce-file-'))
  return { path: folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
