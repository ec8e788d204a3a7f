/**
 * The operations on one partition of a namespace (mostly the only one): each is one script, one round trip.
 *
 * @module
 */

import { limits } from '../../src/limits.ts'
import type { CancelOutcome, ExtendOutcome, MarkOutcome, TouchOutcome } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CollectRequest,
  DeliverAnswers,
  Delivery,
  EnqueueAnswers,
  EnqueueItem,
  GetAnswers,
  Hint,
  LeaseTerms,
  Mark,
  SettleAnswers,
  Settlement,
  StorageStats,
} from '../../src/storage.ts'
import type { Connection } from './connection.ts'
import { hintOf } from './hints.ts'
import { decodeRecord, encodeGeneration, encodeNew, encodeRows } from './layout.ts'
import type { Script } from './scripts/index.ts'
import { scripts } from './scripts/index.ts'
import {
  between,
  bodyOf,
  cancelOutcomes,
  deliverOutcomes,
  extendOutcomes,
  letterOf,
  markOutcomes,
  outcomes,
  readClaim,
  readCollected,
  readEnqueued,
  settleOutcomes,
  termsOf,
  touchOutcomes,
} from './wire.ts'

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
    const { now, answers, next } = readEnqueued(reply, items)
    this.#tell(reply, next)
    return { now, answers }
  }

  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const args = this.#pollArgs(this.#channel())
    const { reply, lease } = await this.#claiming(scripts.claim, args, request)
    const now = Number(reply[0])
    const { answer, next } = readClaim(reply, 1, now, lease)
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
        letterOf(verdict) + encodeGeneration(generation),
        String(kind === 'complete' || kind === 'fail' ? verdict.ttlMs : verdict.delayMs),
        bodyOf(verdict),
      )
    }
    if (claim === null) {
      const reply = (await this.#connection.run(scripts.settle, args)) as unknown[]
      this.#tell(reply, 2)
      return { answers: outcomes(settleOutcomes, reply[1] as string), claim: null }
    }
    const { reply, lease } = await this.#claiming(scripts.settle, args, claim)
    const { answer, next } = readClaim(reply, 2, Number(reply[0]), lease)
    this.#tell(reply, next)
    return { answers: outcomes(settleOutcomes, reply[1] as string), claim: answer }
  }

  async extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]> {
    const args = this.#args('')
    for (const { id, generation, leaseMs } of items) args.push(id, encodeGeneration(generation), String(leaseMs))
    const letters = (await this.#connection.run(scripts.extend, args)) as string
    return outcomes(extendOutcomes, letters)
  }

  async cancel(ids: readonly string[]): Promise<readonly CancelOutcome[]> {
    const args = this.#args(this.#channel())
    for (const id of ids) args.push(id)
    const reply = (await this.#connection.run(scripts.cancel, args)) as [string, ...string[]]
    this.#tell(reply, 1)
    return outcomes(cancelOutcomes, reply[0])
  }

  async touch(items: readonly { readonly id: string; readonly ttlMs: number }[]): Promise<readonly TouchOutcome[]> {
    const args = this.#args('')
    for (const { id, ttlMs } of items) args.push(id, String(ttlMs))
    const letters = (await this.#connection.run(scripts.touch, args)) as string
    return outcomes(touchOutcomes, letters)
  }

  async mark(items: readonly Mark[]): Promise<readonly MarkOutcome[]> {
    const args = this.#args('')
    args.push(String(limits.marksCharsMax))
    for (const { id, name, token } of items) args.push(id, name, token)
    const letters = (await this.#connection.run(scripts.mark, args)) as string
    return outcomes(markOutcomes, letters)
  }

  async deliver(items: readonly Delivery[], request: CollectRequest | null): Promise<DeliverAnswers> {
    const args = request === null ? this.#args(this.#channel()) : this.#pollArgs(this.#channel())
    args.push(String(items.length))
    for (const { id, generation, rows, delayMs } of items) {
      args.push(id, encodeGeneration(generation), rows === null ? '' : encodeRows(rows), String(delayMs))
    }
    if (request !== null) {
      const limit = Math.min(request.limit, limits.callItemsMax)
      args.push(encodeGeneration(request.generation), String(request.leaseMs), String(limit), '0')
      if (args[2] !== '') this.#listed = true
    }
    const onRepeat = () => {
      if (request !== null) args[args.length - 1] = '1'
    }
    const reply = (await this.#connection.run(scripts.deliver, args, undefined, onRepeat)) as unknown[]
    const answers = outcomes(deliverOutcomes, reply[1] as string)
    if (request === null) {
      this.#tell(reply, 2)
      return { answers, collected: null }
    }
    const { answer, next } = readCollected(reply, 2, Number(reply[0]))
    this.#tell(reply, next)
    return { answers, collected: answer }
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

  /**
   * Runs a script that ends with a claim. Whatever becomes of its answer, what it leases is not left behind: each try has a
   * generation of its own, and gives back what those before it have leased. So a try that reaches Redis late, after one that
   * was answered, can't give that one's leases back.
   */
  async #claiming(
    script: Script,
    args: string[],
    request: ClaimRequest,
  ): Promise<{ readonly reply: unknown[]; readonly lease: LeaseTerms }> {
    const { leaseMs, limit, ids } = request
    let { generation } = request
    let tries = 1
    const lost = this.#lost
    this.#lost = []
    const generationAt = args.length
    const lostAt = generationAt + 3
    const limitMax = Math.min(limit, limits.callItemsMax)
    args.push(encodeGeneration(generation), String(leaseMs), String(limitMax), between(lost))
    // No id is '', so that no ids at all are told from none given.
    if (ids !== undefined) args.push(...(ids.length === 0 ? [''] : new Set(ids)))
    else if (args[2] !== '') this.#listed = true
    const onRepeat = () => {
      // A claim by ids finds its own leases.
      if (ids !== undefined) return
      lost.push(encodeGeneration(generation))
      generation = `${request.generation}~${++tries}`
      args[generationAt] = encodeGeneration(generation)
      args[lostAt] = between(lost)
    }
    try {
      const reply = (await this.#connection.run(script, args, undefined, onRepeat)) as unknown[]
      return { reply, lease: { generation, leaseMs } }
    } catch (error) {
      if (ids === undefined) lost.push(encodeGeneration(generation))
      this.#lost.push(...lost)
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
