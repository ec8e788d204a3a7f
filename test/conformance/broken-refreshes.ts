/** Storages whose machine is broken in what belongs to refreshes and marks. */

import type { JobRecord } from '../../src/record.ts'
import { isTerminal, keptAt } from '../../src/record.ts'
import type { Machines } from './machines.ts'
import { afterwards, mutantsOfMachines, seeing, sound } from './machines.ts'

function withoutKept(record: JobRecord | null): JobRecord | null {
  if (record === null || isTerminal(record)) return record
  const { kept: _, ...rest } = record
  return rest as JobRecord
}

function withMarks(record: JobRecord, marks: string): JobRecord {
  return { ...record, spec: { ...record.spec, marks } }
}

const machines: Machines = {
  'a refresh drops the old result': [
    'refresh: of a completed id begins a new run, by the terms of the refresh',
    afterwards('enqueue', ({ record, answer }) => ({ record: withoutKept(record), answer })),
  ],
  'a claim drops the old result': [
    'refresh: the old result is readable in every state of the new run',
    afterwards('claim', ({ record, answer }) => ({ record: withoutKept(record), answer })),
  ],
  'a retry drops the old result': [
    'refresh: the old result is readable in every state of the new run',
    afterwards('settle', ({ record, answer }) => {
      return { record: record?.state === 'failing' ? withoutKept(record) : record, answer }
    }),
  ],
  'a release drops the old result': [
    'refresh: the old result is readable in every state of the new run',
    afterwards('settle', ({ record, answer }) => {
      return { record: record?.state === 'queued' ? withoutKept(record) : record, answer }
    }),
  ],
  'the old result is kept for the new TTL': [
    'refresh: of a completed id begins a new run, by the terms of the refresh',
    afterwards('enqueue', ({ record, answer }, before, _, now) => {
      if (record === null || isTerminal(record) || record.kept === undefined || before === record) {
        return { record, answer }
      }
      return { record: { ...record, kept: { ...record.kept, until: now + record.spec.resultTTL } }, answer }
    }),
  ],
  'refresh is ignored': [
    'refresh: of a completed id begins a new run, by the terms of the refresh',
    (record, command, now) => sound(record, command.type === 'enqueue' ? { ...command, refresh: false } : command, now),
  ],
  'a failure is not run anew': [
    'refresh: of what has not ended is a duplicate; of nothing, an ordinary enqueue; of a failure, a new run',
    (record, command, now) => {
      if (command.type !== 'enqueue' || record?.state !== 'failed') return sound(record, command, now)
      return sound(record, { ...command, refresh: false }, now)
    },
  ],
  'a refresh replaces a run that goes on': [
    'refresh: of what has not ended is a duplicate; of nothing, an ordinary enqueue; of a failure, a new run',
    (record, command, now) => {
      const other = command.type === 'enqueue' && record?.spec.incarnation !== command.spec.incarnation
      const open = other && command.refresh === true && record?.state === 'queued'
      return sound(open ? null : record, command, now)
    },
  ],
  'a refresh ignores rejectMismatch': [
    'refresh: with another payload, rejecting, leaves a result wholly alone',
    (record, command, now) => {
      if (command.type !== 'enqueue' || command.refresh !== true) return sound(record, command, now)
      return sound(record, { ...command, rejectMismatch: false }, now)
    },
  ],
  'a repeated refresh finds a stranger’s run': [
    'refresh: the same again (its reply was lost) answers `created` again, whatever became of the run',
    seeing(['enqueue'], (record, command) => {
      if (command.type !== 'enqueue' || command.refresh !== true || isTerminal(record)) return record
      return { ...record, spec: { ...record.spec, incarnation: 'nobody' } }
    }),
  ],
  'a plain enqueue leases what is refreshed': [
    'refresh: who asks without it is answered by the old result, leases nothing, and changes nothing',
    seeing(['enqueue'], (record, command) => {
      return command.type === 'enqueue' && command.lease !== null ? withoutKept(record) : record
    }),
  ],
  'a plain enqueue makes an inline refresh visible': [
    'refresh inline: begins under the caller’s lease, hidden from workers; the old result answers others',
    (record, command, now) => {
      const result = sound(record, command, now)
      if (command.type !== 'enqueue' || command.inline || record === null || isTerminal(record)) return result
      return { record: { ...record, inline: false }, answer: result.answer }
    },
  ],
  'a refresh never takes a dead runner’s lease over': [
    'refresh inline: when its runner dies, the next refresh takes it over, and one who does not refresh does not',
    (record, command, now) => {
      const open = record !== null && !isTerminal(record) && keptAt(record, now) !== null
      const asks = command.type === 'enqueue' && command.spec.incarnation !== record?.spec.incarnation
      return sound(record, open && asks ? { ...command, refresh: false } : command, now)
    },
  ],
  'a used-up refresh is not begun anew': [
    'refresh inline: attempts used up, the next refresh begins anew, the old result kept once more',
    (record, command, now) => {
      const usedUp = record?.state === 'processing' && record.attempts >= record.spec.maxAttempts && record.at <= now
      if (command.type !== 'enqueue' || command.lease === null || !usedUp) return sound(record, command, now)
      const claimed = sound(record, { type: 'claim', ...command.lease }, now)
      return { record: claimed.record, answer: { outcome: 'exists', leased: false, mismatch: false } }
    },
  ],
  'an inline refresh is forgotten with its runner': [
    'refresh inline: nobody asking again, it is forgotten, but not before the result that it keeps',
    (record, command, now) => {
      const inline = record !== null && !isTerminal(record) && record.inline
      const gone = inline && record.at + record.spec.resultTTL <= now
      return sound(gone ? null : record, command, now)
    },
  ],
  'a refresh in vain fails the record': [
    'refresh: in vain by a failure, the old result is back, with the error and its own TTL',
    seeing(['settle'], (record, command) => {
      const fails = command.type === 'settle' && command.verdict.kind === 'fail'
      return fails ? withoutKept(record) : record
    }),
  ],
  'a refresh whose attempts are used up by retries fails the record': [
    'refresh: in vain by a failure, the old result is back, with the error and its own TTL',
    seeing(['settle'], (record, command) => {
      const last = record.attempts >= record.spec.maxAttempts
      const retries = command.type === 'settle' && command.verdict.kind === 'retry'
      return retries && last ? withoutKept(record) : record
    }),
  ],
  'a refresh whose leases ran out fails the record': [
    'refresh: in vain because its leases ran out, the old result is back, told of by the claim',
    seeing(['claim'], (record) => (record.attempts >= record.spec.maxAttempts ? withoutKept(record) : record)),
  ],
  'a cancelled refresh takes the old result with it': [
    'refresh: cancelled, the old result is back',
    seeing(['cancel'], (record) => withoutKept(record)),
  ],
  'the result that is back counts its TTL anew': [
    'refresh: in vain by a failure, the old result is back, with the error and its own TTL',
    afterwards('settle', ({ record, answer }, before, _, now) => {
      const restored = before?.state === 'processing' && record?.state === 'completed' && record.missed !== undefined
      return { record: restored ? { ...record, at: now + record.spec.resultTTL } : record, answer }
    }),
  ],
  'the result that is back does not say why': [
    'refresh: in vain by a failure, the old result is back, with the error and its own TTL',
    afterwards('settle', ({ record, answer }) => {
      if (record?.state !== 'completed') return { record, answer }
      const { missed: _, ...rest } = record
      return { record: rest, answer }
    }),
  ],
  'a result past its end is still kept': [
    'refresh: one millisecond before its end the old result answers, at its end it does not',
    seeing(['enqueue', 'claim', 'settle', 'cancel'], (record) => {
      if (isTerminal(record) || record.kept === undefined) return record
      return { ...record, kept: { ...record.kept, until: Number.MAX_SAFE_INTEGER } }
    }),
  ],
  'a result past its end comes back': [
    'refresh: when the old result’s TTL ends meanwhile, it is gone, and the run goes on as any other',
    seeing(['settle', 'cancel'], (record) => {
      if (isTerminal(record) || record.kept === undefined) return record
      return { ...record, kept: { ...record.kept, until: Number.MAX_SAFE_INTEGER } }
    }),
  ],
  'a lease of the run before counts in the new one': [
    'refresh: leases of the run before are stale in the new one',
    (record, command, now) => {
      const refreshed = record?.state === 'processing' && record.kept !== undefined
      if (command.type !== 'settle' || !refreshed) return sound(record, command, now)
      return sound(record, { ...command, generation: record.generation }, now)
    },
  ],
  'touch works on what is refreshed': [
    'refresh: an open record has no TTL to set: what it keeps is left alone',
    (record, command, now) => {
      if (command.type !== 'touch' || record === null || isTerminal(record) || record.kept === undefined) {
        return sound(record, command, now)
      }
      return { record: { ...record, kept: { ...record.kept, until: now + command.ttlMs } }, answer: 'updated' }
    },
  ],
  'a mark ignores the token': [
    'mark: of 200 callers exactly one begins an effect',
    afterwards('mark', ({ record, answer }) => ({ record, answer: answer === 'taken' ? 'marked' : answer })),
  ],
  'a repeated mark is taken': [
    'mark: the same again (its reply was lost) is `marked`, another’s is `taken`, and neither changes anything',
    afterwards('mark', ({ record, answer }, before) => {
      return { record, answer: answer === 'marked' && record === before ? 'taken' : answer }
    }),
  ],
  'a mark of a longer name is taken for one': [
    'mark: each name is its own, and each id',
    (record, command, now) => {
      if (command.type !== 'mark' || record === null) return sound(record, command, now)
      const taken = (record.spec.marks ?? '').split('\n').some((line) => line.startsWith(command.name))
      return taken ? { record, answer: 'taken' } : sound(record, command, now)
    },
  ],
  'a mark is lost with the attempt': [
    'mark: stays through every attempt and the end, and stands in nobody’s way',
    afterwards('settle', ({ record, answer }) => {
      return { record: record?.state === 'queued' ? withMarks(record, '') : record, answer }
    }),
  ],
  'a mark survives a refresh': [
    'mark: a refresh has effects of its own, which stay when it was in vain',
    afterwards('enqueue', ({ record, answer }, before) => {
      const marks = before?.spec.marks
      const refreshed = marks !== undefined && record !== null && record.spec.incarnation !== before?.spec.incarnation
      return { record: refreshed ? withMarks(record, marks) : record, answer }
    }),
  ],
  'marks have no bound': [
    'mark: a record that has no room for another says `full`, and still tells of those it has',
    (record, command, now) => {
      const result = sound(record, command, now)
      if (command.type !== 'mark' || result.answer !== 'full' || record === null) return result
      const marks = `${record.spec.marks ?? ''}${command.name}=${command.token}\n`
      return { record: withMarks(record, marks), answer: 'marked' }
    },
  ],
  'a mark takes the record for new': [
    'mark: on a record in any state, of which nothing else changes',
    afterwards('mark', ({ record, answer }, before, _, now) => {
      return { record: record === null || record === before ? record : { ...record, at: now }, answer }
    }),
  ],
}

export const brokenRefreshes = mutantsOfMachines(machines)
