/**
 * The state machine: every transition of a record, as pure functions without I/O or clock. What a storage does must be
 * what these say. Memory, File and DynamoDB call them; Redis does the same in Lua and is tested against them.
 *
 * Lost replies are harmless: each command that creates or leases carries a token that is never reused, and repeating a
 * command answers as the first time, as long as nobody changed the record in between.
 *
 * @module
 */

import type {
  CompletedRecord,
  Encoded,
  FailedRecord,
  FailingRecord,
  JobRecord,
  JobSpec,
  OpenRecord,
  ProcessingRecord,
  QueuedRecord,
  Verdict,
} from './record.ts'
import { forgottenFrom, isTerminal } from './record.ts'

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
  readonly spec: Omit<JobSpec, 'createdAt'>
  readonly payload: Encoded
  /** From now until the first claim, ms; 0 for at once. */
  readonly delayMs: number
  /** With another payload than the living record's: leave it wholly alone. */
  readonly rejectMismatch: boolean
  /** Given by inline runs: lease the record in the same step, if it is created or due; hide it from workers if created. */
  readonly lease: ClaimTerms | null
  /** Given by inline runs: the record is to be inline even if it can't be leased now (the queue is held). */
  readonly inline: boolean
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
export type ForgetOutcome = 'forgotten' | 'kept'

/** The answer of each command. */
export interface Answers {
  readonly enqueue: EnqueueOutcome
  readonly claim: ClaimOutcome
  readonly extend: ExtendOutcome
  readonly settle: SettleOutcome
  readonly cancel: CancelOutcome
  readonly touch: TouchOutcome
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
    case 'forget':
      return forgetStep(record, now)
  }
}

function enqueueStep(stored: JobRecord | null, command: EnqueueCommand, now: number): Step<EnqueueOutcome> {
  const record = living(stored, now)
  return record === null ? create(command, now) : meet(record, command, now)
}

function create(command: EnqueueCommand, now: number): Step<EnqueueOutcome> {
  const { payload, lease, inline } = command
  const { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL } = command.spec
  const spec: JobSpec = { id, incarnation, fingerprint, createdAt: now, maxAttempts, resultTTL, failureTTL }
  if (lease === null) {
    const at = now + command.delayMs
    return { record: { state: 'queued', spec, attempts: 0, at, payload, inline, generation: null }, answer: created }
  }
  const at = now + lease.leaseMs
  const { generation } = lease
  return { record: { state: 'processing', spec, attempts: 1, at, payload, inline, generation }, answer: createdLeased }
}

/** An enqueue that finds a living record. */
function meet(record: JobRecord, command: EnqueueCommand, now: number): Step<EnqueueOutcome> {
  if (record.spec.incarnation === command.spec.incarnation) return repeatCreate(record, command)
  const theirs = record.spec.fingerprint
  const ours = command.spec.fingerprint
  const mismatch = theirs !== ours && theirs !== '' && ours !== ''
  const answer = mismatch ? existsOther : exists
  if (isTerminal(record) || (mismatch && command.rejectMismatch)) return { record, answer }
  if (command.lease !== null) {
    if (isLeaseOf(record, command.lease)) return { record, answer: mismatch ? existsOtherLeased : existsLeased }
    const claimed = claimOpen(record, command.lease, now)
    if (claimed.answer !== 'leased') return { record: claimed.record, answer }
    return { record: claimed.record, answer: mismatch ? existsOtherLeased : existsLeased }
  }
  // Somebody counts on this job now without running it: workers must see it, should its inline runner die.
  return { record: record.inline && !command.inline ? { ...record, inline: false } : record, answer }
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

function claimOpen(record: OpenRecord, lease: ClaimTerms, now: number): Step<ClaimOutcome> {
  const due = record.state === 'processing' ? record.at + lease.graceMs : record.at
  if (due > now) return { record, answer: 'refused' }
  const { spec, attempts, payload, inline } = record
  if (attempts >= spec.maxAttempts) {
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
  return { record: leased, answer: 'leased' }
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
  const { spec, attempts, payload, inline, generation } = record
  switch (verdict.kind) {
    case 'complete': {
      const { result, ttlMs } = verdict
      const done: CompletedRecord = {
        state: 'completed',
        spec,
        attempts,
        at: now + ttlMs,
        generation,
        result,
        settledAt: now,
      }
      return { record: done, answer: 'settled' }
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
      return { record: failing, answer: 'settled' }
    }
    case 'release': {
      const at = now + verdict.delayMs
      const queued: QueuedRecord = { state: 'queued', spec, attempts: attempts - 1, at, payload, inline, generation }
      return { record: queued, answer: 'settled' }
    }
  }
}

function failWith(record: ProcessingRecord, error: Encoded, ttlMs: number, now: number): FailedRecord {
  const { spec, attempts, generation } = record
  return { state: 'failed', spec, attempts, at: now + ttlMs, generation, reason: 'error', error, settledAt: now }
}

/** Whether this very verdict was given before: the lease is the same, and so is the state it leads to. */
function settledAs(record: JobRecord, verdict: Verdict): boolean {
  switch (verdict.kind) {
    case 'complete':
      return record.state === 'completed'
    case 'fail':
      return record.state === 'failed'
    case 'retry':
      return record.state === 'failing' || record.state === 'failed'
    case 'release':
      return record.state === 'queued'
  }
}

function cancelStep(stored: JobRecord | null, now: number): Step<CancelOutcome> {
  const record = living(stored, now)
  if (record === null) return { record, answer: 'not_found' }
  if (record.state === 'queued' || record.state === 'failing') return { record: null, answer: 'cancelled' }
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

function forgetStep(stored: JobRecord | null, now: number): Step<ForgetOutcome> {
  const record = living(stored, now)
  return { record, answer: stored !== null && record === null ? 'forgotten' : 'kept' }
}
