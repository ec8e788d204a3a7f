/**
 * Compares what a storage shows of a record with what the machine says: every field, times within the span in which the
 * call may have happened.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { quoteId } from '../../src/errors.ts'
import type { Encoded, JobRecord, Kept, Missed, Outbox } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type { LeaseTerms } from '../../src/storage.ts'
import { sameEncoded, showEncoded } from './items.ts'

/** What the machine says of a record: as if its last change had happened at the earliest and at the latest moment. */
export interface Expected {
  readonly lo: JobRecord | null
  readonly hi: JobRecord | null
}

/**
 * For whom a record is shown: readers may get no payload, workers (who lease it) no result of the run before, and relays no
 * result.
 */
export type Values = 'for readers' | 'for workers' | 'for relays'

/** How closely to look. */
export interface Comparison {
  /** Which values must be there; '' stands for any other. */
  readonly values: Values
  /** The storage's `ttlResolutionMs`. */
  readonly resolutionMs: number
  /** How much later than expected `at` may be, ms. */
  readonly slackMs: number
  /** The time of the answer: what was kept until then counts no more, and may be gone. */
  readonly now: number
}

/**
 * Expects the record.
 *
 * @returns which of the two it is
 */
export function assertRecord(
  actual: JobRecord | null | undefined,
  expected: Expected,
  how: Comparison,
  what: string,
): 'lo' | 'hi' {
  if (actual === undefined) assert.fail(`${what}: undefined, where a record or null is due`)
  const { lo, hi } = expected
  const seen = withoutTimes(actual, how)
  for (const which of ['lo', 'hi'] as const) {
    const wanted = expected[which]
    if (!isDeepStrictEqual(seen, withoutTimes(wanted, how))) continue
    if (actual === null || wanted === null) return which
    if (!samePayload(actual, wanted, how.values !== 'for readers')) continue
    if (!sameOutcome(actual, wanted, how.values !== 'for relays')) continue
    if (!sameBeside(actual, wanted, how)) continue
    assertTimes(actual, lo?.state === wanted.state ? lo : wanted, hi?.state === wanted.state ? hi : wanted, how, what)
    return which
  }
  const other = isDeepStrictEqual(withoutTimes(lo, how), withoutTimes(hi, how)) ? '' : `, or ${showRecord(hi)}`
  assert.fail(`${what}: expected ${showRecord(lo)}${other}; got ${showRecord(actual)}`)
}

function assertTimes(actual: JobRecord, lo: JobRecord, hi: JobRecord, how: Comparison, what: string): void {
  const tolerance = how.resolutionMs - 1
  const within = (name: string, time: number, from: number, to: number) => {
    const ok = time >= from - tolerance && time <= to + tolerance
    assert.ok(ok, `${what}: ${name} should be ${from === to ? from : `from ${from} to ${to}`}, is ${time}`)
  }
  within('at', actual.at, Math.min(lo.at, hi.at), Math.max(lo.at, hi.at) + how.slackMs)
  const [times, early, late] = [timesBeside(actual, how), timesBeside(lo, how), timesBeside(hi, how)]
  for (const name of Object.keys(times)) within(name, times[name]!, early[name] ?? 0, late[name] ?? 0)
  within('spec.createdAt', actual.spec.createdAt, lo.spec.createdAt, hi.spec.createdAt)
  if (isTerminal(actual) && isTerminal(lo) && isTerminal(hi)) {
    within('settledAt', actual.settledAt, lo.settledAt, hi.settledAt)
  }
}

/** The times of what few records have. */
function timesBeside(record: JobRecord, how: Comparison): { readonly [name: string]: number } {
  const kept = keptOf(record, how)
  if (kept !== null) return { 'kept.settledAt': kept.settledAt, 'kept.until': kept.until }
  const outbox = outboxOf(record)
  return outbox === null ? {} : { 'outbox.at': outbox.at, 'outbox.until': outbox.until }
}

/** The fields of a record that are neither times nor payloads. A storage may keep more than these. */
function withoutTimes(record: JobRecord | null, how: Comparison): unknown {
  if (record === null) return null
  const { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL, marks = '' } = record.spec
  const kept = keptOf(record, how)
  const outbox = outboxOf(record)
  return {
    state: record.state,
    spec: { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL, marks },
    attempts: record.attempts,
    generation: record.generation,
    inline: isTerminal(record) ? null : record.inline,
    reason: record.state === 'failed' ? record.reason : null,
    kept: kept === null ? null : kept.result === null ? 'lost' : 'there',
    missed: missedOf(record)?.reason ?? null,
    outbox: outbox === null ? null : { generation: outbox.generation, attempts: outbox.attempts },
  }
}

function keptOf(record: JobRecord, { now, resolutionMs }: { now: number; resolutionMs: number }): Kept | null {
  if (isTerminal(record) || record.kept === undefined) return null
  return record.kept.until < now + resolutionMs ? null : record.kept
}

function missedOf(record: JobRecord): Missed | null {
  return record.state === 'completed' ? (record.missed ?? null) : null
}

function outboxOf(record: JobRecord): Outbox | null {
  return record.state === 'completed' ? (record.outbox ?? null) : null
}

function samePayload(actual: JobRecord, wanted: JobRecord, must: boolean): boolean {
  if (isTerminal(actual) || isTerminal(wanted)) return true
  return (!must && actual.payload === '') || isSame(actual.payload, wanted.payload)
}

function sameOutcome(actual: JobRecord, wanted: JobRecord, result: boolean): boolean {
  const outcome = outcomeOf(actual)
  const left = !result && actual.state === 'completed' && outcome === ''
  return left || isSame(outcome, outcomeOf(wanted))
}

/** The values of what few records have. */
function sameBeside(actual: JobRecord, wanted: JobRecord, how: Comparison): boolean {
  const result = keptOf(actual, how)?.result ?? null
  const left = how.values === 'for workers' && result === ''
  return (
    (left || isSame(result, keptOf(wanted, how)?.result ?? null)) &&
    isSame(missedOf(actual)?.error ?? null, missedOf(wanted)?.error ?? null) &&
    isSame(outboxOf(actual)?.rows ?? null, outboxOf(wanted)?.rows ?? null)
  )
}

/** The result or error of a record; null if its state has none. */
function outcomeOf(record: JobRecord): Encoded | null {
  if (record.state === 'completed') return record.result
  return record.state === 'failed' || record.state === 'failing' ? record.error : null
}

function isSame(actual: Encoded | null | undefined, wanted: Encoded | null): boolean {
  return actual !== undefined && sameEncoded(actual, wanted)
}

/** Whether the record is under this very lease. */
export function isLeaseOf(record: JobRecord | null, lease: LeaseTerms | null): boolean {
  return record?.state === 'processing' && record.generation === lease?.generation
}

function showBeside(record: JobRecord): string[] {
  const parts: string[] = []
  const [missed, outbox, { marks }] = [missedOf(record), outboxOf(record), record.spec]
  const kept = keptOf(record, { now: 0, resolutionMs: 0 })
  if (marks !== undefined) parts.push(`marks ${JSON.stringify(marks)}`)
  if (kept !== null) parts.push(`kept ${showEncoded(kept.result)} of ${kept.settledAt} until ${kept.until}`)
  if (missed !== null) parts.push(`missed ${missed.reason} ${showEncoded(missed.error)}`)
  if (outbox !== null) {
    const { rows, at, generation, attempts, until } = outbox
    parts.push(`outbox ${showEncoded(rows)} at ${at} by ${generation} attempts ${attempts} until ${until}`)
  }
  return parts
}

/** A record in a message. */
function showRecord(record: JobRecord | null): string {
  if (record === null) return 'no record'
  const { spec, state, attempts, at, generation } = record
  const parts = [
    `${state} ${quoteId(spec.id)}`,
    `incarnation ${spec.incarnation}`,
    `fingerprint ${JSON.stringify(spec.fingerprint)}`,
    `attempts ${attempts}/${spec.maxAttempts}`,
    `TTLs ${spec.resultTTL}/${spec.failureTTL}`,
    `at ${at}`,
    `generation ${generation}`,
  ]
  if (!isTerminal(record)) parts.push(`inline ${record.inline}`, `payload ${showEncoded(record.payload)}`)
  if (record.state === 'failed') parts.push(`reason ${record.reason}`)
  parts.push(...showBeside(record))
  const outcome = outcomeOf(record)
  if (outcome !== null) parts.push(`outcome ${showEncoded(outcome)}`)
  return `{${parts.join(', ')}}`
}
