/**
 * What an answer asks us to wait.
 *
 * @module
 */

/**
 * Reads `Retry-After` (RFC 9110, 10.2.3): seconds, or a date. A date is measured against the answer's own `Date`, where the
 * page may see it: the clocks of people's devices are often wrong.
 *
 * @param now - ms since 1970
 * @returns ms from now, 0 for a date that has passed, null without a usable header
 */
export function retryAfterMs(headers: Headers, now: number): number | null {
  const text = (headers.get('retry-after') ?? '').trim()
  if (/^\d{1,12}$/.test(text)) return Number(text) * 1_000
  // A date always has letters; without them Date.parse takes much for one that is none, such as "-1".
  const date = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(date)) return null
  const serverNow = Date.parse(headers.get('date') ?? '')
  return Math.max(0, date - (Number.isNaN(serverNow) ? now : serverNow))
}
