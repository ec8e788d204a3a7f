/**
 * The record layer: one record an id, one run a record, and its outcome for everybody who asks.
 *
 * @module
 */

import type { BaseQueue } from '../base-queue.ts'
import type { Clock } from '../clock.ts'
import { JobCancelledError, JobFailedError, ResultGoneError, StateError } from '../errors.ts'
import type { EnqueueOptions, Job, WaitOptions } from '../options.ts'
import type { JobState } from '../record.ts'
import { failureIn, UpstreamFailure } from './failure.ts'
import { GivenUp, Patience } from './patience.ts'
import type { StoredRequest } from './stored-request.ts'
import type { Answer, StoredResponse } from './stored-response.ts'
import { defaultTtl, type TtlTable, ttlOf } from './ttl.ts'

/** A queue for exchanges: an untyped one, or one of their types. Give them a queue (a name) of their own. */
export type ExchangeQueue = BaseQueue<StoredRequest, StoredResponse> | BaseQueue<unknown, unknown>

/** The queue, as this layer sees it. */
export type HttpQueue = BaseQueue<StoredRequest, StoredResponse>

/** What makes the answer. */
export type Work = (job: Job<StoredRequest>) => Promise<Answer>

/** One question to a record. */
export interface Ask {
  readonly id: string
  readonly payload: StoredRequest
  readonly work: Work
  readonly resultTtlMs: TtlTable
  readonly failureTtlMs: TtlTable
  /** Whether another payload under the same id is refused. */
  readonly rejectMismatch: boolean
  /** Run anew, though there is an answer. */
  readonly refresh: boolean
  /** How long to wait for somebody else's run, ms; 0: not at all; may be Infinity. */
  readonly waitMs: number
  /** How long to wait for one's own run, ms; may be Infinity. The run goes on. */
  readonly ownWaitMs: number
  /** Ends the wait for somebody else's run. */
  readonly signal?: AbortSignal
  /** If the record is shared by all actors: the id of the actor's own, for an answer that must not be shared. */
  readonly ownId?: string
  /** Called, perhaps more than once, as soon as the work may have begun, here or elsewhere. Must not throw. */
  readonly onBegun?: () => void
}

/** What came of it. */
export type Asked =
  /** The outcome; `live` is the response itself, for the call that made it. */
  | {
      readonly kind: 'answer'
      readonly stored: StoredResponse
      readonly live: Response | null
      /** Whether this call ran it. */
      readonly own: boolean
      readonly failed: boolean
      /** Whether it failed before anything left. */
      readonly local: boolean
      /** Whether upstream's answer was good, but could not be stored. */
      readonly unkept: boolean
      /** Whether it is the older answer though a refresh was asked for: its outbox is not delivered yet. */
      readonly unrefreshed?: true
    }
  /** Not done in time. */
  | { readonly kind: 'busy' }

/** What the layer is made of. */
export interface RecordParts {
  readonly queue: HttpQueue
  readonly maxAttempts: number
  readonly problemBase: string
  readonly clock: Clock
  readonly onError: (error: unknown) => void
}

/** Something that answers from records. */
export interface RecordLayer {
  /**
   * Answers from the record, or has the work done.
   *
   * @throws PayloadMismatchError, StorageError, and what else the queue throws of itself
   */
  ask(ask: Ask): Promise<Asked>
}

/** Not done in time. */
export const busy: Asked = Object.freeze({ kind: 'busy' })

/** How long a nothing is kept, ms: as short as can be. */
const forgetMs = 1

/** Asks inline: the first to ask does the work in its own process. */
export class InlineRecords implements RecordLayer {
  readonly #parts: RecordParts

  constructor(parts: RecordParts) {
    this.#parts = parts
  }

  ask(ask: Ask): Promise<Asked> {
    return refreshing(ask, this.#parts.onError, (ask) => this.#ask(ask))
  }

  async #ask(ask: Ask): Promise<Asked> {
    const patience = new Patience(this.#parts.clock, ask.signal)
    try {
      const outcome = this.#run(ask, patience)
      outcome.catch(() => {}) // Nobody may be there any more to hear of it.
      return await Promise.race([outcome, patience.over.then(() => busy)])
    } finally {
      patience.end()
    }
  }

  async #run(ask: Ask, patience: Patience): Promise<Asked> {
    let own: Answer | null = null
    const handler = async (job: Job<StoredRequest>): Promise<StoredResponse> => {
      patience.begin(ask.ownWaitMs)
      ask.onBegun?.()
      try {
        own = await ask.work(job)
        return own.stored
      } catch (error) {
        own = error instanceof UpstreamFailure ? { stored: error.details.http, live: error.live } : null
        throw error
      }
    }
    const asked = await this.#outcome(ask, handler, patience)
    if (asked.kind === 'busy') return busy
    // The lease may have been lost on the way: then it is somebody else's answer that counts.
    const made = own as Answer | null
    const isOwn = patience.begun && (made === null || asked.unkept || made.stored.by === asked.stored.by)
    if (!isOwn) return asked
    await adjustTtl(this.#parts, ask, asked)
    return { ...asked, own: true, live: made?.live ?? null }
  }

  async #outcome(
    ask: Ask,
    handler: (job: Job<StoredRequest>) => Promise<StoredResponse>,
    patience: Patience,
  ): Promise<Asked> {
    const { queue, maxAttempts, problemBase } = this.#parts
    const options = {
      ...enqueueOptions(ask, maxAttempts),
      ...waitOptions(patience, (state) => {
        ask.onBegun?.()
        patience.met(state, ask.waitMs)
      }),
    }
    try {
      return answered(await queue.run(ask.id, ask.payload, handler, options))
    } catch (error) {
      if (error instanceof GivenUp) return busy
      return failed(error, problemBase)
    }
  }
}

/** What a record fixes. */
export function enqueueOptions(ask: Ask, maxAttempts: number): EnqueueOptions {
  return {
    resultTTL: defaultTtl(ask.resultTtlMs),
    failureTTL: defaultTtl(ask.failureTtlMs),
    maxAttempts,
    payloadMismatch: ask.rejectMismatch ? 'reject' : 'ignore',
    // Not the payload's own: what a worker is sent along, such as the host or a header, differs from try to try. As JSON any text
    // will do, an empty one too.
    fingerprint: JSON.stringify(ask.payload.fingerprint),
    refresh: ask.refresh,
  }
}

/**
 * Asks; if a refresh is refused because rows of the record's outbox are still to be delivered, once more without: the older answer
 * counts until a relay has done its work.
 */
export async function refreshing(
  ask: Ask,
  onError: (error: unknown) => void,
  send: (ask: Ask) => Promise<Asked>,
): Promise<Asked> {
  try {
    return await send(ask)
  } catch (error) {
    if (!ask.refresh || !(error instanceof StateError)) throw error
    onError(error)
    const asked = await send({ ...ask, refresh: false })
    return asked.kind === 'busy' ? busy : { ...asked, unrefreshed: true }
  }
}

/** How a caller waits: as long as its patience lasts. */
export function waitOptions({ signal }: Patience, onDuplicate: (state: JobState) => void): WaitOptions {
  return { timeout: Number.POSITIVE_INFINITY, signal, onDuplicate }
}

/** A result as an answer. */
export function answered(stored: StoredResponse): Asked {
  return { kind: 'answer', stored, live: null, own: false, failed: false, local: false, unkept: false }
}

/**
 * What a queue's error says of the outcome.
 *
 * @throws it, if nothing
 */
export function failed(error: unknown, problemBase: string): Asked {
  // The record ended before it could be read; whoever asks again begins anew.
  if (error instanceof ResultGoneError || error instanceof JobCancelledError) return busy
  if (!(error instanceof JobFailedError)) throw error
  const { http: stored, local, unkept } = failureIn(error, problemBase)
  return { kind: 'answer', stored, live: null, own: false, failed: true, local, unkept }
}

/** Sets the time of statuses that have one of their own, and forgets what never left. */
export async function adjustTtl(
  { queue, onError }: Pick<RecordParts, 'queue' | 'onError'>,
  { id, resultTtlMs, failureTtlMs, refresh }: Pick<Ask, 'id' | 'resultTtlMs' | 'failureTtlMs' | 'refresh'>,
  { stored, failed, local, unkept }: Pick<Asked & { kind: 'answer' }, 'stored' | 'failed' | 'local' | 'unkept'>,
): Promise<void> {
  // A refresh that failed leaves the older result: its time is its own.
  if (failed && refresh) return
  const table = failed ? failureTtlMs : resultTtlMs
  let ttlMs = ttlOf(table, stored.status)
  if (local) ttlMs = forgetMs
  // It was carried out: asked for anew as soon as a failure is, it would be carried out twice.
  else if (unkept) ttlMs = defaultTtl(resultTtlMs)
  if (ttlMs === defaultTtl(table)) return
  try {
    await queue.updateResultTTL(id, ttlMs)
  } catch (error) {
    onError(error)
  }
}
