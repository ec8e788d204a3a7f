/**
 * Fields of a packed record, read one by one: what is not as it should be is refused in words that show no content.
 *
 * @module
 */

import { SerializationError } from './errors.ts'
import type { Encoded } from './record.ts'

/** What is to be a packed record. */
export interface Fields {
  readonly [key: string]: unknown
}

export function text(fields: Fields, key: string): string {
  const value = fields[key]
  if (typeof value !== 'string') throw damaged(`'${key}' is not text`)
  return value
}

export function time(fields: Fields, key: string): number {
  const value = fields[key]
  if (typeof value !== 'number' || !Number.isFinite(value)) throw damaged(`'${key}' is not a time`)
  return value
}

export function duration(fields: Fields, key: string): number {
  const value = time(fields, key)
  if (value < 0) throw damaged(`'${key}' is negative`)
  return value
}

export function count(fields: Fields, key: string, min: number): number {
  const value = fields[key]
  if (!Number.isSafeInteger(value) || (value as number) < min)
    throw damaged(`'${key}' is not a whole number from ${min}`)
  return value as number
}

export function flag(fields: Fields, key: string): boolean {
  const value = fields[key]
  if (value !== undefined && value !== 1) throw damaged(`'${key}' is not 1`)
  return value === 1
}

export function encoded(fields: Fields, key: string): Encoded {
  const value = fields[key]
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) throw damaged(`'${key}' is neither text nor bytes`)
  return value
}

export function damaged(problem: string): SerializationError {
  return new SerializationError('record', `is damaged: ${problem}`)
}
