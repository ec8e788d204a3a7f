/** Folders that tests work in. */

import { existsSync } from 'node:fs'
import { TemporaryFolder } from '../../support/tidy.ts'

/** Where there is memory that looks like a disk: syncs cost nothing there. */
const memory = '/dev/shm'

/**
 * Makes an empty folder, and the function that removes it.
 *
 * @param fast - in memory, if the system offers that: for tests with thousands of syncs
 */
export function tempFolder(fast = false): { path: string; remove: () => void } {
  const folder = fast && existsSync(memory) ? new TemporaryFolder('file', memory) : new TemporaryFolder('file')
  return { path: folder.path, remove: () => folder.end() }
}
