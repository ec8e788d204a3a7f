/**
 * Which files a namespace's folder holds, by their names: `<epoch>.log`, one at a time being written, and
 * `<epoch>-<part>.snap`, the state at the beginning of that epoch. Everything else in it is left alone, except what
 * write-file-atomic left behind when its process was killed.
 *
 * @module
 */

import { createHash } from 'node:crypto'
import path from 'node:path'
import { systemCode } from './errors.ts'
import type { FileSystem } from './file-system.ts'

/** Temporary files of a snapshot that nobody finished are collected at this age. A living writer only has to begin anew. */
const temporaryAgeMaxMs = 60_000

/** Readings of a folder until two in a row are the same; when others compact that fast, the loader meets a gap and retries. */
const steadyRoundsMax = 20

/** What is in the folder. */
export interface FolderListing {
  /** Epochs of logs. */
  readonly logs: ReadonlySet<number>
  /** Snapshots' epochs, and the numbers of their parts. */
  readonly snapshots: ReadonlyMap<number, ReadonlySet<number>>
  /** Names of temporary files, and the epoch they were to be of. */
  readonly temporaries: ReadonlyMap<string, number>
  /** The newest epoch, of logs and snapshots; 0 if there is none. */
  readonly newest: number
}

const logName = /^(\d{10})\.log$/
const snapshotName = /^(\d{10})-(\d{5})\.snap$/
const temporaryName = /^(\d{10})-\d{5}\.snap\.\d+$/

/**
 * The folder's name for a namespace: a hash, since namespaces may hold any characters and file systems may not tell upper
 * from lower case.
 */
export function folderName(namespace: string): string {
  return `queue-${createHash('sha256').update(namespace).digest('hex').slice(0, 32)}`
}

/** One namespace's folder. */
export class Folder {
  readonly path: string
  readonly #fs: FileSystem

  constructor(fs: FileSystem, folderPath: string) {
    this.#fs = fs
    this.path = folderPath
  }

  logPath(epoch: number): string {
    return path.join(this.path, `${digits(epoch, 10)}.log`)
  }

  partPath(epoch: number, part: number): string {
    return path.join(this.path, `${digits(epoch, 10)}-${digits(part, 5)}.snap`)
  }

  /**
   * What is in the folder at one moment. A single reading of a folder is no such thing: what comes and goes meanwhile may be
   * in it or not, so that an old log may seem gone before the snapshot that replaces it seems there.
   */
  listSteadily(): FolderListing {
    let names = this.#fs.list(this.path).sort()
    for (let round = 0; round < steadyRoundsMax; round++) {
      const again = this.#fs.list(this.path).sort()
      if (again.length === names.length && again.every((name, index) => name === names[index])) break
      names = again
    }
    return parse(names)
  }

  /** What is in the folder, roughly: see {@link listSteadily}. */
  list(): FolderListing {
    return parse(this.#fs.list(this.path))
  }

  /**
   * Removes what is not needed any more once there is a whole snapshot of an epoch.
   *
   * @param spares - epochs before it that are kept, so that the snapshot can be made again should it get lost
   * @returns how many files were removed
   */
  collect(snapshotEpoch: number, now: number, spares = 1): number {
    const { logs, snapshots, temporaries } = this.list()
    let removed = 0
    const remove = (file: string): void => {
      this.#fs.remove(file)
      removed++
    }
    // Oldest first: whenever this ends, what is left begins with a snapshot and goes on without a gap.
    for (const epoch of [...logs].sort((a, b) => a - b)) {
      if (epoch < snapshotEpoch - spares) remove(this.logPath(epoch))
    }
    for (const [epoch, parts] of snapshots) {
      if (epoch >= snapshotEpoch - spares) continue
      for (const part of parts) remove(this.partPath(epoch, part))
    }
    for (const [name, epoch] of temporaries) {
      const file = path.join(this.path, name)
      if (epoch <= snapshotEpoch || this.#isOld(file, now)) remove(file)
    }
    return removed
  }

  #isOld(file: string, now: number): boolean {
    const modifiedAt = this.#fs.modifiedAt(file)
    return modifiedAt !== null && now - modifiedAt > temporaryAgeMaxMs
  }

  /** Bytes of an epoch's log and snapshot. */
  bytesOf(epoch: number): number {
    const parts = this.list().snapshots.get(epoch) ?? new Set<number>()
    const paths = [this.logPath(epoch), ...[...parts].map((part) => this.partPath(epoch, part))]
    return paths.reduce((sum, file) => sum + (this.#fs.status(file)?.size ?? 0), 0)
  }

  /** Makes the folder, if it is not there; puts its name on disk if that matters. */
  make(fsync: boolean): void {
    const first = this.#fs.makeFolder(this.path)
    if (first === undefined || !fsync) return
    const top = path.dirname(first)
    for (let above = path.dirname(this.path); ; above = path.dirname(above)) {
      this.#fs.syncFolder(above)
      if (above === top || above === path.dirname(above)) break
    }
  }

  /** Whether the folder itself is there. */
  exists(): boolean {
    try {
      return this.#fs.status(this.path) !== null
    } catch (error) {
      if (systemCode(error) === 'ENOTDIR') return false
      throw error
    }
  }
}

function digits(number: number, count: number): string {
  return String(number).padStart(count, '0')
}

function parse(names: readonly string[]): FolderListing {
  const logs = new Set<number>()
  const snapshots = new Map<number, Set<number>>()
  const temporaries = new Map<string, number>()
  for (const name of names) {
    const log = logName.exec(name)
    if (log !== null) logs.add(Number(log[1]))
    const snapshot = snapshotName.exec(name)
    if (snapshot !== null) {
      const epoch = Number(snapshot[1])
      const parts = snapshots.get(epoch)
      if (parts === undefined) snapshots.set(epoch, new Set([Number(snapshot[2])]))
      else parts.add(Number(snapshot[2]))
    }
    const temporary = temporaryName.exec(name)
    if (temporary !== null) temporaries.set(name, Number(temporary[1]))
  }
  return { logs, snapshots, temporaries, newest: Math.max(0, ...logs, ...snapshots.keys()) }
}
