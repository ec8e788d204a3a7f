/**
 * What follows from a class: whether and how it is tried again, and how long the outcome is kept. One table, replaceable
 * as a whole or class by class.
 *
 * @module
 */

import { guardDuration, guardInteger, InvalidArgumentError } from '../../errors.ts'
import { limits } from '../../limits.ts'
import { type VinClass, vinClasses } from './classes.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs

/** What a rule may look at. */
export interface VinFacts {
  /** vPIC's codes, none for failures that brought no row. */
  readonly codes: readonly number[]
  /** The vehicle's model year, as vPIC has it or else as the VIN says; null if neither does. */
  readonly modelYear: number | null
  /** ms since 1970. */
  readonly now: number
}

/** What follows from one class. */
export interface VinRule {
  /**
   * `never`: the outcome stands. `backoff`: again later, up to the policy's `maxAttempts`. `hold`: the whole queue pauses and
   * the attempt is not counted. `single`: again at once, alone.
   */
  readonly retry: 'never' | 'backoff' | 'hold' | 'single'
  /** How long the outcome is kept, ms; null where there is nothing to keep. */
  readonly ttlMs: number | null | ((facts: VinFacts) => number)
}

/** The whole policy. */
export interface VinPolicy {
  /** Part of every id: change it, and every VIN is asked anew. */
  readonly version: string
  readonly rules: Readonly<Record<VinClass, VinRule>>
  /** Attempts of one VIN before an UPSTREAM failure stands. 1 to 1,000,000. */
  readonly maxAttempts: number
  /** First and longest back-off, ms; doubled from attempt to attempt, with full jitter. */
  readonly retryBaseMs: number
  readonly retryMaxMs: number
  /** How long a throttle without a `Retry-After` holds the queue, ms. Polling during a ban was seen to extend it. */
  readonly holdMs: number
  /** The longest hold that a `Retry-After` is believed, ms. */
  readonly holdMaxMs: number
}

/** A policy's changes against {@link defaultPolicy}. */
export interface VinPolicyChanges extends Partial<Omit<VinPolicy, 'rules'>> {
  readonly rules?: Partial<Record<VinClass, VinRule>>
}

/** vPIC publishes monthly; data of recent vehicles comes in weeks, of old ones hardly ever. */
function noDataTTL({ modelYear, now }: VinFacts): number {
  return modelYear !== null && modelYear >= new Date(now).getUTCFullYear() - 1 ? 7 * dayMs : 30 * dayMs
}

/** The default policy. */
export const defaultPolicy: VinPolicy = Object.freeze({
  version: 'vpic-1',
  rules: Object.freeze({
    LOCAL_INVALID: { retry: 'never', ttlMs: 365 * dayMs },
    // 14, nothing known for some characters, can heal.
    CLEAN: { retry: 'never', ttlMs: ({ codes }: VinFacts) => (codes.includes(14) ? 30 : 90) * dayMs },
    WARN: { retry: 'never', ttlMs: 30 * dayMs },
    BAD_VIN: { retry: 'never', ttlMs: 180 * dayMs },
    NO_DATA: { retry: 'never', ttlMs: noDataTTL },
    UNKNOWN_MAKER: { retry: 'never', ttlMs: 30 * dayMs },
    THROTTLED: { retry: 'hold', ttlMs: null },
    UPSTREAM: { retry: 'backoff', ttlMs: 5 * minuteMs },
    REQUEST_BUG: { retry: 'never', ttlMs: hourMs },
    BATCH_GAP: { retry: 'single', ttlMs: null },
  } satisfies Record<VinClass, VinRule>),
  maxAttempts: 4,
  retryBaseMs: 1_000,
  retryMaxMs: minuteMs,
  holdMs: 10 * minuteMs,
  holdMaxMs: dayMs,
})

/**
 * The default policy with changes.
 *
 * @throws InvalidArgumentError that names the field
 */
export function policyOf(changes: VinPolicyChanges = {}): VinPolicy {
  const policy: VinPolicy = { ...defaultPolicy, ...changes, rules: { ...defaultPolicy.rules, ...changes.rules } }
  if (typeof policy.version !== 'string' || policy.version === '' || !policy.version.isWellFormed()) {
    throw new InvalidArgumentError('policy.version', 'non-empty, well-formed text', policy.version)
  }
  guardInteger('policy.maxAttempts', policy.maxAttempts, 1, limits.maxAttemptsMax)
  for (const field of ['retryBaseMs', 'retryMaxMs', 'holdMs', 'holdMaxMs'] as const) {
    guardDuration(`policy.${field}`, policy[field])
  }
  for (const name of vinClasses) guardRule(name, policy.rules[name])
  return Object.freeze(policy)
}

/** Which `retry` makes sense: a result is never tried again, only a service's failure can hold or be asked singly. */
const retriesOf: Readonly<Record<VinClass, readonly VinRule['retry'][]>> = {
  LOCAL_INVALID: ['never'],
  CLEAN: ['never'],
  WARN: ['never'],
  BAD_VIN: ['never', 'backoff'],
  NO_DATA: ['never', 'backoff'],
  UNKNOWN_MAKER: ['never', 'backoff'],
  THROTTLED: ['hold', 'backoff', 'never'],
  UPSTREAM: ['backoff', 'never', 'hold'],
  REQUEST_BUG: ['never', 'backoff'],
  BATCH_GAP: ['single', 'backoff', 'never'],
}

function guardRule(name: VinClass, rule: VinRule): void {
  const field = `policy.rules.${name}`
  if (!retriesOf[name].includes(rule?.retry)) {
    throw new InvalidArgumentError(`${field}.retry`, `one of ${retriesOf[name].join(', ')}`, rule?.retry)
  }
  if (typeof rule.ttlMs === 'function') return
  if (rule.ttlMs === null && (rule.retry === 'hold' || rule.retry === 'single')) return
  guardDuration(`${field}.ttlMs`, rule.ttlMs)
}

/** How long an outcome of the class is kept, ms; null if the class keeps nothing. */
export function ttlOf(policy: VinPolicy, name: VinClass, facts: VinFacts): number | null {
  const { ttlMs } = policy.rules[name]
  return typeof ttlMs === 'function' ? ttlMs(facts) : ttlMs
}
