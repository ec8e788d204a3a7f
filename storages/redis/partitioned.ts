/**
 * The operations of a namespace spread over several sets of keys: each id's are on its partition, claims go round.
 *
 * @module
 */

import type { CompletedRecord } from '../../src/record.ts'
import type {
  ClaimAnswer,
  ClaimRequest,
  CollectAnswer,
  CollectRequest,
  SettleAnswers,
  Settlement,
} from '../../src/storage.ts'
import { partitionOf } from './layout.ts'
import type { Operations } from './operations.ts'

/** Calls each partition that has some of the items, all at once; answers the items' answers in the items' order. */
export async function scatter<Item, Answer>(
  parts: readonly Operations[],
  items: readonly Item[],
  idOf: (item: Item) => string,
  call: (part: Operations, items: readonly Item[]) => Promise<readonly Answer[]>,
): Promise<readonly Answer[]> {
  if (parts.length === 1 || items.length === 0) return call(parts[0] as Operations, items)
  const groups = new Map<number, { items: Item[]; places: number[] }>()
  items.forEach((item, place) => {
    const partition = partitionOf(idOf(item), parts.length)
    const group = groups.get(partition)
    if (group === undefined) groups.set(partition, { items: [item], places: [place] })
    else {
      group.items.push(item)
      group.places.push(place)
    }
  })
  const answers: Answer[] = new Array(items.length)
  await all(
    [...groups].map(async ([partition, { items, places }]) => {
      const own = await call(parts[partition] as Operations, items)
      for (let i = 0; i < places.length; i++) answers[places[i] as number] = own[i] as Answer
    }),
  )
  return answers
}

/** Like Promise.all, but waits for every one to end before it rejects: nothing goes on behind the caller's back. */
export async function all<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(promises)
  const values: T[] = []
  for (const result of results) {
    if (result.status === 'rejected') throw result.reason
    values.push(result.value)
  }
  return values
}

/** Claims from several partitions as if they were one. */
export class RoundClaims {
  readonly #parts: readonly Operations[]
  #start = 0

  constructor(parts: readonly Operations[]) {
    this.#parts = parts
  }

  /** Goes round until the limit is reached; starts at another partition each time. */
  async claim(request: ClaimRequest): Promise<ClaimAnswer> {
    const { ids } = request
    if (ids === undefined) return this.#round(request, this.#next(), null)
    // What only some partitions were asked is not known of all.
    if (ids.length === 0) return { ...(await (this.#parts[0] as Operations).claim(request)), nextInMs: null }
    let answer: ClaimAnswer | null = null
    for (let partition = 0; partition < this.#parts.length; partition++) {
      const own = ids.filter((id) => partitionOf(id, this.#parts.length) === partition)
      const limit = request.limit - (answer?.jobs.length ?? 0)
      if (limit < 1) break
      if (own.length === 0) continue
      answer = merged(answer, await (this.#parts[partition] as Operations).claim({ ...request, limit, ids: own }))
    }
    return { ...(answer as ClaimAnswer), nextInMs: null }
  }

  /** Ends leases on all partitions at once; the claim travels with the first one's, and goes round from there. */
  async settle(items: readonly Settlement[], claim: ClaimRequest): Promise<SettleAnswers> {
    const start = items.length === 0 ? this.#next() : partitionOf((items[0] as Settlement).id, this.#parts.length)
    const first = this.#parts[start] as Operations
    let claimed: ClaimAnswer | null = null
    const answers = await scatter(
      this.#parts,
      items,
      ({ id }) => id,
      async (part, own) => {
        const settled = await part.settle(own, part === first ? claim : null)
        claimed ??= settled.claim
        return settled.answers
      },
    )
    return { answers, claim: await this.#round(claim, start, claimed) }
  }

  /** Looks for outboxes all around until the limit is reached. */
  async collect(request: CollectRequest): Promise<CollectAnswer> {
    const start = this.#next()
    const records: CompletedRecord[] = []
    const dueAt: number[] = []
    let now = 0
    let asked = 0
    for (; asked < this.#parts.length && records.length < request.limit; asked++) {
      const part = this.#parts[(start + asked) % this.#parts.length] as Operations
      let found: CollectAnswer
      try {
        found = (await part.deliver([], { ...request, limit: request.limit - records.length }))
          .collected as CollectAnswer
      } catch (error) {
        if (records.length === 0) throw error
        break
      }
      records.push(...found.records)
      now = Math.max(now, found.now)
      if (found.nextInMs !== null) dueAt.push(found.now + found.nextInMs)
    }
    const known = asked === this.#parts.length && records.length < request.limit && dueAt.length > 0
    return { now, records, nextInMs: known ? Math.max(0, Math.min(...dueAt) - now) : null }
  }

  #next(): number {
    this.#start = (this.#start + 1) % this.#parts.length
    return this.#start
  }

  async #round(request: ClaimRequest, start: number, first: ClaimAnswer | null): Promise<ClaimAnswer> {
    let answer = first
    let asked = first === null ? 0 : 1
    for (; asked < this.#parts.length; asked++) {
      const limit = request.limit - (answer?.jobs.length ?? 0)
      if (limit < 1) break
      const part = this.#parts[(start + asked) % this.#parts.length] as Operations
      try {
        answer = merged(answer, await part.claim({ ...request, limit }))
      } catch (error) {
        // Leases that were made must be told of; the partition that failed is asked again next time.
        if (answer === null || (answer.jobs.length === 0 && answer.exhausted.length === 0)) throw error
        break
      }
    }
    const { nextInMs, jobs } = answer as ClaimAnswer
    // The one that brought the last job of a full answer does not tell what else it has.
    const known = (asked === this.#parts.length && jobs.length < request.limit) || nextInMs === 0
    return { ...(answer as ClaimAnswer), nextInMs: known ? nextInMs : null }
  }
}

function merged(a: ClaimAnswer | null, b: ClaimAnswer): ClaimAnswer {
  if (a === null) return b
  const now = Math.max(a.now, b.now)
  const nexts = [a, b].flatMap(({ now: then, nextInMs }) => (nextInMs === null ? [] : [then + nextInMs - now]))
  return {
    now,
    jobs: [...a.jobs, ...b.jobs],
    exhausted: [...a.exhausted, ...b.exhausted],
    nextInMs: nexts.length === 0 ? null : Math.max(0, Math.min(...nexts)),
    heldForMs: Math.max(a.heldForMs, b.heldForMs),
  }
}
