/** Storages whose machine is broken in one place. */

import { living } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import { forgottenFrom, isTerminal } from '../../src/record.ts'
import type { Machines } from './machines.ts'
import { afterwards, later, mutantsOfMachines, seeing, sound } from './machines.ts'

const machines: Machines = {
  'the fence ignores the generation in settle': [
    'fencing: a lease taken over is stale while the new owner works, and after it completed',
    (record, command, now) => {
      if (command.type !== 'settle' || record?.state !== 'processing') return sound(record, command, now)
      return sound(record, { ...command, generation: record.generation }, now)
    },
  ],
  'the fence ignores the generation in extend': [
    'extend: answers stale to any other than the present lease, and changes nothing',
    (record, command, now) => {
      if (command.type !== 'extend' || record?.state !== 'processing') return sound(record, command, now)
      return sound(record, { ...command, generation: record.generation }, now)
    },
  ],
  'settle does not look at the state': [
    'settle: another verdict of a lease that has ended is stale',
    seeing(['settle'], (record, command, now) => {
      if (command.type !== 'settle' || record.generation !== command.generation) return record
      if (isTerminal(record)) return record
      return { ...record, state: 'processing', generation: command.generation, at: now } as JobRecord
    }),
  ],
  'settling twice is stale': [
    'settle: the same again (its reply was lost) answers `settled` and changes nothing',
    (record, command, now) => {
      if (command.type === 'settle' && record !== null && record.state !== 'processing')
        return { record, answer: 'stale' }
      return sound(record, command, now)
    },
  ],
  'claim ignores the lease': [
    'claim: a live lease is left alone; one that is over is taken over',
    seeing(['claim'], (record, _, now) => (record.state === 'processing' ? { ...record, at: now } : record)),
  ],
  'claim ignores the delay': [
    'enqueue: a delayed one is claimable `delayMs` later, not before',
    seeing(['claim'], (record, _, now) => (record.state === 'queued' ? { ...record, at: now } : record)),
  ],
  'a lease that is over is never taken over': [
    'claim: a live lease is left alone; one that is over is taken over',
    seeing(['claim'], (record) => (record.state === 'processing' ? { ...record, at: Number.MAX_VALUE } : record)),
  ],
  'a repeated claim is refused': [
    'claim: the same one again (its reply was lost) answers the same lease, the attempt counted once',
    (record, command, now) => {
      const live = record?.state === 'processing' && record.at > now
      return command.type === 'claim' && live ? { record, answer: 'refused' } : sound(record, command, now)
    },
  ],
  'attempts are not counted': [
    'claim: leases a due job with its payload, and counts the attempt',
    afterwards('claim', ({ record, answer }, before) => {
      return { record: record === null || before === null ? record : { ...record, attempts: before.attempts }, answer }
    }),
  ],
  'maxAttempts is ignored by claim': [
    'claim: attempts used up, it is settled as failed and answered as exhausted',
    seeing(['claim'], (record) => ({ ...record, attempts: Math.min(record.attempts, record.spec.maxAttempts - 1) })),
  ],
  'maxAttempts is ignored by retry': [
    'settle: retry keeps the error, and fails the job with it when no attempt is left',
    (record, command, now) => {
      if (command.type !== 'settle' || record === null) return sound(record, command, now)
      const patient = { ...record, spec: { ...record.spec, maxAttempts: Number.MAX_SAFE_INTEGER } }
      const result = sound(patient, command, now)
      return { record: result.record && ({ ...result.record, spec: record.spec } as JobRecord), answer: result.answer }
    },
  ],
  'release costs an attempt': [
    'settle: release gives the attempt back, again and again',
    afterwards('settle', ({ record, answer }, before, command) => {
      const released = command.type === 'settle' && command.verdict.kind === 'release' && before?.state === 'processing'
      return { record: released && record ? { ...record, attempts: before.attempts } : record, answer }
    }),
  ],
  'release forgets the generation': [
    'settle: the same again (its reply was lost) answers `settled` and changes nothing',
    afterwards('settle', ({ record, answer }) => {
      return { record: record?.state === 'queued' ? { ...record, generation: null } : record, answer }
    }),
  ],
  'exhausted jobs are kept for resultTTL': [
    'claim: attempts used up, it is settled as failed and answered as exhausted',
    afterwards('claim', ({ record, answer }, _, __, now) => {
      const exhausted = answer === 'exhausted' && record !== null
      return { record: exhausted ? ({ ...record, at: now + record.spec.resultTTL } as JobRecord) : record, answer }
    }),
  ],
  'a record past its end is taken as alive by enqueue': [
    'ttl: what is past its end is absent for every operation, and its id free',
    (record, command, now) => {
      if (command.type !== 'enqueue' || record === null) return sound(record, command, now)
      return sound(record, command, Math.min(now, forgottenFrom(record) - 1))
    },
  ],
  'a record past its end is taken as alive by touch': [
    'ttl: what is past its end is absent for every operation, and its id free',
    (record, command, now) => {
      if (command.type !== 'touch' || record === null) return sound(record, command, now)
      return sound(record, command, Math.min(now, forgottenFrom(record) - 1))
    },
  ],
  'a living result is taken as absent': [
    'enqueue: of a completed id answers its record with the result',
    seeing(['enqueue'], (record) => (record.state === 'completed' ? null : record)),
  ],
  'a failing job is taken as absent': [
    "crossed: every operation on 'failing, due'",
    seeing(['enqueue'], (record) => (record.state === 'failing' ? null : record)),
  ],
  'cancel takes a job from its worker': [
    'cancel: a job under lease, live or over, is not touched',
    (record, command, now) => {
      const running = command.type === 'cancel' && record?.state === 'processing'
      return running ? { record: null, answer: 'cancelled' } : sound(record, command, now)
    },
  ],
  'cancel removes results': [
    'cancel: a job that has ended keeps its result or error',
    (record, command, now) => {
      const ended = command.type === 'cancel' && living(record, now)?.state === 'completed'
      return ended ? { record: null, answer: 'completed' } : sound(record, command, now)
    },
  ],
  'touch adds to the TTL that is left': [
    'touch: counts the TTL from now, longer or shorter, and changes nothing else',
    afterwards('touch', ({ record, answer }, before, _, now) => {
      return { record: answer === 'updated' && before ? later(record, before.at - now) : record, answer }
    }),
  ],
  'touch works on open jobs': [
    'touch: an open job has no TTL to set',
    (record, command, now) => {
      const open = command.type === 'touch' && record !== null && !isTerminal(record)
      return open ? { record: later(record, 1), answer: 'updated' } : sound(record, command, now)
    },
  ],
  'extend adds to the lease that is left': [
    'extend: counts the lease from now, longer or shorter',
    afterwards('extend', ({ record, answer }, before, _, now) => {
      return { record: answer === 'extended' && before ? later(record, before.at - now) : record, answer }
    }),
  ],
  'extend answers stale when the lease is over': [
    'extend: a lease that is over but was not taken lives on',
    (record, command, now) => {
      const over = command.type === 'extend' && record !== null && record.at <= now
      return over ? { record, answer: 'stale' } : sound(record, command, now)
    },
  ],
  'TTLs are kept in 32 bits': [
    'ttl: beyond 2^31 ms and up to a hundred years, delays and leases too',
    (record, command, now) => {
      if (command.type !== 'settle' || command.verdict.kind !== 'complete') return sound(record, command, now)
      return sound(record, { ...command, verdict: { ...command.verdict, ttlMs: command.verdict.ttlMs | 0 } }, now)
    },
  ],
  'ends are rounded to seconds': [
    'ttl: one millisecond before its end it is there, at its end it is gone',
    afterwards('settle', ({ record, answer }) => {
      const ended = record !== null && isTerminal(record)
      return { record: ended ? { ...record, at: Math.floor(record.at / 1_000) * 1_000 } : record, answer }
    }),
  ],
  'incarnations are ignored: a repeated enqueue finds a stranger’s record': [
    'enqueue: the same one again (its reply was lost) answers `created` again, whatever became of the record',
    seeing(['enqueue'], (record) => ({ ...record, spec: { ...record.spec, incarnation: 'nobody' } }) as JobRecord),
  ],
  'every enqueue is taken for the first': [
    'enqueue: the first fixes payload, attempts and TTLs; later ones change nothing',
    seeing(['enqueue'], (record, command) => {
      if (command.type !== 'enqueue') return record
      return { ...record, spec: { ...record.spec, incarnation: command.spec.incarnation } } as JobRecord
    }),
  ],
  'a later enqueue changes attempts and TTLs': [
    'enqueue: the first fixes payload, attempts and TTLs; later ones change nothing',
    afterwards('enqueue', ({ record, answer }, before, command) => {
      if (record?.state !== 'queued' || before === null || command.type !== 'enqueue') return { record, answer }
      const { maxAttempts, resultTTL, failureTTL } = command.spec
      return { record: { ...record, spec: { ...record.spec, maxAttempts, resultTTL, failureTTL } }, answer }
    }),
  ],
  'an enqueue that finds a result lengthens its TTL': [
    'ttl: an enqueue that finds a result does not make it last longer',
    afterwards('enqueue', ({ record, answer }, before) => {
      return { record: before !== null && record?.state === 'completed' ? later(record, 5_000) : record, answer }
    }),
  ],
  'a mismatch is told without digests': [
    'enqueue: tells of another payload by the digests, and with rejectMismatch leaves the record wholly alone',
    afterwards('enqueue', ({ record, answer }, before, command) => {
      const other =
        command.type === 'enqueue' && before !== null && before.spec.fingerprint !== command.spec.fingerprint
      return { record, answer: { ...(answer as object), mismatch: other } }
    }),
  ],
  'rejectMismatch is ignored': [
    'enqueue: tells of another payload by the digests, and with rejectMismatch leaves the record wholly alone',
    (record, command, now) => {
      return sound(record, command.type === 'enqueue' ? { ...command, rejectMismatch: false } : command, now)
    },
  ],
  'inline records are made like any other': [
    'inline: workers do not see it, running, failing, released or with its lease over',
    (record, command, now) => sound(record, command.type === 'enqueue' ? { ...command, inline: false } : command, now),
  ],
  'an inline record becomes visible by a retry': [
    'inline: workers do not see it, running, failing, released or with its lease over',
    afterwards('settle', ({ record, answer }) => {
      return { record: record?.state === 'failing' ? { ...record, inline: false } : record, answer }
    }),
  ],
  'a plain enqueue does not make an inline record visible': [
    'inline: a plain enqueue of the id makes it visible to workers, in every state',
    (record, command, now) => {
      const there = record !== null && command.type === 'enqueue'
      return sound(record, there ? { ...command, inline: true } : command, now)
    },
  ],
  'a forgotten inline record still extends': [
    'inline: nobody asking again, it is forgotten a resultTTL after its lease, and its id free',
    (record, command, now) => {
      const inline = command.type === 'extend' && record !== null && !isTerminal(record) && record.inline
      return sound(record, command, inline ? Math.min(now, record.at) : now)
    },
  ],
  'an enqueue with a lease never takes over': [
    'inline: when its lease is over, the next enqueue with a lease takes it over',
    (record, command, now) => {
      const there = record !== null && command.type === 'enqueue' && living(record, now) !== null
      return sound(record, there ? { ...command, lease: null } : command, now)
    },
  ],
}

export const brokenMachines = mutantsOfMachines(machines)
