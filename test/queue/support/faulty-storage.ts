/**
 * A storage in trouble: any storage, with calls that fail before or after their work is done, that are held up, and hints
 * that get lost or come twice. What it does to whom is said by rules; without rules it is the storage itself.
 */

import { StorageError } from '../../../src/errors.ts'
import type { Hint, HintListener, Storage, StorageHandle, StorageTraits } from '../../../src/storage.ts'

export type Operation = 'open' | Exclude<keyof StorageHandle, 'watch'>

type Call = () => Promise<unknown>
/** Stands in for a call: may make it, before or after failing, or not at all. */
export type Rule = (call: Call) => Promise<unknown>

interface Rules {
  readonly rule: Rule
  left: number
}

/** The call is not made. */
export function failBefore(error: () => Error = outage): Rule {
  return () => Promise.reject(error())
}

/** The call is made, its reply is lost. */
export function failAfter(error: () => Error = outage): Rule {
  return async (call) => {
    await call()
    throw error()
  }
}

/** The call is made at once, its reply comes when the gate opens. */
export function replyAfter(gate: Promise<unknown>): Rule {
  return async (call) => {
    const reply = await call()
    await gate
    return reply
  }
}

/** The call is made when the gate opens. */
export function callAfter(gate: Promise<unknown>): Rule {
  return async (call) => {
    await gate
    return call()
  }
}

/** An error that repeating may mend. */
export function outage(): StorageError {
  return new StorageError('the storage is away, says the test')
}

/** An error that repeating won't mend. */
export function refusal(): StorageError {
  return new StorageError('the storage refuses this, says the test', { retryable: false })
}

export class FaultyStorage implements Storage {
  readonly traits: StorageTraits
  /** How often each operation was asked for, failed calls among them. */
  readonly calls = new Map<Operation, number>()
  /** Listeners that watch now. */
  watching = 0
  /** What becomes of each hint: the hints passed on in its place. */
  onHint: (hint: Hint) => readonly Hint[] = (hint) => [hint]
  readonly #inner: Storage
  readonly #rules = new Map<Operation, Rules[]>()
  #down = false

  constructor(inner: Storage, traits: Partial<StorageTraits> = {}) {
    this.#inner = inner
    this.traits = { ...inner.traits, ...traits }
  }

  /** The next `times` calls of an operation go through the rule. */
  on(operation: Operation, rule: Rule, times = 1): this {
    const rules = this.#rules.get(operation) ?? []
    rules.push({ rule, left: times })
    this.#rules.set(operation, rules)
    return this
  }

  /** From now on every call fails before it is made. */
  down(): void {
    this.#down = true
  }

  up(): void {
    this.#down = false
  }

  count(operation: Operation): number {
    return this.calls.get(operation) ?? 0
  }

  /** Passes a hint on to `listener` as `onHint` has it. */
  pass(listener: HintListener, hint: Hint): void {
    for (const passed of this.onHint(hint)) listener(passed)
  }

  async do<T>(operation: Operation, call: () => Promise<T>): Promise<T> {
    this.calls.set(operation, this.count(operation) + 1)
    if (this.#down && operation !== 'close') throw outage()
    const rules = this.#rules.get(operation)
    const first = rules?.[0]
    if (first === undefined) return call()
    if (--first.left <= 0) rules?.shift()
    return first.rule(call) as Promise<T>
  }

  async open(namespace: string): Promise<StorageHandle> {
    return this.do('open', async () => faultyHandle(this, await this.#inner.open(namespace)))
  }
}

function faultyHandle(storage: FaultyStorage, inner: StorageHandle): StorageHandle {
  return {
    enqueue: (items) => storage.do('enqueue', () => inner.enqueue(items)),
    claim: (request) => storage.do('claim', () => inner.claim(request)),
    extend: (items) => storage.do('extend', () => inner.extend(items)),
    settle: (items, claim) => storage.do('settle', () => inner.settle(items, claim)),
    cancel: (ids) => storage.do('cancel', () => inner.cancel(ids)),
    touch: (items) => storage.do('touch', () => inner.touch(items)),
    mark: (items) => storage.do('mark', () => inner.mark(items)),
    deliver: (items, request) => storage.do('deliver', () => inner.deliver(items, request)),
    get: (ids) => storage.do('get', () => inner.get(ids)),
    watch(listener) {
      storage.watching++
      const unwatch = inner.watch((hint) => storage.pass(listener, hint))
      return () => {
        storage.watching--
        unwatch()
      }
    },
    sweep: (limit) => storage.do('sweep', () => inner.sweep(limit)),
    hold: (ms) => storage.do('hold', () => inner.hold(ms)),
    stats: () => storage.do('stats', () => inner.stats()),
    close: () => storage.do('close', () => inner.close()),
  }
}
