/**
 * Records as answers show them, compared with what the machine has: exactly, but for the values that a caller need not be given.
 *
 * @module
 */

import { isDeepStrictEqual } from 'node:util'
import type { JobRecord } from '../../../src/record.ts'

/**
 * Whether an answer may show this record.
 *
 * @param owner - whether it leased the record to the caller: then the payload must be there, and what is kept of an earlier run need
 * not be
 * @param now - the storage's time of the answer: what was kept until then counts no more, and may be gone
 */
export function shows(shown: JobRecord | null, record: JobRecord | null, owner: boolean, now: number): boolean {
  if (shown === null || record === null) return shown === record
  return isDeepStrictEqual(bare(shown, shown, owner, now), bare(record, shown, owner, now))
}

/** All fields, but the values that `shown` leaves out and may leave out. */
function bare(record: JobRecord, shown: JobRecord, owner: boolean, now: number): object {
  const fields: Record<string, unknown> = { ...record, spec: { marks: '', ...record.spec } }
  if (!owner && 'payload' in shown && shown.payload === '') delete fields['payload']
  if ('kept' in record && record.kept !== undefined) {
    if (record.kept.until <= now) delete fields['kept']
    else if (owner && 'kept' in shown && shown.kept?.result === '') fields['kept'] = { ...record.kept, result: '' }
  }
  // A relay gets rows, not results.
  if (shown.state === 'completed' && shown.outbox !== undefined && shown.result === '') delete fields['result']
  return fields
}

/** A record as text: the same for the same records alone. */
export function recordKey(record: JobRecord | null): string {
  return JSON.stringify(record, (_, value: unknown) =>
    value instanceof Uint8Array ? `bytes ${Buffer.from(value).toString('base64')}` : value,
  )
}
