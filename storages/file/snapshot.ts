/**
 * Snapshots: the state at the beginning of an epoch, as parts of bounded size, each written by write-file-atomic. The last
 * part says that it is the last; without it the snapshot was never finished and is no snapshot.
 *
 * @module
 */

import type { JobRecord } from '../../src/record.ts'
import type { Entry } from './entries.ts'
import { formatVersion, headerText, parseEntry, partEndText } from './entries.ts'
import { guarded, newerFormatError, storageError } from './errors.ts'
import type { FileSystem } from './file-system.ts'
import type { Folder } from './folder.ts'
import { LineBuffer, scanLines } from './lines.ts'
import { recordText } from './record-text.ts'
import { FieldError } from './text.ts'

/** Bytes of one part, but for a last record that goes beyond. Bounds the memory that writing and reading take. */
const partBytesMax = 16 * 1024 * 1024
/** Records between two breaths of the event loop. */
const sliceRecords = 2_000

/** Lets the event loop turn. */
export function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** What a snapshot is made of: the records as they were at one moment. Records never change, only tables do. */
export interface SnapshotSource {
  readonly epoch: number
  readonly records: readonly JobRecord[]
  readonly holdUntil: number
}

/**
 * Writes a snapshot; when it resolves, all of it is on disk.
 *
 * @returns its size, bytes
 */
export async function writeSnapshot(fs: FileSystem, folder: Folder, source: SnapshotSource): Promise<number> {
  const { epoch, records, holdUntil } = source
  const lines = new LineBuffer(epoch)
  let bytes = 0
  let next = 0
  for (let part = 0; ; part++) {
    lines.clear()
    lines.add(headerText())
    const first = next
    while (next < records.length && lines.length < partBytesMax) {
      lines.add(recordText(records[next++] as JobRecord))
      if (next % sliceRecords === 0) await breathe()
    }
    const last = next === records.length
    lines.add(partEndText({ records: next - first, last, holdUntil }))
    await writePart(fs, folder.partPath(epoch, part), lines.bytes)
    bytes += lines.length
    if (last) break
  }
  guarded('put the names on disk of', folder.path, () => fs.syncFolder(folder.path))
  return bytes
}

async function writePart(fs: FileSystem, path: string, bytes: Buffer): Promise<void> {
  try {
    await fs.writeAtomically(path, bytes)
  } catch (error) {
    throw storageError('write the snapshot', path, error)
  }
  // write-file-atomic takes a short write, as a nearly full disk makes them, for a whole one.
  const status = guarded('look at the snapshot', path, () => fs.status(path))
  if (status?.size !== bytes.length) {
    guarded('remove the unfinished snapshot', path, () => fs.remove(path))
    const cause = Object.assign(new Error(`${status?.size ?? 0} of ${bytes.length} bytes were written`), {
      code: 'ENOSPC',
    })
    throw storageError('write all of the snapshot', path, cause)
  }
}

/** What is told of damage. */
export type DamageListener = (path: string, position: number, bytes: Buffer) => void

/** What a snapshot held. */
export interface SnapshotContent {
  readonly records: readonly JobRecord[]
  readonly holdUntil: number
  /** `whole`; `damaged`: lines or parts are missing; `unfinished`: its end was never written, or is lost. */
  readonly condition: 'whole' | 'damaged' | 'unfinished'
  readonly bytes: number
}

/**
 * Reads what can be read of a snapshot.
 *
 * @param parts - numbers of the parts that are there
 */
export async function readSnapshot(
  fs: FileSystem,
  folder: Folder,
  epoch: number,
  parts: ReadonlySet<number>,
  damage: DamageListener,
): Promise<SnapshotContent> {
  const records: JobRecord[] = []
  let holdUntil = 0
  let bytes = 0
  let damaged = false
  let finished = false
  // No part of a later number than the last may count: it is of a snapshot that was written over.
  for (let part = 0; !finished && part <= Math.max(...parts); part++) {
    if (!parts.has(part)) {
      damaged = true
      continue
    }
    const path = folder.partPath(epoch, part)
    const content = guarded('read the snapshot', path, () => readWhole(fs, path))
    bytes += content.length
    let ended = false
    let count = 0
    const accept = (entry: Entry): void => {
      if (entry.kind === 'header' && entry.version > formatVersion) {
        throw newerFormatError(path, entry.version, formatVersion)
      }
      if (entry.kind === 'record') {
        records.push(entry.record)
        count++
      } else if (entry.kind === 'part-end') {
        ended = true
        finished = entry.last
        holdUntil = Math.max(holdUntil, entry.holdUntil)
        if (entry.records !== count) damaged = true
      }
    }
    const spoil = (start: number, end: number): void => {
      damaged = true
      damage(path, start, content.subarray(start, end))
    }
    let position = 0
    let lines = 0
    while (position < content.length) {
      const from = position
      const taken = scanLines(content.subarray(from), content.length - from, epoch, {
        line(text, _buffer, start, end) {
          try {
            accept(parseEntry(text))
          } catch (error) {
            if (!(error instanceof FieldError)) throw error
            spoil(from + start, from + end)
          }
          return ++lines % sliceRecords !== 0
        },
        damage: (_buffer, start, end) => spoil(from + start, from + end),
      })
      if (taken === 0) {
        spoil(from, content.length)
        break
      }
      position = from + taken
      if (position < content.length) await breathe()
    }
    if (!ended) damaged = true
  }
  return { records, holdUntil, condition: !finished ? 'unfinished' : damaged ? 'damaged' : 'whole', bytes }
}

function readWhole(fs: FileSystem, path: string): Buffer {
  const fd = fs.openForReading(path)
  try {
    const content = Buffer.allocUnsafeSlow(fs.statusOf(fd).size)
    let length = 0
    while (length < content.length) {
      const got = fs.read(fd, content, length, content.length - length, length)
      if (got === 0) break
      length += got
    }
    return content.subarray(0, length)
  } finally {
    fs.close(fd)
  }
}
