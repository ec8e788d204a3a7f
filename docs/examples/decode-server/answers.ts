/**
 * What came of a VIN, as HTTP: three different things in status, code and words. A VIN that is none is the caller's matter,
 * a service that is away is not.
 *
 * @module
 */

import { problem } from '../../../src/http/index.ts'
import type { RefusedOutcome, VinOutcome, VinRefused } from '../../../src/presets/vin/index.ts'

/** For text that is no VIN; nobody was asked. */
export function notAVin({ problems, suggestions }: VinRefused): Response {
  return problem(422, 'invalid-input', 'Not a VIN', problems[0].message, { members: { suggestions } })
}

/** For what the decoder answered. */
export function answerOf(outcome: Exclude<VinOutcome, { class: 'UNDECIDED' }>): Response {
  if (!outcome.ok) return refusalOf(outcome)
  const { vin, decoded, warnings, suggestions } = outcome
  const { make, model, modelYear } = decoded
  return Response.json({ vin, make, model, modelYear, warnings: warnings.map(({ message }) => message), suggestions })
}

function refusalOf({ class: name, message, suggestions, details }: RefusedOutcome): Response {
  const members = { suggestions }
  switch (name) {
    case 'LOCAL_INVALID':
    case 'BAD_VIN':
      return problem(422, 'invalid-input', 'Not a VIN', message, { members })
    case 'NO_DATA':
    case 'UNKNOWN_MAKER':
      return problem(404, 'unknown-vehicle', 'Nothing is known of this vehicle', message, { members })
    default: {
      const seconds = Math.ceil((details?.retryAfterMs ?? 15_000) / 1_000)
      const headers = { 'Retry-After': String(seconds) }
      // vPIC's own words are not the caller's business.
      return problem(503, 'unavailable', 'The decoder is temporarily unavailable', undefined, { headers })
    }
  }
}
