/**
 * The policy's table in the terms of the queue: a retry policy, and the hook that sets each outcome's TTL.
 *
 * @module
 */

import type { AfterExecution } from '../../options.ts'
import { exponential, type RetryPolicy } from '../../retry.ts'
import { VinDecodeError } from './errors.ts'
import type { VinPayload } from './handler.ts'
import { modelYearsOf } from './model-year.ts'
import { ttlOf, type VinFacts, type VinPolicy } from './policy.ts'
import type { DecodedVin } from './row.ts'

/**
 * Tries again what the table says is worth it. The jobs of one call share its error and so its jitter: they come back
 * together, as one batch again, not as fifty single calls spread over a second. What the service asked to wait is waited.
 */
export function retryPolicyOf(policy: VinPolicy): RetryPolicy {
  const backoff = exponential({ baseMs: policy.retryBaseMs, maxMs: policy.retryMaxMs })
  const jitter = new WeakMap<VinDecodeError, number>()
  return (attempt, error, random) => {
    // A time-out of the handler and the like: faults of the attempt, not of the VIN.
    if (!(error instanceof VinDecodeError)) return backoff(attempt, error, random)
    if (policy.rules[error.code].retry === 'never') return null
    const shared = jitter.get(error) ?? random
    jitter.set(error, shared)
    const asked = Math.min(error.details.retryAfterMs ?? 0, policy.holdMaxMs)
    return asked + (backoff(attempt, error, shared) ?? 0)
  }
}

/** Sets how long each outcome is kept, by its class; then the caller's own hook may change it. */
export function ttlSetter(
  policy: VinPolicy,
  now: () => number,
  next: AfterExecution<VinPayload, DecodedVin> | undefined,
): AfterExecution<VinPayload, DecodedVin> {
  return (context) => {
    const { result, error } = context
    const name = result?.class ?? (error instanceof VinDecodeError ? error.code : 'UPSTREAM')
    const details = error instanceof VinDecodeError ? error.details : undefined
    const facts: VinFacts = {
      codes: result?.codes ?? details?.codes ?? [],
      modelYear: result?.modelYear ?? details?.modelYear ?? yearOf(context.payload, now()),
      now: now(),
    }
    const ttlMs = ttlOf(policy, name, facts)
    if (ttlMs !== null) context.ttl = ttlMs
    return next?.(context)
  }
}

function yearOf(payload: VinPayload, now: number): number | null {
  return payload?.modelYear ?? (typeof payload?.vin === 'string' ? (modelYearsOf(payload.vin, now)[0] ?? null) : null)
}
