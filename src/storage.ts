/**
 * The storage contract: types and docs only. A storage author implements {@link Storage} whole, or writes the five
 * functions of a {@link RecordStore} and lets `fromRecordStore` make the rest.
 *
 * Every operation is atomic for each item and takes and answers arrays in the same order, so that a burst costs one round
 * trip. An operation that rejects (always with an AskonceError, usually a StorageError) may or may not have happened, and
 * can be repeated as it is: its tokens make the repetition harmless. Two have none: a `cancel` whose reply was lost answers
 * `not_found` when repeated, and jobs leased by a `claim` whose reply was lost run again when those leases end, unless the
 * storage finds them by their generation.
 *
 * @module
 */

import type {
  CancelOutcome,
  DeliverOutcome,
  EnqueueOutcome,
  ExtendOutcome,
  MarkOutcome,
  SettleOutcome,
  TouchOutcome,
} from './machine.ts'
import type { CompletedRecord, Encoded, JobRecord, JobState, NewSpec, ProcessingRecord, Verdict } from './record.ts'

/** In what a storage differs from others; the queue and the conformance suite read it. */
export interface StorageTraits {
  /** Short and stable, for logs and counters: `memory`, `file`, `redis`, `dynamodb`. */
  readonly kind: string
  /** Whether records outlive the process. */
  readonly durable: boolean
  /** Whether other processes see the same records. */
  readonly shared: boolean
  /** Whether `watch` tells of changes by itself. Without it the queue polls more often. */
  readonly push: boolean
  /** `fifo`: due jobs are claimed by `at`, then order of arrival; `approximate`: nearly so. */
  readonly ordering: 'fifo' | 'approximate'
  /** Whose clock decides what is due: each client's, or one server's. */
  readonly clock: 'client' | 'server'
  /** Encoded bytes that a payload, result or error may have. */
  readonly payloadBytesMax: number
  /** Expiry is exact to this, ms. */
  readonly ttlResolutionMs: number
  /** Bounds of the queue's polling, ms: from `min` growing to `max` while nothing happens. */
  readonly pollMs: { readonly min: number; readonly max: number }
  /** `microtask`: calls are free, gather little; `macrotask`: a call is a round trip, gather all of one event-loop turn. */
  readonly gather: 'microtask' | 'macrotask'
}

/** A storage: the connection, folder or memory that queues live in. One can serve many queues. */
export interface Storage {
  readonly traits: StorageTraits
  /**
   * Opens a namespace, making what it needs. Namespaces of one storage share nothing; the same name is the same records.
   * Each open has its own handle; resources that handles share are let go with the last of them.
   *
   * @param namespace - 1 to 128 bytes of UTF-8, any characters
   */
  open(namespace: string): Promise<StorageHandle>
}

/** One id asked for. */
export interface EnqueueItem {
  readonly spec: NewSpec
  readonly payload: Encoded
  /** From now until the first claim, ms; 0 for at once. */
  readonly delayMs: number
  /** Leave a living record with another payload wholly alone. */
  readonly rejectMismatch: boolean
  /** Inline runs: lease the record in the same step. While the queue is held, it is made queued until the hold ends. */
  readonly lease: LeaseTerms | null
  /** Whether the caller will wait for the outcome: a storage that pushes then sends a hint here when it is there. */
  readonly wait: boolean
  /** Run anew what has ended, its result staying readable meanwhile; see {@link EnqueueCommand.refresh}. */
  readonly refresh?: boolean
}

/** Who leases, and for how long. */
export interface LeaseTerms {
  /** The fencing token; never used before, may be shared by the leases that one call makes. */
  readonly generation: string
  /** Length of the lease, ms. */
  readonly leaseMs: number
}

/** The answer to one {@link EnqueueItem}. */
export interface EnqueueAnswer extends EnqueueOutcome {
  /**
   * The record as it is now. A payload is guaranteed only where `leased` is true; elsewhere it may be ''. Where `leased` is
   * true, a kept result may be ''.
   */
  readonly record: JobRecord
}

/** The answers to one `enqueue`, and the storage's time, ms since 1970, by which their `at` is to be read. */
export interface EnqueueAnswers {
  readonly now: number
  readonly answers: readonly EnqueueAnswer[]
}

/** A wish for work. */
export interface ClaimRequest extends LeaseTerms {
  /** How many jobs at most, 1 and up. */
  readonly limit: number
  /** Only these ids (inline records among them); without it, whatever is due, inline records left out. */
  readonly ids?: readonly string[]
}

/** What a claim brought. */
export interface ClaimAnswer {
  /** The storage's time, ms since 1970. */
  readonly now: number
  /** Leased to the caller now, attempts counted; in the storage's order. Kept results may be ''. */
  readonly jobs: readonly ProcessingRecord[]
  /** Due records whose attempts were used up: they have just been settled as failed. */
  readonly exhausted: readonly JobRecord[]
  /** Until the next record becomes due, ms, if the storage knows; null if it doesn't or there is none. A hint, too. */
  readonly nextInMs: number | null
  /** Until the queue's hold ends, ms; 0 if it is not held. A held queue leases nothing. */
  readonly heldForMs: number
}

/** The end of one lease. */
export interface Settlement {
  readonly id: string
  readonly generation: string
  readonly verdict: Verdict
}

/** The answers to one `settle`, and to the claim that travelled with it. */
export interface SettleAnswers {
  readonly answers: readonly SettleOutcome[]
  readonly claim: ClaimAnswer | null
}

/** An effect that is to be begun by one caller only. */
export interface Mark {
  readonly id: string
  /** 1 to 64 letters, digits and `_.:-`. */
  readonly name: string
  /** Never used before, of the same characters: tells one's own mark when the reply was lost. */
  readonly token: string
}

/** The end of one lease of an outbox. */
export interface Delivery {
  readonly id: string
  readonly generation: string
  /** What is left to be delivered; null if nothing is. */
  readonly rows: Encoded | null
  /** From now until the next delivery of what is left, ms. */
  readonly delayMs: number
}

/** A wish for outboxes to be delivered. */
export interface CollectRequest extends LeaseTerms {
  /** How many records at most, 1 and up. */
  readonly limit: number
}

/** What a wish for outboxes brought. */
export interface CollectAnswer {
  /** The storage's time, ms since 1970. */
  readonly now: number
  /** Leased to the caller now; earliest first as far as the storage orders. Their results may be ''. */
  readonly records: readonly CompletedRecord[]
  /** Until the next outbox is due, ms, if the storage knows; null if it doesn't or there is none. A hint. */
  readonly nextInMs: number | null
}

/** The answers to one `deliver`, and to the wish that travelled with it. */
export interface DeliverAnswers {
  readonly answers: readonly DeliverOutcome[]
  readonly collected: CollectAnswer | null
}

/** The answers to one `get`. Payloads may be ''. */
export interface GetAnswers {
  /** The storage's time, ms since 1970. */
  readonly now: number
  readonly records: readonly (JobRecord | null)[]
}

/** How many records are in each state, as far as the storage can tell cheaply; null where it can't. */
export type StorageStats = { readonly [state in JobState]: number | null } & {
  /** Until the hold ends, ms. */
  readonly heldForMs: number
}

/**
 * A hint that something happened. Hints may be lost, doubled, late or needless; what they say is always looked up, or
 * carries the looked-up record itself.
 */
export type Hint =
  /** Something may be claimable, now or in `inMs`. */
  | { readonly type: 'due'; readonly inMs: number }
  /** An outbox may be due, now or in `inMs`. */
  | { readonly type: 'outbox'; readonly inMs: number }
  /** A record became terminal, be it by a refresh in vain or cancelled. `record`, where given, is that record. */
  | { readonly type: 'settled'; readonly id: string; readonly record?: JobRecord }
  /** A record was cancelled and is gone. */
  | { readonly type: 'cancelled'; readonly id: string; readonly incarnation: string }
  /** Something went wrong that no call tells of: damage found, a connection lost or back. */
  | { readonly type: 'warning'; readonly code: string; readonly message: string; readonly detail?: unknown }

/** What a `watch` listener is. It must not throw. */
export type HintListener = (hint: Hint) => void

/** One open namespace of a storage. After `close` every operation rejects with StorageClosedError. */
export interface StorageHandle {
  /** Makes each item's record, or finds the living one; leases it if asked to. */
  enqueue(items: readonly EnqueueItem[]): Promise<EnqueueAnswers>
  /** Leases due records: queued and failing ones, and those whose lease ran out. */
  claim(request: ClaimRequest): Promise<ClaimAnswer>
  /** Renews leases, counted from now. */
  extend(items: readonly ({ readonly id: string } & LeaseTerms)[]): Promise<readonly ExtendOutcome[]>
  /** Ends leases with their verdicts; then claims, if asked to. */
  settle(items: readonly Settlement[], claim: ClaimRequest | null): Promise<SettleAnswers>
  /** Removes records that are queued or failing. */
  cancel(ids: readonly string[]): Promise<readonly CancelOutcome[]>
  /** Sets how long terminal records are kept, ms from now. */
  touch(items: readonly { readonly id: string; readonly ttlMs: number }[]): Promise<readonly TouchOutcome[]>
  /** Notes on living records that effects were begun; each name is marked for one caller. */
  mark(items: readonly Mark[]): Promise<readonly MarkOutcome[]>
  /** Ends leases of outboxes; then leases such as are due, if asked to. A hold does not stop it. */
  deliver(items: readonly Delivery[], request: CollectRequest | null): Promise<DeliverAnswers>
  /** Reads records. */
  get(ids: readonly string[]): Promise<GetAnswers>
  /** Sends hints from now on; returns the function that ends that. */
  watch(listener: HintListener): () => void
  /** Frees what is past its end, at most `limit` records; answers how many. Never needed for correct answers. */
  sweep(limit: number): Promise<number>
  /** Holds the whole namespace for `ms` from now, or until an earlier hold ends if that is later; 0 ends every hold. */
  hold(ms: number): Promise<void>
  /** Counts. */
  stats(): Promise<StorageStats>
  /** Lets go of everything this handle keeps; running operations end first. Closing twice is harmless. */
  close(): Promise<void>
}
