/**
 * What the scripts are sent and what they answer, item by item: letters, arguments, replies.
 *
 * @module
 */

import type {
  CancelOutcome,
  DeliverOutcome,
  ExtendOutcome,
  MarkOutcome,
  SettleOutcome,
  TouchOutcome,
} from '../../src/machine.ts'
import type { CompletedRecord, JobRecord, ProcessingRecord, Verdict } from '../../src/record.ts'
import type { ClaimAnswer, CollectAnswer, EnqueueAnswer, EnqueueItem, LeaseTerms } from '../../src/storage.ts'
import { decodeJob, decodeRecord, encodeBody, encodeError, encodePosted } from './layout.ts'

/** The outcomes that a script's letters stand for. */
type Letters<Outcome> = Readonly<Record<string, Outcome>>

export const settleOutcomes: Letters<SettleOutcome> = { s: 'settled', x: 'stale' }
export const extendOutcomes: Letters<ExtendOutcome> = { e: 'extended', x: 'stale' }
export const cancelOutcomes: Letters<CancelOutcome> = {
  d: 'cancelled',
  p: 'processing',
  C: 'completed',
  X: 'failed',
  n: 'not_found',
}
export const touchOutcomes: Letters<TouchOutcome> = {
  u: 'updated',
  n: 'not_found',
  o: 'not_terminal',
  m: 'missing_payload',
}
export const markOutcomes: Letters<MarkOutcome> = { m: 'marked', t: 'taken', u: 'full', n: 'not_found' }
export const deliverOutcomes: Letters<DeliverOutcome> = { d: 'delivered', x: 'stale' }
const verdictLetters: Readonly<Record<Verdict['kind'], string>> = { complete: 'c', fail: 'x', retry: 'f', release: 'q' }

/** Reads a letter an item. */
export function outcomes<Outcome>(letters: Letters<Outcome>, reply: string): readonly Outcome[] {
  return Array.from(reply, (letter) => letters[letter] as Outcome)
}

/** Tokens as `claim` takes several. */
export function between(generations: readonly string[]): string {
  return generations.length === 0 ? '' : `\n${generations.join('\n')}\n`
}

/** An item's terms; most have none. */
export function termsOf({ delayMs, rejectMismatch, wait, lease, refresh = false }: EnqueueItem): string {
  if (delayMs === 0 && !rejectMismatch && !wait && lease === null && !refresh) return ''
  return `${delayMs} ${rejectMismatch ? 1 : 0} ${wait ? 1 : 0} ${lease?.leaseMs ?? 0} ${refresh ? 1 : 0}`
}

/** What `settle` knows a verdict by. */
export function letterOf(verdict: Verdict): string {
  return verdict.kind === 'complete' && verdict.outbox !== undefined ? 'o' : verdictLetters[verdict.kind]
}

/** What a verdict leaves. */
export function bodyOf(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'complete': {
      const { result, outbox } = verdict
      return outbox === undefined ? encodeBody(result) : encodePosted(result, outbox.rows, outbox.ttlMs)
    }
    case 'fail':
    case 'retry':
      return encodeError(verdict.error)
    case 'release':
      return ''
  }
}

function created(record: JobRecord, leased: boolean): EnqueueAnswer {
  return { outcome: 'created', leased, mismatch: false, record }
}

function queuedRecord(item: EnqueueItem, now: number, at: number): JobRecord {
  const { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL } = item.spec
  const spec = { id, incarnation, fingerprint, createdAt: now, maxAttempts, resultTTL, failureTTL }
  const { payload, lease } = item
  return { state: 'queued', spec, attempts: 0, at, payload, inline: lease !== null, generation: null }
}

function leasedRecord(item: EnqueueItem, now: number): ProcessingRecord {
  const { id, incarnation, fingerprint, maxAttempts, resultTTL, failureTTL } = item.spec
  const spec = { id, incarnation, fingerprint, createdAt: now, maxAttempts, resultTTL, failureTTL }
  const { generation, leaseMs } = item.lease as LeaseTerms
  const { payload } = item
  return { state: 'processing', spec, attempts: 1, at: now + leaseMs, payload, inline: true, generation }
}

/** Reads what `claim` appended to a reply. */
export function readClaim(
  reply: readonly unknown[],
  from: number,
  now: number,
  { generation, leaseMs }: LeaseTerms,
): { answer: ClaimAnswer; next: number } {
  const heldForMs = Number(reply[from])
  const nextInMs = Number(reply[from + 1])
  let next = from + 3
  const jobs: ProcessingRecord[] = []
  for (let left = Number(reply[from + 2]); left > 0; left--, next += 2) {
    jobs.push(decodeJob(reply[next] as string, reply[next + 1] as string, generation, now + leaseMs))
  }
  const exhausted: JobRecord[] = []
  for (let left = Number(reply[next++]); left > 0; left--, next += 2) {
    exhausted.push(decodeRecord(reply[next] as string, reply[next + 1] as string))
  }
  return { answer: { now, jobs, exhausted, nextInMs: nextInMs < 0 ? null : nextInMs, heldForMs }, next }
}

/** Reads what `deliver` appended of a wish for outboxes. */
export function readCollected(
  reply: readonly unknown[],
  from: number,
  now: number,
): { answer: CollectAnswer; next: number } {
  const nextInMs = Number(reply[from])
  let next = from + 2
  const records: CompletedRecord[] = []
  for (let left = Number(reply[from + 1]); left > 0; left--, next += 2) {
    records.push(decodeRecord(reply[next] as string, reply[next + 1] as string) as CompletedRecord)
  }
  return { answer: { now, records, nextInMs: nextInMs < 0 ? null : nextInMs }, next }
}

/** Reads the answers to `enqueue`, and where they end. */
export function readEnqueued(
  reply: readonly unknown[],
  items: readonly EnqueueItem[],
): { now: number; answers: readonly EnqueueAnswer[]; next: number } {
  const now = Number(reply[0])
  const letters = reply[1] as string
  let next = 2
  const answers = items.map((item, index): EnqueueAnswer => {
    const letter = letters[index] as string
    switch (letter) {
      case 'c':
        return created(queuedRecord(item, now, now + item.delayMs), false)
      case 'l':
        return created(leasedRecord(item, now), true)
      case 'H':
        return created(queuedRecord(item, now, Number(reply[next++])), false)
      default: {
        const record = decodeRecord(item.spec.id, reply[next++] as string)
        const outcome = letter === 'C' || letter === 'L' ? 'created' : 'exists'
        const leased = letter === 'L' || letter === 'F' || letter === 'G'
        return { outcome, leased, mismatch: letter === 'M' || letter === 'G', record }
      }
    }
  })
  return { now, answers, next }
}
