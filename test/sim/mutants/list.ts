/**
 * Ways to break the machine, the storages, the worker and the waiter, each by one change of the source; and the promises whose oracles
 * must notice.
 *
 * @module
 */

import type { Tier, Weather } from '../setting.ts'
import type { Oracle } from '../world.ts'

/** A program with one thing wrong. */
export interface SourceMutant {
  readonly name: string
  readonly file: string
  /** Stands in the file exactly once. */
  readonly find: string
  readonly replace: string
  /** One of these must catch it. */
  readonly oracles: readonly Oracle[]
  /** The worlds to look in; default: all. */
  readonly weather?: Weather
  readonly tier?: Tier
  /** The first seed, where what it takes is rare: near one that is known to have it. Default: 1. */
  readonly from?: number
}

const machine = 'src/machine.ts'
const memory = 'storages/memory/memory-storage.ts'
const table = 'storages/memory/table.ts'

export const sourceMutants: readonly SourceMutant[] = [
  {
    name: 'settling: the fence ignores the generation',
    file: machine,
    find: `if (record === null || record.generation !== command.generation) return`,
    replace: `if (record === null) return`,
    oracles: ['fencing', 'one verdict'],
  },
  {
    name: 'extending: the fence ignores the generation',
    file: machine,
    find: `if (record === null || !isLeaseOf(record, command)) return`,
    replace: `if (record === null || record.state !== 'processing') return`,
    oracles: ['one lease', 'expiry'],
  },
  {
    name: 'the fence ignores the incarnation: every enqueue is taken for the one that made the record',
    file: machine,
    find: `if (record.spec.incarnation === command.spec.incarnation) return`,
    replace: `if (record.spec.incarnation !== '') return`,
    oracles: ['conservation'],
  },
  {
    name: 'settling does not look at the state',
    file: machine,
    find: `if (record.state !== 'processing') {
    return { record, answer: settledAs(record, verdict) ? 'settled' : 'stale' }`,
    replace: `if (!('payload' in record)) {
    return { record, answer: settledAs(record, verdict) ? 'settled' : 'stale' }`,
    oracles: ['fencing', 'attempts'],
  },
  {
    name: 'a terminal record can be settled again',
    file: machine,
    find: `answer: settledAs(record, verdict) ? 'settled' : 'stale' }
  }`,
    replace: `answer: settledAs(record, verdict) ? 'settled' : 'stale' }
  }
  if (now % 2 === 0) return { record: { ...record, at: now + 1 }, answer: 'settled' }`,
    oracles: ['fencing', 'expiry', 'one verdict'],
  },
  {
    name: 'claiming ignores the lease',
    file: machine,
    find: `if (due > now) return { record, answer: 'refused' }`,
    replace: `if (due > now && record.state !== 'processing') return { record, answer: 'refused' }`,
    oracles: ['one lease'],
  },
  {
    name: 'a live record is taken for absent',
    file: machine,
    find: `return record === null ? create(command, now)`,
    replace: `return record === null || record.state === 'completed' ? create(command, now)`,
    oracles: ['no replacement'],
  },
  {
    name: 'a live last attempt is failed as exhausted',
    file: machine,
    find: `if (due > now) return { record, answer: 'refused' }`,
    replace: `if (due > now && record.attempts < record.spec.maxAttempts) return { record, answer: 'refused' }`,
    oracles: ['one lease'],
  },
  {
    name: 'the bound of attempts is ignored by claims',
    file: machine,
    find: `if (attempts >= spec.maxAttempts) {`,
    replace: `if (attempts >= spec.maxAttempts + 2) {`,
    oracles: ['attempts'],
  },
  {
    name: 'a release costs an attempt',
    file: machine,
    find: `attempts: attempts - 1, at, payload`,
    replace: `attempts, at, payload`,
    oracles: ['attempts'],
  },
  {
    name: 'cancelling leaves the payload where it is',
    file: machine,
    find: `record: kept === null ? null : restored(record, kept, null, missed), answer: 'cancelled'`,
    replace: `record: kept === null ? record : restored(record, kept, null, missed), answer: 'cancelled'`,
    oracles: ['cancel'],
  },
  {
    name: 'cancelling takes a job from its worker',
    file: machine,
    find: `if (record.state === 'queued' || record.state === 'failing')`,
    replace: `if (record.state === 'queued' || record.state === 'failing' || record.state === 'processing')`,
    oracles: ['conservation'],
  },
  {
    name: 'a lease is lengthened from its end, not from now',
    file: machine,
    find: `at: now + command.leaseMs }, answer: 'extended'`,
    replace: `at: record.at + command.leaseMs }, answer: 'extended'`,
    oracles: ['expiry'],
  },
  {
    name: 'a record lives on for a while past its end',
    file: machine,
    find: `forgottenFrom(record) <= now ? null`,
    replace: `forgottenFrom(record) <= now - 500 ? null`,
    oracles: ['expiry', 'answers'],
  },
  {
    name: 'exhausted jobs are kept for the TTL of results',
    file: machine,
    find: `const at = now + spec.failureTTL`,
    replace: `const at = now + spec.resultTTL`,
    oracles: ['expiry'],
  },
  {
    name: 'Memory: the TTL of one id touches another',
    file: memory,
    find: `items.map(({ id, ttlMs }) => this.#table.apply(id, { type: 'touch', ttlMs }, now).answer)`,
    replace: `items.map(({ ttlMs }) => this.#table.apply((items[0] as { id: string }).id, { type: 'touch', ttlMs }, now).answer)`,
    oracles: ['expiry'],
  },
  {
    name: 'Memory: the hold is ignored',
    file: memory,
    find: `if (heldForMs > 0) return {`,
    replace: `if (heldForMs > 1e12) return {`,
    oracles: ['claims'],
  },
  {
    name: 'Memory: workers get inline runs',
    file: table,
    find: `if (forgetAt !== Number.POSITIVE_INFINITY) {`,
    replace: `if (record.state === 'completed' || record.state === 'failed') {`,
    oracles: ['claims', 'leftovers'],
  },
  {
    name: 'Memory: a sweep takes what still lives',
    file: table,
    find: `if (entry === null || entry.at > now) break
      this.#set(`,
    replace: `if (entry === null || entry.at > now + 100) break
      this.#set(`,
    oracles: ['conservation'],
  },
  {
    name: 'record stores: claims by id leave out the grace for wrong clocks',
    file: 'src/record-claims.ts',
    find: `if (heldUntil > now && !mine) return { record, answer: 'refused' }
      return step(record, { type: 'claim', generation, leaseMs, graceMs }, now)`,
    replace: `if (heldUntil > now && !mine) return { record, answer: 'refused' }
      return step(record, { type: 'claim', generation, leaseMs, graceMs: 0 }, now)`,
    oracles: ['one lease'],
    from: 600,
  },
  {
    name: 'the waiter trusts wake-ups alone',
    file: 'src/waiter.ts',
    find: `    const at = this.#clock.monotonic() + ms
    if (at >= this.#pollAt) return`,
    replace: `    const at = this.#clock.monotonic() + ms
    if (at >= this.#pollAt || ms > pollSoonMs) return`,
    oracles: ['liveness'],
  },
  {
    name: 'the waiter polls once',
    file: 'src/waiter.ts',
    find: `this.#pollIn(Math.min(nextMs, ms * (0.75 + this.#random() / 2)))`,
    replace: `this.#pollIn(nextMs)`,
    oracles: ['liveness'],
  },
  {
    name: 'the waiter forgets its time-outs',
    file: 'src/waiter.ts',
    find: `if (timeoutMs !== Number.POSITIVE_INFINITY) {`,
    replace: `if (timeoutMs < 0) {`,
    oracles: ['time-outs'],
  },
  {
    name: 'the waiter believes a poll that began before its wait',
    file: 'src/wait.ts',
    find: ` || look <= this.#since) return`,
    replace: `) return`,
    oracles: ['answers'],
  },
  {
    name: 'the worker trusts wake-ups alone',
    file: 'src/poll-timer.ts',
    find: `    const at = clock.monotonic() + ms
    if (at >= this.#at) return`,
    replace: `    const at = clock.monotonic() + ms
    if (at >= this.#at || ms > 0) return`,
    oracles: ['liveness', 'promptness'],
  },
  {
    name: 'the worker loses a hint that comes during a claim',
    file: 'src/worker.ts',
    find: `(full || this.#hinted)`,
    replace: `full`,
    oracles: ['promptness'],
    from: 2_000,
    weather: 'calm',
    tier: 'memory',
  },
  {
    name: 'the worker drops what a claim brings after stop()',
    file: 'src/worker.ts',
    find: `this.#parts.onUnwanted(keeper.add(record, sentAt, now))`,
    replace: `void record`,
    oracles: ['calm'],
    weather: 'calm',
  },
  {
    name: 'the worker leaves a timer behind',
    file: 'src/worker.ts',
    find: `    this.#sweepTimer?.clear()`,
    replace: `    void this.#sweepTimer`,
    oracles: ['leftovers'],
  },
  {
    name: 'a slot is never free again',
    file: 'src/executors.ts',
    find: `  readonly #release = (): void => {
    this.#free++`,
    replace: `  readonly #release = (): void => {
    this.#free += 0`,
    oracles: ['liveness', 'promptness'],
  },
  {
    name: 'a handler is called twice',
    file: 'src/executors.ts',
    find: `    this.#attempts.begin(lease, this.#handler)`,
    replace: `    this.#attempts.begin(lease, this.#handler)
    this.#attempts.begin(lease, this.#handler)`,
    oracles: ['handlers'],
  },
  {
    name: 'the heartbeat stops on stop()',
    file: 'src/base-queue.ts',
    find: `      await this.#drain()
      await relayed`,
    replace: `      this.#keeper.stop()
      await this.#drain()
      await relayed`,
    oracles: ['calm', 'signals'],
    weather: 'calm',
  },
  {
    name: 'stop() does not wait for a run that is being asked for',
    file: 'src/base-queue.ts',
    find: `      await this.#asker.answered()
      await this.#exchange.flushed()
      await this.#keeper.empty()
    } while (this.#exchange.busy || this.#asker.busy)`,
    replace: `      await this.#exchange.flushed()
      await this.#keeper.empty()
    } while (this.#exchange.busy)`,
    oracles: ['calm'],
    weather: 'calm',
  },
  {
    name: 'while a renewal hangs, its leases are not given up',
    file: 'src/leases.ts',
    find: `      this.#watchEnds()
      try {`,
    replace: `      try {`,
    oracles: ['signals'],
    weather: 'savage',
  },
  {
    name: 'there is no heartbeat',
    file: 'src/leases.ts',
    find: `        await this.#renew(due, now)`,
    replace: `        void now`,
    oracles: ['calm'],
    weather: 'calm',
  },
  {
    name: 'a lost lease does not abort its handler',
    file: 'src/leases.ts',
    find: `    lease.job?.abort(new LeaseLostError(lease.record.spec.id))`,
    replace: `    void LeaseLostError`,
    oracles: ['signals'],
    weather: 'savage',
  },
  {
    name: 'a lease is measured from the answer, not from the question',
    file: 'src/leases.ts',
    find: `const lease = new Lease<TPayload>(record, sentAt + this.#leaseMs,`,
    replace: `const lease = new Lease<TPayload>(record, now + this.#leaseMs * 3 + 0 * sentAt,`,
    oracles: ['signals', 'calm'],
  },
  {
    name: 'a handler may take for ever',
    file: 'src/leases.ts',
    find: `      this.#events.overdue(lease)`,
    replace: `      void lease`,
    oracles: ['liveness'],
  },
  {
    name: 'an inline lease that comes after the time-out is forgotten',
    file: 'src/inline.ts',
    find: `const record = givenUp ? leasedIn(late) : null`,
    replace: `const record = givenUp && sentAt < 0 ? leasedIn(late) : null`,
    oracles: ['calm'],
    weather: 'calm',
  },
  {
    name: 'a verdict is dropped when the storage fails',
    file: 'src/exchange.ts',
    find: `    this.#pending = [...pending, ...this.#pending]`,
    replace: `    this.#pending = [...pending.slice(pending.length), ...this.#pending]`,
    oracles: ['liveness'],
  },
  {
    name: 'verdicts are stored for the lease before',
    file: 'src/lease.ts',
    find: `    return this.record.generation`,
    replace: `    return this.record.attempts > 1 ? 'the one before' : this.record.generation`,
    oracles: ['liveness', 'calm'],
  },
  {
    name: 'calls of one tick get each other’s answers',
    file: 'src/batcher.ts',
    find: `call.map(call.item, answers[index] as Answer)`,
    replace: `call.map(call.item, answers[calls.length - 1 - index] as Answer)`,
    oracles: ['conservation', 'answers', 'cancel', 'handlers', 'errors', 'calm'],
  },
  {
    name: 'an enqueue is acknowledged though it failed',
    file: 'src/producer.ts',
    find: `    return this.#enqueues.add(item, this.#toResult)`,
    replace: `    return this.#enqueues.add(item, this.#toResult).catch(() => ({ status: 'queued' }) as EnqueueResult<TResult>)`,
    oracles: ['conservation'],
  },
]
