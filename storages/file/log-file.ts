/**
 * One epoch's log, open for appending, and how far this process has read it. Appends are one write(2) with O_APPEND each: the
 * kernel gives them an order that all processes see. Whatever the file system does beside that is noticed by size and
 * checksum.
 *
 * @module
 */

import { guarded } from './errors.ts'
import type { FileStatus, FileSystem } from './file-system.ts'
import type { LineVisitor } from './lines.ts'
import { scanLines } from './lines.ts'

/** The file is not at its path any more, or shorter than it was: what this process knows of it is worth nothing. */
export class LogReplacedError extends Error {
  readonly path: string

  constructor(path: string) {
    super('the log was removed or replaced')
    this.path = path
  }
}

const readBytes = 256 * 1024

/** See the module's description. */
export class LogFile {
  readonly epoch: number
  readonly path: string
  readonly fd: number
  readonly #fs: FileSystem
  readonly #identity: string | number
  #end = 0
  #size = 0
  #buffer = Buffer.alloc(0)
  #users = 1
  /** Up to where it is known to be on disk. */
  syncedEnd = 0
  /** The newest format that its headers, as far as they were read, tell of; 0 if there was none. */
  version = 0

  private constructor(fs: FileSystem, path: string, epoch: number, fd: number, status: FileStatus) {
    this.#fs = fs
    this.path = path
    this.epoch = epoch
    this.fd = fd
    this.#identity = status.identity
  }

  static open(fs: FileSystem, path: string, epoch: number, create: boolean): LogFile {
    const fd = guarded('open the log', path, () => fs.openLog(path, create))
    try {
      return new LogFile(
        fs,
        path,
        epoch,
        fd,
        guarded('look at the log', path, () => fs.statusOf(fd)),
      )
    } catch (error) {
      fs.close(fd)
      throw error
    }
  }

  /** Up to where it was read: after the last finished line. */
  get end(): number {
    return this.#end
  }

  /** Whether it has no finished line yet, as far as it was read. */
  get isEmpty(): boolean {
    return this.#end === 0
  }

  /**
   * Whether something is there that was not read.
   *
   * @throws LogReplacedError
   */
  hasMore(): boolean {
    return this.#look() > this.#size
  }

  /** Keeps the descriptor open until {@link release} was called as often. */
  retain(): void {
    this.#users++
  }

  release(): void {
    if (--this.#users === 0) this.#fs.close(this.fd)
  }

  /** The size now, if the file at the path still is this one. */
  #look(): number {
    const status = guarded('look at the log', this.path, () => this.#fs.status(this.path))
    if (status === null || status.identity !== this.#identity || status.size < this.#size) {
      throw new LogReplacedError(this.path)
    }
    return status.size
  }

  /** The size now, whether or not the file still has a name. */
  #lookInside(): number {
    const { size } = guarded('look at the log', this.path, () => this.#fs.statusOf(this.fd))
    if (size < this.#size) throw new LogReplacedError(this.path)
    return size
  }

  /**
   * Appends whole lines.
   *
   * @returns `alone`: they were written whole and nobody else wrote since the last look, they count as read; `mixed`:
   * {@link readInside} to see what became of them
   * @throws the file system's error if nothing was written
   */
  append(bytes: Buffer): 'alone' | 'mixed' {
    const written = this.#fs.append(this.fd, bytes)
    let size: number
    try {
      size = this.#look()
    } catch (error) {
      if (error instanceof LogReplacedError) return 'mixed'
      throw error
    }
    // An unfinished line before them counts as somebody else's, too.
    if (written !== bytes.length || size !== this.#end + written) return 'mixed'
    this.#end = size
    this.#size = size
    return 'alone'
  }

  /**
   * Reads on from where the last reading ended, up to the size of now; takes finished lines only.
   *
   * @param pausesAfter - bytes after which it returns, to be called again; whole lines in any case
   * @returns whether all was read
   */
  read(visitor: PositionedVisitor, pausesAfter = Number.POSITIVE_INFINITY): boolean {
    return this.#readTo(this.#look(), visitor, pausesAfter)
  }

  /** Reads on to the end of the file, even if it has lost its name: after an append, to see what became of it. */
  readInside(visitor: PositionedVisitor): void {
    this.#readTo(this.#lookInside(), visitor, Number.POSITIVE_INFINITY)
  }

  /**
   * Expects the file to be at its path.
   *
   * @throws LogReplacedError
   */
  expectInPlace(): void {
    this.#look()
  }

  #readTo(size: number, visitor: PositionedVisitor, pausesAfter: number): boolean {
    if (size === this.#size) return true
    const begin = this.#end
    let stopped = false
    const lines: LineVisitor = {
      line: (text, buffer, start, end) => {
        const more = visitor.line(text, buffer, start, end)
        if (!more) stopped = true
        return more
      },
      damage: (buffer, start, end) => visitor.damage(buffer, start, end, this.#end + start),
    }
    // Bytes of an unfinished line at the buffer's beginning.
    let carried = 0
    while (this.#end + carried < size && !stopped) {
      if (this.#end - begin >= pausesAfter) return false
      if (this.#buffer.length - carried < readBytes) this.#grow(carried)
      const wanted = Math.min(this.#buffer.length - carried, size - this.#end - carried)
      const got = guarded('read the log', this.path, () => {
        return this.#fs.read(this.fd, this.#buffer, carried, wanted, this.#end + carried)
      })
      if (got === 0) break
      const held = carried + got
      const taken = scanLines(this.#buffer, held, this.epoch, lines)
      this.#buffer.copyWithin(0, taken, held)
      carried = held - taken
      this.#end += taken
    }
    this.#size = stopped ? this.#end : this.#end + carried
    if (this.#buffer.length > 8 * readBytes) this.#buffer = Buffer.alloc(0)
    return true
  }

  #grow(kept: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(readBytes, this.#buffer.length) * 2)
    this.#buffer.copy(larger, 0, 0, kept)
    this.#buffer = larger
  }
}

/** A {@link LineVisitor} that is told where in the file the damage begins. */
export interface PositionedVisitor extends Pick<LineVisitor, 'line'> {
  damage(buffer: Buffer, start: number, end: number, position: number): void
}
