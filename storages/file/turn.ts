/**
 * What one turn of the event loop asked of a namespace, run against its log: commands first, in the order of the calls, in
 * as few appends as there can be; then the claims, which so see everything that the turn made claimable.
 *
 * @module
 */

import type { Command } from '../../src/machine.ts'
import type { JobRecord, ProcessingRecord } from '../../src/record.ts'
import type { ClaimRequest } from '../../src/storage.ts'
import type { LogEntry } from './entries.ts'
import type { Outcome, Replica } from './replica.ts'
import type { ReplicatedLog } from './replicated-log.ts'
import { Change } from './replicated-log.ts'

/** Characters of payloads and ids that go into one append, but for a last item beyond. */
const appendCharsMax = 1024 * 1024
/** Characters of a line beside ids and values, roughly. */
const lineChars = 120
/** Times that a claim looks for other jobs because another process took what it chose. */
const claimRoundsMax = 20
/** Jobs with no attempts left that one claim settles beside those it leases. */
const exhaustedMax = 1_000

/** What a call asks for. */
export interface Plan {
  /** Commands, each on one id, run in their order. */
  readonly commands?: readonly PlannedCommand[]
  /** Run after all commands of the turn. */
  readonly claim?: ClaimRequest | null
  /** Frees records past their end, at most so many. */
  readonly sweepLimit?: number
  /** Holds the namespace. */
  readonly holdMs?: number
}

/** A command on one id. */
export interface PlannedCommand {
  readonly id: string
  readonly command: Command
}

const noCommands: readonly PlannedCommand[] = []

/** A plan on its way. */
export class Call {
  readonly plan: Plan
  /** Of each command; undefined while it has none. */
  readonly outcomes: (Outcome | undefined)[]
  /** What the claim brought. */
  readonly jobs: ProcessingRecord[] = []
  readonly exhausted: JobRecord[] = []
  claimed: boolean
  /** Records that the sweep freed. */
  swept = 0
  /** When it was run, ms since 1970. */
  now = 0
  /** Changes that are not in the log yet; infinite while the plan was not looked at. */
  missing = Number.POSITIVE_INFINITY
  readonly #prepare: (call: Call, replica: Replica) => unknown
  readonly #resolve: (answer: unknown) => void
  readonly #reject: (error: unknown) => void
  readonly #ended: () => void
  #answer: unknown

  constructor(
    plan: Plan,
    prepare: (call: Call, replica: Replica) => unknown,
    resolve: (answer: unknown) => void,
    reject: (error: unknown) => void,
    ended: () => void,
  ) {
    this.plan = plan
    this.outcomes = new Array(this.commands.length)
    this.claimed = (plan.claim ?? null) === null
    this.#prepare = prepare
    this.#resolve = resolve
    this.#reject = reject
    this.#ended = ended
  }

  get commands(): readonly PlannedCommand[] {
    return this.plan.commands ?? noCommands
  }

  /** Whether everything it asks for was done. */
  get isDone(): boolean {
    return this.missing === 0 && this.claimed
  }

  /** Makes the answer from the state of now, to be given by {@link resolve}. */
  prepare(replica: Replica): void {
    this.#answer = this.#prepare(this, replica)
  }

  resolve(): void {
    this.#ended()
    this.#resolve(this.#answer)
  }

  reject(error: unknown): void {
    this.#ended()
    this.#reject(error)
  }
}

/** Index of changes that are no command of their call. */
const noCommand = -1

/** One change of a call. */
class CallChange extends Change {
  readonly call: Call
  readonly index: number

  constructor(entry: LogEntry, call: Call, index: number) {
    super(entry)
    this.call = call
    this.index = index
  }
}

/** Gathers changes into appends. */
class Appender {
  readonly #state: ReplicatedLog
  #changes: CallChange[] = []
  #chars = 0

  constructor(state: ReplicatedLog) {
    this.#state = state
  }

  add(change: CallChange, chars: number): void {
    change.call.missing++
    this.#changes.push(change)
    this.#chars += lineChars + chars
    if (this.#chars >= appendCharsMax) this.flush()
  }

  flush(): void {
    const changes = this.#changes
    if (changes.length === 0) return
    this.#changes = []
    this.#chars = 0
    try {
      this.#state.append(changes)
    } finally {
      for (const { call, index, done, outcome } of changes) {
        if (!done) continue
        call.missing--
        if (index !== noCommand) call.outcomes[index] = outcome
        else if (outcome !== null && outcome.answer === 'forgotten') call.swept++
      }
    }
  }
}

/** Runs the calls' commands, holds and sweeps. If it throws, each call knows what of it was done. */
export function runCommands(state: ReplicatedLog, calls: readonly Call[], now: number): void {
  const { replica } = state
  const appender = new Appender(state)
  // Ids that a change on its way is about: what comes after it must be decided after it.
  const changing = new Set<string>()
  for (const call of calls) {
    call.now = now
    call.missing = 0
    const { commands, outcomes, plan } = call
    for (let index = 0; index < commands.length; index++) {
      if (outcomes[index] !== undefined) continue
      const { id, command } = commands[index] as PlannedCommand
      if (!changing.has(id)) {
        // What changes nothing needs no line: a thousand duplicates cost no byte.
        const preview = replica.preview(id, command, now)
        if (preview.record === replica.table.get(id)) {
          outcomes[index] = preview
          continue
        }
        changing.add(id)
      }
      appender.add(new CallChange({ kind: 'command', id, command, now }, call, index), charsOf(id, command))
    }
    const { holdMs, sweepLimit } = plan
    if (holdMs !== undefined) appender.add(new CallChange({ kind: 'hold', ms: holdMs, now }, call, noCommand), 0)
    if (sweepLimit !== undefined) {
      for (const id of replica.table.expiredIds(sweepLimit - call.swept, now)) {
        if (changing.has(id)) continue
        changing.add(id)
        appender.add(
          new CallChange({ kind: 'command', id, command: { type: 'forget' }, now }, call, noCommand),
          id.length,
        )
      }
    }
  }
  appender.flush()
}

function charsOf(id: string, command: Command): number {
  switch (command.type) {
    case 'enqueue':
      return id.length + command.payload.length
    case 'settle': {
      const { verdict } = command
      if (verdict.kind === 'release') return id.length
      return id.length + (verdict.kind === 'complete' ? verdict.result : verdict.error).length
    }
    default:
      return id.length
  }
}

/** Runs the calls' claims. A claim that has got something is done, even if it throws then. */
export function runClaims(state: ReplicatedLog, calls: readonly Call[], now: number): void {
  let claiming = calls.filter((call) => !call.claimed)
  if (claiming.length === 0) return
  try {
    for (let round = 1; claiming.length > 0 && round <= claimRoundsMax; round++) {
      claiming = claimOnce(state, claiming, now)
    }
    for (const call of claiming) call.claimed = true
  } catch (error) {
    for (const call of claiming) if (call.jobs.length + call.exhausted.length > 0) call.claimed = true
    throw error
  }
}

/** One round; answers the calls that may get more, because another process took what they had chosen. */
function claimOnce(state: ReplicatedLog, claiming: readonly Call[], now: number): Call[] {
  const changes = chooseAll(state.replica, claiming, now)
  if (changes.length > 0) {
    try {
      state.append(changes)
    } finally {
      for (const { call, outcome } of changes) note(call, outcome)
    }
  }
  const refused = new Set<Call>()
  for (const { call, outcome } of changes) if (outcome?.answer === 'refused') refused.add(call)
  for (const call of claiming) call.claimed = !refused.has(call)
  return [...refused]
}

function note(call: Call, outcome: Outcome): void {
  if (outcome === null) return
  if (outcome.answer === 'leased') call.jobs.push(outcome.record as ProcessingRecord)
  else if (outcome.answer === 'exhausted') call.exhausted.push(outcome.record as JobRecord)
}

/** What the calls can have, as far as this process knows. */
function chooseAll(replica: Replica, claiming: readonly Call[], now: number): CallChange[] {
  const changes: CallChange[] = []
  if (replica.table.holdUntil > now) return changes
  const taken = new Set<string>()
  const take = (id: string, call: Call, request: ClaimRequest): void => {
    const { generation, leaseMs } = request
    const command = { type: 'claim', generation, leaseMs, graceMs: 0 } as const
    changes.push(new CallChange({ kind: 'command', id, command, now }, call, noCommand))
  }
  const unnamed: Call[] = []
  let wanted = 0
  for (const call of claiming) {
    const request = call.plan.claim as ClaimRequest
    if (request.ids === undefined) {
      unnamed.push(call)
      wanted += request.limit - call.jobs.length
    } else {
      for (const id of chooseNamed(replica, call, request, now, taken)) {
        taken.add(id)
        take(id, call, request)
      }
    }
  }
  if (wanted <= 0) return changes
  const due = chooseDue(replica, wanted, now, taken)
  let next = 0
  for (const call of unnamed) {
    const request = call.plan.claim as ClaimRequest
    for (let room = request.limit - call.jobs.length; room > 0 && next < due.length; next++) {
      const id = due[next] as string
      take(id, call, request)
      // Those with no attempt left are settled on the way; they don't count.
      if (!isUsedUp(replica, id)) room--
    }
  }
  return changes
}

/** The first due ids, so many that `wanted` of them can be leased. */
function chooseDue({ table }: Replica, wanted: number, now: number, taken: ReadonlySet<string>): readonly string[] {
  const skip = (id: string): boolean => taken.has(id)
  for (let asked = wanted; ; ) {
    const ids = table.dueIds(asked, now, 0, skip)
    let used = 0
    for (const id of ids) if (isUsedUp({ table }, id)) used++
    if (ids.length < asked || asked >= wanted + used || used >= exhaustedMax) return ids
    asked = wanted + used
  }
}

function isUsedUp({ table }: Pick<Replica, 'table'>, id: string): boolean {
  const record = table.get(id)
  return record !== null && record.attempts >= record.spec.maxAttempts
}

function chooseNamed(
  replica: Replica,
  call: Call,
  request: ClaimRequest,
  now: number,
  taken: ReadonlySet<string>,
): readonly string[] {
  const { generation, leaseMs, limit, ids = [] } = request
  const command = { type: 'claim', generation, leaseMs, graceMs: 0 } as const
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
