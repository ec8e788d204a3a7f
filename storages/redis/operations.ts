/**
 * The operations on one partition of a namespace (mostly the only one): each is one script, one round trip.
 *
 * @module
 */

import { limits } from '../../src/limits.ts'
import type { CancelOutcome, ExtendOutcome, SettleOutcome, TouchOutcome } from '../../src/machine.ts'
import type { JobRecord, ProcessingRecord, Verdict } from '../../src/record.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  EnqueueAnswer,
  EnqueueAnswers,
  EnqueueItem,
  GetAnswers,
  Hint,
  LeaseTerms,
  SettleAnswers,
  Settlement,
  StorageStats,
} from '../../src/storage.ts'
import type { Connection } from './connection.ts'
import { hintOf } from './hints.ts'
import { decodeJob, decodeRecord, encodeBody, encodeError, encodeGeneration, encodeNew } from './layout.ts'
import type { Script } from './scripts/index.ts'
import { scripts } from './scripts/index.ts'

/** What the operations of one partition need. */
export interface OperationsOptions {
  readonly connection: Connection
  /** What the keys begin with. */
  readonly base: string
  /** The handle's channel; '' while nobody hears it. */
  readonly channel: () => string
  readonly emit: (hint: Hint) => void
  /** Whether the call about to be made is to ask the channel for an echo. */
  readonly asksEcho: () => boolean
}

const settleOutcomes: Readonly<Record<string, SettleOutcome>> = { s: 'settled', x: 'stale' }
const extendOutcomes: Readonly<Record<string, ExtendOutcome>> = { e: 'extended', x: 'stale' }
const cancelOutcomes: Readonly<Record<string, CancelOutcome>> = {
  d: 'cancelled',
  p: 'processing',
  C: 'completed',
  X: 'failed',
  n: 'not_found',
}
const touchOutcomes: Readonly<Record<string, TouchOutcome>> = {
  u: 'updated',
  n: 'not_found',
  o: 'not_terminal',
  m: 'missing_payload',
}
const verdictLetters: Readonly<Record<Verdict['kind'], string>> = { complete: 'c', fail: 'x', retry: 'f', release: 'q' }

/** Closing waits no longer than this for being taken off a list that forgets by itself, ms. */
const retireMsMax = 1_000

/** The operations on one set of keys. */
export class Operations {
  readonly #connection: Connection
  readonly #base: string
  readonly #channel: () => string
  readonly #emit: (hint: Hint) => void
  readonly #asksEcho: () => boolean
  readonly #flags: string
  /** Generations of claims whose answers were lost: what they leased is given back with the next claim. */
  #lost: string[] = []
  /** Whether the channel may be on the list of those who hear of work. */
  #listed = false

  constructor(options: OperationsOptions) {
    this.#connection = options.connection
    this.#base = options.base
    this.#channel = options.channel
    this.#emit = options.emit
    this.#asksEcho = options.asksEcho
    this.#flags = options.connection.client.isCluster ? 'b' : ''
  }

  async enqueue(items: readonly EnqueueItem[]): Promise<EnqueueAnswers> {
    const channel = this.#channel()
    const args = this.#args(channel)
    for (const item of items) args.push(item.spec.id, termsOf(item), encodeNew(item, channel))
    const reply = (await this.#connection.run(scripts.enqueue, args)) as [number, string, ...string[]]
    const now = Number(reply[0])
    const letters = reply[1]
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
    this.#tell(reply, next)
    return { now, answers }
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const args = this.#pollArgs(this.#channel())
    const reply = await this.#claiming(scripts.claim, args, request)
    const now = Number(reply[0])
    const { answer, next } = readClaim(reply, 1, now, request)
    this.#tell(reply, next)
    return answer
  }

  async settle(items: readonly Settlement[], claim: ClaimRequest | null): Promise<SettleAnswers> {
    const args = this.#args(this.#channel())
    args.push(String(items.length))
    for (const { id, generation, verdict } of items) {
      const { kind } = verdict
      args.push(
        id,
        verdictLetters[kind] + encodeGeneration(generation),
        String(kind === 'complete' || kind === 'fail' ? verdict.ttlMs : verdict.delayMs),
        bodyOf(verdict),
      )
    }
    const reply =
      claim === null
        ? ((await this.#connection.run(scripts.settle, args)) as unknown[])
        : await this.#claiming(scripts.settle, args, claim)
    const now = Number(reply[0])
    const answers = Array.from(reply[1] as string, (letter) => settleOutcomes[letter] as SettleOutcome)
    if (claim === null) {
      this.#tell(reply, 2)
      return { answers, claim: null }
    }
    const { answer, next } = readClaim(reply, 2, now, claim)
    this.#tell(reply, next)
    return { answers, claim: answer }
  }

  async extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]> {
    const args = this.#args('')
    for (const { id, generation, leaseMs } of items) args.push(id, encodeGeneration(generation), String(leaseMs))
    const letters = (await this.#connection.run(scripts.extend, args)) as string
    return Array.from(letters, (letter) => extendOutcomes[letter] as ExtendOutcome)
  }

  async cancel(ids: readonly string[]): Promise<readonly CancelOutcome[]> {
    const args = this.#args(this.#channel())
    for (const id of ids) args.push(id)
    const reply = (await this.#connection.run(scripts.cancel, args)) as [string, ...string[]]
    this.#tell(reply, 1)
    return Array.from(reply[0], (letter) => cancelOutcomes[letter] as CancelOutcome)
  }

  async touch(items: readonly { readonly id: string; readonly ttlMs: number }[]): Promise<readonly TouchOutcome[]> {
    const args = this.#args('')
    for (const { id, ttlMs } of items) args.push(id, String(ttlMs))
    const letters = (await this.#connection.run(scripts.touch, args)) as string
    return Array.from(letters, (letter) => touchOutcomes[letter] as TouchOutcome)
  }

  async get(ids: readonly string[]): Promise<GetAnswers> {
    const args = this.#pollArgs('')
    for (const id of ids) args.push(id)
    const reply = (await this.#connection.run(scripts.get, args)) as [number, ...string[]]
    const records = ids.map((id, index): JobRecord | null => {
      const text = reply[index + 1] as string
      return text === '' ? null : decodeRecord(id, text)
    })
    return { now: Number(reply[0]), records }
  }

  async hold(ms: number): Promise<void> {
    const args = this.#args(this.#channel())
    args.push(String(ms))
    this.#tell((await this.#connection.run(scripts.hold, args)) as unknown[], 1)
  }

  async stats(): Promise<StorageStats> {
    const reply = (await this.#connection.run(scripts.stats, this.#args(''))) as unknown[]
    const [queued, failing, processing, heldForMs] = reply.map(Number) as [number, number, number, number]
    return { queued, failing, processing, completed: null, failed: null, heldForMs }
  }

  /** Has the channel told of work, though its handle does not claim. Also what opening checks the connection with. */
  async listen(timeoutMs?: number): Promise<void> {
    const channel = this.#channel()
    if (channel !== '') this.#listed = true
    await this.#connection.run(scripts.listen, this.#args(channel), timeoutMs)
  }

  /** Takes the channel off the list of those who hear of work. */
  async retire(channel: string): Promise<void> {
    if (!this.#listed) return
    this.#listed = false
    await this.#connection.run(scripts.retire, this.#args(channel), retireMsMax)
  }

  /** Keys and the arguments of every script. */
  #args(channel: string): string[] {
    return [this.#base, `${this.#base}:d`, channel, this.#flags]
  }

  /** The same for calls that are made again and again while nothing happens: they ask for an echo now and then. */
  #pollArgs(channel: string): string[] {
    const args = this.#args(channel)
    if (this.#channel() !== '' && this.#asksEcho()) {
      args[2] = this.#channel()
      args[3] = `${this.#flags}e`
    }
    return args
  }

  /** Runs a script that ends with a claim. Whatever becomes of its answer, what it leases is not left behind. */
  async #claiming(script: Script, args: string[], request: ClaimRequest): Promise<unknown[]> {
    const { generation, leaseMs, limit, ids } = request
    const own = encodeGeneration(generation)
    const lost = this.#lost
    this.#lost = []
    const lostAt = args.length + 3
    args.push(own, String(leaseMs), String(Math.min(limit, limits.callItemsMax)), between(lost))
    // No id is '', so that no ids at all are told from none given.
    if (ids !== undefined) args.push(...(ids.length === 0 ? [''] : new Set(ids)))
    else if (args[2] !== '') this.#listed = true
    try {
      return (await this.#connection.run(script, args, undefined, () => {
        if (ids === undefined) args[lostAt] = between([...lost, own])
      })) as unknown[]
    } catch (error) {
      this.#lost.push(...lost)
      if (ids === undefined) this.#lost.push(own)
      throw error
    }
  }

  #tell(reply: readonly unknown[], from: number): void {
    for (let i = from; i + 2 < reply.length; i += 3) {
      const hint = hintOf(reply[i] as string, reply[i + 1] as string, reply[i + 2] as string)
      if (hint !== null) this.#emit(hint)
    }
  }
}

function between(generations: readonly string[]): string {
  return generations.length === 0 ? '' : `\n${generations.join('\n')}\n`
}

function termsOf({ delayMs, rejectMismatch, wait, lease }: EnqueueItem): string {
  if (delayMs === 0 && !rejectMismatch && !wait && lease === null) return ''
  return `${delayMs} ${rejectMismatch ? 1 : 0} ${wait ? 1 : 0} ${lease?.leaseMs ?? 0}`
}

function bodyOf(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'complete':
      return encodeBody(verdict.result)
    case 'fail':
      return encodeBody(verdict.error)
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
function readClaim(
  reply: readonly unknown[],
  from: number,
  now: number,
  { generation, leaseMs }: ClaimRequest,
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
