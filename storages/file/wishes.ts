/**
 * What calls wish for beside their commands: jobs to be leased, outboxes to be collected. This process names those that are
 * due as far as it knows; where another process was faster, it names others.
 *
 * @module
 */

import type { Command } from '../../src/machine.ts'
import { living } from '../../src/machine.ts'
import type { CompletedRecord, JobRecord, ProcessingRecord } from '../../src/record.ts'
import type { ClaimRequest, CollectRequest } from '../../src/storage.ts'
import type { Call } from './call.ts'
import { CallChange, noCommand } from './call.ts'
import type { Outcome, Replica } from './replica.ts'
import type { ReplicatedLog } from './replicated-log.ts'

/** Times that others are looked for because another process took what was chosen. */
const roundsMax = 20
/** What one round clears away beside what it brings: jobs with no attempts left, outboxes that are given up. */
const clearedMax = 1_000

/** Fulfils the calls' wishes. One that has brought something is over, even if this throws then. */
export function runWishes(state: ReplicatedLog, calls: readonly Call[], now: number): void {
  let wishing = calls.filter((call) => !call.isServed)
  if (wishing.length === 0) return
  try {
    for (let round = 1; wishing.length > 0 && round <= roundsMax; round++) {
      wishing = runRound(state, wishing, now)
    }
    for (const call of wishing) call.isServed = true
  } catch (error) {
    for (const call of wishing) if (call.hasGot) call.isServed = true
    throw error
  }
}

/** Answers the calls that may get more, because another process took what they had chosen. */
function runRound(state: ReplicatedLog, wishing: readonly Call[], now: number): Call[] {
  const changes: CallChange[] = []
  const add = (id: string, command: Command, call: Call): void => {
    changes.push(new CallChange({ kind: 'command', id, command, now }, call, noCommand))
  }
  chooseJobs(state.replica, wishing, now, add)
  chooseOutboxes(state.replica, wishing, now, add)
  if (changes.length > 0) {
    try {
      state.append(changes)
    } finally {
      for (const { call, outcome } of changes) note(call, outcome)
    }
  }
  const refused = new Set<Call>()
  for (const { call, outcome } of changes) if (outcome?.answer === 'refused') refused.add(call)
  for (const call of wishing) call.isServed = !refused.has(call)
  return [...refused]
}

function note(call: Call, outcome: Outcome): void {
  if (outcome === null) return
  const { record, answer } = outcome
  if (answer === 'leased') call.jobs.push(record as ProcessingRecord)
  else if (answer === 'exhausted') call.exhausted.push(record as JobRecord)
  else if (answer === 'collected') call.collected.push(record as CompletedRecord)
}

/** Notes a command that is to be tried for a call. */
type Add = (id: string, command: Command, call: Call) => void

function chooseJobs(replica: Replica, wishing: readonly Call[], now: number, add: Add): void {
  const { table } = replica
  if (table.holdUntil > now) return
  const taken = new Set<string>()
  const lists: Wish<ClaimRequest>[] = []
  for (const call of wishing) {
    const request = call.plan.claim ?? null
    if (request === null) continue
    if (request.ids === undefined) {
      lists.push({ call, request, room: request.limit - call.jobs.length })
    } else {
      for (const id of chooseNamed(replica, call, request, now, taken)) {
        taken.add(id)
        add(id, claimCommand(request), call)
      }
    }
  }
  const skip = (id: string): boolean => taken.has(id)
  const isUsedUp = (id: string): boolean => {
    const record = table.get(id)
    return record !== null && record.attempts >= record.spec.maxAttempts
  }
  const due = (limit: number): readonly string[] => table.dueIds(limit, now, 0, skip)
  deal(lists, due, isUsedUp, (id, { call, request }) => add(id, claimCommand(request), call))
}

function claimCommand({ generation, leaseMs }: ClaimRequest) {
  return { type: 'claim', generation, leaseMs, graceMs: 0 } as const
}

function chooseNamed(
  replica: Replica,
  call: Call,
  request: ClaimRequest,
  now: number,
  taken: ReadonlySet<string>,
): readonly string[] {
  const { limit, ids = [] } = request
  const command = claimCommand(request)
  const had = new Set([...call.jobs, ...call.exhausted].map((record) => record.spec.id))
  const chosen: string[] = []
  let leasable = call.jobs.length
  for (const id of new Set(ids)) {
    if (leasable >= limit) break
    if (had.has(id) || taken.has(id)) continue
    const { record, answer } = replica.preview(id, command, now)
    if (answer === 'refused') continue
    if (answer === 'leased') leasable++
    // The same claim again, after its reply was lost: nothing to be written.
    if (record === replica.table.get(id)) note(call, { record, answer })
    else chosen.push(id)
  }
  return chosen
}

function chooseOutboxes({ table }: Replica, wishing: readonly Call[], now: number, add: Add): void {
  const lists: Wish<CollectRequest>[] = []
  for (const call of wishing) {
    const request = call.plan.collect ?? null
    if (request !== null) lists.push({ call, request, room: request.limit - call.collected.length })
  }
  // Past its record's end an outbox is given up: the record goes, lest it be the first to be looked at every time.
  const isGivenUp = (id: string): boolean => living(table.get(id), now) === null
  const due = (limit: number): readonly string[] => table.outboxIds(limit, now, 0)
  deal(lists, due, isGivenUp, (id, { call, request: { generation, leaseMs } }) => {
    add(id, isGivenUp(id) ? { type: 'forget' } : { type: 'collect', generation, leaseMs, graceMs: 0 }, call)
  })
}

/** What a call may still get of what is due. */
interface Wish<Request> {
  readonly call: Call
  readonly request: Request
  readonly room: number
}

/**
 * Deals out what is due, first come, first served.
 *
 * @param due - the first so many ids that are due
 * @param isCleared - whether an id is only cleared away on the way: it fills no room
 */
function deal<Request>(
  wishes: readonly Wish<Request>[],
  due: (limit: number) => readonly string[],
  isCleared: (id: string) => boolean,
  give: (id: string, wish: Wish<Request>) => void,
): void {
  const wanted = wishes.reduce((sum, { room }) => sum + room, 0)
  if (wanted <= 0) return
  const ids = enough(due, isCleared, wanted)
  let next = 0
  for (const wish of wishes) {
    for (let { room } = wish; room > 0 && next < ids.length; next++) {
      const id = ids[next] as string
      give(id, wish)
      if (!isCleared(id)) room--
    }
  }
}

/** The first due ids, so many that `wanted` of them are not only cleared away. */
function enough(
  due: (limit: number) => readonly string[],
  isCleared: (id: string) => boolean,
  wanted: number,
): readonly string[] {
  for (let asked = wanted; ; ) {
    const ids = due(asked)
    let cleared = 0
    for (const id of ids) if (isCleared(id)) cleared++
    if (ids.length < asked || asked >= wanted + cleared || cleared >= clearedMax) return ids
    asked = wanted + cleared
  }
}
