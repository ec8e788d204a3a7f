/**
 * The calls on the file system that the storage makes, and nothing else: one seam, behind which tests count, fail or crash
 * each of them. Most are synchronous on purpose: on a local disk's page cache they take a microsecond, a trip through
 * libuv's threads takes thirty. What waits for the disk itself is not.
 *
 * @module
 */

import fs from 'node:fs'
import { promisify } from 'node:util'
import writeFileAtomic from 'write-file-atomic'

/** Of a file's status, what the storage looks at. */
export interface FileStatus {
  readonly size: number
  /** Tells a file from another that was put in its place. */
  readonly identity: string | number
}

/** A watch on a folder. */
export interface FolderWatch {
  close(): void
}

/** See the module's description. Every call throws as node:fs does. */
export interface FileSystem {
  /** Makes a folder, and those above it, private to the user; answers the first that it made, if it made any. */
  makeFolder(path: string): string | undefined
  /** Names in a folder. */
  list(path: string): string[]
  /** Opens for reading and appending. */
  openLog(path: string, create: boolean): number
  openForReading(path: string): number
  /** One write(2); answers the bytes written, which may be fewer. */
  append(fd: number, bytes: Buffer): number
  /** One read(2). */
  read(fd: number, into: Buffer, offset: number, length: number, position: number): number
  /** Status of what is at the path now; null if nothing is. */
  status(path: string): FileStatus | null
  statusOf(fd: number): FileStatus
  syncData(fd: number): Promise<void>
  syncDataNow(fd: number): void
  /** Puts on disk which names the folder holds. */
  syncFolder(path: string): void
  close(fd: number): void
  remove(path: string): void
  /** When a file was last written, ms since 1970 by the system's clock; null if it is gone. */
  modifiedAt(path: string): number | null
  /** Writes a file whole, on disk, or not at all. */
  writeAtomically(path: string, bytes: Buffer): Promise<void>
  /** Calls `changed` when something in the folder changes, `failed` when it can't any longer. Keeps no process alive. */
  watch(path: string, changed: () => void, failed: (error: unknown) => void): FolderWatch
}

const syncData = promisify(fs.fdatasync)

function statusFrom(stats: fs.Stats): FileStatus {
  return { size: stats.size, identity: stats.ino }
}

/** node:fs and write-file-atomic. */
export const nodeFileSystem: FileSystem = {
  makeFolder: (path) => fs.mkdirSync(path, { recursive: true, mode: 0o700 }),
  list: (path) => fs.readdirSync(path),
  openLog(path, create) {
    const { O_RDWR, O_APPEND, O_CREAT } = fs.constants
    return fs.openSync(path, O_RDWR | O_APPEND | (create ? O_CREAT : 0), 0o600)
  },
  openForReading: (path) => fs.openSync(path, 'r'),
  append: (fd, bytes) => fs.writeSync(fd, bytes),
  read: (fd, into, offset, length, position) => fs.readSync(fd, into, offset, length, position),
  status(path) {
    const stats = fs.statSync(path, { throwIfNoEntry: false })
    return stats === undefined ? null : statusFrom(stats)
  },
  statusOf: (fd) => statusFrom(fs.fstatSync(fd)),
  syncData: (fd) => syncData(fd),
  syncDataNow: (fd) => fs.fdatasyncSync(fd),
  syncFolder(path) {
    // Windows opens no folders; there the names are on disk without it.
    if (process.platform === 'win32') return
    const fd = fs.openSync(path, 'r')
    try {
      fs.fsyncSync(fd)
    } finally {
      fs.closeSync(fd)
    }
  },
  close: (fd) => fs.closeSync(fd),
  remove: (path) => fs.rmSync(path, { force: true }),
  modifiedAt: (path) => fs.statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? null,
  async writeAtomically(path, bytes) {
    await writeFileAtomic(path, bytes, { mode: 0o600, fsync: true })
  },
  watch(path, changed, failed) {
    const watcher = fs.watch(path, { persistent: false }, changed)
    watcher.on('error', failed)
    return watcher
  },
}
