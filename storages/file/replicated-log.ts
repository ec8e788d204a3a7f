/**
 * The state that all processes agree on, as this process has it: its replica and the log that both were made from, kept
 * in step. Whoever wants to change something appends it, then reads the log up to and including it: what the replica made
 * of it in that place of the order is the outcome.
 *
 * @module
 */

import { StorageError } from '../../src/errors.ts'
import type { JobRecord } from '../../src/record.ts'
import type { Nonce } from './command-text.ts'
import { collectIn } from './compaction.ts'
import type { LogEntry } from './entries.ts'
import { entryText, formatVersion, headerText } from './entries.ts'
import { guarded, isNoRoom, storageError } from './errors.ts'
import type { FileSystem } from './file-system.ts'
import type { Folder } from './folder.ts'
import { LineBuffer } from './lines.ts'
import type { Loaded, Warn } from './loader.ts'
import { LogVisitor, load } from './loader.ts'
import { LogFile, LogReplacedError } from './log-file.ts'
import type { Outcome, Replica } from './replica.ts'
import type { SnapshotSource } from './snapshot.ts'
import { breathe } from './snapshot.ts'

/** Bytes of other processes' lines that are replayed between two breaths of the event loop. */
const sliceBytes = 1024 * 1024
/** Times that lines are appended anew because they came after a seal or were torn. */
const roundsMax = 50

/** Something to be appended, and what became of it. */
export class Change {
  readonly entry: LogEntry
  /** Whether it is in the log; until then the outcome means nothing. */
  done = false
  outcome: Outcome = null
  /** Its line's text. */
  text = ''

  constructor(entry: LogEntry) {
    this.entry = entry
  }
}

/** What {@link ReplicatedLog} needs of the storage. */
export interface ReplicatedLogOptions {
  readonly fs: FileSystem
  readonly folder: Folder
  readonly warn: Warn
  readonly nonce: Nonce
  /** Whether a log must be on disk before the next one is begun. */
  readonly fsync: boolean
}

/** Where in the order of all lines something is. */
export interface Position {
  readonly epoch: number
  readonly end: number
}

/** See the module's description. */
export class ReplicatedLog {
  readonly replica: Replica
  readonly #options: ReplicatedLogOptions
  #log: LogFile
  #lines: LineBuffer
  #sealed: boolean
  /** Bytes of logs since the newest whole snapshot, the present one left out. */
  uncoveredBytes: number
  /** A new snapshot should be made soon. */
  needsSnapshot: boolean

  private constructor(options: ReplicatedLogOptions, loaded: Loaded) {
    this.#options = options
    this.replica = loaded.replica
    this.#log = loaded.log
    this.#lines = new LineBuffer(loaded.log.epoch)
    this.#sealed = loaded.sealed
    this.uncoveredBytes = loaded.uncoveredBytes
    this.needsSnapshot = loaded.needsSnapshot
  }

  static async load(options: ReplicatedLogOptions): Promise<ReplicatedLog> {
    const { fs, folder, warn, fsync } = options
    const loaded = await load(fs, folder, warn, fsync)
    const self = new ReplicatedLog(options, loaded)
    try {
      self.#syncNames()
      self.#begin()
    } catch (error) {
      loaded.log.release()
      throw error
    }
    collectIn(folder, loaded.snapshotEpoch, warn)
    return self
  }

  get log(): LogFile {
    return this.#log
  }

  get position(): Position {
    return { epoch: this.#log.epoch, end: this.#log.end }
  }

  /** Whether others have appended something, or the log is not what it was: {@link catchUp} will tell. */
  hasNews(): boolean {
    return this.#sealed || this.#log.hasMore()
  }

  /**
   * Reads what others appended.
   *
   * @throws LogReplacedError if the state has to be loaded anew
   */
  async catchUp(): Promise<void> {
    const accept = (entry: LogEntry) => void this.#apply(entry)
    for (;;) {
      if (this.#sealed) this.#moveOn()
      const visitor = new LogVisitor(this.#log, this.#options.warn, accept)
      const all = this.#log.read(visitor, sliceBytes)
      if (all && !this.#sealed) return
      await breathe()
    }
  }

  /**
   * Appends changes and everything that others appended before them; each has its outcome then. If it throws, those that
   * are done are done, the others may or may not be.
   *
   * @throws StorageError, LogReplacedError
   */
  append(changes: readonly Change[]): void {
    let left = changes
    for (let round = 1; left.length > 0; round++) {
      if (this.#sealed) this.#moveOn()
      this.#appendOnce(left)
      left = left.filter((change) => !change.done)
      if (left.length > 0 && round >= roundsMax) {
        throw new StorageError(
          `could not append to ${this.#log.path}: lines do not arrive whole after ${round} tries. Is basePath on a local file system?`,
        )
      }
    }
  }

  /**
   * Ends the present log and begins the next.
   *
   * @param now - what has expired by then is forgotten
   * @returns the state to be written as the snapshot of the new epoch; null if another process was faster and will do it
   */
  seal(now: number): SnapshotSource | null {
    if (this.#sealed) this.#moveOn()
    const change = new Change({ kind: 'seal', now })
    this.#appendOnce([change])
    // Torn: it is not worth a second try, the next occasion is near.
    if (!this.#sealed) return null
    const source = change.done ? this.#snapshotSource() : null
    this.#moveOn()
    return source
  }

  /** Lets go of the log. What it holds stays to be synced by those who retained it. */
  release(): void {
    this.#log.release()
  }

  #snapshotSource(): SnapshotSource {
    const { table } = this.replica
    const records: JobRecord[] = []
    for (const record of table.records()) records.push(record)
    return { epoch: this.#log.epoch + 1, records, holdUntil: table.holdUntil }
  }

  #apply(entry: LogEntry): Outcome {
    if (entry.kind === 'seal') this.#sealed = true
    return this.replica.apply(entry)
  }

  #appendOnce(changes: readonly Change[]): void {
    const log = this.#log
    const lines = this.#lines
    lines.clear()
    lines.addBreak()
    // In a log that an older askonce began, too: a process that still runs it must not take these lines for its own.
    if (log.version < formatVersion) lines.add(headerText())
    for (const change of changes) {
      change.text = entryText(change.entry, this.#options.nonce)
      lines.add(change.text)
    }
    let how: 'alone' | 'mixed'
    try {
      how = log.append(lines.bytes)
    } catch (error) {
      throw error instanceof LogReplacedError ? error : storageError('append to the log', log.path, error)
    }
    if (how === 'alone') {
      log.version = formatVersion
      for (const change of changes) {
        change.outcome = this.#apply(change.entry)
        change.done = true
      }
    } else {
      this.#readBack(changes)
    }
  }

  /** Reads on, and finds the changes among what others appended. */
  #readBack(changes: readonly Change[]): void {
    const byText = new Map<string, Change[]>()
    for (const change of changes) {
      const same = byText.get(change.text)
      if (same === undefined) byText.set(change.text, [change])
      else same.push(change)
    }
    const log = this.#log
    const visitor = new LogVisitor(log, this.#options.warn, (entry) => void this.#apply(entry))
    log.readInside({
      line: (text, buffer, start, end) => {
        const change = byText.get(text)?.shift()
        if (change === undefined) return visitor.line(text, buffer, start, end)
        change.outcome = this.#apply(change.entry)
        change.done = true
        return !this.#sealed
      },
      damage: (buffer, start, end, position) => visitor.damage(buffer, start, end, position),
    })
    // Sealed, it may be collected as soon as others have gone on: what it says up to the seal is so nevertheless.
    if (!this.#sealed) log.expectInPlace()
  }

  /** Goes on to the next epoch's log; the present one is sealed and read up to its seal. Can be repeated when it fails. */
  #moveOn(): void {
    const { fs, folder, fsync } = this.#options
    const old = this.#log
    if (fsync && old.syncedEnd < old.end) {
      guarded('put on disk', old.path, () => fs.syncDataNow(old.fd))
      old.syncedEnd = old.end
    }
    const epoch = old.epoch + 1
    const next = LogFile.open(fs, folder.logPath(epoch), epoch, true)
    try {
      this.#syncNames()
      // If the others have gone beyond this epoch, too, its log may have been collected, and was just made by mistake.
      const { newest } = guarded('read the folder', folder.path, () => folder.list())
      if (newest > epoch) {
        if (fs.statusOf(next.fd).size === 0) fs.remove(next.path)
        throw new LogReplacedError(next.path)
      }
    } catch (error) {
      next.release()
      throw error instanceof LogReplacedError ? error : storageError('begin the log', next.path, error)
    }
    this.#log = next
    this.#lines = new LineBuffer(epoch)
    this.#sealed = false
    this.uncoveredBytes += old.end
    old.release()
    this.#begin()
  }

  /** Puts the log's name on disk. */
  #syncNames(): void {
    const { fs, folder, fsync } = this.#options
    if (fsync) guarded('put the names on disk of', folder.path, () => fs.syncFolder(folder.path))
  }

  /** Writes the header of a new log, so that an empty one tells of an accident. */
  #begin(): void {
    const log = this.#log
    if (!log.isEmpty) return
    const lines = this.#lines
    lines.clear()
    lines.add(headerText())
    try {
      if (log.append(lines.bytes) === 'alone') log.version = formatVersion
    } catch (error) {
      if (error instanceof LogReplacedError) throw error
      // On a full disk what is there can still be read; the first line that finds room brings the header along.
      if (!isNoRoom(error)) throw storageError('append to the log', log.path, error)
    }
  }
}
