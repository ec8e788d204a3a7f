/**
 * What can be set on `idempotent` and its kin, with every default in one place.
 *
 * @module
 */

import { isPassingStatus } from '../client/passing-status.ts'
import { type Clock, systemClock } from '../clock.ts'
import { guardDuration, guardInteger, InvalidArgumentError } from '../errors.ts'
import { limits } from '../limits.ts'
import { guardFunction, guardObject, guardWait } from '../settings.ts'
import { type Breaker, isBreakerOpen } from './breaker.ts'
import type { CacheOptions } from './cache.ts'
import { keyLengthMax } from './idempotency-key.ts'
import type { Incoming } from './incoming.ts'
import { problemBase } from './problem.ts'
import { guardTtl, type TtlTable } from './ttl.ts'
import type { Upstream } from './upstream.ts'

/** Every default of the HTTP layer. Durations in ms. */
export const httpDefaults = Object.freeze({
  /** Methods that need a key: those that HTTP itself doesn't call idempotent (RFC 9110, 9.2.2). */
  methods: Object.freeze(['POST', 'PATCH']),
  schemaVersion: 1,
  /** How long outcomes are replayed: an hour. */
  resultTtlMs: 3_600_000,
  /** How long failures are: long enough for a burst, short enough for a second try. */
  failureTtlMs: 15_000,
  /** How long a request waits for another's run, with `busy: 'wait'`. */
  waitMs: 10_000,
  /** How long upstream may take: less than `queue.stop()` waits for it. */
  upstreamTimeoutMs: 25_000,
  /** How long a request waits for its own run; longer than upstream may take. */
  timeoutMs: 60_000,
  /** What `Retry-After` says of 409, 202 and 503. */
  retryAfterMs: 1_000,
  /** Runs of one key, crashes counted. */
  maxAttempts: 3,
  /** Bytes of a request's body: a megabyte, and room for its wrapping. */
  bodyBytesMax: 1_114_112,
} as const)

/** Who asks. */
export type ActorOf = (request: Request) => string | null | undefined | PromiseLike<string | null | undefined>

/** What both sides of the record need. */
export interface UpstreamOptions {
  /** The work behind the key: called once for each question, whoever asks it. */
  upstream: Upstream
  /** Keeps calls from leaving while it is open: 503. Cached results are still served. */
  breaker?: Breaker
  /** Whether an error says that the breaker is open. Default: cockatiel's and opossum's do. */
  isBreakerOpen?: (error: unknown) => boolean
  /** Which statuses are failures: kept for `failureTtlMs`, counted by the breaker. Default: 5xx, 408, 425, 429. */
  isFailure?: (status: number) => boolean
  /** Whether the queue repeats a failure with its back-off, as long as attempts are left. Default: false, it is the answer. */
  retryFailures?: boolean
  /** How long upstream may take, to the last byte of its answer, ms; then 504. Default: `httpDefaults.upstreamTimeoutMs`; may be Infinity. */
  upstreamTimeoutMs?: number
  /** How long outcomes are kept, ms, for all statuses or by status. Default: `httpDefaults.resultTtlMs`. */
  resultTtlMs?: TtlTable
  /** The same for failures. Default: `httpDefaults.failureTtlMs`. */
  failureTtlMs?: TtlTable
  /** Keeps one answer for each subject, so that a new key needn't mean a new call. */
  cache?: CacheOptions
  /** Runs of one key; a crash of the server in mid-call counts as one. 1: never again after a crash. Default: 3. */
  maxAttempts?: number
  /** What `Retry-After` says of 409, 202 and 503, ms. Default: `httpDefaults.retryAfterMs`. */
  retryAfterMs?: number
  /** Put before a problem's code to make its `type`. Default: `urn:askonce:problem:`. */
  problemBase?: string
  /** Hears of what no response tells: functions of yours that threw, refreshes that failed. Must not throw. */
  onError?: (error: unknown) => void
  /** Default: the system's. */
  clock?: Clock
}

/** What can be set on `idempotent`. */
export interface IdempotentOptions extends Omit<UpstreamOptions, 'upstream'> {
  /**
   * Who asks, as the server knows it: a session's user, a tenant. Keys of two actors never meet. Empty or none: 401. Somebody
   * who is not known needs a name, too, such as the session's.
   */
  actor: ActorOf
  /** The work. Needed unless workers do it. */
  upstream?: Upstream
  /** `inline`: the first request runs it in its own process. `workers`: those of `executeUpstream` do. Default: `inline`. */
  mode?: 'inline' | 'workers'
  /** With workers: the request's headers that they get. Default: `content-type` and `accept`. */
  workerHeaders?: readonly string[]
  /** Looks at a request before any key is written. A Response is sent as it is, and kept by nobody. */
  validate?: (incoming: Incoming) => Response | null | undefined | PromiseLike<Response | null | undefined>
  /** What is asked, normalised: the identity where there is no key, and of the cached result. Anything with canonical JSON. */
  subject?: (incoming: Incoming) => unknown
  /** Of the answer's shape: with a new one nothing older is replayed. Default: 1. */
  schemaVersion?: string | number
  /**
   * Whether the header is required: 400 without. If not, `subject` is the identity, or there is none. Must be true where `accepted`
   * meets a shared cache. Default: true.
   */
  requireKey?: boolean
  /** Characters of a key. Default: 255. */
  keyLengthMax?: number
  /** Methods that are protected; others are handed on. Default: POST and PATCH. */
  methods?: readonly string[]
  /**
   * What a request gets whose key is being worked on. `conflict`: 409 at once. `wait`: the answer, or 409 after `waitMs`. `accepted`:
   * 202 with a status URL after `waitMs`, the first request too. Default: `conflict`.
   */
  busy?: 'conflict' | 'wait' | 'accepted'
  /** ms; 0 with `accepted` for at once. Default: `httpDefaults.waitMs` with `wait`, 0 with `accepted`. */
  waitMs?: number
  /** How long a request waits for its own run, ms; then it is answered as one whose key is being worked on. May be Infinity. */
  timeoutMs?: number
  /**
   * Where `statusOf` serves: a path or URL. Asked before the work begins: if it throws, or answers none, the request is answered with
   * 500. What is not ASCII is percent-encoded. Required with `accepted`.
   */
  statusUrl?: (id: string, request: Request) => string
  /** Whether `Cache-Control: no-cache` asks upstream anew. Default: false. */
  noCache?: boolean
  /** Bytes of a request's body; more is 413. Default: `httpDefaults.bodyBytesMax`. */
  bodyBytesMax?: number
  /** The URL of your page about keys: sent as `Link` with what is wrong with one. Default: none. */
  documentation?: string
  /** The status of a request without an actor. Default: 401. */
  actorMissingStatus?: 400 | 401 | 403
}

/** Options of the upstream, complete. */
export type UpstreamSettings = Required<Omit<UpstreamOptions, 'upstream' | 'breaker' | 'cache'>> & {
  readonly breaker: Breaker | undefined
  readonly cache: Required<CacheOptions> | null
}

/** Options, complete. */
export type IdempotentSettings = UpstreamSettings &
  Required<Omit<IdempotentOptions, keyof UpstreamOptions | 'validate' | 'subject' | 'statusUrl' | 'documentation'>> &
  Pick<IdempotentOptions, 'upstream' | 'validate' | 'subject' | 'statusUrl'> & { readonly documentation: string | null }

/** @throws InvalidArgumentError that names the option */
export function readUpstreamOptions(options: Omit<UpstreamOptions, 'upstream'>): UpstreamSettings {
  const {
    breaker,
    cache,
    isBreakerOpen: isOpen = isBreakerOpen,
    isFailure = isPassingStatus,
    retryFailures = false,
    upstreamTimeoutMs = httpDefaults.upstreamTimeoutMs,
    resultTtlMs = httpDefaults.resultTtlMs,
    failureTtlMs = httpDefaults.failureTtlMs,
    maxAttempts = httpDefaults.maxAttempts,
    retryAfterMs = httpDefaults.retryAfterMs,
    problemBase: base = problemBase,
    onError = () => {},
    clock = systemClock,
  } = options
  if (breaker !== undefined && typeof (breaker as Partial<Breaker> | null)?.execute !== 'function') {
    throw new InvalidArgumentError('options.breaker', 'an object with execute(call)', breaker)
  }
  guardFunction('options.isBreakerOpen', isOpen)
  guardFunction('options.isFailure', isFailure)
  guardWait('options.upstreamTimeoutMs', upstreamTimeoutMs)
  guardTtl('options.resultTtlMs', resultTtlMs)
  guardTtl('options.failureTtlMs', failureTtlMs)
  guardInteger('options.maxAttempts', maxAttempts, 1, limits.maxAttemptsMax)
  guardDuration('options.retryAfterMs', retryAfterMs)
  if (typeof base !== 'string') throw new InvalidArgumentError('options.problemBase', 'a string', base)
  guardFunction('options.onError', onError)
  return {
    breaker,
    cache: cache === undefined ? null : readCache(cache),
    isBreakerOpen: isOpen,
    isFailure,
    retryFailures,
    upstreamTimeoutMs,
    resultTtlMs,
    failureTtlMs,
    maxAttempts,
    retryAfterMs,
    problemBase: base,
    onError: quiet(onError),
    clock,
  }
}

/** @throws InvalidArgumentError that names the option */
export function readOptions(options: IdempotentOptions): IdempotentSettings {
  guardObject('options', options)
  const { actor, upstream, validate, subject, statusUrl, mode = 'inline', busy = 'conflict' } = options
  guardFunction('options.actor', actor)
  guardOneOf('options.mode', mode, ['inline', 'workers'])
  if (mode === 'inline' || upstream !== undefined) guardFunction('options.upstream', upstream)
  if (validate !== undefined) guardFunction('options.validate', validate)
  if (subject !== undefined) guardFunction('options.subject', subject)
  guardOneOf('options.busy', busy, ['conflict', 'wait', 'accepted'])
  if (busy === 'accepted' || statusUrl !== undefined) guardFunction('options.statusUrl', statusUrl)
  if (options.cache !== undefined && subject === undefined) {
    throw new InvalidArgumentError('options.subject', 'a function, since options.cache is kept by subject', subject)
  }
  if (busy === 'accepted' && options.cache?.shared === true && options.requireKey === false) {
    const expected = "true with options.busy = 'accepted' and options.cache.shared: a shared answer has no status URL"
    throw new InvalidArgumentError('options.requireKey', expected, options.requireKey)
  }
  const { schemaVersion = httpDefaults.schemaVersion, requireKey = true, noCache = false } = options
  const { methods = httpDefaults.methods, workerHeaders = ['content-type', 'accept'] } = options
  const { timeoutMs = httpDefaults.timeoutMs, bodyBytesMax = httpDefaults.bodyBytesMax } = options
  const { keyLengthMax: lengthMax = keyLengthMax, actorMissingStatus = 401 } = options
  const documentation = options.documentation === undefined ? null : urlOf(options.documentation)
  const { waitMs = busy === 'wait' ? httpDefaults.waitMs : 0 } = options
  guardStrings('options.methods', methods)
  guardStrings('options.workerHeaders', workerHeaders)
  if (waitMs !== 0) guardWait('options.waitMs', waitMs)
  guardWait('options.timeoutMs', timeoutMs)
  guardInteger('options.bodyBytesMax', bodyBytesMax, 0, Number.MAX_SAFE_INTEGER)
  guardInteger('options.keyLengthMax', lengthMax, 1, 10_000)
  guardOneOf('options.actorMissingStatus', actorMissingStatus, [400, 401, 403])
  return {
    ...readUpstreamOptions(options),
    actor,
    upstream,
    validate,
    subject,
    statusUrl,
    mode,
    busy,
    waitMs: busy === 'conflict' ? 0 : waitMs,
    timeoutMs,
    schemaVersion,
    requireKey,
    noCache,
    methods: methods.map((method) => method.toUpperCase()),
    workerHeaders,
    bodyBytesMax,
    keyLengthMax: lengthMax,
    documentation,
    actorMissingStatus,
  } as IdempotentSettings
}

function readCache(cache: CacheOptions): Required<CacheOptions> {
  guardObject('options.cache', cache)
  const { freshMs, staleMs = 0, shared = false } = cache
  guardDuration('options.cache.freshMs', freshMs)
  if (staleMs !== 0) guardDuration('options.cache.staleMs', staleMs)
  guardDuration('options.cache.freshMs + options.cache.staleMs', freshMs + staleMs)
  return { freshMs, staleMs, shared }
}

function guardOneOf(field: string, value: unknown, allowed: readonly unknown[]): void {
  if (allowed.includes(value)) return
  throw new InvalidArgumentError(field, allowed.map((one) => JSON.stringify(one)).join(', '), value)
}

/** As a header can carry it. */
function urlOf(value: unknown): string {
  if (typeof value === 'string' && URL.canParse(value)) return new URL(value).href
  throw new InvalidArgumentError('options.documentation', 'a URL', value)
}

function guardStrings(field: string, value: unknown): void {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string' && item !== '')) return
  throw new InvalidArgumentError(field, 'an array of non-empty strings', value)
}

/** The same, unable to throw. */
export function quiet(onError: (error: unknown) => void): (error: unknown) => void {
  return (error) => {
    try {
      onError(error)
    } catch {
      // What tells of trouble must not make more.
    }
  }
}
