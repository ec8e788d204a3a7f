/**
 * What can go wrong with an answer, and who decides when: scripted, by VIN, or by a seed that replays.
 *
 * @module
 */

/** One thing that goes wrong. */
export type Fault =
  /** The answer is right but comes after `ms`. */
  | { readonly kind: 'latency'; readonly ms: number }
  /** Any status with a short JSON or HTML body. */
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter?: string; readonly body?: 'json' | 'html' }
  /** 429, with or without `Retry-After`. */
  | { readonly kind: 'throttle'; readonly retryAfter?: string }
  /** 403 with a short HTML page and no `Retry-After`. */
  | { readonly kind: 'ban' }
  /** 504 with an HTML page. */
  | { readonly kind: 'gateway_timeout' }
  /** Status 200 with something else than JSON. */
  | { readonly kind: 'xml' | 'html' | 'broken_json' }
  /** Status 200, JSON, no rows. */
  | { readonly kind: 'execution_error' | 'empty_results' }
  /** Rows of these VINs (default: the first) are left out, or come twice, or the rows come in reverse. */
  | { readonly kind: 'missing' | 'doubled'; readonly vins?: readonly string[] }
  | { readonly kind: 'reversed' }
  /** The connection breaks before, or in the middle of, the answer. */
  | { readonly kind: 'reset'; readonly halfway?: boolean }
  /** No answer at all, until the client gives up. */
  | { readonly kind: 'silence' }

/** What a plan may look at. */
export interface FaultRequest {
  /** From 1, over all calls. */
  readonly number: number
  readonly batch: boolean
  readonly vins: readonly string[]
}

/** Decides what goes wrong with a call; null for nothing. */
export type FaultPlan = (request: FaultRequest) => Fault | null

/** Random numbers that replay: mulberry32. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Each call suffers one of the faults with the given chance. The same seed and order of calls bring the same faults. */
export function seededFaults(seed: number, chance: number, faults: readonly Fault[]): FaultPlan {
  return ({ number }) => {
    const random = randomOf(seed + number * 7_919)
    if (random() >= chance) return null
    return faults[Math.floor(random() * faults.length)] ?? null
  }
}
