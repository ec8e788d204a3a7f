/**
 * At which times the machine is to be asked: all milliseconds of a short span; of a long one those at which the answer, or that of
 * a later call, can change.
 *
 * @module
 */

import type { Command } from '../../../src/machine.ts'
import type { JobRecord } from '../../../src/record.ts'
import { forgottenFrom, isTerminal } from '../../../src/record.ts'
import type { ReadCommand, TimedCommand } from './history.ts'

/** Spans up to this length are tried millisecond by millisecond. */
const spanMsMax = 64

/**
 * For one history: answers, for a command on a record, the times to try, the likeliest first.
 */
export function momentsOf(
  history: readonly TimedCommand[],
): (timed: TimedCommand, record: JobRecord | null) => readonly number[] {
  // Ends that later answers show tell when they were set; the times of others tell when they have to be over, or not.
  const shown = new Set<number>()
  const limits = new Set<number>()
  for (const { now, seen } of history) {
    limits.add(now.lo)
    if (Number.isFinite(now.hi)) limits.add(now.hi)
    const record = seen?.record
    if (record === undefined || record === null) continue
    for (const moment of momentsIn(record)) shown.add(moment)
  }

  return ({ command, now }, record) => {
    const { lo, hi } = now
    if (lo === hi) return [lo]
    const moments = new Set<number>()
    const add = (moment: number): void => {
      if (moment >= lo && moment <= hi) moments.add(moment)
    }
    const lengths = lengthsOf(command, record)
    for (const length of lengths) for (const at of shown) add(at - length)
    if (hi - lo <= spanMsMax) {
      for (let moment = lo; moment <= hi; moment++) moments.add(moment)
      return [...moments]
    }
    add(lo)
    add(hi)
    for (const end of endsOf(record)) for (const by of [0, -1]) add(end + by)
    for (const length of lengths) for (const limit of limits) for (const by of [0, 1]) add(limit - length + by)
    return [...moments]
  }
}

/** All that a record tells of moments. */
function momentsIn(record: JobRecord): readonly number[] {
  const moments = [record.at, record.spec.createdAt]
  if (isTerminal(record)) moments.push(record.settledAt)
  if (record.state === 'completed' && record.outbox !== undefined) moments.push(record.outbox.at, record.outbox.until)
  if ('kept' in record && record.kept !== undefined) moments.push(record.kept.settledAt, record.kept.until)
  return moments
}

/** When a record's state changes by itself. */
function endsOf(record: JobRecord | null): readonly number[] {
  if (record === null) return []
  const ends = [record.at, forgottenFrom(record)]
  if (record.state === 'completed') return record.outbox === undefined ? ends : [...ends, record.outbox.at]
  return record.state === 'failed' || record.kept === undefined ? ends : [...ends, record.kept.until]
}

/** How long after the command an end may be set. */
function lengthsOf(command: Command | ReadCommand, record: JobRecord | null): readonly number[] {
  switch (command.type) {
    case 'enqueue':
      return [0, command.delayMs, command.lease?.leaseMs ?? 0]
    case 'claim':
      return record === null ? [command.leaseMs] : [command.leaseMs, record.spec.failureTTL, 0]
    case 'collect':
    case 'extend':
      return [command.leaseMs]
    case 'settle': {
      const { verdict } = command
      const length = verdict.kind === 'complete' || verdict.kind === 'fail' ? verdict.ttlMs : verdict.delayMs
      return record === null ? [length, 0] : [length, record.spec.failureTTL, 0]
    }
    case 'touch':
      return [command.ttlMs]
    case 'deliver':
      return [command.delayMs]
    default:
      return []
  }
}
