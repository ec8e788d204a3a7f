/** Storages whose machine, or whose `deliver`, is broken in what belongs to outboxes. */

import type { CompletedRecord, JobRecord } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import type { Machines } from './machines.ts'
import { afterwards, mutantsOfMachines, seeing, sound } from './machines.ts'
import type { Breakages } from './mutants.ts'
import { mutantsOf, withHandles, withHints } from './mutants.ts'

type Posted = CompletedRecord & { readonly outbox: NonNullable<CompletedRecord['outbox']> }

function isPosted(record: JobRecord | null): record is Posted {
  return record?.state === 'completed' && record.outbox !== undefined
}

function withoutRows(record: JobRecord | null): JobRecord | null {
  if (record?.state !== 'completed') return record
  const { outbox: _, ...rest } = record
  return rest
}

const machines: Machines = {
  'outboxes are not fenced': [
    'deliver: fencing: a relay that lost its lease delivers nothing more',
    (record, command, now) => {
      if (command.type !== 'deliver' || !isPosted(record)) return sound(record, command, now)
      return sound(record, { ...command, generation: record.outbox.generation ?? 'nobody' }, now)
    },
  ],
  'the job’s own lease delivers': [
    'deliver: fencing: a relay that lost its lease delivers nothing more',
    (record, command, now) => {
      const owner = command.type === 'deliver' && isPosted(record) && record.generation === command.generation
      if (!owner || record.outbox.generation === null) return sound(record, command, now)
      return sound(record, { ...command, generation: record.outbox.generation }, now)
    },
  ],
  'collect ignores a lease': [
    'deliver: rows are written with the completion, for one relay at a time',
    seeing(['collect'], (record, _, now) => {
      return isPosted(record) ? { ...record, outbox: { ...record.outbox, at: now } } : record
    }),
  ],
  'collect ignores the back-off': [
    'deliver: what is left of a delivery waits for its delay, and is collected then',
    seeing(['collect'], (record, _, now) => {
      const free = isPosted(record) && record.outbox.generation === null
      return free ? { ...record, outbox: { ...record.outbox, at: now } } : record
    }),
  ],
  'a dead relay’s lease is never taken over': [
    'deliver: fencing: a relay that lost its lease delivers nothing more',
    seeing(['collect'], (record) => {
      const leased = isPosted(record) && record.outbox.generation !== null
      return leased ? { ...record, outbox: { ...record.outbox, at: Number.MAX_SAFE_INTEGER } } : record
    }),
  ],
  'a lease that is over delivers nothing': [
    'deliver: a lease that is over but was not taken may still deliver',
    (record, command, now) => {
      const over = command.type === 'deliver' && isPosted(record) && record.outbox.at <= now
      return over ? { record, answer: 'stale' } : sound(record, command, now)
    },
  ],
  'deliveries are not counted': [
    'deliver: rows are written with the completion, for one relay at a time',
    afterwards('collect', ({ record, answer }) => {
      return { record: isPosted(record) ? { ...record, outbox: { ...record.outbox, attempts: 0 } } : record, answer }
    }),
  ],
  'what is left of a delivery is forgotten': [
    'deliver: what is left of a delivery waits for its delay, and is collected then',
    afterwards('deliver', ({ record, answer }) => {
      return { record: answer === 'delivered' ? withoutRows(record) : record, answer }
    }),
  ],
  'what is left of a delivery is all of it': [
    'deliver: what is left of a delivery waits for its delay, and is collected then',
    afterwards('deliver', ({ record, answer }, before) => {
      if (!isPosted(record) || !isPosted(before)) return { record, answer }
      return { record: { ...record, outbox: { ...record.outbox, rows: before.outbox.rows } }, answer }
    }),
  ],
  'every delivery keeps the rows longer': [
    'deliver: what is left of a delivery waits for its delay, and is collected then',
    afterwards('deliver', ({ record, answer }, _, __, now) => {
      if (!isPosted(record) || answer !== 'delivered') return { record, answer }
      return { record: { ...record, outbox: { ...record.outbox, until: now + 10_000_000 } }, answer }
    }),
  ],
  'delivered rows stay': [
    'outbox: delivered, the rows are gone, and the record is as any other',
    (record, command, now) => {
      if (command.type !== 'deliver' || command.rows !== null) return sound(record, command, now)
      return sound(record, { ...command, rows: '', delayMs: 0 }, now)
    },
  ],
  'a completion writes no rows': [
    'outbox: only a completion that counts writes rows, and once',
    afterwards('settle', ({ record, answer }) => ({ record: withoutRows(record), answer })),
  ],
  'a repeated completion writes its rows again': [
    'outbox: only a completion that counts writes rows, and once',
    (record, command, now) => {
      const result = sound(record, command, now)
      if (command.type !== 'settle' || result.answer !== 'settled' || record?.state !== 'completed') return result
      if (command.verdict.kind !== 'complete' || command.verdict.outbox === undefined) return result
      const { rows, ttlMs } = command.verdict.outbox
      const outbox = { rows, at: now, generation: null, attempts: 0, until: now + ttlMs }
      return { record: { ...record, outbox }, answer: 'settled' }
    },
  ],
  'rows are lost by touch': [
    'outbox: nothing that is done to its record loses rows',
    afterwards('touch', ({ record, answer }) => ({ record: withoutRows(record), answer })),
  ],
  'rows are lost by mark': [
    'outbox: nothing that is done to its record loses rows',
    afterwards('mark', ({ record, answer }) => ({ record: withoutRows(record), answer })),
  ],
  'rows end with their record’s TTL': [
    'outbox: its record outlasts its TTL until the rows are delivered, and is gone then',
    (record, command, now) => sound(isPosted(record) && record.at <= now ? null : record, command, now),
  ],
  'rows are never given up': [
    'outbox: rows that nobody delivers are given up at their end, and their record with them',
    seeing(['enqueue', 'cancel', 'touch', 'mark', 'collect', 'forget'], (record) => {
      return isPosted(record) ? { ...record, outbox: { ...record.outbox, until: Number.MAX_SAFE_INTEGER } } : record
    }),
  ],
  'a delivered record outlasts its TTL': [
    'outbox: its record outlasts its TTL until the rows are delivered, and is gone then',
    afterwards('deliver', ({ record, answer }, before, _, now) => {
      const delivered = isPosted(before) && record?.state === 'completed' && record.outbox === undefined
      return { record: delivered ? { ...record, at: Math.max(record.at, now + 1_000) } : record, answer }
    }),
  ],
  'a refresh takes rows away': [
    'outbox: no refresh begins while rows are to be delivered',
    seeing(['enqueue'], (record, command) => {
      return command.type === 'enqueue' && command.refresh === true ? withoutRows(record) : record
    }),
  ],
}

const breakages: Breakages = {
  'a hold stops relays': [
    'deliver: nothing that claims do, and not stopped by a hold',
    withHandles((handle) => ({
      deliver: async (items, request) => {
        const { heldForMs } = await handle.stats()
        const { answers, collected } = await handle.deliver(items, heldForMs > 0 ? null : request)
        if (request === null || collected !== null) return { answers, collected }
        return { answers, collected: { now: (await handle.get([])).now, records: [], nextInMs: null } }
      },
    })),
  ],
  'outboxes are given to workers': [
    'deliver: nothing that claims do, and not stopped by a hold',
    withHandles((handle) => ({
      claim: async (request) => {
        const answer = await handle.claim(request)
        const { generation, leaseMs, limit } = request
        const { collected } = await handle.deliver([], { generation, leaseMs, limit })
        const jobs = collected!.records.map((record) => {
          return { ...record, state: 'processing' as const, generation, payload: '', inline: false }
        })
        return { ...answer, jobs: [...answer.jobs, ...jobs] }
      },
    })),
  ],
  'deliver answers in another order': [
    'deliver: several deliveries in one call, answers in their order, then the wish; none, none',
    withHandles((handle) => ({
      deliver: async (items, request) => {
        const { answers, collected } = await handle.deliver(items, request)
        return { answers: answers.toReversed(), collected }
      },
    })),
  ],
  'deliver collects first': [
    'deliver: several deliveries in one call, answers in their order, then the wish; none, none',
    withHandles((handle) => ({
      deliver: async (items, request) => {
        const collected = request === null ? null : (await handle.deliver([], request)).collected
        return { answers: (await handle.deliver(items, null)).answers, collected }
      },
    })),
  ],
  'collect does not keep to its limit': [
    'deliver: the earliest first, up to the limit, and nothing twice',
    withHandles((handle) => ({
      deliver: (items, request) =>
        handle.deliver(items, request === null ? null : { ...request, limit: request.limit + 1 }),
    })),
  ],
  'collect takes the latest first': [
    'deliver: the earliest first, up to the limit, and nothing twice',
    withHandles((handle) => ({
      deliver: async (items, request) => {
        const { answers, collected } = await handle.deliver(items, request)
        if (collected === null) return { answers, collected }
        return { answers, collected: { ...collected, records: collected.records.toReversed() } }
      },
    })),
  ],
  'collect’s nextInMs is 0 for nothing': [
    'deliver: nextInMs, where told, is never later than the next one is due, and never 0 for nothing',
    withNextInMs(0),
  ],
  'collect’s nextInMs is too late': [
    'deliver: nextInMs, where told, is never later than the next one is due, and never 0 for nothing',
    withNextInMs(9e9),
  ],
  'no hint of rows': [
    'deliver: hints tell relays of new rows, and of those left for later',
    withHints((type) => type !== 'outbox'),
  ],
  'relays of one namespace deliver for all': [
    'namespaces: outboxes, marks and refreshes stay within',
    withHandles((handle, shared, namespace) => {
      shared.set(namespace, handle)
      return {
        deliver: async (items, request) => {
          const first = await handle.deliver(items, request)
          if (request === null || (first.collected?.records.length ?? 0) > 0) return first
          for (const other of shared.values()) {
            const { collected } = await (other as StorageHandle).deliver([], request)
            if (collected !== null && collected.records.length > 0) return { ...first, collected }
          }
          return first
        },
      }
    }),
  ],
}

function withNextInMs(nextInMs: number) {
  return withHandles((handle) => ({
    deliver: async (items, request) => {
      const { answers, collected } = await handle.deliver(items, request)
      return { answers, collected: collected === null ? null : { ...collected, nextInMs } }
    },
  }))
}

export const brokenOutboxMachines = mutantsOfMachines(machines)
export const brokenDeliveries = mutantsOf(breakages)
