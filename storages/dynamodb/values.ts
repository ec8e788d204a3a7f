/**
 * Payloads, results and errors as attribute values: their size, and their compression.
 *
 * @module
 */

import { promisify } from 'node:util'
import { deflateRaw, inflateRaw } from 'node:zlib'
import { SerializationError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type { Encoded } from '../../src/record.ts'

const deflate = promisify(deflateRaw)
const inflate = promisify(inflateRaw)

/** Bytes that DynamoDB counts for it. */
export function bytesOf(value: Encoded): number {
  return typeof value === 'string' ? Buffer.byteLength(value) : value.byteLength
}

/** A value as it is stored, and how: `''` as it is, `t` compressed text, `b` compressed bytes. */
export interface StoredValue {
  readonly value: Encoded
  readonly packing: '' | 't' | 'b'
}

/** Compresses what has at least `fromBytes` and gets smaller by it. */
export async function compressed(value: Encoded, fromBytes: number): Promise<StoredValue> {
  if (bytesOf(value) < fromBytes) return { value, packing: '' }
  const small = await deflate(value)
  if (small.byteLength >= bytesOf(value)) return { value, packing: '' }
  return { value: small, packing: typeof value === 'string' ? 't' : 'b' }
}

/**
 * The value as it was.
 *
 * @throws SerializationError if it is damaged
 */
export async function expanded(value: Encoded, packing: string, field: string): Promise<Encoded> {
  if (packing === '') return value
  if (typeof value === 'string') throw new SerializationError(field, 'is damaged: it should be compressed, but is text')
  let bytes: Buffer
  try {
    bytes = await inflate(value, { maxOutputLength: limits.payloadBytesMax })
  } catch (cause) {
    throw new SerializationError(field, 'is damaged: it can’t be expanded', { cause })
  }
  return packing === 't' ? bytes.toString() : new Uint8Array(bytes)
}
