/**
 * Counts the calls on the file system that a storage makes.
 *
 * @module
 */

import type { FileSystem } from '../../storages/file/file-system.ts'
import { nodeFileSystem } from '../../storages/file/file-system.ts'

/** Calls by name. */
export type CallCounts = Map<string, number>

/** The real file system, counting. */
export function counting(): { fs: FileSystem; counts: CallCounts } {
  const counts: CallCounts = new Map()
  const wrapped: Record<string, unknown> = {}
  for (const [name, call] of Object.entries(nodeFileSystem) as [string, (...given: unknown[]) => unknown][]) {
    wrapped[name] = (...given: unknown[]) => {
      counts.set(name, (counts.get(name) ?? 0) + 1)
      return call(...given)
    }
  }
  return { fs: wrapped as unknown as FileSystem, counts }
}
