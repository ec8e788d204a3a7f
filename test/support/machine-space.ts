/**
 * Every state of a record that commands can lead to, within small numbers: a few tokens, delays of 0 and 1 ms, one or two
 * attempts. Enough for every situation that the machine tells apart.
 *
 * @module
 */

import type { Command, LeaseRequest } from '../../src/machine.ts'
import { living, step } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import { complete, fail, isTerminal, release, retry } from '../../src/record.ts'

/** The time at which every state of the space is looked at. */
export const spaceNow = 1_000

const tokens = ['1', '2'] as const

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
    yield { type: 'settle', generation, verdict: complete('r', 1) }
    yield { type: 'settle', generation, verdict: fail('e', 1) }
    for (const delayMs of [0, 1]) {
      yield { type: 'settle', generation, verdict: retry('e', delayMs) }
      yield { type: 'settle', generation, verdict: release(delayMs) }
    }
  }
  yield { type: 'cancel' }
  yield { type: 'touch', ttlMs: 1 }
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
    const key = JSON.stringify(record)
    if (found.has(key)) return
    found.set(key, record)
    // There are some 1,500; a machine that counts up has no end of them.
    if (found.size > 10_000) throw new Error(`too many states, the last of them ${key}`)
    open.push(record)
  }
  meet(null)
  for (let record = open.pop(); record !== undefined; record = open.pop()) {
    for (const command of commands) meet(normal(step(record, command, spaceNow).record))
    if (record !== null) {
      meet(normal({ ...record, at: record.at - 1 }))
      meet(withoutOutcome(record))
    }
  }
  return [...found.values()]
}

/** What is past long enough makes no difference by how much; nor do the times that only tell. */
function normal(record: JobRecord | null): JobRecord | null {
  if (record === null) return null
  const at = Math.max(record.at, spaceNow - 4)
  const told = { ...record, at, spec: { ...record.spec, createdAt: 0 } }
  return isTerminal(told) ? { ...told, settledAt: 0 } : told
}

function withoutOutcome(record: JobRecord): JobRecord {
  if (record.state === 'completed') return { ...record, result: null }
  return record.state === 'failed' ? { ...record, error: null } : record
}

/** Whether a step changed what counts as stored. */
export function changed(stored: JobRecord | null, after: JobRecord | null): boolean {
  return living(stored, spaceNow) !== after
}
