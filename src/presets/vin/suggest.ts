/**
 * What a VIN with a fault may have been meant to be. Suggestions are for people: nothing here is ever applied.
 *
 * @module
 */

import { checkDigitOf, isVinShaped, passesCheckDigit } from './alphabet.ts'

const suggestionsMax = 5

/** What is read or typed for one another. Each group is alike within itself. */
const confusable = [
  '0D',
  '8B',
  '5S',
  '2Z',
  '6G',
  '1L',
  '17',
  '1T',
  '4A',
  'UV',
  'VY',
  'MN',
  'PR',
  'EF',
  'CG',
  '38',
  '56',
  'KX',
]

/** For text with I, O or Q, which no VIN has: the same with 1, 0 and 0, if that makes it a VIN. */
export function suggestForLetters(text: string): string[] {
  const suggested = text.replace(/I/g, '1').replace(/[OQ]/g, '0')
  return suggested !== text && isVinShaped(suggested) ? [suggested] : []
}

/**
 * For a VIN whose check digit is wrong: VINs with a right one that differ by a pair of neighbours swapped, by one character
 * read as another that looks like it, or by the check digit alone; likeliest first, at most five.
 */
export function suggestForCheckDigit(vin: string): string[] {
  const found = new Set<string>()
  for (const candidate of candidatesFor(vin)) {
    if (candidate !== vin && passesCheckDigit(candidate)) found.add(candidate)
    if (found.size === suggestionsMax) break
  }
  return [...found]
}

function* candidatesFor(vin: string): Generator<string> {
  for (let index = 0; index < vin.length; index++) {
    for (const group of confusable) {
      if (!group.includes(vin[index]!)) continue
      const other = group[0] === vin[index] ? group[1]! : group[0]!
      yield vin.slice(0, index) + other + vin.slice(index + 1)
    }
  }
  for (let index = 0; index + 1 < vin.length; index++) {
    yield vin.slice(0, index) + vin[index + 1] + vin[index] + vin.slice(index + 2)
  }
  yield `${vin.slice(0, 8)}${checkDigitOf(vin)}${vin.slice(9)}`
}
