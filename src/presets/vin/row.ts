/**
 * One row of vPIC's answer, judged: first by the data it has, then by its codes.
 *
 * @module
 */

import type { DecodedClass, RefusedClass } from './classes.ts'

/** A row as it came: some 148 text fields, missing ones empty. */
export type VpicRow = Readonly<Record<string, unknown>>

/** vPIC's codes, all of them; there is no 13. */
export const vpicCodes: ReadonlyMap<number, string> = new Map([
  [0, 'decoded clean'],
  [1, 'the check digit does not calculate'],
  [2, 'corrected in one position'],
  [3, 'corrected in one position, assuming that the check digit is right'],
  [4, 'one position is wrong and several characters would fit'],
  [5, 'errors in a few positions'],
  [6, 'incomplete'],
  [7, 'the manufacturer is not registered'],
  [8, 'no detailed data at present'],
  [9, 'glider kit'],
  [10, 'off-road vehicle'],
  [11, 'position 10 is no valid model year'],
  [12, 'the model year asked for is not the VIN’s'],
  [14, 'nothing is known for some characters'],
  [400, 'invalid characters'],
])

/** What is kept of a row that named make and model. Plain JSON. */
export interface DecodedVin {
  readonly class: DecodedClass
  readonly make: string
  readonly model: string
  /** As vPIC has it; null if it says none. `modelYearsOf` tells what the VIN itself can mean. */
  readonly modelYear: number | null
  /** vPIC's codes; more than one can stand with usable data. */
  readonly codes: readonly number[]
  /** What vPIC thinks was meant; `!` stands for a character it can't tell. Kept, never applied. */
  readonly suggestedVin: string | null
  /** All fields that were not empty, trimmed, by vPIC's names. */
  readonly fields: Readonly<Record<string, string>>
}

/** What is kept of a row that did not. Plain JSON. */
export interface RefusedVin {
  readonly class: Extract<RefusedClass, 'BAD_VIN' | 'NO_DATA' | 'UNKNOWN_MAKER'>
  readonly make: string | null
  readonly modelYear: number | null
  readonly codes: readonly number[]
  readonly suggestedVin: string | null
}

/** A row, judged. */
export type JudgedRow =
  | { readonly kind: 'decoded'; readonly decoded: DecodedVin }
  | { readonly kind: 'refused'; readonly refused: RefusedVin }
  /** Neither data nor a code: not an answer at all. */
  | { readonly kind: 'malformed' }

/**
 * Reads a field of codes: `0`, `1,11,400`, and the old way with the text in it, `11- Incorrect…; 1 - …`. In order, once each.
 */
export function parseCodes(field: unknown): number[] {
  if (typeof field === 'number') return Number.isSafeInteger(field) ? [field] : []
  if (typeof field !== 'string') return []
  const codes = new Set<number>()
  for (const part of field.split(/[,;]/)) {
    // A number that a word follows is part of a sentence, not a code.
    const match = /^\s*(\d{1,3})\s*(?:[-–—:]|$)/.exec(part)
    if (match !== null) codes.add(Number(match[1]))
  }
  return [...codes]
}

/** A field's text, trimmed (`TRUCK ` was seen); null if it is missing or empty. */
export function textOf(row: VpicRow, field: string): string | null {
  const value = Object.hasOwn(row, field) ? row[field] : null
  const text = typeof value === 'string' ? value.trim() : typeof value === 'number' ? String(value) : ''
  return text === '' ? null : text
}

/** Judges a row. The order of the tests is the point: codes alone would call usable data a failure. */
export function judgeRow(row: VpicRow): JudgedRow {
  const codes = parseCodes(row['ErrorCode'])
  const make = textOf(row, 'Make')
  const model = textOf(row, 'Model')
  const year = Number(textOf(row, 'ModelYear') ?? Number.NaN)
  const modelYear = Number.isSafeInteger(year) ? year : null
  const suggestedVin = textOf(row, 'SuggestedVIN')
  if (make !== null && model !== null) {
    const name = codes.includes(0) ? 'CLEAN' : 'WARN'
    return {
      kind: 'decoded',
      decoded: { class: name, make, model, modelYear, codes, suggestedVin, fields: fieldsOf(row) },
    }
  }
  if (codes.length === 0 && make === null && model === null) return { kind: 'malformed' }
  return { kind: 'refused', refused: { class: refusedClass(codes, make), make, modelYear, codes, suggestedVin } }
}

function refusedClass(codes: readonly number[], make: string | null): RefusedVin['class'] {
  const has = (code: number) => codes.includes(code)
  // 8 before all: vPIC knows the maker but not yet the vehicle, whatever else its rules for North America find.
  if (has(8)) return 'NO_DATA'
  if (has(6) || has(400) || (has(1) && has(7))) return 'BAD_VIN'
  if (make === null && has(7)) return 'UNKNOWN_MAKER'
  return 'NO_DATA'
}

function fieldsOf(row: VpicRow): Record<string, string> {
  const entries: [string, string][] = []
  for (const field of Object.keys(row)) {
    const text = textOf(row, field)
    if (text !== null) entries.push([field, text])
  }
  return Object.fromEntries(entries)
}
