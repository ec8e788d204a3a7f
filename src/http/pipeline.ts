/**
 * One request through all layers.
 *
 * @module
 */

import { InvalidArgumentError } from '../errors.ts'
import { readBody } from './body.ts'
import { buildKey, isActor, sharedKey } from './build-key.ts'
import type { Cached } from './cache.ts'
import { type HttpCounters, newHttpCounters } from './counters.ts'
import { UpstreamFailure } from './failure.ts'
import { contentFingerprint } from './fingerprint.ts'
import { idempotencyKeyHeader, parseIdempotencyKey } from './idempotency-key.ts'
import { type Incoming, incomingOf, renewed } from './incoming.ts'
import { type Layers, layersOf } from './layers.ts'
import type { IdempotentSettings } from './options.ts'
import type { HttpQueue } from './record.ts'
import { Refusals } from './refusals.ts'
import { type StoredRequest, sent } from './stored-request.ts'
import { replay, restoredResponse } from './stored-response.ts'
import { Refused, Trouble } from './trouble.ts'
import { age, cacheAsk, cached, direct } from './work.ts'

/** Which record answers a request. */
interface Identity {
  readonly id: string
  /** What tells a retry from another request under the same id. */
  readonly fingerprint: string
  /** The id of the subject's cached result; null for none. The same as `id` where there is no key. */
  readonly cacheId: string | null
  /** If that is shared: the id of the actor's own, for an answer that must not be; else null. */
  readonly ownId: string | null
  /** Whether the client brought a key. */
  readonly hasKey: boolean
}

/** Answers requests. */
export class Pipeline {
  readonly counters: HttpCounters = newHttpCounters()
  readonly #settings: IdempotentSettings
  readonly #layers: Layers
  readonly #refusals: Refusals
  readonly #trouble: Trouble

  constructor(queue: HttpQueue, settings: IdempotentSettings) {
    const { upstream = noUpstream, mode, problemBase, retryAfterMs, documentation, onError } = settings
    this.#settings = settings
    this.#layers = layersOf(queue, settings, upstream, mode, this.counters)
    this.#refusals = new Refusals(problemBase, retryAfterMs, documentation)
    this.#trouble = new Trouble(this.#refusals, this.counters, onError)
  }

  /** Answers one. Never rejects. */
  async answer(request: Request): Promise<Response> {
    let progress: 'before' | 'begun' = 'before'
    const onBegun = () => {
      progress = 'begun'
    }
    try {
      if (!this.#settings.methods.includes(request.method)) return await this.#pass(request)
      this.counters.requests++
      return await this.#protected(request, onBegun)
    } catch (error) {
      return this.#trouble.responseTo(error, progress)
    }
  }

  async #protected(request: Request, onBegun: () => void): Promise<Response> {
    const key = this.#keyOf(request)
    const actor = await this.#actorOf(request)
    const incoming = incomingOf(request, await this.#bodyOf(request))
    const refusal = await this.#settings.validate?.(incoming)
    if (refusal !== null && refusal !== undefined) throw new Refused(refusal)
    const identity = await this.#identify(incoming, actor, key)
    if (identity === null) return this.#pass(renewed(incoming, request.signal))
    const { busy, statusUrl } = this.#settings
    // Before anything is begun: an answer that can not be given must not cost a call.
    const location = busy === 'accepted' ? locationOf(statusUrl?.(identity.id, request), request) : null
    return this.#respond(location, await this.#ask(incoming, identity, onBegun))
  }

  /** For requests that no key protects. */
  async #pass(request: Request): Promise<Response> {
    if (this.#settings.upstream === undefined) throw new Refused(this.#refusals.notAllowed(this.#settings.methods))
    this.counters.passed++
    try {
      return await this.#layers.upstream.pass(request)
    } catch (error) {
      if (!(error instanceof UpstreamFailure)) throw error
      if (error.details.local) this.counters.unavailable++
      return error.live
    }
  }

  /** The client's key; null if there is none, and need not be. */
  #keyOf(request: Request): string | null {
    const { keyLengthMax, requireKey } = this.#settings
    const parsed = parseIdempotencyKey(request.headers.get(idempotencyKeyHeader), keyLengthMax)
    if (parsed.ok) return parsed.key
    if (!parsed.missing) throw new Refused(this.#refusals.keyMalformed(parsed.problem))
    if (requireKey) throw new Refused(this.#refusals.keyMissing())
    return null
  }

  async #actorOf(request: Request): Promise<string> {
    const actor = await this.#settings.actor(request)
    if (isActor(actor)) return actor
    throw new Refused(this.#refusals.actorMissing(this.#settings.actorMissingStatus))
  }

  async #bodyOf(request: Request): Promise<Uint8Array<ArrayBuffer>> {
    const { bodyBytesMax } = this.#settings
    const body = await readBody(request, bodyBytesMax)
    if (body.ok) return body.bytes
    throw new Refused(
      body.problem === 'too-large' ? this.#refusals.tooLarge(bodyBytesMax) : this.#refusals.unreadable(),
    )
  }

  /**
   * With a client's key the subject is no part of the id: the same key with another body must be met, to be refused. Without a key
   * the subject is all there is; without both there is no identity.
   */
  async #identify(incoming: Incoming, actor: string, key: string | null): Promise<Identity | null> {
    const { schemaVersion, subject: subjectOf, cache } = this.#settings
    const isBySubject = subjectOf !== undefined && (key === null || cache !== null)
    const subject = isBySubject ? await subjectOf(incoming) : null
    // A property that was not there must not make one question of all.
    if (isBySubject && subject === undefined) {
      throw new InvalidArgumentError('options.subject()', 'a value; null for none', subject)
    }
    // Another method is another question.
    const question = [incoming.method, subject]
    const bySubject = isBySubject ? buildKey({ actor, subject: question, schemaVersion }) : null
    const isShared = cache?.shared === true
    const cacheId = isShared ? sharedKey(question, schemaVersion) : cache && bySubject
    const ownId = isShared ? bySubject : null
    if (key === null) {
      const id = cacheId ?? bySubject
      return id === null ? null : { id, fingerprint: id, cacheId, ownId, hasKey: false }
    }
    const id = buildKey({ actor, subject: null, schemaVersion, attempt: key })
    const fingerprint = await contentFingerprint(incoming.method, incoming.url, incoming.body)
    return { id, fingerprint, cacheId, ownId, hasKey: true }
  }

  #ask(incoming: Incoming, identity: Identity, onBegun: () => void): Promise<Cached> {
    const { records, cache, work } = this.#layers
    const { resultTtlMs, failureTtlMs, waitMs, timeoutMs, busy } = this.#settings
    const { id, cacheId, ownId, hasKey } = identity
    const refresh = this.#wantsRefresh(incoming.headers)
    const payload = this.#payload(incoming, identity, refresh)
    const ownWaitMs = busy === 'accepted' ? waitMs : timeoutMs
    const patience = { waitMs, ownWaitMs, signal: incoming.request.signal, onBegun }
    if (!hasKey && cache !== null) {
      return cache.ask({ ...cacheAsk(work, incoming, { cacheId: id, ownId }), ...patience, payload, refresh })
    }
    return records.ask({
      id,
      payload,
      work: cacheId === null ? direct(work, incoming) : cached(work, incoming, { cacheId, ownId }, refresh),
      resultTtlMs,
      failureTtlMs,
      rejectMismatch: true,
      // A retry under its key is no new charge: what is refreshed behind a key is the cached result.
      refresh: refresh && !hasKey,
      ...patience,
    })
  }

  #payload(incoming: Incoming, { fingerprint, ...ids }: Identity, refresh: boolean): StoredRequest {
    const { mode, workerHeaders } = this.#settings
    return mode === 'inline' ? { fingerprint } : { fingerprint, sent: sent(incoming, workerHeaders, ids, refresh) }
  }

  /** `no-cache` asks for more than a stored answer (RFC 9111, 5.2.1.4). */
  #wantsRefresh(headers: Headers): boolean {
    if (!this.#settings.noCache) return false
    const directives = (headers.get('cache-control') ?? '').toLowerCase().split(',')
    return directives.some((directive) => directive.trim() === 'no-cache')
  }

  #respond(location: string | null, asked: Cached): Response {
    const { busy, problemBase } = this.#settings
    const { counters } = this
    if (asked.kind === 'busy') {
      counters.busy++
      return busy === 'accepted' ? this.#refusals.accepted(location) : this.#refusals.inProgress()
    }
    if (asked.local) counters.unavailable++
    if (asked.own || asked.local) return asked.live ?? restoredResponse(asked.stored, problemBase)
    if (asked.ageMs === undefined) counters.replayed++
    const response = replay(asked.stored, problemBase)
    if (asked.ageMs !== undefined) response.headers.set('age', age(asked.ageMs))
    return response
  }
}

/**
 * A status URL as a header can carry it.
 *
 * @throws InvalidArgumentError for what is none
 */
function locationOf(value: unknown, request: Request): string {
  const isText = typeof value === 'string' && value.isWellFormed() && /^\P{Cc}+$/u.test(value)
  if (!isText || !URL.canParse(value, request.url)) {
    throw new InvalidArgumentError('options.statusUrl()', 'a path or URL without control characters', value)
  }
  return value.replace(/[^\x21-\x7e]+/gu, encodeURIComponent)
}

function noUpstream(): never {
  throw new TypeError('there is no upstream here: workers have it')
}
