/**
 * The classes that everything that can come of asking for a VIN falls into. What follows from a class is the policy's.
 *
 * @module
 */

/** Answers that are kept as results. */
export type DecodedClass = 'CLEAN' | 'WARN'

/** Final refusals: asking again soon would bring the same. */
export type RefusedClass = 'LOCAL_INVALID' | 'BAD_VIN' | 'NO_DATA' | 'UNKNOWN_MAKER' | 'REQUEST_BUG'

/** Failures of the service, not of the VIN. */
export type ServiceClass = 'UPSTREAM' | 'THROTTLED' | 'BATCH_GAP'

/**
 * All classes.
 *
 * - `LOCAL_INVALID`: wrong length or alphabet, or a placeholder; vPIC is not asked.
 * - `CLEAN`: code 0, with make and model.
 * - `WARN`: make and model, but codes that say something is odd. Usable; a suggested VIN is kept, never applied.
 * - `BAD_VIN`: no model, and incomplete (6), bad characters (400), or a wrong check digit of an unknown maker (1 with 7).
 * - `NO_DATA`: vPIC has no details (8), or a make only. May come later.
 * - `UNKNOWN_MAKER`: a plausible VIN of a manufacturer that is not registered (7).
 * - `THROTTLED`: 429, or a 403 that is not JSON. Says nothing of the VIN.
 * - `UPSTREAM`: 5xx, time-out, reset, or status 200 with something else than an answer.
 * - `REQUEST_BUG`: 400, 404, 413, 414 and their like: the request itself is wrong.
 * - `BATCH_GAP`: missing in, or twice in, a batch's answer; asked again singly.
 */
export type VinClass = DecodedClass | RefusedClass | ServiceClass

/** All classes, in the order of the table in the guide. */
export const vinClasses: readonly VinClass[] = Object.freeze([
  'LOCAL_INVALID',
  'CLEAN',
  'WARN',
  'BAD_VIN',
  'NO_DATA',
  'UNKNOWN_MAKER',
  'THROTTLED',
  'UPSTREAM',
  'REQUEST_BUG',
  'BATCH_GAP',
])
