/**
 * All backends, by name.
 *
 * @module
 */

import type { Backend, BackendName } from './backend.ts'
import { backendNames } from './backend.ts'

/** Loads a backend's module, and with it its driver, only when it is asked for. */
export async function backendOf(name: BackendName): Promise<Backend> {
  switch (name) {
    case 'memory':
      return (await import('./memory.ts')).memory
    case 'file-fsync':
      return (await import('./file.ts')).fileFsync
    case 'file-os':
      return (await import('./file.ts')).fileOs
    case 'redis':
      return (await import('./redis.ts')).redis
    case 'dynamodb':
      return (await import('./dynamodb.ts')).dynamodb
  }
}

/** What people name on the command line: a backend, or a storage with all its settings. */
export function backendsOf(name: string): readonly BackendName[] {
  return backendNames.filter((one) => one === name || one.startsWith(`${name}-`))
}
