/**
 * Keeps what is on disk in proportion to what lives: when logs and snapshot outweigh the live records, the log is sealed,
 * writers go on in the next one at once, and the state at the seal is written as its snapshot behind their backs.
 *
 * @module
 */

import type { Clock } from '../../src/clock.ts'
import { isNoRoom, storageError } from './errors.ts'
import type { FileSystem } from './file-system.ts'
import type { Folder } from './folder.ts'
import type { Warn } from './loader.ts'
import type { ReplicatedLog } from './replicated-log.ts'
import type { SnapshotSource } from './snapshot.ts'
import { readSnapshot, writeSnapshot } from './snapshot.ts'

/** How long another process that sealed a log may take to write the snapshot before it counts as dead. */
const foreignSnapshotMaxMs = 30_000
/** Between two looks for such a snapshot. */
const foreignLookMs = 1_000
/** Waits after a failure: from the first to the longest. */
const retryMs = { first: 100, longest: 30_000 }

/** What a {@link Compaction} needs. */
export interface CompactionOptions {
  readonly fs: FileSystem
  readonly folder: Folder
  readonly clock: Clock
  readonly warn: Warn
  /** Bytes that may lie about beside the live records. */
  readonly slackBytes: number
}

/** See the module's description. One per open namespace. */
export class Compaction {
  readonly #options: CompactionOptions
  #running: Promise<boolean> | null = null
  /** The epoch whose snapshot's size is known, and that size. */
  #snapshotEpoch = 0
  #snapshotBytes = 0
  #notBefore = 0
  #noRoomBefore = 0
  /** Where the log ended when there was no room for a seal, and from when on that is tried again there; -1 if there was. */
  #noSealAt = -1
  #noSealBefore = 0
  #makingRoom: Promise<unknown> | null = null
  /** What the live records took when writing them failed the last time; 0 if it succeeded since. */
  #failedBytes = 0
  #retryMs = retryMs.first
  /** The epoch that another process began, and when that was seen. */
  #foreignEpoch = 0
  #foreignSince = 0

  constructor(options: CompactionOptions) {
    this.#options = options
  }

  /** Seals and writes a snapshot if it is time to. To be called when the log is read to its end. Never throws. */
  consider(state: ReplicatedLog): void {
    if (this.#running !== null || !this.#isTime(state)) return
    try {
      this.begin(state)
    } catch (error) {
      if (!isNoRoom(error)) {
        this.#postpone(error)
        return
      }
      // The calls that find no room say so; as soon as one does find some, the seal may, too. But where all has ended no call
      // writes any more, and who shares the disk waits for the room.
      this.#noSealAt = state.position.end
      this.#noSealBefore = this.#options.clock.monotonic() + retryMs.first
      this.#makingRoom = this.makeRoom(state)
    }
  }

  /**
   * Seals and starts to write a snapshot, whether or not it is time to.
   *
   * @returns resolves, once it ended, to whether the state is on disk
   * @throws if the log could not be sealed or the next one not be begun
   */
  begin(state: ReplicatedLog): Promise<boolean> {
    if (this.#running !== null) return this.#running
    const source = state.seal(this.#options.clock.now())
    if (source === null) return Promise.resolve(false)
    this.#running = this.#write(state, source).finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /**
   * Makes what room it can when the disk is full: gives up the spare epoch, if the snapshot that it is spare for is whole;
   * and has the log compacted as soon as a line finds room.
   *
   * @returns whether there is more room now
   */
  async makeRoom(state: ReplicatedLog): Promise<boolean> {
    const { clock } = this.#options
    state.needsSnapshot = true
    const now = clock.monotonic()
    if (now < this.#noRoomBefore) return false
    this.#noRoomBefore = now + retryMs.first
    try {
      return await this.#giveUpSpares()
    } catch {
      // The full disk is what is told of.
      return false
    }
  }

  async #giveUpSpares(): Promise<boolean> {
    const { fs, folder } = this.#options
    const { snapshots } = folder.listSteadily()
    for (const epoch of [...snapshots.keys()].sort((a, b) => b - a)) {
      const { condition } = await readSnapshot(fs, folder, epoch, snapshots.get(epoch) ?? new Set(), () => {})
      if (condition === 'whole') return folder.collect(epoch, Date.now(), 0) > 0
    }
    return false
  }

  /** Resolves when no snapshot is being written, and nothing removed. */
  async idle(): Promise<void> {
    while (this.#running !== null) await this.#running
    await this.#makingRoom
  }

  #isTime(state: ReplicatedLog): boolean {
    const { epoch, end } = state.position
    if (end === this.#noSealAt && this.#options.clock.monotonic() < this.#noSealBefore) return false
    this.#noSealAt = -1
    const live = state.replica.bytesOnDisk
    if (this.#snapshotEpoch !== epoch) {
      // Another's snapshot: it weighs what the records weigh.
      this.#snapshotEpoch = epoch
      this.#snapshotBytes = epoch === 1 ? 0 : live
    }
    const own = end + this.#snapshotBytes
    const allowed = this.#options.slackBytes + 2 * live
    if (!state.needsSnapshot && own + state.uncoveredBytes <= allowed) return false
    // What failed for want of room may have it when there is much less to write.
    if (this.#options.clock.monotonic() < this.#notBefore && live >= this.#failedBytes / 2) return false
    if (state.needsSnapshot || state.uncoveredBytes === 0 || own > allowed) return true
    return this.#isForeignerDead(state, epoch)
  }

  /** There are logs without a snapshot of theirs: is another process at it? */
  #isForeignerDead(state: ReplicatedLog, epoch: number): boolean {
    const { fs, folder, clock } = this.#options
    const now = clock.monotonic()
    // Not at every call: this asks the file system.
    this.#notBefore = now + foreignLookMs
    if (this.#exists(fs, folder, epoch)) {
      state.uncoveredBytes = 0
      return false
    }
    if (this.#foreignEpoch !== epoch) {
      this.#foreignEpoch = epoch
      this.#foreignSince = now
    }
    return now - this.#foreignSince >= foreignSnapshotMaxMs
  }

  #exists(fs: FileSystem, folder: Folder, epoch: number): boolean {
    try {
      return fs.status(folder.partPath(epoch, 0)) !== null
    } catch {
      return false
    }
  }

  async #write(state: ReplicatedLog, source: SnapshotSource): Promise<boolean> {
    const { fs, folder, warn } = this.#options
    try {
      const bytes = await writeSnapshot(fs, folder, source)
      this.#snapshotEpoch = source.epoch
      this.#snapshotBytes = bytes
      this.#retryMs = retryMs.first
      this.#failedBytes = 0
      if (state.position.epoch === source.epoch) state.uncoveredBytes = 0
      state.needsSnapshot = false
    } catch (error) {
      // Others may have gone on to later epochs meanwhile, and collected this one's files as they were written.
      state.needsSnapshot = true
      this.#failedBytes = state.replica.bytesOnDisk
      if (isNoRoom(error)) await this.makeRoom(state)
      if (!isSuperseded(folder, source.epoch)) this.#postpone(storageError('write the snapshot in', folder.path, error))
      return false
    }
    const spares = (await this.#isSpareTooLarge(state, source.epoch)) ? 0 : 1
    collectIn(folder, source.epoch, warn, spares)
    return true
  }

  /** Whether the spare epoch outweighs what lives: then it goes, too, if what it is spare for can be read. */
  async #isSpareTooLarge(state: ReplicatedLog, epoch: number): Promise<boolean> {
    const { fs, folder, slackBytes } = this.#options
    try {
      // A log is sealed when it outgrows the allowance: twice that means that much has gone since it was written.
      if (folder.bytesOf(epoch - 1) <= 2 * (slackBytes + 2 * state.replica.bytesOnDisk)) return false
      const parts = folder.list().snapshots.get(epoch) ?? new Set<number>()
      return (await readSnapshot(fs, folder, epoch, parts, () => {})).condition === 'whole'
    } catch {
      return false
    }
  }

  #postpone(error: unknown): void {
    const { clock, warn, folder } = this.#options
    this.#notBefore = clock.monotonic() + this.#retryMs
    this.#retryMs = Math.min(this.#retryMs * 2, retryMs.longest)
    const reason = error instanceof Error ? error.message : String(error)
    warn('FILE_NOT_COMPACTED', `the log was not compacted, nothing is lost: ${reason}`, { path: folder.path })
  }
}

/** Removes what a snapshot makes needless. What is left over does no harm: failing is no more than a warning. */
export function collectIn(folder: Folder, snapshotEpoch: number, warn: Warn, spares = 1): void {
  try {
    folder.collect(snapshotEpoch, Date.now(), spares)
  } catch (error) {
    const { message } = storageError('clear up', folder.path, error)
    warn('FILE_NOT_COLLECTED', message, { path: folder.path })
  }
}

function isSuperseded(folder: Folder, epoch: number): boolean {
  try {
    for (const other of folder.list().snapshots.keys()) if (other > epoch) return true
  } catch {
    // The folder can't be read either: the first error is the one to tell.
  }
  return false
}
