/**
 * What lines say: commands in logs, records in snapshots, and the few lines about the files themselves. The first field
 * names the kind. Kinds and fields are the format; a change of them (or of what the machine makes of a command) needs a new
 * {@link formatVersion}.
 *
 * @module
 */

import type { JobRecord } from '../../src/record.ts'
import type { CommandEntry, Nonce } from './command-text.ts'
import { commandText, parseCommand } from './command-text.ts'
import { parseRecord } from './record-text.ts'
import { FieldError, Fields, fieldText, separator } from './text.ts'

/**
 * The format that this version writes; it reads this one and all before. 1: the beginning. 2: refreshes, marks and outboxes,
 * each in lines or fields that the first does not have; what the first has means the same.
 */
export const formatVersion = 2

/** Holds the namespace. */
export interface HoldEntry {
  readonly kind: 'hold'
  readonly ms: number
  readonly now: number
}

/** Ends a log: nothing after it counts, the next epoch's log goes on. What has expired by then is forgotten. */
export interface SealEntry {
  readonly kind: 'seal'
  readonly now: number
}

/** What a log's lines mean for the state, in their order. */
export type LogEntry = CommandEntry | HoldEntry | SealEntry

/** Says what the file is, from here on. */
export interface HeaderEntry {
  readonly kind: 'header'
  readonly version: number
}

/** One record of a snapshot. */
export interface RecordEntry {
  readonly kind: 'record'
  readonly record: JobRecord
}

/** Ends one part of a snapshot. */
export interface PartEndEntry {
  readonly kind: 'part-end'
  /** Records in this part. */
  readonly records: number
  readonly last: boolean
  /** The namespace is held until then, ms since 1970. */
  readonly holdUntil: number
}

export type Entry = LogEntry | HeaderEntry | RecordEntry | PartEndEntry

const join = (...fields: readonly (string | number)[]): string => fields.join(separator)

export function headerText(): string {
  return join('H', 'askonce', formatVersion)
}

export function partEndText({ records, last, holdUntil }: Omit<PartEndEntry, 'kind'>): string {
  return join('P', records, last ? 1 : 0, holdUntil)
}

/** The line of a log entry. */
export function entryText(entry: LogEntry, nonce: Nonce): string {
  switch (entry.kind) {
    case 'command':
      return commandText(entry, nonce)
    case 'hold':
      return join('O', entry.now, entry.ms, nonce())
    case 'seal':
      return join('Z', entry.now, nonce())
  }
}

/**
 * What a line says.
 *
 * @throws FieldError if it is none of this format
 */
export function parseEntry(text: string): Entry {
  const fields = new Fields(text)
  const letter = fields.next()
  switch (letter) {
    case 'O':
      return { kind: 'hold', now: fields.number(), ms: fields.number() }
    case 'Z':
      return { kind: 'seal', now: fields.number() }
    case 'R':
      return { kind: 'record', record: parseRecord(fields) }
    case 'P': {
      const [records, last, holdUntil] = [fields.number(), fields.number() === 1, fields.number()]
      return { kind: 'part-end', records, last, holdUntil }
    }
    case 'H':
      if (fields.next() !== 'askonce') throw new FieldError()
      return { kind: 'header', version: fields.number() }
    default:
      return parseCommand(letter, fields)
  }
}

/** The id in a damaged line, as far as it can be guessed: it tells the user what is lost. */
export function guessId(text: string): string | null {
  const fields = text.split(separator)
  const kind = fields[0] ?? ''
  if (!/^[ECXSKTMGDFR]$/.test(kind)) return null
  const field = fields[2]
  if (field === undefined || field === '') return null
  try {
    return fieldText(field)
  } catch {
    return field
  }
}
