/**
 * Values as fields of a line: separated by tabs, escaped so that no field holds a tab or a newline. The escape is DLE (U+0010),
 * which JSON text never holds: what is usually stored passes through untouched and can be read by eye.
 *
 * @module
 */

import type { Encoded } from '../../src/record.ts'

/** Separates fields. */
export const separator = '\t'

const dle = '\u0010'
// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that the format gives a meaning to
const special = /[\u0010\t\n]/
// With the flag u a surrogate is matched only where it stands alone: UTF-8 cannot carry it.
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const specials = /[\u0010\t\n\ud800-\udfff]/gu
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above
const escaped = /\u0010(?:u([0-9a-f]{4})|(.?))/gs

/** A text as one field. */
export function textField(text: string): string {
  if (!special.test(text) && text.isWellFormed()) return text
  return text.replace(specials, escapeUnit)
}

function escapeUnit(unit: string): string {
  if (unit === '\t') return `${dle}t`
  if (unit === '\n') return `${dle}n`
  if (unit === dle) return `${dle}e`
  return `${dle}u${unit.charCodeAt(0).toString(16)}`
}

/** The text that a field says. */
export function fieldText(field: string): string {
  return field.includes(dle) ? field.replace(escaped, unescapeUnit) : field
}

function unescapeUnit(_match: string, code: string | undefined, letter: string | undefined): string {
  if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16))
  if (letter === 't') return '\t'
  if (letter === 'n') return '\n'
  if (letter === 'e') return dle
  throw new FieldError()
}

/** A text or null as one field. */
export function nullableField(text: string | null): string {
  return text === null ? '' : `'${textField(text)}`
}

/** The text or null that a field says. */
function fieldNullable(field: string): string | null {
  if (field === '') return null
  if (field[0] !== "'") throw new FieldError()
  return fieldText(field.slice(1))
}

/** A payload, result or error as one field: `'` and the text, `=` and bytes in base64, or nothing for null. */
export function encodedField(value: Encoded | null): string {
  if (value === null || typeof value === 'string') return nullableField(value)
  return `=${Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('base64')}`
}

/** The payload, result or error that a field says. */
export function fieldEncoded(field: string): Encoded | null {
  if (field[0] !== '=') return fieldNullable(field)
  // A copy of its own: small Buffers share a pool, and a kept slice would keep all of it.
  return new Uint8Array(Buffer.from(field.slice(1), 'base64'))
}

/** The number that a field says. */
function fieldNumber(field: string): number {
  const number = Number(field)
  if (field === '' || !Number.isFinite(number)) throw new FieldError()
  return number
}

/** Reads a line's fields one by one. */
export class Fields {
  readonly #fields: readonly string[]
  #index = 0

  constructor(text: string) {
    this.#fields = text.split(separator)
  }

  /** Whether there is another. */
  get hasMore(): boolean {
    return this.#index < this.#fields.length
  }

  next(): string {
    const field = this.#fields[this.#index++]
    if (field === undefined) throw new FieldError()
    return field
  }

  text(): string {
    return fieldText(this.next())
  }

  number(): number {
    return fieldNumber(this.next())
  }

  nullable(): string | null {
    return fieldNullable(this.next())
  }

  /** A payload, result or error; null where there is none. */
  encodedOrNull(): Encoded | null {
    return fieldEncoded(this.next())
  }

  /** A payload, result or error that must be there. */
  encoded(): Encoded {
    const value = this.encodedOrNull()
    if (value === null) throw new FieldError()
    return value
  }
}

/** A line whose checksum is right says nothing that this version understands. */
export class FieldError extends Error {
  constructor() {
    super('not a field of this format')
  }
}
