/**
 * Back-off policies: pure functions from the attempt that failed to the delay before the next.
 *
 * @module
 */

import { guardDuration, InvalidArgumentError } from './errors.ts'

/**
 * Answers how long to wait after the failed attempt number `attempt` (from 1), ms from 0; or null for no further attempt.
 *
 * @param random - a number from 0 to below 1
 */
export type RetryPolicy = (attempt: number, error: unknown, random: number) => number | null

/**
 * Exponential back-off with full jitter: anything from 0 to `baseMs * factor ** (attempt - 1)`, at most `maxMs`, evenly. Full
 * jitter spreads a crowd of failed jobs best (AWS Architecture Blog, "Exponential Backoff And Jitter").
 */
export function exponential(options: { baseMs: number; maxMs: number; factor?: number }): RetryPolicy {
  const { baseMs, maxMs, factor = 2 } = options
  guardDuration('retry.baseMs', baseMs)
  guardDuration('retry.maxMs', maxMs)
  if (!(factor >= 1 && factor <= 1_000))
    throw new InvalidArgumentError('retry.factor', 'a number from 1 to 1000', factor)
  return (attempt, _error, random) => Math.floor(random * Math.min(maxMs, baseMs * factor ** (attempt - 1)))
}

/** The same delay after every attempt. */
export function fixed(delayMs: number): RetryPolicy {
  guardDuration('retry.delayMs', delayMs)
  return () => delayMs
}
