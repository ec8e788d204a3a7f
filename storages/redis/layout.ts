/**
 * How records lie in Redis: names of keys, and a record's one string. The scripts cut the same string by the same places;
 * its map is in scripts/parts/layout.ts.
 *
 * @module
 */

import type {
  CompletedRecord,
  Encoded,
  JobRecord,
  JobSpec,
  Kept,
  Missed,
  OpenRecord,
  Outbox,
  ProcessingRecord,
} from '../../src/record.ts'
import type { EnqueueItem } from '../../src/storage.ts'

/**
 * Characters kept free for a generation in a new record, so that a claim can write it in place. Longer ones work, at the cost of
 * writing the record anew.
 */
const generationChars = 24

/** A name as a part of a key: without what Redis reads a hash tag by, and without what separates parts. */
function escaped(name: string): string {
  return name.replace(/[%{}#:]/g, encodeURIComponent)
}

/**
 * The first part of every key of a namespace (of one of its partitions). All of them share the one hash tag in it, and no
 * two namespaces have the same.
 */
export function keyBase(keyPrefix: string, namespace: string, partition: number | null): string {
  const part = partition === null ? '' : `#${partition}`
  const prefix = keyPrefix === '' ? '' : `${keyPrefix.replace(/[%{}]/g, encodeURIComponent)}:`
  return `${prefix}{${escaped(namespace)}${part}}`
}

/** The partition of an id: FNV-1a over its UTF-16 units. Part of the layout: a change of it loses ids. */
export function partitionOf(id: string, partitions: number): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193)
  return (hash >>> 0) % partitions
}

/** A token without blanks, newlines, or anything beyond ASCII. */
function encodeToken(token: string): string {
  return /[^!-$&-~]/.test(token) ? encodeURIComponent(token) : token
}

function decodeToken(token: string): string {
  if (!token.includes('%')) return token
  return token === '%' ? '' : decodeURIComponent(token)
}

/** A generation as it is stored and compared: at least as long as the place kept free. */
export function encodeGeneration(generation: string): string {
  return (generation === '' ? '%' : encodeToken(generation)).padEnd(generationChars)
}

function decodeGeneration(slot: string): string | null {
  const end = slot.indexOf(' ')
  const token = end === -1 ? slot : slot.slice(0, end)
  return token === '' ? null : decodeToken(token)
}

/** Text as it is, bytes as base64, told apart by the first character. Replies can so be read as text. */
export function encodeBody(body: Encoded): string {
  return typeof body === 'string' ? `s${body}` : `b${Buffer.from(body).toString('base64')}`
}

/** What {@link encodeBody} made; null if nothing is there. */
function decodeBody(text: string): Encoded | null {
  if (text === '') return null
  return text.charCodeAt(0) === 0x62 ? new Uint8Array(Buffer.from(text.slice(1), 'base64')) : text.slice(1)
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, '0')
}

const missedReasons: Readonly<Record<string, Missed['reason']>> = { e: 'error', x: 'exhausted', c: 'cancelled' }

const noGeneration = ' '.repeat(generationChars)

/** A new record from its state on: what goes before it, the times, is the server's to say. */
export function encodeNew(item: EnqueueItem, channel: string): string {
  const { spec, lease } = item
  const generation = lease === null ? noGeneration : encodeGeneration(lease.generation)
  const text = `${encodeToken(spec.incarnation)}\n${encodeToken(spec.fingerprint)}\n${spec.resultTTL}\n${spec.failureTTL}`
  const channels = item.wait ? channel : ''
  return (
    (lease === null ? 'q00000000' : 'p10000001') +
    digits(spec.maxAttempts, 7) +
    digits(generation.length, 3) +
    digits(text.length, 4) +
    digits(channels.length, 4) +
    generation +
    text +
    channels +
    encodeBody(item.payload)
  )
}

/** An error as `settle` takes it for a retry: readers of text must find its end without counting bytes. */
export function encodeError(error: Encoded): string {
  const text = encodeBody(error)
  return digits(text.length, 9) + text
}

/** Rows of an outbox as `deliver` takes them. */
export function encodeRows(rows: Encoded): string {
  return encodeError(rows)
}

/** A completion with an outbox as `settle` takes it. */
export function encodePosted(result: Encoded, rows: Encoded, ttlMs: number): string {
  const text = encodeBody(rows)
  return digits(ttlMs, 13) + digits(text.length, 9) + digits(Buffer.byteLength(text), 9) + text + encodeBody(result)
}

/** The parts of a record's text that most records have. */
interface Frame {
  readonly spec: JobSpec
  readonly attempts: number
  readonly at: number
  readonly inline: boolean
  readonly generation: string | null
  readonly bodyAt: number
}

/**
 * Reads a record, and what stands before it: K times of a result that is kept, which stands behind; k the same without the
 * result; O an outbox. A payload or result that is not there is ''.
 */
export function decodeRecord(id: string, text: string): JobRecord {
  switch (text[0]) {
    case 'k':
      return { ...(decodeBare(id, text.slice(27)) as ProcessingRecord), kept: { ...keptTimes(text), result: '' } }
    case 'K': {
      const { record, end } = decodeOpen(id, text.slice(27))
      return { ...record, kept: { ...keptTimes(text), result: decodeBody(text.slice(27 + end)) } }
    }
    case 'O': {
      const { outbox, end } = decodeOutbox(text)
      const record = decodeBare(id, text.slice(end)) as CompletedRecord
      return { ...record, result: record.result ?? '', outbox }
    }
    default:
      return decodeBare(id, text)
  }
}

function keptTimes(text: string): Omit<Kept, 'result'> {
  return { settledAt: Number(text.slice(14, 27)), until: Number(text.slice(1, 14)) }
}

function decodeOutbox(text: string): { outbox: Outbox; end: number } {
  const rowsAt = 46 + Number(text.slice(34, 37))
  const end = rowsAt + Number(text.slice(37, 46))
  const outbox = {
    rows: decodeBody(text.slice(rowsAt, end)) ?? '',
    at: Number(text.slice(14, 27)),
    generation: decodeGeneration(text.slice(46, rowsAt)),
    attempts: Number(text.slice(27, 34)),
    until: Number(text.slice(1, 14)),
  }
  return { outbox, end }
}

function decodeFrame(id: string, text: string): Frame {
  const slotEnd = 53 + Number(text.slice(42, 45))
  const specEnd = slotEnd + Number(text.slice(45, 49))
  const [incarnation, fingerprint, resultTTL, failureTTL, ...marks] = text.slice(slotEnd, specEnd).split('\n') as [
    string,
    string,
    string,
    string,
  ]
  const spec: JobSpec = {
    id,
    incarnation: decodeToken(incarnation),
    fingerprint: decodeToken(fingerprint),
    createdAt: Number(text.slice(0, 13)),
    maxAttempts: Number(text.slice(35, 42)),
    resultTTL: Number(resultTTL),
    failureTTL: Number(failureTTL),
  }
  return {
    spec: marks.length === 0 ? spec : { ...spec, marks: `${marks.join('\n')}\n` },
    attempts: Number(text.slice(28, 35)),
    at: Number(text.slice(13, 26)),
    inline: text.charCodeAt(27) % 2 === 1,
    generation: decodeGeneration(text.slice(53, slotEnd)),
    bodyAt: specEnd + Number(text.slice(49, 53)),
  }
}

/** Reads an open record without its payload; answers where its text ends, too. */
function decodeOpen(id: string, text: string): { record: OpenRecord; end: number } {
  const { bodyAt, spec, attempts, at, inline, generation } = decodeFrame(id, text)
  const base = { spec, attempts, at, payload: '', inline }
  if (text[26] === 'q') return { record: { state: 'queued', ...base, generation }, end: bodyAt }
  const lease = generation ?? ''
  if (text[26] === 'p') return { record: { state: 'processing', ...base, generation: lease }, end: bodyAt }
  const { error, end } = errorAt(text, bodyAt)
  return { record: { state: 'failing', ...base, generation: lease, error: error ?? '' }, end }
}

/** An error with its lengths before it. */
function errorAt(text: string, at: number): { error: Encoded | null; end: number } {
  const end = at + 18 + Number(text.slice(at, at + 9))
  return { error: decodeBody(text.slice(at + 18, end)), end }
}

function decodeBare(id: string, text: string): JobRecord {
  const state = text[26] as string
  if (state === 'q' || state === 'p' || state === 'f') {
    const { record, end } = decodeOpen(id, text)
    return { ...record, payload: payloadAt(text, end) }
  }
  const { bodyAt, spec, attempts, at, generation } = decodeFrame(id, text)
  const base = { spec, attempts, at, generation, settledAt: Number(text.slice(bodyAt, bodyAt + 13)) }
  if (state === 'M') {
    const { error, end } = errorAt(text, bodyAt + 14)
    const missed = { reason: missedReasons[text[bodyAt + 13] as string] ?? 'error', error } as const
    return { state: 'completed', ...base, result: decodeBody(text.slice(end)), missed }
  }
  const outcome = decodeBody(text.slice(bodyAt + 13))
  if (state === 'C') return { state: 'completed', ...base, result: outcome }
  return { state: 'failed', ...base, reason: state === 'E' ? 'exhausted' : 'error', error: outcome }
}

function payloadAt(text: string, start: number): Encoded {
  return decodeBody(text.slice(start)) ?? ''
}

/** Reads a claimed job: as it was before the lease, unless it carries the lease's generation. */
export function decodeJob(id: string, text: string, generation: string, at: number): ProcessingRecord {
  const record = decodeRecord(id, text) as OpenRecord
  if (record.state === 'processing' && record.generation === generation) return record
  const { spec, attempts, payload, inline, kept } = record
  const job: ProcessingRecord = { state: 'processing', spec, attempts: attempts + 1, at, payload, inline, generation }
  return kept === undefined ? job : { ...job, kept }
}
