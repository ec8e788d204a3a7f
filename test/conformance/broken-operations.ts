/** Storages with an operation that answers or acts wrongly. */

import type { EnqueueItem } from '../../src/storage.ts'
import type { Breakages } from './mutants.ts'
import { mutantsOf, withHandles } from './mutants.ts'

function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

const breakages: Breakages = {
  'inline records are given to workers': [
    'inline: workers do not see it, running, failing, released or with its lease over',
    withHandles((handle, shared) => ({
      enqueue: (items) => {
        for (const { spec, lease } of items) if (lease !== null) shared.set(spec.id, true)
        return handle.enqueue(items)
      },
      claim: (request) => {
        if (request.ids !== undefined || shared.size === 0) return handle.claim(request)
        return handle.claim({ ...request, ids: [...shared.keys()] })
      },
    })),
  ],
  'the hold is ignored': [
    'hold: nothing is leased in a held namespace, by no kind of claim',
    withHandles(() => ({ hold: async () => {} })),
  ],
  'a shorter hold shortens the hold': [
    'hold: the later end counts: a shorter hold never shortens one, a longer one lengthens it',
    withHandles((handle) => ({
      hold: async (ms) => {
        await handle.hold(0)
        await handle.hold(ms)
      },
    })),
  ],
  'no hold is ended by 0': [
    'hold: ends by itself, and 0 ends it at once',
    withHandles((handle) => ({ hold: async (ms) => (ms === 0 ? undefined : handle.hold(ms)) })),
  ],
  'the hold holds settling too': [
    'hold: everything but leasing goes on',
    withHandles((handle) => ({
      settle: async (items, claim) => {
        const { heldForMs } = await handle.stats()
        if (heldForMs === 0) return handle.settle(items, claim)
        return { answers: items.map(() => 'stale' as const), claim: claim === null ? null : await handle.claim(claim) }
      },
    })),
  ],
  'enqueue answers in another order': [
    'enqueue: several in one call, answers in their order',
    withHandles((handle) => ({
      enqueue: async (items) => {
        const { now, answers } = await handle.enqueue(items)
        return { now, answers: answers.toReversed() }
      },
    })),
  ],
  'get answers in another order': [
    'get: each state with its own data, in the order asked, null for the unknown',
    withHandles((handle) => ({
      get: async (ids) => {
        const { now, records } = await handle.get(ids.toSorted())
        return { now, records }
      },
    })),
  ],
  'get leaves out what is not there': [
    'get: each state with its own data, in the order asked, null for the unknown',
    withHandles((handle) => ({
      get: async (ids) => {
        const { now, records } = await handle.get(ids)
        return { now, records: records.filter((record) => record !== null) }
      },
    })),
  ],
  'cancel answers in another order': [
    'cancel: several in one call, answers in their order; an id twice; none, none',
    withHandles((handle) => ({ cancel: async (ids) => (await handle.cancel(ids)).toReversed() })),
  ],
  'settle answers in another order': [
    'settle: several in one call, answers in their order; of one lease twice, too',
    withHandles((handle) => ({
      settle: async (items, claim) => {
        const { answers, claim: claimed } = await handle.settle(items, claim)
        return { answers: answers.toReversed(), claim: claimed }
      },
    })),
  ],
  'settle claims first': [
    'settle: with a claim, settles first and then claims',
    withHandles((handle) => ({
      settle: async (items, claim) => {
        const claimed = claim === null ? null : await handle.claim(claim)
        return { answers: (await handle.settle(items, null)).answers, claim: claimed }
      },
    })),
  ],
  'an id twice in one call is created twice': [
    'enqueue: an id several times in one call is created by exactly the first',
    withHandles((handle) => ({
      enqueue: async (items) => {
        const result = await handle.enqueue(items)
        const made = new Set(
          items.filter((_, index) => result.answers[index]?.outcome === 'created').map(({ spec }) => spec.id),
        )
        const answers = result.answers.map((answer, index) =>
          made.has((items[index] as EnqueueItem).spec.id) ? { ...answer, outcome: 'created' as const } : answer,
        )
        return { now: result.now, answers }
      },
    })),
  ],
  'an id named twice is claimed twice': [
    'claim: an id named several times is answered once',
    withHandles((handle) => ({
      claim: async (request) => {
        const answer = await handle.claim(request)
        const { ids } = request
        if (ids === undefined) return answer
        const jobs = ids.flatMap((id) => answer.jobs.filter(({ spec }) => spec.id === id))
        return { ...answer, jobs }
      },
    })),
  ],
  'claim does not keep to its limit': [
    'claim: without ids takes whatever is due, up to the limit, and nothing twice',
    withHandles((handle) => ({ claim: (request) => handle.claim({ ...request, limit: request.limit + 1 }) })),
  ],
  'claim takes the latest first': [
    'claim: comes by `at`, then order of arrival, where the trait `ordering` says so',
    withHandles((handle) => ({
      claim: async (request) => {
        const answer = await handle.claim(request)
        return { ...answer, jobs: answer.jobs.toReversed() }
      },
    })),
  ],
  'claim does not tell of exhausted jobs': [
    'claim: attempts used up, it is settled as failed and answered as exhausted',
    withHandles((handle) => ({ claim: async (request) => ({ ...(await handle.claim(request)), exhausted: [] }) })),
  ],
  'nextInMs is 0 for nothing': [
    'claim: nextInMs, where told, is never later than the next due record, and never 0 for nothing',
    withHandles((handle) => ({ claim: async (request) => ({ ...(await handle.claim(request)), nextInMs: 0 }) })),
  ],
  'nextInMs is too late': [
    'claim: nextInMs, where told, is never later than the next due record, and never 0 for nothing',
    withHandles((handle) => ({ claim: async (request) => ({ ...(await handle.claim(request)), nextInMs: 9e9 }) })),
  ],
  'claims that name ids forget the payload': [
    'claim: leases a due job with its payload, and counts the attempt',
    withHandles((handle) => ({
      claim: async (request) => {
        const answer = await handle.claim(request)
        return { ...answer, jobs: answer.jobs.map((job) => ({ ...job, payload: '' })) }
      },
    })),
  ],
  'enqueue looks first and writes then': [
    'concurrency: of 200 callers that enqueue one id, exactly one creates it',
    withHandles((handle) => ({
      enqueue: async (items) => {
        const { records } = await handle.get(items.map(({ spec }) => spec.id))
        await tick()
        if (records.every((record) => record === null)) await handle.cancel(items.map(({ spec }) => spec.id))
        return handle.enqueue(items)
      },
    })),
  ],
  'cancel looks first and answers then': [
    'concurrency: cancel against claim: cancelled only what is never leased',
    withHandles((handle) => ({
      cancel: async (ids) => {
        const { records } = await handle.get(ids)
        await tick()
        const answers = await handle.cancel(ids)
        return answers.map((answer, index) => (records[index]?.state === 'queued' ? 'cancelled' : answer))
      },
    })),
  ],
}

export const brokenOperations = mutantsOf(breakages)
