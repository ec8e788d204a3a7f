/**
 * The state machine: every transition of a record, as pure functions without I/O or clock. What a storage does must be
 * what these say. Memory, File and DynamoDB call them; Redis does the same in Lua and is tested against them.
 *
 * Lost replies are harmless: each command that creates or leases carries a token that is never reused, and repeating a
 * command answers as the first time, as long as nobody changed the record in between.
 *
 * @module
 */

import { limits } from './limits.ts'
import type {
  CompletedRecord,
  Encoded,
  FailedRecord,
  FailingRecord,
  JobRecord,
  JobSpec,
  Kept,
  Missed,
  NewSpec,
  OpenRecord,
  Outbox,
  ProcessingRecord,
  QueuedRecord,
  Verdict,
} from './record.ts'
import { forgottenFrom, isTerminal, keptAt } from './record.ts'

/** A lease asked for: who (a token never used before), and for how long. */
export interface LeaseRequest {
  readonly generation: string
  /** Length of the lease, ms. */
  readonly leaseMs: number
}

/** A claim's terms. */
export interface ClaimTerms extends LeaseRequest {
  /** Another's lease is taken over only this long after its end, ms: how storages that trust clients' clocks bound the harm. */
  readonly graceMs: number
}

/** Makes the record of an id, or finds the one that lives. */
export interface EnqueueCommand {
  readonly type: 'enqueue'
  readonly spec: NewSpec
  readonly payload: Encoded
  /** From now until the first claim, ms; 0 for at once. */
  readonly delayMs: number
  /** With another payload than the living record's: leave it wholly alone. */
  readonly rejectMismatch: boolean
  /** Given by inline runs: lease the record in the same step, if it is created or due; hide it from workers if created. */
  readonly lease: ClaimTerms | null
  /** Given by inline runs: the record is to be inline even if it can't be leased now (the queue is held). */
  readonly inline: boolean
  /**
   * A record that has ended is run anew, its result staying readable meanwhile; and what such a result answers with is not
   * enough. Not while rows of it are to be delivered.
   */
  readonly refresh?: boolean
}

/** Leases a due record. */
export interface ClaimCommand extends ClaimTerms {
  readonly type: 'claim'
}

/** Renews a lease. */
export interface ExtendCommand extends LeaseRequest {
  readonly type: 'extend'
}

/** Ends a lease. */
export interface SettleCommand {
  readonly type: 'settle'
  readonly generation: string
  readonly verdict: Verdict
}

/** Removes a record that no worker holds and that has not ended. */
export interface CancelCommand {
  readonly type: 'cancel'
}

/** Sets a terminal record's remaining TTL. */
export interface TouchCommand {
  readonly type: 'touch'
  readonly ttlMs: number
}

/** Notes that an effect behind the record was begun, for who is first. */
export interface MarkCommand {
  readonly type: 'mark'
  /** 1 to 64 letters, digits and `_.:-`. */
  readonly name: string
  /** Tells one's own mark when the reply was lost; never used before; of the same characters. */
  readonly token: string
}

/** Leases the rows of a completed record's outbox, if a delivery is due. */
export interface CollectCommand extends ClaimTerms {
  readonly type: 'collect'
}

/** Ends the lease of an outbox. */
export interface DeliverCommand {
  readonly type: 'deliver'
  readonly generation: string
  /** What is left to be delivered; null if nothing is. */
  readonly rows: Encoded | null
  /** From now until the next delivery of what is left, ms. */
  readonly delayMs: number
}

/** Removes a record that is past its end: what sweepers do. Answers are the same whether it runs or not. */
export interface ForgetCommand {
  readonly type: 'forget'
}

/** All commands. */
export type Command =
  | EnqueueCommand
  | ClaimCommand
  | ExtendCommand
  | SettleCommand
  | CancelCommand
  | TouchCommand
  | MarkCommand
  | CollectCommand
  | DeliverCommand
  | ForgetCommand

/** What a command did: the record after it (null: none; the same object: nothing changed) and the answer. */
export interface Step<Answer> {
  readonly record: JobRecord | null
  readonly answer: Answer
}

/** `created`: a record was made; `exists`: one lives. `leased`: it is now the caller's, attempt counted. */
export interface EnqueueOutcome {
  readonly outcome: 'created' | 'exists'
  readonly leased: boolean
  /** Whether the living record has another payload. */
  readonly mismatch: boolean
}

/** `exhausted`: its attempts are used up and it has just failed; `refused`: not due, leased, ended or unknown. */
export type ClaimOutcome = 'leased' | 'exhausted' | 'refused'
export type ExtendOutcome = 'extended' | 'stale'
export type SettleOutcome = 'settled' | 'stale'
export type CancelOutcome = 'cancelled' | 'processing' | 'completed' | 'failed' | 'not_found'
export type TouchOutcome = 'updated' | 'not_found' | 'not_terminal' | 'missing_payload'
/** `taken`: somebody else began it; `full`: the record has no room for another mark. */
export type MarkOutcome = 'marked' | 'taken' | 'full' | 'not_found'
export type CollectOutcome = 'collected' | 'refused'
export type DeliverOutcome = 'delivered' | 'stale'
export type ForgetOutcome = 'forgotten' | 'kept'

/** The answer of each command. */
export interface Answers {
  readonly enqueue: EnqueueOutcome
  readonly claim: ClaimOutcome
  readonly extend: ExtendOutcome
  readonly settle: SettleOutcome
  readonly cancel: CancelOutcome
  readonly touch: TouchOutcome
  readonly mark: MarkOutcome
  readonly collect: CollectOutcome
  readonly deliver: DeliverOutcome
  readonly forget: ForgetOutcome
}

const created: EnqueueOutcome = Object.freeze({ outcome: 'created', leased: false, mismatch: false })
const createdLeased: EnqueueOutcome = Object.freeze({ outcome: 'created', leased: true, mismatch: false })
const exists: EnqueueOutcome = Object.freeze({ outcome: 'exists', leased: false, mismatch: false })
const existsOther: EnqueueOutcome = Object.freeze({ outcome: 'exists', leased: false, mismatch: true })
const existsLeased: EnqueueOutcome = Object.freeze({ outcome: 'exists', leased: true, mismatch: false })
const existsOtherLeased: EnqueueOutcome = Object.freeze({ outcome: 'exists', leased: true, mismatch: true })

/** The record as of `now`: null once it is past its end, whether or not a sweeper has come by. */
export function living(record: JobRecord | null, now: number): JobRecord | null {
  return record === null || forgottenFrom(record) <= now ? null : record
}

/**
 * One transition.
 *
 * @param record - what the storage holds for the id, or null
 * @param command - what is asked
 * @param now - ms since 1970, by the storage's clock
 */
export function step<C extends Command>(record: JobRecord | null, command: C, now: number): Step<Answers[C['type']]>
export function step(record: JobRecord | null, command: Command, now: number): Step<Answers[Command['type']]> {
  switch (command.type) {
    case 'enqueue':
      return enqueueStep(record, command, now)
    case 'claim':
      return claimStep(record, command, now)
    case 'extend':
      return extendStep(record, command, now)
    case 'settle':
      return settleStep(record, command, now)
    case 'cancel':
      return cancelStep(record, now)
    case 'touch':
      return touchStep(record, command, now)
    case 'mark':
      return markStep(record, command, now)
    case 'collect':
      return collectStep(record, command, now)
    case 'deliver':
      return deliverStep(record, command, now)
    case 'forget':
      return forgetStep(record, now)
  }
}

function enqueueStep(stored: JobRecord | null, command: EnqueueCommand, now: number): Step<EnqueueOutcome> {
  const record = living(stored, now)
  return record === null ? create(command, now) : meet(record, command, now)
}

function create(command: EnqueueCommand, now: number, kept: Kept | null = null): Step<EnqueueOutcome> {
  const { payload, lease, inline } = command
  const { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL } = command.spec
  const spec: JobSpec = { id, incarnation, fingerprint, createdAt: now, maxAttempts, resultTTL, failureTTL }
  if (lease === null) {
    const at = now + command.delayMs
    const queued: QueuedRecord = { state: 'queued', spec, attempts: 0, at, payload, inline, generation: null }
    return { record: keeping(queued, kept), answer: created }
  }
  const at = now + lease.leaseMs
  const { generation } = lease
  const leased: ProcessingRecord = { state: 'processing', spec, attempts: 1, at, payload, inline, generation }
  return { record: keeping(leased, kept), answer: createdLeased }
}

/** The same, with what is kept beside it: most records keep nothing, and have no field for it. */
function keeping<R extends OpenRecord>(record: R, kept: Kept | null | undefined): R {
  return kept === null || kept === undefined ? record : { ...record, kept }
}

/** An enqueue that finds a living record. */
function meet(record: JobRecord, command: EnqueueCommand, now: number): Step<EnqueueOutcome> {
  if (record.spec.incarnation === command.spec.incarnation) return repeatCreate(record, command)
  const theirs = record.spec.fingerprint
  const ours = command.spec.fingerprint
  const mismatch = theirs !== ours && theirs !== '' && ours !== ''
  const answer = mismatch ? existsOther : exists
  if (mismatch && command.rejectMismatch) return { record, answer }
  if (isTerminal(record)) return command.refresh === true ? refresh(record, command, now, answer) : { record, answer }
  if (command.lease !== null && isLeaseOf(record, command.lease)) {
    return { record, answer: mismatch ? existsOtherLeased : existsLeased }
  }
  // The result of the run before answers the caller: it is not this run that he counts on.
  if (command.refresh !== true && keptAt(record, now) !== null) return { record, answer }
  if (command.lease !== null) {
    const claimed = claimOpen(record, command.lease, now)
    if (claimed.answer === 'exhausted' && command.refresh === true) return meet(claimed.record, command, now)
    if (claimed.answer !== 'leased') return { record: claimed.record, answer }
    return { record: claimed.record, answer: mismatch ? existsOtherLeased : existsLeased }
  }
  // Somebody counts on this job now without running it: workers must see it, should its inline runner die.
  return { record: record.inline && !command.inline ? { ...record, inline: false } : record, answer }
}

/** Runs anew what has ended. */
function refresh(
  record: CompletedRecord | FailedRecord,
  command: EnqueueCommand,
  now: number,
  answer: EnqueueOutcome,
): Step<EnqueueOutcome> {
  if (record.state === 'failed') return create(command, now)
  // The rows are promised to be delivered, and there is one outbox.
  if (record.outbox !== undefined) return { record, answer }
  const { result, settledAt, at } = record
  return create(command, now, { result, settledAt, until: at })
}

/** The same enqueue again, after its reply was lost. */
function repeatCreate(record: JobRecord, command: EnqueueCommand): Step<EnqueueOutcome> {
  return { record, answer: command.lease !== null && isLeaseOf(record, command.lease) ? createdLeased : created }
}

function isLeaseOf(record: JobRecord, lease: LeaseRequest): boolean {
  return record.state === 'processing' && record.generation === lease.generation
}

function claimStep(stored: JobRecord | null, command: ClaimCommand, now: number): Step<ClaimOutcome> {
  const record = living(stored, now)
  if (record === null || isTerminal(record)) return { record, answer: 'refused' }
  if (isLeaseOf(record, command)) return { record, answer: 'leased' }
  return claimOpen(record, command, now)
}

function claimOpen(
  record: OpenRecord,
  lease: ClaimTerms,
  now: number,
): { readonly record: JobRecord; readonly answer: ClaimOutcome } {
  const due = record.state === 'processing' ? record.at + lease.graceMs : record.at
  if (due > now) return { record, answer: 'refused' }
  const { spec, attempts, payload, inline } = record
  if (attempts >= spec.maxAttempts) {
    const kept = keptAt(record, now)
    if (kept !== null) {
      return { record: restored(record, kept, null, { reason: 'exhausted', error: null }), answer: 'exhausted' }
    }
    const at = now + spec.failureTTL
    const failed: FailedRecord = {
      state: 'failed',
      spec,
      attempts,
      at,
      generation: null,
      reason: 'exhausted',
      error: null,
      settledAt: now,
    }
    return { record: failed, answer: 'exhausted' }
  }
  const at = now + lease.leaseMs
  const { generation } = lease
  const leased: ProcessingRecord = {
    state: 'processing',
    spec,
    attempts: attempts + 1,
    at,
    payload,
    inline,
    generation,
  }
  return { record: keeping(leased, record.kept), answer: 'leased' }
}

function extendStep(stored: JobRecord | null, command: ExtendCommand, now: number): Step<ExtendOutcome> {
  const record = living(stored, now)
  if (record === null || !isLeaseOf(record, command)) return { record, answer: 'stale' }
  return { record: { ...(record as ProcessingRecord), at: now + command.leaseMs }, answer: 'extended' }
}

function settleStep(stored: JobRecord | null, command: SettleCommand, now: number): Step<SettleOutcome> {
  const record = living(stored, now)
  if (record === null || record.generation !== command.generation) return { record, answer: 'stale' }
  const { verdict } = command
  if (record.state !== 'processing') {
    return { record, answer: settledAs(record, verdict) ? 'settled' : 'stale' }
  }
  const { spec, attempts, payload, inline, generation, kept } = record
  switch (verdict.kind) {
    case 'complete': {
      const { result, ttlMs, outbox } = verdict
      const done: CompletedRecord = {
        state: 'completed',
        spec,
        attempts,
        at: now + ttlMs,
        generation,
        result,
        settledAt: now,
      }
      return { record: outbox === undefined ? done : { ...done, outbox: posted(outbox, now) }, answer: 'settled' }
    }
    case 'fail':
      return { record: failWith(record, verdict.error, verdict.ttlMs, now), answer: 'settled' }
    case 'retry': {
      const { error, delayMs } = verdict
      if (attempts >= spec.maxAttempts)
        return { record: failWith(record, error, spec.failureTTL, now), answer: 'settled' }
      const failing: FailingRecord = {
        state: 'failing',
        spec,
        attempts,
        at: now + delayMs,
        payload,
        inline,
        generation,
        error,
      }
      return { record: keeping(failing, kept), answer: 'settled' }
    }
    case 'release': {
      const at = now + verdict.delayMs
      const queued: QueuedRecord = { state: 'queued', spec, attempts: attempts - 1, at, payload, inline, generation }
      return { record: keeping(queued, kept), answer: 'settled' }
    }
  }
}

function posted({ rows, ttlMs }: { readonly rows: Encoded; readonly ttlMs: number }, now: number): Outbox {
  return { rows, at: now, generation: null, attempts: 0, until: now + ttlMs }
}

function failWith(record: ProcessingRecord, error: Encoded, ttlMs: number, now: number): JobRecord {
  const { spec, attempts, generation } = record
  const kept = keptAt(record, now)
  if (kept !== null) return restored(record, kept, generation, { reason: 'error', error })
  return { state: 'failed', spec, attempts, at: now + ttlMs, generation, reason: 'error', error, settledAt: now }
}

/** A refresh in vain does not take the result away that is still good. */
function restored(
  { spec, attempts }: OpenRecord,
  { result, settledAt, until }: Kept,
  generation: string | null,
  missed: Missed,
): CompletedRecord {
  return { state: 'completed', spec, attempts, at: until, generation, result, settledAt, missed }
}

/** Whether this very verdict was given before: the lease is the same, and so is the state it leads to. */
function settledAs(record: JobRecord, verdict: Verdict): boolean {
  switch (verdict.kind) {
    case 'complete':
      return record.state === 'completed' && record.missed === undefined
    case 'fail':
      return failedBy(record)
    case 'retry':
      return record.state === 'failing' || failedBy(record)
    case 'release':
      return record.state === 'queued'
  }
}

/** Whether a lease has ended the job without a result. */
function failedBy(record: JobRecord): boolean {
  return record.state === 'failed' || (record.state === 'completed' && record.missed?.reason === 'error')
}

function cancelStep(stored: JobRecord | null, now: number): Step<CancelOutcome> {
  const record = living(stored, now)
  if (record === null) return { record, answer: 'not_found' }
  if (record.state === 'queued' || record.state === 'failing') {
    const kept = keptAt(record, now)
    const missed = { reason: 'cancelled', error: null } as const
    return { record: kept === null ? null : restored(record, kept, null, missed), answer: 'cancelled' }
  }
  return { record, answer: record.state }
}

function touchStep(stored: JobRecord | null, command: TouchCommand, now: number): Step<TouchOutcome> {
  const record = living(stored, now)
  if (record === null) return { record, answer: 'not_found' }
  if (!isTerminal(record)) return { record, answer: 'not_terminal' }
  if (outcomeLost(record)) return { record, answer: 'missing_payload' }
  return { record: { ...record, at: now + command.ttlMs }, answer: 'updated' }
}

/** Whether a terminal record's result or error is not there to be kept longer. */
function outcomeLost(record: CompletedRecord | FailedRecord): boolean {
  if (record.state === 'completed') return record.result === null
  return record.reason === 'error' && record.error === null
}

function markStep(stored: JobRecord | null, command: MarkCommand, now: number): Step<MarkOutcome> {
  const record = living(stored, now)
  if (record === null) return { record, answer: 'not_found' }
  const { name, token } = command
  const { marks = '' } = record.spec
  for (const line of marks.split('\n')) {
    if (line.startsWith(`${name}=`)) return { record, answer: line === `${name}=${token}` ? 'marked' : 'taken' }
  }
  const mark = `${name}=${token}\n`
  if (marks.length + mark.length > limits.marksCharsMax) return { record, answer: 'full' }
  return { record: { ...record, spec: { ...record.spec, marks: marks + mark } }, answer: 'marked' }
}

function collectStep(stored: JobRecord | null, command: CollectCommand, now: number): Step<CollectOutcome> {
  const record = living(stored, now)
  if (record?.state !== 'completed' || record.outbox === undefined) return { record, answer: 'refused' }
  const { outbox } = record
  const { generation, leaseMs, graceMs } = command
  if (outbox.generation === generation) return { record, answer: 'collected' }
  if (collectableFrom(outbox, graceMs) > now) return { record, answer: 'refused' }
  const leased = { ...outbox, at: now + leaseMs, generation, attempts: outbox.attempts + 1 }
  return { record: { ...record, outbox: leased }, answer: 'collected' }
}

/** From when on an outbox may be leased, ms since 1970. */
export function collectableFrom(outbox: Outbox, graceMs: number): number {
  return outbox.generation === null ? outbox.at : outbox.at + graceMs
}

function deliverStep(stored: JobRecord | null, command: DeliverCommand, now: number): Step<DeliverOutcome> {
  const record = living(stored, now)
  if (record?.state !== 'completed' || record.outbox?.generation !== command.generation) {
    return { record, answer: 'stale' }
  }
  const { outbox, ...delivered } = record
  const { rows, delayMs } = command
  if (rows === null) return { record: delivered, answer: 'delivered' }
  return {
    record: { ...record, outbox: { ...outbox, rows, at: now + delayMs, generation: null } },
    answer: 'delivered',
  }
}

function forgetStep(stored: JobRecord | null, now: number): Step<ForgetOutcome> {
  const record = living(stored, now)
  return { record, answer: stored !== null && record === null ? 'forgotten' : 'kept' }
}
