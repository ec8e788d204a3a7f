/**
 * Which HTTP statuses are passing: the same request, later, may be answered otherwise.
 *
 * @module
 */

/** Those below 500: RFC 9110 (408 Request Timeout), RFC 8470 (425 Too Early), RFC 6585 (429 Too Many Requests). */
const below500: readonly number[] = [408, 425, 429]

/** Whether a status says "later": 5xx, 408, 425, 429. */
export function isPassingStatus(status: number): boolean {
  return status >= 500 || below500.includes(status)
}
