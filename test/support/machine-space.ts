/**
 * Every state of a record that commands can lead to, within small numbers: a few tokens, delays of 0 and 1 ms, one or two
 * attempts. Enough for every situation that the machine tells apart.
 *
 * @module
 */

import { limits } from '../../src/limits.ts'
import type { Command, LeaseRequest } from '../../src/machine.ts'
import { living, step } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import { complete, fail, isTerminal, release, retry } from '../../src/record.ts'

/** The time at which every state of the space is looked at. */
export const spaceNow = 1_000

const tokens = ['1', '2'] as const
/** With it one mark has room, and a second has not. */
const fullToken = 'x'.repeat(limits.marksCharsMax - 5)

/** Every command within the small numbers. */
export const commands: readonly Command[] = [...enqueues(), ...others()]

function* enqueues(): Generator<Command> {
  for (const incarnation of tokens) {
    for (const fingerprint of ['', 'x', 'y']) {
      for (const maxAttempts of [1, 2]) {
        for (const rejectMismatch of [false, true]) {
          const spec = { id: 'id', incarnation, fingerprint, maxAttempts, resultTTL: 2, failureTTL: 1 }
          const base = { type: 'enqueue', spec, payload: 'p', rejectMismatch } as const
          for (const delayMs of [0, 1]) {
            yield { ...base, delayMs, lease: null, inline: false }
            yield { ...base, delayMs, lease: null, inline: true }
          }
          if (incarnation === '2' && fingerprint === 'x') {
            yield { ...base, delayMs: 0, lease: null, inline: false, refresh: true }
            yield { ...base, delayMs: 1, lease: null, inline: true, refresh: true }
            const lease = { generation: '2', leaseMs: 1, graceMs: 0 }
            yield { ...base, delayMs: 0, lease, inline: true, refresh: true }
          }
          for (const lease of leases()) {
            for (const graceMs of [0, 1]) yield { ...base, delayMs: 0, lease: { ...lease, graceMs }, inline: true }
          }
        }
      }
    }
  }
}

function leases(): LeaseRequest[] {
  return tokens.map((generation) => ({ generation, leaseMs: 1 }))
}

function* others(): Generator<Command> {
  for (const lease of leases()) {
    for (const graceMs of [0, 1]) yield { type: 'claim', ...lease, graceMs }
    yield { type: 'extend', ...lease }
    const { generation } = lease
    // The longer one outlasts a lease.
    for (const ttlMs of [1, 3]) yield { type: 'settle', generation, verdict: complete('r', ttlMs) }
    yield { type: 'settle', generation, verdict: complete('r', 1, { rows: '2', ttlMs: 2 }) }
    yield { type: 'settle', generation, verdict: fail('e', 1) }
    for (const graceMs of [0, 1]) yield { type: 'collect', ...lease, graceMs }
    for (const rows of [null, '1']) yield { type: 'deliver', generation, rows, delayMs: 1 }
    for (const delayMs of [0, 1]) {
      yield { type: 'settle', generation, verdict: retry('e', delayMs) }
      yield { type: 'settle', generation, verdict: release(delayMs) }
    }
  }
  yield { type: 'cancel' }
  yield { type: 'touch', ttlMs: 1 }
  for (const token of tokens) yield { type: 'mark', name: 'm', token }
  yield { type: 'mark', name: 'n', token: fullToken }
  yield { type: 'forget' }
}

/**
 * Every reachable state, each as it is stored at {@link spaceNow}: by commands, by time passing, and by a storage losing an
 * outcome. Records past their end are among them, as long as no sweeper has come by.
 */
export function reachable(): readonly (JobRecord | null)[] {
  const found = new Map<string, JobRecord | null>()
  const open: (JobRecord | null)[] = []
  const meet = (record: JobRecord | null): void => {
    if (record !== null && !isLookedAt(record)) return
    const key = JSON.stringify(record)
    if (found.has(key)) return
    found.set(key, record)
    // There are some 4,000; a machine that counts up has no end of them.
    if (found.size > 10_000) throw new Error(`too many states, the last of them ${key}`)
    open.push(record)
  }
  meet(null)
  for (let record = open.pop(); record !== undefined; record = open.pop()) {
    for (const command of commands) {
      const after: JobRecord | null = step(record, command, spaceNow).record
      // What stays as it is, or is gone, has been met.
      if (after !== record && after !== null) meet(normal(after))
    }
    if (record !== null) {
      meet(normal(later(record)))
      meet(withoutOutcome(record))
    }
  }
  return [...found.values()]
}

/** The same a millisecond later. */
function later(record: JobRecord): JobRecord {
  const at = record.at - 1
  if (record.state === 'completed' && record.outbox !== undefined) {
    const { outbox } = record
    return { ...record, at, outbox: { ...outbox, at: outbox.at - 1, until: outbox.until - 1 } }
  }
  if (!isTerminal(record) && record.kept !== undefined) {
    return { ...record, at, kept: { ...record.kept, until: record.kept.until - 1 } }
  }
  return { ...record, at }
}

/** What is past long enough makes no difference by how much; nor do the times that only tell. */
function normal(record: JobRecord | null): JobRecord | null {
  if (record === null) return null
  const at = recent(record.at)
  const told = { ...record, at, spec: { ...record.spec, createdAt: 0 } }
  if (told.state === 'failed') return { ...told, settledAt: 0 }
  if (told.state === 'completed') {
    if (told.outbox === undefined) return { ...told, settledAt: 0 }
    const attempts = Math.min(1, told.outbox.attempts)
    const outbox = { ...told.outbox, at: recent(told.outbox.at), until: recent(told.outbox.until), attempts }
    return { ...told, settledAt: 0, outbox }
  }
  if (told.kept === undefined) return told
  return { ...told, kept: { ...told.kept, settledAt: 0, until: recent(told.kept.until) } }
}

function recent(at: number): number {
  return Math.max(at, spaceNow - 3)
}

/** Everything together would make millions: what few records have is looked at on some records, and by itself. */
function isLookedAt(record: JobRecord): boolean {
  const { incarnation, fingerprint, marks, maxAttempts } = record.spec
  if (marks !== undefined && (incarnation !== '1' || fingerprint !== '' || maxAttempts === 1 || !isPlain(record))) {
    return false
  }
  const few = incarnation === '1' && fingerprint === 'x' && record.spec.maxAttempts === 1
  return record.state !== 'completed' || record.outbox === undefined || few
}

function isPlain(record: JobRecord): boolean {
  if (record.state === 'completed') return record.outbox === undefined && record.missed === undefined
  return record.state === 'failed' || record.kept === undefined
}

function withoutOutcome(record: JobRecord): JobRecord {
  if (record.state === 'completed') return { ...record, result: null }
  return record.state === 'failed' ? { ...record, error: null } : record
}

/** Whether a step changed what counts as stored. */
export function changed(stored: JobRecord | null, after: JobRecord | null): boolean {
  return living(stored, spaceNow) !== after
}
