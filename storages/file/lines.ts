/**
 * Lines with checksums: `crc32 as 8 hex digits, text, newline`. Text never holds a raw newline, so that a reader finds its
 * way again after any damage, and no payload can pass for a line. The checksum starts from a seed (the file's epoch): what
 * a disk or a copying hand brings in from another file is not taken for this one's.
 *
 * @module
 */

import { crc32 } from 'node:zlib'

const newline = 0x0a
/** CAN: stands before a newline that is to spoil what it ends. */
const cancel = 0x18
const hexDigits = Buffer.from('0123456789abcdef')
/** Values of hex digits by their character code; 255 for all others. */
const hexValues = new Uint8Array(256).fill(255)
for (let value = 0; value < 16; value++) hexValues[hexDigits[value] as number] = value

/** Bytes of the checksum before a line's text. */
export const checksumBytes = 8

/** Builds lines in one buffer that is used again and again. */
export class LineBuffer {
  #buffer = Buffer.allocUnsafe(64 * 1024)
  #length = 0
  readonly #seed: number

  constructor(seed: number) {
    this.#seed = seed
  }

  /** Bytes so far. */
  get length(): number {
    return this.#length
  }

  /** What was built; valid until the next change. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  clear(): void {
    this.#length = 0
    // A rare giant must not be kept for ever.
    if (this.#buffer.length > 8 * 1024 * 1024) this.#buffer = Buffer.allocUnsafe(64 * 1024)
  }

  /**
   * Ends whatever a crashed writer left unfinished before this, and spoils it: it may lack nothing but its newline, and must
   * not take effect now, long after all have acted as if it had not happened.
   */
  addBreak(): void {
    this.#reserve(2)
    this.#buffer[this.#length++] = cancel
    this.#buffer[this.#length++] = newline
  }

  /** Adds one line. */
  add(text: string): void {
    // A UTF-16 unit is at most three bytes of UTF-8.
    this.#reserve(text.length * 3 + checksumBytes + 1)
    const buffer = this.#buffer
    const start = this.#length + checksumBytes
    const end = start + buffer.write(text, start)
    writeHex(buffer, this.#length, crc32(buffer.subarray(start, end), this.#seed))
    buffer[end] = newline
    this.#length = end + 1
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer.length * 2))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}

function writeHex(buffer: Buffer, at: number, value: number): void {
  for (let digit = 7; digit >= 0; digit--) {
    buffer[at + 7 - digit] = hexDigits[(value >>> (digit * 4)) & 15] as number
  }
}

/** The number that 8 hex digits say, or -1. */
function readHex(buffer: Buffer, at: number): number {
  let value = 0
  for (let index = at; index < at + checksumBytes; index++) {
    const digit = hexValues[buffer[index] as number] as number
    if (digit === 255) return -1
    value = value * 16 + digit
  }
  return value
}

/** What a scan meets. */
export interface LineVisitor {
  /**
   * A whole line.
   *
   * @param start - where it begins in the scanned buffer, checksum included
   * @param end - where its newline is
   * @returns false to end the scan after this line
   */
  line(text: string, buffer: Buffer, start: number, end: number): boolean
  /** Bytes up to a newline that are no line. */
  damage(buffer: Buffer, start: number, end: number): void
}

/**
 * Visits the finished lines of a buffer. Empty lines and breaks are passed over; an unfinished last line is not taken.
 *
 * @returns the offset after the last newline that was visited
 */
export function scanLines(buffer: Buffer, length: number, seed: number, visitor: LineVisitor): number {
  let start = 0
  while (start < length) {
    if (buffer[start] === newline) {
      start++
      continue
    }
    if (buffer[start] === cancel && start + 1 < length && buffer[start + 1] === newline) {
      start += 2
      continue
    }
    const end = buffer.indexOf(newline, start)
    if (end < 0 || end >= length) break
    const textStart = start + checksumBytes
    let more = true
    if (textStart <= end && readHex(buffer, start) === crc32(buffer.subarray(textStart, end), seed)) {
      more = visitor.line(buffer.toString('utf8', textStart, end), buffer, start, end)
    } else {
      visitor.damage(buffer, start, end)
    }
    start = end + 1
    if (!more) break
  }
  return start
}
