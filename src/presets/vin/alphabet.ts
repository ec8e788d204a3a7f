/**
 * The VIN's alphabet and check digit: ISO 3779 and 49 CFR 565.15.
 *
 * @module
 */

/** Characters of a VIN. */
export const vinLength = 17

/** What each character counts in the check digit's sum. */
const values: ReadonlyMap<string, number> = new Map([
  ...[...'0123456789'].map((character, index) => [character, index] as const),
  ...[...'ABCDEFGH'].map((character, index) => [character, index + 1] as const),
  ...[...'JKLMN'].map((character, index) => [character, index + 1] as const),
  ['P', 7] as const,
  ['R', 9] as const,
  ...[...'STUVWXYZ'].map((character, index) => [character, index + 2] as const),
])

/** Position 9 weighs nothing: it is the check digit itself. */
const weights = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2] as const

/** All characters that a VIN may have: digits, and letters without I, O and Q. */
export const vinAlphabet = [...values.keys()].join('')

/** Whether the character may stand in a VIN. */
export function isVinCharacter(character: string): boolean {
  return values.has(character)
}

/** Whether the text is 17 characters of the alphabet. Says nothing of the check digit. */
export function isVinShaped(text: string): boolean {
  return /^[0-9A-HJ-NPR-Z]{17}$/.test(text)
}

/** The check digit that belongs at position 9: `0` to `9` or `X`; null for text that is not shaped like a VIN. */
export function checkDigitOf(vin: string): string | null {
  if (!isVinShaped(vin)) return null
  let sum = 0
  for (let index = 0; index < vinLength; index++) sum += values.get(vin[index]!)! * weights[index]!
  const digit = sum % 11
  return digit === 10 ? 'X' : String(digit)
}

/** Whether position 9 holds the check digit that the other characters call for. */
export function passesCheckDigit(vin: string): boolean {
  return vin[8] === checkDigitOf(vin)
}
