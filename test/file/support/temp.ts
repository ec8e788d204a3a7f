/** Folders that tests work in. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

/** Makes an empty folder, and the function that removes it. */
export function tempFolder(): { path: string; remove: () => void } {
  const folder = mkdtempSync(path.join(tmpdir(), 'askonce-file-'))
  return { path: folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
