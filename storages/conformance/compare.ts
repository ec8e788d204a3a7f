/**
 * Compares what a storage shows of a record with what the machine says: every field, times within the span in which the
 * call may have happened.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { quoteId } from '../../src/errors.ts'
import type { Encoded, JobRecord } from '../../src/record.ts'
import { isTerminal } from '../../src/record.ts'
import type { LeaseTerms } from '../../src/storage.ts'
import { sameEncoded, showEncoded } from './items.ts'

/** What the machine says of a record: as if its last change had happened at the earliest and at the latest moment. */
export interface Expected {
  readonly lo: JobRecord | null
  readonly hi: JobRecord | null
}

/** How closely to look. */
export interface Comparison {
  /** Whether the payload must be there; without it, '' stands for any. */
  readonly payload: boolean
  /** The storage's `ttlResolutionMs`. */
  readonly resolutionMs: number
  /** How much later than expected `at` may be, ms. */
  readonly slackMs: number
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
  const seen = withoutTimes(actual)
  for (const which of ['lo', 'hi'] as const) {
    const wanted = expected[which]
    if (!isDeepStrictEqual(seen, withoutTimes(wanted))) continue
    if (actual === null || wanted === null) return which
    if (!samePayload(actual, wanted, how.payload) || !sameOutcome(actual, wanted)) continue
    assertTimes(actual, lo?.state === wanted.state ? lo : wanted, hi?.state === wanted.state ? hi : wanted, how, what)
    return which
  }
  const other = isDeepStrictEqual(withoutTimes(lo), withoutTimes(hi)) ? '' : `, or ${showRecord(hi)}`
  assert.fail(`${what}: expected ${showRecord(lo)}${other}; got ${showRecord(actual)}`)
}

function assertTimes(actual: JobRecord, lo: JobRecord, hi: JobRecord, how: Comparison, what: string): void {
  const tolerance = how.resolutionMs - 1
  const within = (name: string, time: number, from: number, to: number) => {
    const ok = time >= from - tolerance && time <= to + tolerance
    assert.ok(ok, `${what}: ${name} should be ${from === to ? from : `from ${from} to ${to}`}, is ${time}`)
  }
  within('at', actual.at, Math.min(lo.at, hi.at), Math.max(lo.at, hi.at) + how.slackMs)
  within('spec.createdAt', actual.spec.createdAt, lo.spec.createdAt, hi.spec.createdAt)
  if (isTerminal(actual) && isTerminal(lo) && isTerminal(hi)) {
    within('settledAt', actual.settledAt, lo.settledAt, hi.settledAt)
  }
}

/** The fields of a record that are neither times nor payloads. A storage may keep more than these. */
function withoutTimes(record: JobRecord | null): unknown {
  if (record === null) return null
  const { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL } = record.spec
  return {
    state: record.state,
    spec: { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL },
    attempts: record.attempts,
    generation: record.generation,
    inline: isTerminal(record) ? null : record.inline,
    reason: record.state === 'failed' ? record.reason : null,
  }
}

function samePayload(actual: JobRecord, wanted: JobRecord, must: boolean): boolean {
  if (isTerminal(actual) || isTerminal(wanted)) return true
  return (!must && actual.payload === '') || isSame(actual.payload, wanted.payload)
}

function sameOutcome(actual: JobRecord, wanted: JobRecord): boolean {
  return isSame(outcomeOf(actual), outcomeOf(wanted))
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
  const outcome = outcomeOf(record)
  if (outcome !== null) parts.push(`outcome ${showEncoded(outcome)}`)
  return `{${parts.join(', ')}}`
}
