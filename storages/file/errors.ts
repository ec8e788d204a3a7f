/**
 * What the operating system answers, as errors that say what to do.
 *
 * @module
 */

import { AskonceError, StorageError } from '../../src/errors.ts'

const remedies: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full: make room; the queue goes on by itself, and what it acknowledged is kept',
  EDQUOT: 'The disk quota is used up: make room; the queue goes on by itself, and what it acknowledged is kept',
  EROFS: 'The file system is read-only: mount it writable, or choose another basePath',
  EACCES:
    'Permission is denied: let the user that runs this process read and write the folder, or choose another basePath',
  EPERM:
    'Permission is denied: let the user that runs this process read and write the folder, or choose another basePath',
  ENOENT: 'The folder is gone: put it back (or mount it), or open the queue again to start with an empty one',
  ENOTDIR: 'A file is where a folder should be: move it away, or choose another basePath',
  EEXIST: 'A file is where a folder should be: move it away, or choose another basePath',
  EISDIR: 'A folder is where a file should be: move it away, or choose another basePath',
  EMFILE: 'This process has too many files open: close some, or raise the limit (ulimit -n)',
  ENFILE: 'The system has too many files open: close some, or raise the limit (fs.file-max)',
  EIO: 'The disk reports an input/output error: check the disk and the system log',
  ESTALE: 'The file handle is stale: basePath must be on a local file system, not on NFS',
}

/** A failed call as a StorageError that names the path and what to do. */
export function storageError(doing: string, path: string, cause: unknown): AskonceError {
  if (cause instanceof AskonceError) return cause
  const code = systemCode(cause)
  const remedy = remedies[code] ?? 'Look at the cause'
  return new StorageError(`could not ${doing} ${path}${code && ` (${code})`}. ${remedy}`, { cause })
}

/** The operating system's code of an error, or ''. */
export function systemCode(error: unknown): string {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
  return typeof code === 'string' ? code : ''
}

/** Runs a call on the file system; what it throws becomes a StorageError. */
export function guarded<Result>(doing: string, path: string, call: () => Result): Result {
  try {
    return call()
  } catch (error) {
    throw storageError(doing, path, error)
  }
}

/** The folder was written by a later version of askonce. */
export function newerFormatError(path: string, version: number, known: number): StorageError {
  return new StorageError(
    `${path} is of format ${version}, written by a newer askonce; this version reads formats up to ${known}. Upgrade askonce in this process, or choose another basePath`,
    { retryable: false },
  )
}

/** Whether an error, or what caused it, is that there is no room. */
export function isNoRoom(error: unknown): boolean {
  const code = systemCode(error instanceof AskonceError ? error.cause : error)
  return code === 'ENOSPC' || code === 'EDQUOT'
}
