/**
 * The recorder: what a caller asked of a storage and was answered, and when. From the entries of all callers of a namespace,
 * `timedCommands` makes what the linearizability checker reads.
 *
 * @module
 */

import type { Storage, StorageHandle } from '../../../src/storage.ts'

/** An operation whose calls are recorded. */
export type RecordedOperation = Exclude<keyof StorageHandle, 'watch' | 'stats' | 'sweep' | 'close'>

/** A call was made, or was answered. Plain data: can be written as JSON if payloads, results and errors are text. */
export type HistoryEntry =
  | {
      readonly kind: 'call'
      /** Joins a call with its return, among the entries of one caller. */
      readonly n: number
      readonly caller: string
      readonly operation: RecordedOperation
      readonly args: readonly unknown[]
      /** By a monotonic clock that all callers share, in any unit. */
      readonly at: number
      /** ms since 1970. */
      readonly wall: number
    }
  | {
      readonly kind: 'return'
      readonly n: number
      readonly caller: string
      readonly answer: unknown
      readonly at: number
      readonly wall: number
    }

/** Who records, by which clocks, and where to. */
export interface RecorderOptions {
  /** Tells callers apart: never the same for two. */
  readonly caller: string
  /** A monotonic clock that all callers share, such as `process.hrtime.bigint()` among the processes of one machine. */
  readonly monotonic: () => number
  /** ms since 1970. Default: Date.now. */
  readonly wall?: () => number
  /** Gets each entry at once: a call before it is made, its answer before the caller sees it. */
  readonly write: (entry: HistoryEntry) => void
}

const recorded: ReadonlySet<string> = new Set<RecordedOperation>([
  'enqueue',
  'claim',
  'extend',
  'settle',
  'cancel',
  'touch',
  'mark',
  'deliver',
  'get',
  'hold',
])

/**
 * The storage, its calls recorded. A call that rejects is recorded as never answered: it may have happened, may yet happen, or
 * never.
 */
export function recordedStorage(inner: Storage, options: RecorderOptions): Storage {
  const { caller, monotonic, wall = Date.now, write } = options
  let calls = 0

  function recording(handle: StorageHandle): StorageHandle {
    return new Proxy(handle, {
      get(target, name) {
        const method = target[name as keyof StorageHandle] as unknown
        if (typeof method !== 'function') return method
        if (typeof name !== 'string' || !recorded.has(name)) return method.bind(target)
        return async (...args: unknown[]): Promise<unknown> => {
          const n = calls++
          const operation = name as RecordedOperation
          write({ kind: 'call', n, caller, operation, args, at: monotonic(), wall: wall() })
          const answer: unknown = await Reflect.apply(method, target, args)
          write({ kind: 'return', n, caller, answer: answer ?? null, at: monotonic(), wall: wall() })
          return answer
        }
      },
    })
  }

  return { traits: inner.traits, open: async (namespace) => recording(await inner.open(namespace)) }
}
