/**
 * The fault injector for whole storages.
 *
 * @module
 */

import type { Storage, StorageHandle } from '../../../src/storage.ts'
import type { NetworkOptions } from './faults.ts'
import { Network } from './faults.ts'

/** An operation that is a call. */
export type CallName = 'open' | Exclude<keyof StorageHandle, 'watch'>

/** One call as its caller made it, for observers. */
export interface Call {
  readonly operation: CallName
  readonly args: readonly unknown[]
}

/** Sees every call at its three moments. Must not throw. */
export interface CallObserver {
  /** The caller asked. */
  sent?(call: Call): void
  /** The storage did it, and gave this answer; perhaps more than once, perhaps never, perhaps after the caller was told of a failure. */
  made?(call: Call, answer: unknown): void
  /** The caller was told. */
  replied?(call: Call, answer: unknown): void
}

/** What a faulty storage is made of. */
export interface FaultyStorageOptions extends NetworkOptions {
  readonly observer?: CallObserver
}

/**
 * The storage behind a network with faults. Each object is one caller's view: give each process of a test its own, on one inner
 * storage, with its own clock.
 */
export function faultyStorage(inner: Storage, options: FaultyStorageOptions): Storage {
  const network = new Network(options)
  const { observer } = options

  function call<T>(operation: CallName, args: readonly unknown[], make: () => Promise<T>): Promise<T> {
    const call = { operation, args }
    observer?.sent?.(call)
    const made = observer?.made
    const observed =
      made === undefined
        ? make
        : () =>
            make().then((answer) => {
              made.call(observer, call, answer)
              return answer
            })
    const reply = network.call(observed)
    if (observer?.replied !== undefined) reply.then((answer) => observer.replied?.(call, answer)).catch(() => {})
    return reply
  }

  function handleOn(handle: StorageHandle): StorageHandle {
    return {
      enqueue: (items) => call('enqueue', [items], () => handle.enqueue(items)),
      claim: (request) => call('claim', [request], () => handle.claim(request)),
      extend: (items) => call('extend', [items], () => handle.extend(items)),
      settle: (items, claim) => call('settle', [items, claim], () => handle.settle(items, claim)),
      cancel: (ids) => call('cancel', [ids], () => handle.cancel(ids)),
      touch: (items) => call('touch', [items], () => handle.touch(items)),
      mark: (items) => call('mark', [items], () => handle.mark(items)),
      deliver: (items, request) => call('deliver', [items, request], () => handle.deliver(items, request)),
      get: (ids) => call('get', [ids], () => handle.get(ids)),
      watch(listener) {
        let watching = true
        const unwatch = handle.watch((hint) => network.hint(() => void (watching && listener(hint))))
        return () => {
          watching = false
          unwatch()
        }
      },
      sweep: (limit) => call('sweep', [limit], () => handle.sweep(limit)),
      hold: (ms) => call('hold', [ms], () => handle.hold(ms)),
      stats: () => call('stats', [], () => handle.stats()),
      close: () => call('close', [], () => handle.close()),
    }
  }

  return {
    traits: inner.traits,
    open: (namespace) => call('open', [namespace], async () => handleOn(await inner.open(namespace))),
  }
}
