/**
 * Records as plain objects with short keys, and as one line of JSON: what storages write. Versioned; what is missing has its
 * default, so that most records are short; text and bytes come back as what they were.
 *
 * @module
 */

import { SerializationError } from './errors.ts'
import type { Fields } from './packed-fields.ts'
import { count, damaged, duration, encoded, flag, text, time } from './packed-fields.ts'
import type { Encoded, JobRecord, JobSpec, JobState, Kept, Missed, Outbox } from './record.ts'
import { isTerminal } from './record.ts'

/**
 * The newest format that is written and read; newer ones are refused in words.
 *
 * A record says the oldest format that has all it needs. Format 2 added marks, kept results, missed refreshes and outboxes: few
 * records have them, and only those are refused by a version of askonce that knows format 1 alone, which could not keep their
 * promises. All others it goes on reading and writing beside this one, so that processes can be updated one by one.
 */
export const recordFormat = 2

/** A record with short keys. Bytes stay bytes: for storages that have them. */
export interface PackedRecord {
  /** The oldest format that has all of it, up to {@link recordFormat}. */
  readonly v: number
  /** State: queued, processing, retried (failing), completed, failed. */
  readonly s: 'q' | 'p' | 'r' | 'c' | 'f'
  /** Id. */
  readonly i: string
  /** Incarnation. */
  readonly n: string
  /** Fingerprint; without it ''. */
  readonly d?: string
  /** Created at. */
  readonly c: number
  /** Attempts at most. */
  readonly m: number
  /** How long a result is kept. */
  readonly k: number
  /** How long an error is kept; without it as long as a result. */
  readonly K?: number
  /** Attempts; without it 0. */
  readonly a?: number
  /** The one timestamp, `at`. */
  readonly t: number
  /** Generation; without it null. */
  readonly g?: string
  /** Inline; without it false. */
  readonly l?: 1
  /** Payload. */
  readonly p?: Encoded
  /** Result; without it lost. */
  readonly r?: Encoded
  /** Error; without it none, or lost. */
  readonly e?: Encoded
  /** Exhausted: failed for that reason; without it for an error. */
  readonly x?: 1
  /** Settled at. */
  readonly z?: number
  /** Marks; without it none. */
  readonly b?: string
  /** Of what is kept of the run before: until when. Without it nothing is. */
  readonly T?: number
  /** Its result; without it lost. */
  readonly R?: Encoded
  /** When that was settled. */
  readonly Z?: number
  /** Why a refresh was in vain: an error, exhausted, cancelled; without it none was. */
  readonly M?: 'e' | 'x' | 'c'
  /** Its error; without it none, or lost. */
  readonly E?: Encoded
  /** The rows of the outbox; without it there is none. */
  readonly o?: Encoded
  /** When they may be delivered, or the lease of that ends. */
  readonly O?: number
  /** Who delivers them; without it nobody. */
  readonly G?: string
  /** Deliveries begun; without it 0. */
  readonly A?: number
  /** When they are given up. */
  readonly U?: number
}

const letters = { queued: 'q', processing: 'p', failing: 'r', completed: 'c', failed: 'f' } as const
const states = new Map<unknown, JobState>(Object.entries(letters).map(([state, letter]) => [letter, state as JobState]))

const reasons = { error: 'e', exhausted: 'x', cancelled: 'c' } as const
const missedReasons = new Map<unknown, Missed['reason']>([
  ['e', 'error'],
  ['x', 'exhausted'],
  ['c', 'cancelled'],
])

/** The keys of values: text or bytes. */
const valueKeys = ['p', 'r', 'e', 'R', 'E', 'o'] as const

/**
 * The keys that a record of each state may have, those of format 2 last. Any other is damage: a key that got lost would else
 * become a default.
 */
const common = 'vsindcmkKatg'
const allowed: { readonly [state in JobState]: readonly [first: ReadonlySet<string>, second: ReadonlySet<string>] } = {
  queued: keys('lp', 'TRZ'),
  processing: keys('lp', 'TRZ'),
  failing: keys('lpe', 'TRZ'),
  completed: keys('rz', 'MEoOGAU'),
  failed: keys('exz', ''),
}

function keys(first: string, second: string): [Set<string>, Set<string>] {
  return [new Set(common + first), new Set(`${common}${first}b${second}`)]
}

/** The record with short keys, made for storages that keep bytes as bytes. */
export function packRecord(record: JobRecord): PackedRecord {
  const { spec, attempts, at, generation, state } = record
  const { id, incarnation, fingerprint, createdAt, maxAttempts, resultTTL, failureTTL, marks } = spec
  const base = {
    v: isOfFirst(record) ? 1 : 2,
    s: letters[state],
    i: id,
    n: incarnation,
    ...(fingerprint === '' ? {} : { d: fingerprint }),
    c: createdAt,
    m: maxAttempts,
    k: resultTTL,
    ...(failureTTL === resultTTL ? {} : { K: failureTTL }),
    ...(attempts === 0 ? {} : { a: attempts }),
    t: at,
    ...(generation === null ? {} : { g: generation }),
    ...(marks === undefined ? {} : { b: marks }),
  }
  if (!isTerminal(record)) {
    const open = { ...base, ...(record.inline ? { l: 1 as const } : {}), p: record.payload, ...packKept(record.kept) }
    return record.state === 'failing' ? { ...open, e: record.error } : open
  }
  const ended = { ...base, z: record.settledAt }
  if (record.state === 'completed') {
    const { result, outbox, missed } = record
    return { ...ended, ...(result === null ? {} : { r: result }), ...packMissed(missed), ...packOutbox(outbox) }
  }
  const failed = record.error === null ? ended : { ...ended, e: record.error }
  return record.reason === 'exhausted' ? { ...failed, x: 1 } : failed
}

function isOfFirst(record: JobRecord): boolean {
  if (record.spec.marks !== undefined) return false
  if (!isTerminal(record)) return record.kept === undefined
  return record.state === 'failed' || (record.outbox === undefined && record.missed === undefined)
}

function packKept(kept: Kept | undefined): Partial<PackedRecord> {
  if (kept === undefined) return {}
  const { result, settledAt, until } = kept
  return { T: until, ...(result === null ? {} : { R: result }), Z: settledAt }
}

function packMissed(missed: Missed | undefined): Partial<PackedRecord> {
  if (missed === undefined) return {}
  return { M: reasons[missed.reason], ...(missed.error === null ? {} : { E: missed.error }) }
}

function packOutbox(outbox: Outbox | undefined): Partial<PackedRecord> {
  if (outbox === undefined) return {}
  const { rows, at, generation, attempts, until } = outbox
  return {
    o: rows,
    O: at,
    ...(generation === null ? {} : { G: generation }),
    ...(attempts === 0 ? {} : { A: attempts }),
    U: until,
  }
}

/**
 * The record of an object that {@link packRecord} made.
 *
 * @throws SerializationError if it is damaged, or of a newer format; its message never shows content
 */
export function unpackRecord(packed: unknown): JobRecord {
  if (typeof packed !== 'object' || packed === null || Array.isArray(packed)) throw damaged('it is not an object')
  const fields = packed as Fields
  const format = fields['v']
  if (format !== 1 && format !== 2) throw wrongFormat(format)
  const state = states.get(fields['s'])
  if (state === undefined) throw damaged("'s' is not a state")
  const known = allowed[state][format === 1 ? 0 : 1]
  for (const key of Object.keys(fields)) {
    if (!known.has(key)) throw damaged(`a ${state} record of format ${format} has no such field`)
  }
  const resultTTL = duration(fields, 'k')
  const spec: JobSpec = {
    id: text(fields, 'i'),
    incarnation: text(fields, 'n'),
    fingerprint: fields['d'] === undefined ? '' : text(fields, 'd'),
    createdAt: time(fields, 'c'),
    maxAttempts: count(fields, 'm', 1),
    resultTTL,
    failureTTL: fields['K'] === undefined ? resultTTL : duration(fields, 'K'),
    ...(fields['b'] === undefined ? {} : { marks: text(fields, 'b') }),
  }
  if (spec.id === '') throw damaged("'i' is empty")
  const attempts = fields['a'] === undefined ? 0 : count(fields, 'a', 0)
  const at = time(fields, 't')
  const generation = fields['g'] === undefined ? null : text(fields, 'g')
  const base = { spec, attempts, at }
  switch (state) {
    case 'queued':
      return { state, ...base, ...unpackOpen(fields), generation }
    case 'processing':
      return { state, ...base, ...unpackOpen(fields), generation: held(generation) }
    case 'failing':
      return { state, ...base, ...unpackOpen(fields), generation: held(generation), error: encoded(fields, 'e') }
    case 'completed': {
      const beside = { ...unpackMissed(fields), ...unpackOutbox(fields) }
      const owner = beside.missed === undefined ? held(generation) : generation
      return { state, ...base, generation: owner, result: unlost(fields, 'r'), settledAt: time(fields, 'z'), ...beside }
    }
    case 'failed': {
      const reason = flag(fields, 'x') ? 'exhausted' : 'error'
      return { state, ...base, generation, reason, error: unlost(fields, 'e'), settledAt: time(fields, 'z') }
    }
  }
}

function unpackOpen(fields: Fields): { payload: Encoded; inline: boolean; kept?: Kept } {
  const open = { payload: encoded(fields, 'p'), inline: flag(fields, 'l') }
  if (isAbsent(fields, 'T', ['R', 'Z'])) return open
  return {
    ...open,
    kept: { result: unlost(fields, 'R'), settledAt: time(fields, 'Z'), until: time(fields, 'T') },
  }
}

function unpackMissed(fields: Fields): { missed?: Missed } {
  if (isAbsent(fields, 'M', ['E'])) return {}
  const reason = missedReasons.get(fields['M'])
  if (reason === undefined) throw damaged("'M' is not a reason")
  return { missed: { reason, error: unlost(fields, 'E') } }
}

function unpackOutbox(fields: Fields): { outbox?: Outbox } {
  if (isAbsent(fields, 'o', ['O', 'G', 'A', 'U'])) return {}
  const outbox = {
    rows: encoded(fields, 'o'),
    at: time(fields, 'O'),
    generation: fields['G'] === undefined ? null : text(fields, 'G'),
    attempts: fields['A'] === undefined ? 0 : count(fields, 'A', 0),
    until: time(fields, 'U'),
  }
  return { outbox }
}

/** Whether what `key` begins is not there; then nothing of it may be. */
function isAbsent(fields: Fields, key: string, others: readonly string[]): boolean {
  if (fields[key] !== undefined) return false
  for (const other of others) if (fields[other] !== undefined) throw damaged(`'${key}' is missing`)
  return true
}

/** A value, or null if the storage lost it. */
function unlost(fields: Fields, key: string): Encoded | null {
  return fields[key] === undefined ? null : encoded(fields, key)
}

function held(generation: string | null): string {
  if (generation === null) throw damaged("'g' is missing")
  return generation
}

/** The record as one line of JSON, without a line break; bytes as an array of one base64 text. */
export function recordToText(record: JobRecord): string {
  const packed: { [key: string]: unknown } = { ...packRecord(record) }
  for (const key of valueKeys) {
    const value = packed[key]
    if (value instanceof Uint8Array) packed[key] = toJson(value)
  }
  return JSON.stringify(packed)
}

/**
 * The record of a text that {@link recordToText} made.
 *
 * @throws SerializationError if it is damaged, or of a newer format; its message never shows content
 */
export function recordFromText(line: string): JobRecord {
  let packed: unknown
  try {
    packed = JSON.parse(line)
  } catch {
    // The parser's own message would show a piece of the text.
    throw damaged('it is not JSON')
  }
  if (typeof packed === 'object' && packed !== null) {
    const fields = packed as { [key: string]: unknown }
    for (const key of valueKeys) if (Array.isArray(fields[key])) fields[key] = fromJson(fields[key], key)
  }
  return unpackRecord(packed)
}

function toJson(value: Uint8Array): [string] {
  return [Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')]
}

function fromJson(value: unknown[], key: string): Uint8Array {
  const [base64] = value
  if (value.length !== 1 || typeof base64 !== 'string') throw damaged(`'${key}' is neither text nor bytes`)
  const bytes = Buffer.from(base64, 'base64')
  // Node's decoder skips what it does not know; only an exact text is undamaged.
  if (bytes.toString('base64') !== base64) throw damaged(`'${key}' is not base64`)
  return new Uint8Array(bytes)
}

function wrongFormat(version: unknown): SerializationError {
  if (!Number.isSafeInteger(version) || (version as number) < 1) return damaged("'v' is not a format version")
  return new SerializationError(
    'record',
    `was written in format ${version}; this version of askonce reads up to ${recordFormat}. Update askonce`,
  )
}
