/**
 * One open namespace: guards what is closed, cuts what is too long for one script, and hears the handle's channel.
 *
 * @module
 */

import { StorageClosedError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type {
  CancelOutcome,
  DeliverOutcome,
  ExtendOutcome,
  MarkOutcome,
  SettleOutcome,
  TouchOutcome,
} from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CollectRequest,
  DeliverAnswers,
  Delivery,
  EnqueueAnswer,
  EnqueueAnswers,
  EnqueueItem,
  GetAnswers,
  Hint,
  HintListener,
  LeaseTerms,
  Mark,
  SettleAnswers,
  Settlement,
  StorageHandle,
  StorageStats,
} from '../../src/storage.ts'
import type { Connection } from './connection.ts'
import { hintOfMessage } from './hints.ts'
import { Operations } from './operations.ts'
import { all, RoundClaims, scatter } from './partitioned.ts'
import { Pulse } from './pulse.ts'
import type { Subscriber } from './subscriber.ts'

/** What a handle is made of. */
export interface RedisHandleOptions {
  readonly connection: Connection
  readonly subscriber: Subscriber
  /** What the keys of each partition begin with. */
  readonly bases: readonly string[]
  readonly channel: string
  readonly commandTimeoutMs: number
  /** Called once, when the handle has let go of everything. */
  readonly onClosed: () => void
}

/** Who does not claim is told of work so many times in a row, then no more often than once in so many ms. */
const listensMax = 5
const listenMs = 1_000

/** A handle. */
export class RedisHandle implements StorageHandle {
  readonly #parts: readonly Operations[]
  readonly #claims: RoundClaims
  readonly #subscriber: Subscriber
  readonly #channel: string
  readonly #onClosed: () => void
  readonly #pulse: Pulse
  readonly #listeners = new Set<{ readonly listener: HintListener }>()
  #live = false
  /** Whether it claims whatever is due: being told of work is then its claims' matter. */
  #worker = false
  #listenTimer: NodeJS.Timeout | null = null
  #listensLeft = listensMax
  #listenedAt = performance.now()
  #running = 0
  #onCalm: (() => void) | null = null
  #closing: Promise<void> | null = null

  constructor(options: RedisHandleOptions) {
    const { connection } = options
    this.#subscriber = options.subscriber
    this.#channel = options.channel
    this.#onClosed = options.onClosed
    const emit = (hint: Hint) => this.#told(hint)
    const channel = () => (this.#live ? this.#channel : '')
    const { commandTimeoutMs } = options
    this.#pulse = new Pulse(2 * commandTimeoutMs, commandTimeoutMs, () => this.#subscriber.renew())
    const asksEcho = () => this.#pulse.ask()
    this.#parts = options.bases.map((base) => new Operations({ connection, base, channel, emit, asksEcho }))
    this.#claims = new RoundClaims(this.#parts)
  }

  /** Has the channel heard, if that can be had, and makes sure that Redis answers. */
  async connect(timeoutMs: number): Promise<void> {
    const hearing = this.#subscriber.add(this.#channel, {
      message: (data) => {
        this.#pulse.heard()
        const hint = hintOfMessage(data)
        if (hint !== null) this.#told(hint)
      },
      live: (again) => {
        this.#live = true
        this.#pulse.heard()
        if (again) this.#warn('REDIS_SUBSCRIBER_BACK', 'wake-ups are heard again')
        // Whatever was told meanwhile went unheard.
        this.#told({ type: 'due', inMs: 0 })
      },
      lost: (code, message) => {
        this.#live = false
        this.#warn(code, `wake-ups are not heard for now, polling goes on: ${message}`)
      },
    })
    // What the calls' connection fails with is told better, and without the other one polling does.
    await (this.#parts[0] as Operations).listen(timeoutMs)
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, timeoutMs)
    })
    await Promise.race([hearing, patience])
    clearTimeout(timer)
    await this.#listen()
  }

  async enqueue(items: readonly EnqueueItem[]): Promise<EnqueueAnswers> {
    let now = 0
    const answers = await this.#sliced(items, (slice) =>
      scatter<EnqueueItem, EnqueueAnswer>(
        this.#parts,
        slice,
        (item) => item.spec.id,
        async (part, own) => {
          const answer = await part.enqueue(own)
          now = Math.max(now, answer.now)
          return answer.answers
        },
      ),
    )
    return { now, answers }
  }

  claim(request: ClaimRequest): Promise<ClaimAnswer> {
    if (request.ids === undefined) this.#worker = true
    return this.#run(() => this.#claim(request))
  }

  #claim(request: ClaimRequest): Promise<ClaimAnswer> {
    return this.#parts.length === 1 ? (this.#parts[0] as Operations).claim(request) : this.#claims.claim(request)
  }

  extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]> {
    return this.#sliced(items, (slice) => scatter(this.#parts, slice, byId, (part, own) => part.extend(own)))
  }

  async settle(items: readonly Settlement[], claim: ClaimRequest | null): Promise<SettleAnswers> {
    if (items.length > limits.callItemsMax) {
      const first = await this.settle(items.slice(0, limits.callItemsMax), null)
      const rest = await this.settle(items.slice(limits.callItemsMax), claim)
      return { answers: [...first.answers, ...rest.answers], claim: rest.claim }
    }
    if (claim !== null && claim.ids === undefined) this.#worker = true
    return this.#run(async () => {
      if (this.#parts.length === 1) return (this.#parts[0] as Operations).settle(items, claim)
      if (claim !== null && claim.ids === undefined) return this.#claims.settle(items, claim)
      const answers = await scatter<Settlement, SettleOutcome>(
        this.#parts,
        items,
        byId,
        async (part, own) => (await part.settle(own, null)).answers,
      )
      return { answers, claim: claim === null ? null : await this.#claim(claim) }
    })
  }

  cancel(ids: readonly string[]): Promise<readonly CancelOutcome[]> {
    return this.#sliced(ids, (slice) => scatter(this.#parts, slice, itself, (part, own) => part.cancel(own)))
  }

  touch(items: readonly { readonly id: string; readonly ttlMs: number }[]): Promise<readonly TouchOutcome[]> {
    return this.#sliced(items, (slice) => scatter(this.#parts, slice, byId, (part, own) => part.touch(own)))
  }

  mark(items: readonly Mark[]): Promise<readonly MarkOutcome[]> {
    return this.#sliced(items, (slice) => scatter(this.#parts, slice, byId, (part, own) => part.mark(own)))
  }

  async deliver(items: readonly Delivery[], request: CollectRequest | null): Promise<DeliverAnswers> {
    if (items.length > limits.callItemsMax) {
      const first = await this.deliver(items.slice(0, limits.callItemsMax), null)
      const rest = await this.deliver(items.slice(limits.callItemsMax), request)
      return { answers: [...first.answers, ...rest.answers], collected: rest.collected }
    }
    return this.#run(async () => {
      if (this.#parts.length === 1) return (this.#parts[0] as Operations).deliver(items, request)
      const answers = await scatter<Delivery, DeliverOutcome>(
        this.#parts,
        items,
        byId,
        async (part, own) => (await part.deliver(own, null)).answers,
      )
      return { answers, collected: request === null ? null : await this.#claims.collect(request) }
    })
  }

  async get(ids: readonly string[]): Promise<GetAnswers> {
    let now = 0
    const read = async (part: Operations, own: readonly string[]): Promise<readonly (JobRecord | null)[]> => {
      const answer = await part.get(own)
      now = Math.max(now, answer.now)
      return answer.records
    }
    const records = await this.#sliced(ids, (slice) => scatter(this.#parts, slice, itself, read))
    return { now, records }
  }

  watch(listener: HintListener): () => void {
    if (this.#closing !== null) throw new StorageClosedError()
    const entry = { listener }
    this.#listeners.add(entry)
    return () => void this.#listeners.delete(entry)
  }

  /** Redis drops what is past its end by itself. */
  sweep(_limit: number): Promise<number> {
    return this.#run(async () => 0)
  }

  async hold(ms: number): Promise<void> {
    await this.#run(() => all(this.#parts.map((part) => part.hold(ms))))
  }

  stats(): Promise<StorageStats> {
    return this.#run(async () => {
      const all_ = await all(this.#parts.map((part) => part.stats()))
      const sum = (key: 'queued' | 'processing' | 'failing') => all_.reduce((sum, stats) => sum + (stats[key] ?? 0), 0)
      return {
        queued: sum('queued'),
        processing: sum('processing'),
        failing: sum('failing'),
        completed: null,
        failed: null,
        heldForMs: Math.max(...all_.map((stats) => stats.heldForMs)),
      }
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    if (this.#running > 0) await new Promise<void>((resolve) => (this.#onCalm = resolve))
    this.#listeners.clear()
    if (this.#listenTimer !== null) clearTimeout(this.#listenTimer)
    await Promise.allSettled(this.#parts.map((part) => part.retire(this.#channel)))
    this.#subscriber.remove(this.#channel)
    this.#onClosed()
  }

  /** Runs a list in pieces that one script can take, one after the other. */
  async #sliced<Item, Answer>(
    items: readonly Item[],
    call: (slice: readonly Item[]) => Promise<readonly Answer[]>,
  ): Promise<readonly Answer[]> {
    if (items.length <= limits.callItemsMax) return this.#run(() => call(items))
    return this.#run(async () => {
      const answers: Answer[] = []
      for (let from = 0; from < items.length; from += limits.callItemsMax) {
        answers.push(...(await call(items.slice(from, from + limits.callItemsMax))))
      }
      return answers
    })
  }

  async #run<T>(operation: () => Promise<T>): Promise<T> {
    if (this.#closing !== null) throw new StorageClosedError()
    this.#running++
    try {
      return await operation()
    } finally {
      if (--this.#running === 0) this.#onCalm?.()
    }
  }

  /** Hands a hint on. Who was told of work is taken off the list, and comes back to it by claiming, or by listening anew. */
  #told(hint: Hint): void {
    if (hint.type === 'due' && !this.#worker) this.#listenAgain()
    this.#emit(hint)
  }

  /** At once a few times, then no more often than once in {@link listenMs}. */
  #listenAgain(): void {
    if (this.#listenTimer !== null || this.#worker || this.#closing !== null) return
    const now = performance.now()
    this.#listensLeft = Math.min(listensMax, this.#listensLeft + (now - this.#listenedAt) / listenMs)
    this.#listenedAt = now
    if (this.#listensLeft >= 1) {
      this.#listensLeft--
      void this.#listen()
      return
    }
    this.#listenTimer = setTimeout(() => {
      this.#listenTimer = null
      this.#listenAgain()
    }, listenMs).unref()
  }

  /** A handle that is not told of work polls for it: no reason to fail. */
  async #listen(): Promise<void> {
    if (this.#live && this.#closing === null) await Promise.allSettled(this.#parts.map((part) => part.listen()))
  }

  #warn(code: string, message: string): void {
    this.#emit({ type: 'warning', code, message })
  }

  #emit(hint: Hint): void {
    for (const { listener } of this.#listeners) listener(hint)
  }
}

function byId({ id }: { readonly id: string }): string {
  return id
}

function itself(id: string): string {
  return id
}
