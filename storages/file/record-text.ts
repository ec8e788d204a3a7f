/**
 * Records as lines of snapshots. What every record of a state has comes first, in a fixed order; what few have follows, each
 * part behind a letter of its own.
 *
 * @module
 */

import type { JobRecord, JobSpec, Kept, Missed, Outbox } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type { Fields } from './text.ts'
import { encodedField, FieldError, nullableField, separator, textField } from './text.ts'

const stateLetters = { queued: 'q', processing: 'p', failing: 'a', completed: 'c', failed: 'f' } as const

const join = (...fields: readonly (string | number)[]): string => fields.join(separator)

/** The line of a record. */
export function recordText(record: JobRecord): string {
  const { marks } = record.spec
  const text = plainText(record) + extrasText(record)
  return marks === undefined ? text : `${text}\tm\t${textField(marks)}`
}

function plainText(record: JobRecord): string {
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

/** The parts that few records have, marks left out. */
function extrasText(record: JobRecord): string {
  switch (record.state) {
    case 'queued':
    case 'processing':
    case 'failing':
      return record.kept === undefined ? '' : keptText(record.kept)
    case 'completed': {
      const { outbox, missed } = record
      return (outbox === undefined ? '' : outboxText(outbox)) + (missed === undefined ? '' : missedText(missed))
    }
    case 'failed':
      return ''
  }
}

function keptText({ settledAt, until, result }: Kept): string {
  return `\tk\t${settledAt}\t${until}\t${encodedField(result)}`
}

function outboxText({ at, until, attempts, generation, rows }: Outbox): string {
  return `\to\t${at}\t${until}\t${attempts}\t${nullableField(generation)}\t${encodedField(rows)}`
}

function missedText({ reason, error }: Missed): string {
  return `\tx\t${reason}\t${encodedField(error)}`
}

/**
 * What the line of a record says.
 *
 * @param fields - the first field, the line's letter, was taken already
 * @throws FieldError if it is none
 */
export function parseRecord(fields: Fields): JobRecord {
  let record = parsePlain(fields)
  while (fields.hasMore) record = withExtra(record, fields)
  return record
}

function parsePlain(fields: Fields): JobRecord {
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
  const generation = fields.nullable()
  if (letter === 'c') {
    const settledAt = fields.number()
    return { state: 'completed', spec, attempts, at, generation, result: fields.encodedOrNull(), settledAt }
  }
  if (letter === 'f') {
    const settledAt = fields.number()
    const error = fields.encodedOrNull()
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

/** The record with the next of the parts that few have. */
function withExtra(record: JobRecord, fields: Fields): JobRecord {
  const letter = fields.next()
  if (letter === 'm') return { ...record, spec: { ...record.spec, marks: fields.text() } }
  if (letter === 'k' && !isTerminal(record)) return { ...record, kept: parseKept(fields) }
  if (letter === 'o' && record.state === 'completed') return { ...record, outbox: parseOutbox(fields) }
  if (letter === 'x' && record.state === 'completed') return { ...record, missed: parseMissed(fields) }
  throw new FieldError()
}

function parseKept(fields: Fields): Kept {
  return { settledAt: fields.number(), until: fields.number(), result: fields.encodedOrNull() }
}

function parseOutbox(fields: Fields): Outbox {
  return {
    at: fields.number(),
    until: fields.number(),
    attempts: fields.number(),
    generation: fields.nullable(),
    rows: fields.encoded(),
  }
}

const missedReasons: readonly string[] = ['error', 'exhausted', 'cancelled'] satisfies Missed['reason'][]

function parseMissed(fields: Fields): Missed {
  const reason = fields.next()
  if (!missedReasons.includes(reason)) throw new FieldError()
  return { reason: reason as Missed['reason'], error: fields.encodedOrNull() }
}
