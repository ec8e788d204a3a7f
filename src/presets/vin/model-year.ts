/**
 * Model years: 49 CFR 565.15. Position 10 repeats every thirty years; position 7 tells which thirty.
 *
 * @module
 */

import { isVinShaped, passesCheckDigit } from './alphabet.ts'
import { isCheckDigitMandatory } from './region.ts'

/** 1980 to 2009, then again 2010 to 2039. No I, O, Q, U, Z, 0. */
const codes = 'ABCDEFGHJKLMNPRSTVWXY123456789'

/** Model years that can be asked for. VINs of 17 characters begin with 1981; test vehicles of 1980 had them. */
export const modelYearMin = 1980
export const modelYearMax = 2100

/** Whether the character can stand at position 10 as a model year. */
export function isModelYearCode(character: string): boolean {
  return character.length === 1 && codes.includes(character)
}

/**
 * The model years that a VIN can mean, likeliest first; none if position 10 is no year code.
 *
 * A digit at position 7 says 1980–2009, a letter 2010–2039. That binds only cars, and MPVs and trucks up to 10,000 lb, so the
 * other reading follows as second; and only vehicles made for North America: a VIN from elsewhere with another check digit than
 * theirs was made for another market, and its later reading comes first. A year later than next year plus one is no reading.
 *
 * @param now - ms since 1970
 */
export function modelYearsOf(vin: string, now: number = Date.now()): number[] {
  const index = codes.indexOf(vin[9] ?? ' ')
  if (index === -1) return []
  const early = 1980 + index
  const late = early + 30
  const latest = new Date(now).getUTCFullYear() + 2
  if (late > latest) return [early]
  return /\d/.test(vin[6] ?? '') && !isOfOtherMarket(vin) ? [early, late] : [late, early]
}

function isOfOtherMarket(vin: string): boolean {
  return isVinShaped(vin) && !passesCheckDigit(vin) && !isCheckDigitMandatory(vin)
}
