/**
 * Calls of a storage at random, on a few ids at a time: what histories are recorded of. Everything ends soon, so that much happens to
 * each id.
 *
 * @module
 */

import type { LeaseRequest } from '../../src/machine.ts'
import { complete, fail, release, retry, type Verdict } from '../../src/record.ts'
import type { ClaimRequest, EnqueueItem, StorageHandle } from '../../src/storage.ts'
import { Seeded } from '../../storages/conformance/testing/seeded.ts'

/** Who calls, and how often. */
export interface CallsOptions {
  /** Part of every token: never the same for two. */
  readonly caller: string
  readonly seed: number
  readonly calls: number
  /** ms since 1970: tells which ids are in use. */
  readonly now: () => number
  /** Whether results have outboxes, which are collected and delivered. */
  readonly outboxes: boolean
}

/** Ids that are in use at the same time; every {@link idsMs} there are others. */
const ids = 5
const idsMs = 150

/** Calls of one process that are under way at the same time. */
const lanes = 2

/** Lengths that end soon, ms; and some that never do. */
const lengths = [1, 3, 10, 30, 60_000]

/** One caller. */
export class RandomCalls {
  readonly #handle: StorageHandle
  readonly #options: CallsOptions
  readonly #random: Seeded
  /** Leases that it had, the last ones. */
  readonly #leases: { readonly id: string; readonly generation: string }[] = []
  /** Leases of outboxes. */
  readonly #outboxes: { readonly id: string; readonly generation: string }[] = []
  #tokens = 0
  #left: number

  constructor(handle: StorageHandle, options: CallsOptions) {
    this.#handle = handle
    this.#options = options
    this.#random = new Seeded(options.seed)
    this.#left = options.calls
  }

  /** Makes all calls. */
  async run(): Promise<void> {
    const lane = async (): Promise<void> => {
      // What a call fails with is the recorder's matter.
      while (this.#left-- > 0) await this.#call().catch(() => {})
    }
    await Promise.all(Array.from({ length: lanes }, lane))
  }

  #call(): Promise<unknown> {
    const random = this.#random
    const handle = this.#handle
    const roll = random.next()
    if (roll < 0.3) return this.#enqueue()
    if (roll < 0.45) return this.#claim({ ...this.#lease(), limit: random.between(1, 3) })
    if (roll < 0.55) return this.#claim({ ...this.#lease(), limit: 2, ids: [this.#id(), this.#id()] })
    if (roll < 0.7) return this.#settle()
    if (roll < 0.73) return this.#repeatClaim()
    if (roll < 0.81) {
      const { id, generation } = this.#known()
      return handle.extend([{ id, generation, leaseMs: random.pick(lengths) }])
    }
    if (roll < 0.87) return handle.cancel([this.#id()])
    if (roll < 0.92) return handle.touch([{ id: this.#id(), ttlMs: random.pick(lengths) }])
    if (roll < 0.93) return handle.sweep(100)
    if (roll < 0.95) return handle.mark([{ id: this.#id(), name: random.pick(['one', 'two']), token: this.#token() }])
    if (roll < 0.97 && this.#options.outboxes) return this.#deliver()
    return handle.get([this.#id(), this.#id()])
  }

  async #enqueue(): Promise<void> {
    const random = this.#random
    const lease = random.chance(0.25) ? this.#lease() : null
    const items = Array.from({ length: random.between(1, 2) }, (): EnqueueItem => {
      const id = this.#id()
      const fingerprint = random.pick(['', 'one', 'other'])
      const spec = {
        id,
        incarnation: this.#token(),
        fingerprint,
        maxAttempts: random.between(1, 3),
        resultTTL: random.pick(lengths),
        failureTTL: random.pick(lengths),
      }
      return {
        spec,
        payload: `payload ${spec.incarnation} ${'x'.repeat(random.below(300))}`,
        delayMs: random.pick([0, 0, 0, 2, 10]),
        rejectMismatch: random.chance(0.2),
        lease,
        wait: random.chance(0.2),
        refresh: random.chance(0.15),
      }
    })
    const { answers } = await this.#handle.enqueue(items)
    for (const [index, { leased }] of answers.entries()) {
      if (leased && lease !== null) this.#remember((items[index] as EnqueueItem).spec.id, lease.generation)
    }
  }

  async #claim(request: ClaimRequest): Promise<void> {
    const { jobs } = await this.#handle.claim(request)
    for (const { spec, generation } of jobs) this.#remember(spec.id, generation)
  }

  /** As after a reply that was lost: one call after the other, for a token is one caller's. */
  async #repeatClaim(): Promise<void> {
    const { id, generation } = this.#known()
    const kept = this.#leases.filter((lease) => lease.generation !== generation)
    this.#leases.splice(0, this.#leases.length, ...kept)
    await this.#claim({ generation, leaseMs: this.#random.pick(lengths), limit: 1, ids: [id] })
  }

  async #settle(): Promise<void> {
    const random = this.#random
    const { id, generation } = this.#known()
    const claim: ClaimRequest | null = random.chance(0.3) ? { ...this.#lease(), limit: 1 } : null
    const answer = await this.#handle.settle([{ id, generation, verdict: this.#verdict() }], claim)
    for (const job of answer.claim?.jobs ?? []) this.#remember(job.spec.id, job.generation)
  }

  #verdict(): Verdict {
    const random = this.#random
    const ms = random.pick(lengths)
    switch (random.below(4)) {
      case 0:
        return fail(`error ${this.#token()}`, ms)
      case 1:
        return retry(`error ${this.#token()}`, random.pick([0, 1, 5]))
      case 2:
        return release(random.pick([0, 1, 5]))
      default: {
        const outbox = { rows: `rows ${this.#token()}`, ttlMs: random.pick(lengths) }
        const posts = this.#options.outboxes && random.chance(0.3)
        return complete(`result ${this.#token()}`, ms, posts ? outbox : undefined)
      }
    }
  }

  async #deliver(): Promise<void> {
    const random = this.#random
    const known = this.#outboxes.shift()
    const rows = random.chance(0.5) ? null : `rows ${this.#token()}`
    const items = known === undefined ? [] : [{ ...known, rows, delayMs: random.pick([0, 1, 5]) }]
    const request = known === undefined || random.chance(0.3) ? { ...this.#lease(), limit: 2 } : null
    const { collected } = await this.#handle.deliver(items, request)
    for (const { spec, outbox } of collected?.records ?? []) {
      this.#outboxes.push({ id: spec.id, generation: outbox?.generation ?? '' })
    }
  }

  #lease(): LeaseRequest {
    return { generation: this.#token(), leaseMs: this.#random.pick(lengths) }
  }

  #remember(id: string, generation: string): void {
    this.#leases.push({ id, generation })
    if (this.#leases.length > 6) this.#leases.shift()
  }

  /** A lease that it has, or had, or never had. */
  #known(): { id: string; generation: string } {
    const known = this.#leases.length > 0 && this.#random.chance(0.9) ? this.#random.pick(this.#leases) : null
    return known ?? { id: this.#id(), generation: this.#token() }
  }

  #id(): string {
    return `id-${Math.floor(this.#options.now() / idsMs)}-${this.#random.below(ids)}`
  }

  #token(): string {
    return `${this.#options.caller}.${this.#tokens++}`
  }
}
