/**
 * What lines say: commands in logs, records in snapshots, and the few lines about the files themselves. The first field
 * names the kind. Kinds and fields are the format; a change of them (or of what the machine makes of a command) needs a new
 * {@link formatVersion}.
 *
 * @module
 */

import type { Command, EnqueueCommand, SettleCommand } from '../../src/machine.ts'
import type { Encoded, JobRecord, JobSpec, Verdict } from '../../src/record.ts'
import {
  encodedField,
  FieldError,
  fieldEncoded,
  fieldNullable,
  fieldNumber,
  fieldText,
  nullableField,
  separator,
  textField,
} from './text.ts'

/** The format that this version writes; it reads this one and all before. */
export const formatVersion = 1

/** A command on one id, with the time at which its writer gave it. */
export interface CommandEntry {
  readonly kind: 'command'
  readonly id: string
  readonly command: Command
  readonly now: number
}

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

/** Says what the file is. */
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

/** Makes lines of entries that carry no token of their own different from all others: a writer must know its own. */
export type Nonce = () => string

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

function commandText({ id, command, now }: CommandEntry, nonce: Nonce): string {
  const name = textField(id)
  switch (command.type) {
    case 'enqueue':
      return enqueueText(name, command, now)
    case 'claim':
      return `C\t${now}\t${name}\t${textField(command.generation)}\t${command.leaseMs}\t${command.graceMs}`
    case 'extend':
      return `X\t${now}\t${name}\t${textField(command.generation)}\t${command.leaseMs}`
    case 'settle':
      return `S\t${now}\t${name}\t${textField(command.generation)}\t${verdictText(command.verdict)}`
    case 'cancel':
      return join('K', now, name, nonce())
    case 'touch':
      return join('T', now, name, command.ttlMs, nonce())
    case 'forget':
      return join('F', now, name)
  }
}

function enqueueText(name: string, command: EnqueueCommand, now: number): string {
  const { spec, payload, delayMs, rejectMismatch, lease, inline } = command
  const flags = (rejectMismatch ? 1 : 0) + (inline ? 2 : 0) + (lease === null ? 0 : 4)
  const terms = lease === null ? '' : `\t${textField(lease.generation)}\t${lease.leaseMs}\t${lease.graceMs}`
  return `E\t${now}\t${name}\t${textField(spec.incarnation)}\t${textField(spec.fingerprint)}\t${spec.maxAttempts}\t${spec.resultTTL}\t${spec.failureTTL}\t${delayMs}\t${flags}\t${encodedField(payload)}${terms}`
}

function verdictText(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'complete':
      return `c\t${verdict.ttlMs}\t${encodedField(verdict.result)}`
    case 'fail':
      return `f\t${verdict.ttlMs}\t${encodedField(verdict.error)}`
    case 'retry':
      return `r\t${verdict.delayMs}\t${encodedField(verdict.error)}`
    case 'release':
      return `g\t${verdict.delayMs}`
  }
}

const stateLetters = { queued: 'q', processing: 'p', failing: 'a', completed: 'c', failed: 'f' } as const

/** The line of a record. */
export function recordText(record: JobRecord): string {
  const { spec, state, attempts, at, generation } = record
  const common = join(
    'R',
    stateLetters[state],
    textField(spec.id),
    textField(spec.incarnation),
    textField(spec.fingerprint),
    spec.createdAt,
    spec.maxAttempts,
    spec.resultTTL,
    spec.failureTTL,
    attempts,
    at,
    nullableField(generation),
  )
  switch (record.state) {
    case 'queued':
    case 'processing':
      return join(common, record.inline ? 1 : 0, encodedField(record.payload))
    case 'failing':
      return join(common, record.inline ? 1 : 0, encodedField(record.payload), encodedField(record.error))
    case 'completed':
      return join(common, record.settledAt, encodedField(record.result))
    case 'failed':
      return join(common, record.settledAt, encodedField(record.error), record.reason)
  }
}

/**
 * What a line says.
 *
 * @throws FieldError if it is none of this format
 */
export function parseEntry(text: string): Entry {
  const fields = new Fields(text)
  switch (fields.next()) {
    case 'E':
      return parseEnqueue(fields)
    case 'C': {
      const [now, id, generation, leaseMs, graceMs] = [
        fields.number(),
        fields.text(),
        fields.text(),
        fields.number(),
        fields.number(),
      ]
      return { kind: 'command', id, now, command: { type: 'claim', generation, leaseMs, graceMs } }
    }
    case 'X': {
      const [now, id, generation, leaseMs] = [fields.number(), fields.text(), fields.text(), fields.number()]
      return { kind: 'command', id, now, command: { type: 'extend', generation, leaseMs } }
    }
    case 'S': {
      const [now, id, generation] = [fields.number(), fields.text(), fields.text()]
      const command: SettleCommand = { type: 'settle', generation, verdict: parseVerdict(fields) }
      return { kind: 'command', id, now, command }
    }
    case 'K':
      return { kind: 'command', now: fields.number(), id: fields.text(), command: { type: 'cancel' } }
    case 'T': {
      const [now, id, ttlMs] = [fields.number(), fields.text(), fields.number()]
      return { kind: 'command', now, id, command: { type: 'touch', ttlMs } }
    }
    case 'F':
      return { kind: 'command', now: fields.number(), id: fields.text(), command: { type: 'forget' } }
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
      throw new FieldError()
  }
}

/** The id in a damaged line, as far as it can be guessed: it tells the user what is lost. */
export function guessId(text: string): string | null {
  const fields = text.split(separator)
  const kind = fields[0] ?? ''
  if (!/^[ECXSKTFR]$/.test(kind)) return null
  const field = fields[2]
  if (field === undefined || field === '') return null
  try {
    return fieldText(field)
  } catch {
    return field
  }
}

/** Reads fields one by one. */
class Fields {
  readonly #fields: string[]
  #index = 0

  constructor(text: string) {
    this.#fields = text.split(separator)
  }

  next(): string {
    const field = this.#fields[this.#index++]
    if (field === undefined) throw new FieldError()
    return field
  }

  text(): string {
    return fieldText(this.next())
  }

  number(): number {
    return fieldNumber(this.next())
  }

  /** A payload, result or error that must be there. */
  encoded(): Encoded {
    const value = fieldEncoded(this.next())
    if (value === null) throw new FieldError()
    return value
  }
}

function parseEnqueue(fields: Fields): CommandEntry {
  const now = fields.number()
  const id = fields.text()
  const spec = {
    id,
    incarnation: fields.text(),
    fingerprint: fields.text(),
    maxAttempts: fields.number(),
    resultTTL: fields.number(),
    failureTTL: fields.number(),
  }
  const delayMs = fields.number()
  const flags = fields.number()
  const payload = fields.encoded()
  const lease =
    (flags & 4) === 0 ? null : { generation: fields.text(), leaseMs: fields.number(), graceMs: fields.number() }
  const command: EnqueueCommand = {
    type: 'enqueue',
    spec,
    payload,
    delayMs,
    rejectMismatch: (flags & 1) !== 0,
    lease,
    inline: (flags & 2) !== 0,
  }
  return { kind: 'command', id, now, command }
}

function parseVerdict(fields: Fields): Verdict {
  switch (fields.next()) {
    case 'c':
      return { kind: 'complete', ttlMs: fields.number(), result: fields.encoded() }
    case 'f':
      return { kind: 'fail', ttlMs: fields.number(), error: fields.encoded() }
    case 'r':
      return { kind: 'retry', delayMs: fields.number(), error: fields.encoded() }
    case 'g':
      return { kind: 'release', delayMs: fields.number() }
    default:
      throw new FieldError()
  }
}

function parseRecord(fields: Fields): JobRecord {
  const letter = fields.next()
  const spec: JobSpec = {
    id: fields.text(),
    incarnation: fields.text(),
    fingerprint: fields.text(),
    createdAt: fields.number(),
    maxAttempts: fields.number(),
    resultTTL: fields.number(),
    failureTTL: fields.number(),
  }
  const attempts = fields.number()
  const at = fields.number()
  const generation = fieldNullable(fields.next())
  if (letter === 'c') {
    const settledAt = fields.number()
    const result = fieldEncoded(fields.next())
    return { state: 'completed', spec, attempts, at, generation: known(generation), result, settledAt }
  }
  if (letter === 'f') {
    const settledAt = fields.number()
    const error = fieldEncoded(fields.next())
    const reason = fields.next() === 'exhausted' ? 'exhausted' : 'error'
    return { state: 'failed', spec, attempts, at, generation, reason, error, settledAt }
  }
  const inline = fields.number() === 1
  const payload = fields.encoded()
  if (letter === 'q') return { state: 'queued', spec, attempts, at, payload, inline, generation }
  if (letter === 'p') return { state: 'processing', spec, attempts, at, payload, inline, generation: known(generation) }
  if (letter !== 'a') throw new FieldError()
  const error = fields.encoded()
  return { state: 'failing', spec, attempts, at, payload, inline, generation: known(generation), error }
}

function known(generation: string | null): string {
  if (generation === null) throw new FieldError()
  return generation
}
