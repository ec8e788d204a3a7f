/**
 * Checks a VIN without asking anybody: what is wrong with it for certain, what is odd about it, what may have been meant.
 *
 * @module
 */

import { kindOf } from '../../errors.ts'
import { checkDigitOf, isVinCharacter, vinLength } from './alphabet.ts'
import { isModelYearCode } from './model-year.ts'
import { normalizeVin, rawLengthMax } from './normalize.ts'
import { isCheckDigitMandatory } from './region.ts'
import { suggestForCheckDigit, suggestForLetters } from './suggest.ts'

/** Why text is no VIN. Positions count from 1. */
export type VinProblem =
  /** Not a string. */
  | { readonly kind: 'not_text'; readonly message: string }
  /** Nothing is left after normalising. */
  | { readonly kind: 'empty'; readonly message: string }
  /** Not 17 characters. */
  | { readonly kind: 'length'; readonly message: string; readonly length: number }
  /** A character that no VIN has; look-alikes of other scripts are told by their code point. */
  | { readonly kind: 'character'; readonly message: string; readonly position: number; readonly codePoint: string }
  /** Filler that passes every rule of form: ones, zeros, a count. */
  | { readonly kind: 'placeholder'; readonly message: string; readonly name: string }

/** What is odd about a VIN that is well-formed. It is decoded all the same. */
export type VinWarning =
  /** Position 9 is not the check digit. `mandatory`: in this VIN's region that means a fault, elsewhere it may be meant so. */
  | { readonly kind: 'check_digit'; readonly message: string; readonly expected: string; readonly mandatory: boolean }
  /** Position 10 is no model year code. `mandatory` as above. */
  | { readonly kind: 'model_year_code'; readonly message: string; readonly mandatory: boolean }

/** A VIN that can be asked for. */
export interface VinAccepted {
  readonly ok: true
  /** Normalised. */
  readonly vin: string
  /** Whether it has unknown characters (`*`) or fewer than 17; only with `partial`. */
  readonly partial: boolean
  readonly warnings: readonly VinWarning[]
  /** What may have been meant, likeliest first; for people, never applied. */
  readonly suggestions: readonly string[]
}

/** Text that is no VIN; asking anybody would be a waste. */
export interface VinRefused {
  readonly ok: false
  /** What normalising left, cut to 64 characters. */
  readonly vin: string
  /** At least one; the first is the one to show. */
  readonly problems: readonly [VinProblem, ...VinProblem[]]
  readonly suggestions: readonly string[]
}

/** What {@link checkVin} answers. */
export type VinCheck = VinAccepted | VinRefused

/** What can be set on {@link checkVin}. */
export interface CheckOptions {
  /** Also accept 3 to 17 characters with `*` for each unknown one. Default: false. */
  readonly partial?: boolean
}

const partialLengthMin = 3
/** A text of a thousand strange characters is not told character by character. */
const characterProblemsMax = 17

const countedPlaceholders = new Map([
  ['12345678901234567', 'counted up from 1'],
  ['01234567890123456', 'counted up from 0'],
  ['98765432109876543', 'counted down from 9'],
  ['ABCDEFGHJKLMNPRST', 'the alphabet'],
])

/**
 * Normalises and checks. Refuses what cannot be a VIN (alphabet, length, placeholders); a wrong check digit or model year
 * code is a warning, because outside North America and China it can be right. Never throws: what is not text is refused.
 */
export function checkVin(raw: unknown, options: CheckOptions = {}): VinCheck {
  if (typeof raw !== 'string') return refuse('', [{ kind: 'not_text', message: `not text but ${kindOf(raw)}` }])
  if (raw.length > rawLengthMax) return refuse('', [lengthProblem(raw.length)])
  const vin = normalizeVin(raw)
  if (vin === '') return refuse('', [{ kind: 'empty', message: 'empty' }])
  const wildcards = options.partial === true
  const characters = [...vin]
  const partial = wildcards && (characters.length < vinLength || characters.includes('*'))
  const problems: VinProblem[] = []
  if (characters.length > vinLength || characters.length < (wildcards ? partialLengthMin : vinLength)) {
    problems.push(lengthProblem(characters.length))
  }
  for (const [index, character] of characters.entries()) {
    if (isVinCharacter(character) || (wildcards && character === '*')) continue
    problems.push(characterProblem(character, index + 1))
    if (problems.length === characterProblemsMax) break
  }
  const placeholder = placeholderName(characters)
  if (placeholder !== null) {
    problems.push({ kind: 'placeholder', message: `a placeholder, not a VIN: ${placeholder}`, name: placeholder })
  }
  const [first, ...others] = problems
  if (first !== undefined) return refuse(vin, [first, ...others], suggestForLetters(vin))
  return accept(vin, partial)
}

function refuse(vin: string, problems: VinRefused['problems'], suggestions: readonly string[] = []): VinRefused {
  const short = vin.length > 64 ? `${vin.slice(0, 64).toWellFormed()}…` : vin
  return { ok: false, vin: short, problems, suggestions }
}

function accept(vin: string, partial: boolean): VinAccepted {
  const warnings: VinWarning[] = []
  let suggestions: string[] = []
  const mandatory = isCheckDigitMandatory(vin)
  const expected = checkDigitOf(vin)
  if (expected !== null && vin[8] !== expected) {
    const meaning = mandatory ? 'in this region a sign of a wrong character' : 'in this region it may be meant so'
    const message = `position 9 is ${vin[8]}, the check digit calculates to ${expected}: ${meaning}`
    warnings.push({ kind: 'check_digit', message, expected, mandatory })
    if (mandatory) suggestions = suggestForCheckDigit(vin)
  }
  const yearCode = vin[9]
  if (yearCode !== undefined && yearCode !== '*' && !isModelYearCode(yearCode)) {
    warnings.push({ kind: 'model_year_code', message: `position 10 is ${yearCode}, which is no model year`, mandatory })
  }
  return { ok: true, vin, partial, warnings, suggestions }
}

function lengthProblem(length: number): VinProblem {
  return { kind: 'length', message: `not a ${vinLength}-character VIN but ${length} characters`, length }
}

function characterProblem(character: string, position: number): VinProblem {
  const point = character.codePointAt(0)!
  const codePoint = `U+${point.toString(16).toUpperCase().padStart(4, '0')}`
  // Only what is plain ASCII is shown: the point of the others is that they look like something they are not.
  const shown = point > 0x20 && point < 0x7f ? `${character} (${codePoint})` : codePoint
  const hint =
    character === '*' ? '; unknown characters are taken only with partial: true' : lookalikeHint(character, point)
  return {
    kind: 'character',
    message: `position ${position} is ${shown}, which no VIN has${hint}`,
    position,
    codePoint,
  }
}

function lookalikeHint(character: string, point: number): string {
  if ('IOQ'.includes(character)) return ': I, O and Q are left out because they look like 1 and 0'
  return point > 0x7f && /\p{L}/u.test(character) ? '; a letter of another script or with a mark, however it looks' : ''
}

/** Filler that passes the rules of form, by name: nothing else tells it from a VIN. */
function placeholderName(characters: readonly string[]): string | null {
  if (characters.length !== vinLength) return null
  const first = characters[0]!
  if (characters.every((character) => character === first)) return `${first} seventeen times`
  return countedPlaceholders.get(characters.join('')) ?? null
}
