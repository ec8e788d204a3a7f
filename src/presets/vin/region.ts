/**
 * Who made it and which rules it has to keep, as far as the first characters tell.
 *
 * @module
 */

/**
 * The world manufacturer identifier: positions 1–3; with positions 12–14 for makers of less than a thousand vehicles a year
 * (500 by the older rule), whose position 3 is `9`.
 */
export function wmiOf(vin: string): string {
  return vin[2] === '9' ? vin.slice(0, 3) + vin.slice(11, 14) : vin.slice(0, 3)
}

/**
 * Whether the vehicle's market makes a right check digit a duty: North America (1–5, and 7F–7Z with 70) and China (L).
 * Elsewhere a letter at position 9 means nothing bad.
 */
export function isCheckDigitMandatory(vin: string): boolean {
  return /^(?:[1-5L]|7[F-Z0])/.test(vin)
}
