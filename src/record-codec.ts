/**
 * Records as plain objects with short keys, and as one line of JSON: what storages write. Versioned; what is missing has its
 * default, so that most records are short; text and bytes come back as what they were.
 *
 * @module
 */

import { SerializationError } from './errors.ts'
import type { Encoded, JobRecord, JobSpec, JobState } from './record.ts'
import { isTerminal } from './record.ts'

/** The format that is written. Older ones are read; newer ones are refused in words. */
export const recordFormat = 1

/** A record with short keys. Bytes stay bytes: for storages that have them. */
export interface PackedRecord {
  /** {@link recordFormat}. */
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
}

const letters = { queued: 'q', processing: 'p', failing: 'r', completed: 'c', failed: 'f' } as const
const states = new Map<unknown, JobState>(Object.entries(letters).map(([state, letter]) => [letter, state as JobState]))

/** The keys that a record of each state may have. Any other is damage: a key that got lost would else become a default. */
const common = 'vsindcmkKatg'
const allowed: { readonly [state in JobState]: ReadonlySet<string> } = {
  queued: new Set(`${common}lp`),
  processing: new Set(`${common}lp`),
  failing: new Set(`${common}lpe`),
  completed: new Set(`${common}rz`),
  failed: new Set(`${common}exz`),
}

/** The record with short keys, made for storages that keep bytes as bytes. */
export function packRecord(record: JobRecord): PackedRecord {
  const { spec, attempts, at, generation, state } = record
  const { id, incarnation, fingerprint, createdAt, maxAttempts, resultTTL, failureTTL } = spec
  const base = {
    v: recordFormat,
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
  }
  if (!isTerminal(record)) {
    const open = { ...base, ...(record.inline ? { l: 1 as const } : {}), p: record.payload }
    return record.state === 'failing' ? { ...open, e: record.error } : open
  }
  const ended = { ...base, z: record.settledAt }
  if (record.state === 'completed') return record.result === null ? ended : { ...ended, r: record.result }
  const failed = record.error === null ? ended : { ...ended, e: record.error }
  return record.reason === 'exhausted' ? { ...failed, x: 1 } : failed
}

/**
 * The record of an object that {@link packRecord} made.
 *
 * @throws SerializationError if it is damaged, or of a newer format; its message never shows content
 */
export function unpackRecord(packed: unknown): JobRecord {
  if (typeof packed !== 'object' || packed === null || Array.isArray(packed)) throw damaged('it is not an object')
  const fields = packed as { readonly [key: string]: unknown }
  if (fields['v'] !== recordFormat) throw wrongFormat(fields['v'])
  const state = states.get(fields['s'])
  if (state === undefined) throw damaged("'s' is not a state")
  for (const key of Object.keys(fields)) {
    if (!allowed[state].has(key)) throw damaged(`a ${state} record has no such field`)
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
  }
  if (spec.id === '') throw damaged("'i' is empty")
  const attempts = fields['a'] === undefined ? 0 : count(fields, 'a', 0)
  const at = time(fields, 't')
  const generation = fields['g'] === undefined ? null : text(fields, 'g')
  const base = { spec, attempts, at }
  switch (state) {
    case 'queued':
      return { state, ...base, payload: encoded(fields, 'p'), inline: flag(fields, 'l'), generation }
    case 'processing':
      return { state, ...base, payload: encoded(fields, 'p'), inline: flag(fields, 'l'), generation: held(generation) }
    case 'failing':
      return {
        state,
        ...base,
        payload: encoded(fields, 'p'),
        inline: flag(fields, 'l'),
        generation: held(generation),
        error: encoded(fields, 'e'),
      }
    case 'completed': {
      const result = fields['r'] === undefined ? null : encoded(fields, 'r')
      return { state, ...base, generation: held(generation), result, settledAt: time(fields, 'z') }
    }
    case 'failed': {
      const error = fields['e'] === undefined ? null : encoded(fields, 'e')
      const reason = flag(fields, 'x') ? 'exhausted' : 'error'
      return { state, ...base, generation, reason, error, settledAt: time(fields, 'z') }
    }
  }
}

/** The record as one line of JSON, without a line break; bytes as an array of one base64 text. */
export function recordToText(record: JobRecord): string {
  const packed = packRecord(record)
  const { p, r, e } = packed
  if (typeof (p ?? r ?? '') === 'string' && typeof (e ?? '') === 'string') return JSON.stringify(packed)
  return JSON.stringify({
    ...packed,
    ...(p === undefined ? {} : { p: toJson(p) }),
    ...(r === undefined ? {} : { r: toJson(r) }),
    ...(e === undefined ? {} : { e: toJson(e) }),
  })
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
    for (const key of ['p', 'r', 'e']) if (Array.isArray(fields[key])) fields[key] = fromJson(fields[key], key)
  }
  return unpackRecord(packed)
}

function toJson(value: Encoded): string | [string] {
  if (typeof value === 'string') return value
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

interface Fields {
  readonly [key: string]: unknown
}

function text(fields: Fields, key: string): string {
  const value = fields[key]
  if (typeof value !== 'string') throw damaged(`'${key}' is not text`)
  return value
}

function time(fields: Fields, key: string): number {
  const value = fields[key]
  if (typeof value !== 'number' || !Number.isFinite(value)) throw damaged(`'${key}' is not a time`)
  return value
}

function duration(fields: Fields, key: string): number {
  const value = time(fields, key)
  if (value < 0) throw damaged(`'${key}' is negative`)
  return value
}

function count(fields: Fields, key: string, min: number): number {
  const value = fields[key]
  if (!Number.isSafeInteger(value) || (value as number) < min)
    throw damaged(`'${key}' is not a whole number from ${min}`)
  return value as number
}

function flag(fields: Fields, key: string): boolean {
  const value = fields[key]
  if (value !== undefined && value !== 1) throw damaged(`'${key}' is not 1`)
  return value === 1
}

function encoded(fields: Fields, key: string): Encoded {
  const value = fields[key]
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) throw damaged(`'${key}' is neither text nor bytes`)
  return value
}

function held(generation: string | null): string {
  if (generation === null) throw damaged("'g' is missing")
  return generation
}

function damaged(problem: string): SerializationError {
  return new SerializationError('record', `is damaged: ${problem}`)
}

function wrongFormat(version: unknown): SerializationError {
  if (!Number.isSafeInteger(version) || (version as number) < 1) return damaged("'v' is not a format version")
  return new SerializationError(
    'record',
    `was written in format ${version}; this version of askonce reads up to ${recordFormat}. Update askonce`,
  )
}
