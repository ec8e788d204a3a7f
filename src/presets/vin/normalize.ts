/**
 * What people, spreadsheets and scanners put around a VIN is taken off; what they put in place of its characters is not
 * guessed at.
 *
 * @module
 */

import { passesCheckDigit } from './alphabet.ts'

/** No cell with a VIN in it is longer, in UTF-16 units; more is not looked at. */
export const rawLengthMax = 1_024

/** Cf: BOM, zero-width characters, direction marks. Cc: tabs, line ends, what scanners send after a code. */
const invisible = /[\p{Cf}\p{Cc}]/gu
/** All blanks and dashes, and the minus sign. */
const separators = /[\p{Z}\s\p{Pd}\u2212]/gu
/** `="…"` is how spreadsheets are kept from reading a cell as a number; a lone leading apostrophe is another way. */
const opening = /^=?["'`\u00b4\u2018-\u201f\u2032\u2033\u2039\u203a\u00ab\u00bb]+/u
const closing = /["'`\u00b4\u2018-\u201f\u2032\u2033\u2039\u203a\u00ab\u00bb]+$/u
/** No VIN starts like this: it has no I. */
const label = /^VIN(?:\s*(?:NO|NUMBER|CODE)\b\.?)?\s*[:#=.]?\s*/i

/**
 * Text as a VIN is written: without BOM, zero-width and control characters, wrapping quotes, a `VIN:` before it, blanks and
 * dashes; compatibility forms such as full-width letters made plain (NFKC); a–z in upper case. A barcode's leading `I` is
 * taken off if it is followed by 17 characters that pass the check digit.
 *
 * Nothing is corrected: letters of other scripts, and I, O and Q, stay for {@link checkVin} to report. Text of more than
 * 1,024 units comes back as it is.
 */
export function normalizeVin(raw: string): string {
  if (raw.length > rawLengthMax) return raw
  let text = raw.normalize('NFKC').replace(invisible, '').trim()
  text = unwrapped(text).replace(label, '')
  // Not toUpperCase(): it would turn a dotless i into an I, and ß into SS.
  text = unwrapped(text)
    .replace(separators, '')
    .replace(/[a-z]/g, (letter) => letter.toUpperCase())
  return text.length === 18 && text[0] === 'I' && passesCheckDigit(text.slice(1)) ? text.slice(1) : text
}

function unwrapped(text: string): string {
  return text.replace(opening, '').replace(closing, '').trim()
}
