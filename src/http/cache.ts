/**
 * The cached result: one answer for every request about a subject, served stale for a while as one refresh in the background
 * makes a new one.
 *
 * @module
 */

import type { Clock } from '../clock.ts'
import type { HttpCounters } from './counters.ts'
import type { Ask, Asked, RecordLayer } from './record.ts'
import { askingFor } from './stored-request.ts'
import type { StoredResponse } from './stored-response.ts'
import { defaultTtl } from './ttl.ts'

/** What can be set on the cached result. */
export interface CacheOptions {
  /** How long an answer is served as it is, ms. */
  readonly freshMs: number
  /** How much longer it is served while a refresh runs in the background, ms. Default: 0, not at all. */
  readonly staleMs?: number
  /**
   * Whether all actors share one answer: only where upstream uses nothing of the request but the subject. One with
   * `Cache-Control: private` or `no-store`, or with `Vary`, is given to nobody else. Default: each has its own.
   */
  readonly shared?: boolean
}

/** What the layer is made of. */
export interface CacheParts {
  readonly records: RecordLayer
  readonly freshMs: number
  readonly staleMs: number
  readonly clock: Clock
  readonly counters: HttpCounters
  readonly onError: (error: unknown) => void
}

/** An answer, and how old it is if it was cached: ms. */
export type Cached = Asked & { readonly ageMs?: number }

/** Asks records that are kept as long as they may be served. */
export class CacheLayer {
  readonly #parts: CacheParts
  /** Ids whose refresh runs in this process, or failed a short while ago. */
  readonly #refreshing = new Set<string>()

  constructor(parts: CacheParts) {
    this.#parts = parts
  }

  /**
   * Answers from the cached result, or has it made. Concurrent calls share one run.
   *
   * @throws as the record layer
   */
  async ask(given: Ask): Promise<Cached> {
    const { records, freshMs, staleMs, clock, counters } = this.#parts
    const ask = { ...given, resultTtlMs: freshMs + staleMs }
    const asked = await records.ask(ask)
    if (asked.kind === 'busy') return asked
    if (ask.ownId !== undefined && isAnothers(asked.stored, ask.ownId)) return this.ask(ownAsk(given, ask.ownId))
    if (asked.own || asked.failed || (ask.refresh && asked.unrefreshed !== true)) return asked
    const ageMs = Math.max(0, clock.now() - asked.stored.at)
    counters.cached++
    // Who asked for a refresh in vain has just learned that there is none to be had yet.
    if (!ask.refresh && ageMs >= freshMs && staleMs > 0) {
      counters.stale++
      this.#refresh(ask)
    }
    return { ...asked, ageMs }
  }

  #refresh(ask: Ask): void {
    const { id } = ask
    if (this.#refreshing.has(id)) return
    this.#refreshing.add(id)
    const { records, onError } = this.#parts
    const { signal: _, onBegun: __, ...rest } = ask
    const forever = Number.POSITIVE_INFINITY
    const refreshed = records.ask({ ...rest, refresh: true, waitMs: forever, ownWaitMs: forever })
    refreshed.then(
      (asked) => this.#end(ask, asked.kind === 'answer' && !asked.failed && asked.unrefreshed !== true),
      (error: unknown) => {
        onError(error)
        this.#end(ask, false)
      },
    )
  }

  /** After a failure, or a refusal, the next refresh has to wait: stale answers must not become a flood of calls. */
  #end({ id, failureTtlMs }: Ask, succeeded: boolean): void {
    if (succeeded) this.#refreshing.delete(id)
    else this.#parts.clock.timer(() => this.#refreshing.delete(id), defaultTtl(failureTtlMs), false)
  }
}

/** Whether upstream has said that an answer is for who asked, and that was another actor. */
function isAnothers({ only }: StoredResponse, ownId: string): boolean {
  return only !== undefined && only !== ownId
}

/** The same question about the actor's own answer. */
function ownAsk({ ownId: _, ...ask }: Ask, id: string): Ask {
  return { ...ask, id, payload: askingFor(ask.payload, id) }
}
