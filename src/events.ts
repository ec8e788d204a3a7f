/**
 * The queue's events, and an emitter whose listeners cannot hurt the queue.
 *
 * @module
 */

import { EventEmitter } from 'node:events'
import type { Logger } from './options.ts'
import type { JobState } from './record.ts'

/** What each event carries. */
export interface QueueEvents<TResult> {
  /** A record was created by this queue object. */
  queued: [event: { id: string }]
  /** An enqueue met a living record. */
  duplicate: [event: { id: string; existingState: JobState }]
  /** An enqueue met a living record with another payload. */
  mismatch: [event: { id: string; existingState: JobState }]
  /** An attempt begins. */
  started: [event: { id: string; attempts: number }]
  /** A job's result is stored. */
  completed: [event: { id: string; result: TResult; attempts: number; durationMs: number }]
  /** An attempt failed; the next may start after `delayMs`. */
  retrying: [event: { id: string; error: Error; attempts: number; delayMs: number }]
  /** A job's failure is stored. */
  failed: [event: { id: string; error: Error; attempts: number }]
  /** A record was cancelled by this queue object. */
  cancelled: [event: { id: string }]
  /** A lease ended or was taken over while its handler ran; its `signal` was aborted. */
  leaseLost: [event: { id: string; attempts: number }]
  /** What an attempt answered was refused, because the job had another lease by then. */
  stale: [event: { id: string; attempts: number }]
  /** The event loop did not turn for longer than a heartbeat: leases may run out while handlers still work. */
  blocked: [event: { blockedMs: number; leaseMs: number }]
  /** A handler was rate-limited: the whole queue is held. */
  held: [event: { id: string; retryAfterMs: number }]
  /** A row of an outbox was delivered. */
  delivered: [event: { id: string; name: string; attempts: number }]
  /** A row of an outbox could not be delivered; it will be tried again. */
  undelivered: [event: { id: string; name: string; attempts: number; error: Error }]
  /** The worker found nothing more to claim. */
  idle: []
  /** Something to look at that fails no call: damage found by the storage, a lost connection. */
  warning: [event: { code: string; message: string; detail?: unknown }]
  /** Something failed that no call can tell of: a hook, a listener, a storage call of the worker. */
  error: [error: Error]
}

/** A listener of one event. */
export type Listener<TResult, Name extends keyof QueueEvents<TResult>> = (...args: QueueEvents<TResult>[Name]) => void

/** Emits without ever throwing: a listener that throws is told of as `error`, or logged. */
export class SafeEmitter<TResult> {
  readonly #emitter = new EventEmitter()
  readonly #logger: Logger | undefined

  constructor(logger: Logger | undefined) {
    this.#logger = logger
    // The number of listeners is the user's business.
    this.#emitter.setMaxListeners(0)
  }

  on<Name extends keyof QueueEvents<TResult>>(name: Name, listener: Listener<TResult, Name>): void {
    this.#emitter.on(name, listener as (...args: unknown[]) => void)
  }

  once<Name extends keyof QueueEvents<TResult>>(name: Name, listener: Listener<TResult, Name>): void {
    this.#emitter.once(name, listener as (...args: unknown[]) => void)
  }

  off<Name extends keyof QueueEvents<TResult>>(name: Name, listener: Listener<TResult, Name>): void {
    this.#emitter.off(name, listener as (...args: unknown[]) => void)
  }

  listenerCount(name: string): number {
    return this.#emitter.listenerCount(name)
  }

  /** Whether building an event is worth it. */
  has(name: keyof QueueEvents<TResult>): boolean {
    return this.#emitter.listenerCount(name) > 0
  }

  emit<Name extends keyof QueueEvents<TResult>>(name: Name, ...args: QueueEvents<TResult>[Name]): void {
    for (const listener of this.#emitter.rawListeners(name)) {
      try {
        const answer: unknown = Reflect.apply(listener, undefined, args)
        // An async listener's rejection would otherwise end the process.
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#trouble(name, error))
      } catch (error) {
        this.#trouble(name, error)
      }
    }
  }

  #trouble(name: string, error: unknown): void {
    try {
      this.#logger?.error({ event: name, err: error }, 'an event listener threw')
    } catch {
      // A logger that throws must not stop a queue.
    }
    if (name !== 'error') this.emit('error', error instanceof Error ? error : new Error('an event listener threw'))
  }
}
