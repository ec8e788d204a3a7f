/**
 * From files to state: the newest snapshot and the logs from there on. Where a snapshot is damaged or lost, the one before
 * it and its log say the same.
 *
 * @module
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { quoteId } from '../../src/errors.ts'
import type { JobRecord } from '../../src/record.ts'
import type { Entry, LogEntry } from './entries.ts'
import { formatVersion, guessId, parseEntry } from './entries.ts'
import { guarded, newerFormatError, systemCode } from './errors.ts'
import type { FileSystem } from './file-system.ts'
import type { Folder, FolderListing } from './folder.ts'
import { checksumBytes } from './lines.ts'
import type { PositionedVisitor } from './log-file.ts'
import { LogFile, LogReplacedError } from './log-file.ts'
import { Replica } from './replica.ts'
import { breathe, readSnapshot } from './snapshot.ts'
import { FieldError } from './text.ts'

/** Bytes of a log that are replayed between two breaths of the event loop. */
const sliceBytes = 2 * 1024 * 1024
/** Times that a folder is listed anew because another process collected files while they were read. */
const roundsMax = 30
/** Of these, those in which nothing may be missing. */
const strictRoundsMax = 5

/** Told what could not be read. */
export type Warn = (code: string, message: string, detail: object) => void

/** What was loaded. */
export interface Loaded {
  readonly replica: Replica
  /** The newest log, read to its end. */
  readonly log: LogFile
  /** Whether the newest log is sealed: the next epoch's goes on. */
  readonly sealed: boolean
  /** Bytes of logs since the newest whole snapshot, the newest log left out. */
  readonly uncoveredBytes: number
  /** A snapshot is damaged or lost: a new one should be made soon. */
  readonly needsSnapshot: boolean
  /** The epoch of the newest whole snapshot; 0 if there is none. */
  readonly snapshotEpoch: number
}

/** Loads a namespace's folder, making its first log if there is none. */
export async function load(fs: FileSystem, folder: Folder, warn: Warn, fsync: boolean): Promise<Loaded> {
  for (let round = 1; ; round++) {
    // What seems lost may be what others have just replaced: it is believed when it is seen again and again.
    const lenient = round > strictRoundsMax
    try {
      return await new Loader(fs, folder, warn, fsync, lenient).load()
    } catch (error) {
      // Another process went on to a next epoch while this one was reading, and collected what it was about to read.
      if (round >= roundsMax || !(error instanceof LogReplacedError || isMissingFile(error, folder))) throw error
      await breathe()
    }
  }
}

function isMissingFile(error: unknown, folder: Folder): boolean {
  return error instanceof Error && systemCode(error.cause) === 'ENOENT' && folder.exists()
}

class Loader {
  readonly #fs: FileSystem
  readonly #folder: Folder
  readonly #warn: Warn
  readonly #fsync: boolean
  readonly #lenient: boolean
  #uncoveredBytes = 0
  #needsSnapshot = false
  #snapshotEpoch = 0

  /**
   * @param fsync - whether older logs that the state is made from must be on disk
   * @param lenient - whether what is missing is taken for lost
   */
  constructor(fs: FileSystem, folder: Folder, warn: Warn, fsync: boolean, lenient: boolean) {
    this.#fs = fs
    this.#folder = folder
    this.#warn = warn
    this.#fsync = fsync
    this.#lenient = lenient
  }

  async load(): Promise<Loaded> {
    const folder = this.#folder
    const listing = guarded('read the folder', folder.path, () => folder.listSteadily())
    const epoch = Math.max(1, listing.newest)
    const replica = await this.#stateAt(epoch, listing)
    const log = LogFile.open(this.#fs, folder.logPath(epoch), epoch, !listing.logs.has(epoch))
    try {
      await this.#tellIfLost(listing, log)
      const sealed = await this.#replay(log, replica)
      // Whoever made a log that others have long gone beyond must not write to it.
      if (guarded('read the folder', folder.path, () => folder.list()).newest > epoch) {
        throw new LogReplacedError(log.path)
      }
      return {
        replica,
        log,
        sealed,
        uncoveredBytes: this.#uncoveredBytes,
        needsSnapshot: this.#needsSnapshot,
        snapshotEpoch: this.#snapshotEpoch,
      }
    } catch (error) {
      log.release()
      throw error
    }
  }

  /** Every log begins with a header: one that is empty, or not there beside its snapshot, was not left so by askonce. */
  async #tellIfLost(listing: FolderListing, log: LogFile): Promise<void> {
    const { path, epoch } = log
    if (listing.logs.has(epoch)) {
      // Another process may have made it just now, and be about to write the header.
      for (let wait = 0; wait < 10 && !log.hasMore(); wait++) await sleep(2)
      if (log.hasMore()) return
      this.#warn(
        'FILE_LOG_EMPTY',
        `${path} is empty. That is harmless if a process was killed just when it began it; if not, what it held is lost`,
        { path, epoch },
      )
    } else if (listing.newest > 0) {
      this.#warn('FILE_LOG_LOST', `${path} is lost; what happened since its snapshot was made is gone`, { path, epoch })
    }
  }

  /** The state at the beginning of an epoch. */
  async #stateAt(epoch: number, listing: FolderListing): Promise<Replica> {
    const folder = this.#folder
    const parts = listing.snapshots.get(epoch)
    const hasOlder = epoch > 1 && listing.logs.has(epoch - 1)
    const damages: [path: string, position: number, bytes: Buffer][] = []
    const content =
      parts === undefined
        ? null
        : await readSnapshot(this.#fs, folder, epoch, parts, (...damage) => damages.push(damage))
    if (content?.condition === 'whole') {
      this.#snapshotEpoch ||= epoch
      return this.#fill(new Replica(), content)
    }
    if (content !== null && (content.condition === 'damaged' || !hasOlder)) this.#needsSnapshot = true
    if (!hasOlder) {
      if (epoch > 1 && !this.#lenient) throw new LogReplacedError(folder.logPath(epoch))
      for (const [path, position, bytes] of damages) warnOfDamage(this.#warn, path, position, bytes)
      if (epoch > 1) {
        this.#needsSnapshot = true
        const what = content === null ? 'lost' : 'damaged'
        const left = content === null ? 'Its records are gone' : `${content.records.length} records could be read`
        this.#warn(
          'FILE_SNAPSHOT_LOST',
          `the snapshot of epoch ${epoch} in ${folder.path} is ${what}, and so is the log it was made from. ${left}`,
          { path: folder.path, epoch },
        )
      }
      return content === null ? new Replica() : this.#fill(new Replica(), content)
    }
    const replica = await this.#stateAt(epoch - 1, listing)
    const log = LogFile.open(this.#fs, folder.logPath(epoch - 1), epoch - 1, false)
    try {
      const sealed = await this.#replay(log, replica)
      // A log that others went on from is sealed. One that is not was made by mistake in the place of one long collected, by a
      // process that slept; or its seal is damaged.
      if (!sealed && !this.#lenient) throw new LogReplacedError(log.path)
      this.#uncoveredBytes += log.end
      // Its writer may not have come to that; and nobody will, once answers come from here.
      if (this.#fsync) guarded('put on disk', log.path, () => this.#fs.syncDataNow(log.fd))
    } finally {
      log.release()
    }
    if (content !== null && content.condition === 'damaged') {
      this.#warn(
        'FILE_SNAPSHOT_DAMAGED',
        `the snapshot of epoch ${epoch} in ${folder.path} is damaged; it was made again from the log before it`,
        { path: folder.path, epoch },
      )
    }
    // What the damaged snapshot does say is so; it matters where the log before it is damaged as well.
    if (content !== null && content.records.length > 0) this.#fill(replica, content)
    return replica
  }

  #fill(replica: Replica, content: { readonly records: readonly JobRecord[]; readonly holdUntil: number }): Replica {
    const { table } = replica
    for (const record of content.records) table.put(record.spec.id, record, record.at)
    table.holdUntil = Math.max(table.holdUntil, content.holdUntil)
    return replica
  }

  /** Replays a log up to its seal or end; answers whether there was a seal. */
  async #replay(log: LogFile, replica: Replica): Promise<boolean> {
    let sealed = false
    const visitor = new LogVisitor(log, this.#warn, (entry) => {
      replica.apply(entry)
      if (entry.kind === 'seal') sealed = true
    })
    while (!sealed && !log.read(visitor, sliceBytes)) await breathe()
    return sealed
  }
}

/** Reads the lines of a log as entries, and warns of those that are none. */
export class LogVisitor implements PositionedVisitor {
  readonly #log: LogFile
  readonly #warn: Warn
  readonly #accept: (entry: LogEntry) => void

  constructor(log: LogFile, warn: Warn, accept: (entry: LogEntry) => void) {
    this.#log = log
    this.#warn = warn
    this.#accept = accept
  }

  line(text: string, _buffer: Buffer, _start: number, _end: number): boolean {
    let entry: Entry
    try {
      entry = parseEntry(text)
    } catch (error) {
      if (!(error instanceof FieldError)) throw error
      this.#warn('FILE_DAMAGED', `a line of ${this.#log.path} is none that askonce writes; it is left out`, {
        path: this.#log.path,
        id: guessId(text),
      })
      return true
    }
    switch (entry.kind) {
      case 'header':
        if (entry.version > formatVersion) throw newerFormatError(this.#log.path, entry.version, formatVersion)
        this.#log.version = Math.max(this.#log.version, entry.version)
        return true
      case 'record':
      case 'part-end':
        return true
      default:
        this.#accept(entry)
        return entry.kind !== 'seal'
    }
  }

  damage(buffer: Buffer, start: number, end: number, position: number): void {
    warnOfDamage(this.#warn, this.#log.path, position, buffer.subarray(start, end))
  }
}

/** Names a damaged line: where it is, and whose it was as far as can be guessed. Never what it says. */
function warnOfDamage(warn: Warn, path: string, position: number, bytes: Buffer): void {
  const id = guessId(bytes.toString('utf8', checksumBytes, Math.min(bytes.length, 8 * 1024)))
  const whose = id === null ? '' : `, it seems of the id ${quoteId(id)}`
  warn(
    'FILE_DAMAGED',
    `${bytes.length} bytes at ${position} of ${path} are damaged${whose}; they are left out, all others are kept`,
    { path, position, bytes: bytes.length, id },
  )
}
