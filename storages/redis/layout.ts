/**
 * How records lie in Redis: names of keys, and a record's one string. The scripts cut the same string by the same places;
 * its map is in scripts/prelude.ts.
 *
 * @module
 */

import type { Encoded, JobRecord, JobSpec, ProcessingRecord } from '../../src/record.ts'
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

/** Reads a record. A payload that is not there is ''. */
export function decodeRecord(id: string, text: string): JobRecord {
  const slotEnd = 53 + Number(text.slice(42, 45))
  const specEnd = slotEnd + Number(text.slice(45, 49))
  const bodyAt = specEnd + Number(text.slice(49, 53))
  const [incarnation, fingerprint, resultTTL, failureTTL] = text.slice(slotEnd, specEnd).split('\n') as [
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
  const attempts = Number(text.slice(28, 35))
  const at = Number(text.slice(13, 26))
  const inline = text.charCodeAt(27) === 0x31
  const generation = decodeGeneration(text.slice(53, slotEnd))
  switch (text[26]) {
    case 'q':
      return { state: 'queued', spec, attempts, at, payload: payloadAt(text, bodyAt), inline, generation }
    case 'p': {
      const payload = payloadAt(text, bodyAt)
      return { state: 'processing', spec, attempts, at, payload, inline, generation: generation ?? '' }
    }
    case 'f': {
      const errorAt = bodyAt + 18
      const errorEnd = errorAt + Number(text.slice(bodyAt, bodyAt + 9))
      const error = decodeBody(text.slice(errorAt, errorEnd)) ?? ''
      const payload = payloadAt(text, errorEnd)
      return { state: 'failing', spec, attempts, at, payload, inline, generation: generation ?? '', error }
    }
    default: {
      const settledAt = Number(text.slice(bodyAt, bodyAt + 13))
      const outcome = decodeBody(text.slice(bodyAt + 13))
      if (text[26] === 'C') {
        return { state: 'completed', spec, attempts, at, generation: generation ?? '', result: outcome, settledAt }
      }
      const reason = text[26] === 'E' ? 'exhausted' : 'error'
      return { state: 'failed', spec, attempts, at, generation, reason, error: outcome, settledAt }
    }
  }
}

function payloadAt(text: string, start: number): Encoded {
  return decodeBody(text.slice(start)) ?? ''
}

/** Reads a claimed job: as it was before the lease, unless it carries the lease's generation. */
export function decodeJob(id: string, text: string, generation: string, at: number): ProcessingRecord {
  const record = decodeRecord(id, text) as ProcessingRecord
  if (record.state === 'processing' && record.generation === generation) return record
  const { spec, attempts, payload, inline } = record
  return { state: 'processing', spec, attempts: attempts + 1, at, payload, inline, generation }
}
