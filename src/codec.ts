/**
 * Values and errors to what storages keep, and back.
 *
 * @module
 */

import { hash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { SerializationError, TooLargeError } from './errors.ts'
import { limits } from './limits.ts'
import type { Serde } from './options.ts'
import type { Encoded } from './record.ts'

/**
 * The default serde: JSON, and `undefined` as ''. What JSON drops or changes it drops and changes: a Date comes back as a
 * string, a Map as an empty object, a class instance as its properties. Bring a serde of your own to keep more.
 */
export const jsonSerde: Serde<unknown> = Object.freeze({
  serialize(value: unknown): Encoded {
    if (value === undefined) return ''
    const text = JSON.stringify(value)
    if (text === undefined) throw new TypeError(`JSON has no form for a ${typeof value}`)
    return text
  },
  deserialize(encoded: Encoded): unknown {
    if (encoded === '') return undefined
    return JSON.parse(typeof encoded === 'string' ? encoded : Buffer.from(encoded).toString())
  },
  fingerprint(value: unknown): string {
    return canonicalize(value) ?? ''
  },
})

/** A value as stored, and its fingerprint. */
export interface EncodedPayload {
  readonly encoded: Encoded
  readonly fingerprint: string
}

/**
 * Encodes a payload or result.
 *
 * @param field - what the error calls it
 * @throws {@link SerializationError} if the serde throws or answers neither text nor bytes
 * @throws {@link TooLargeError} beyond `bytesMax`
 */
export function encode<T>(serde: Serde<T>, value: T, field: string, bytesMax: number): Encoded {
  let encoded: Encoded
  try {
    encoded = serde.serialize(value)
  } catch (cause) {
    throw new SerializationError(field, 'could not be serialized. Change the value, or bring a serde that takes it', {
      cause: safeCause(cause),
    })
  }
  if (typeof encoded === 'string') {
    // A UTF-16 unit is at most three bytes of UTF-8: most values need no count.
    if (encoded.length * 3 > bytesMax) {
      const bytes = Buffer.byteLength(encoded)
      if (bytes > bytesMax) throw new TooLargeError(field, bytes, bytesMax)
    }
    // JSON.stringify escapes lone surrogates; other serdes may not, and UTF-8 would lose them.
    if (serde !== jsonSerde && !encoded.isWellFormed()) {
      throw new SerializationError(field, 'was serialized to text with lone surrogates. Have the serde answer bytes')
    }
    return encoded
  }
  if (!(encoded instanceof Uint8Array)) {
    throw new SerializationError(
      field,
      'was serialized to neither text nor bytes. Have the serde answer a string or a Uint8Array',
    )
  }
  if (encoded.byteLength > bytesMax) throw new TooLargeError(field, encoded.byteLength, bytesMax)
  // A copy: the serde may have given the caller's own array, which the caller may go on writing to.
  return new Uint8Array(encoded)
}

/**
 * Encodes a payload and digests it. Equal JSON values have equal fingerprints, whatever the order of their keys.
 *
 * @param given - digested in the payload's place
 */
export function encodePayload<T>(serde: Serde<T>, value: T, bytesMax: number, given?: string): EncodedPayload {
  const encoded = encode(serde, value, 'payload', bytesMax)
  if (given !== undefined) return { encoded, fingerprint: fingerprint(given) }
  let basis: Encoded = encoded
  if (serde.fingerprint !== undefined && (serde !== jsonSerde || typeof encoded !== 'string' || !isCanonical(value))) {
    try {
      basis = serde.fingerprint(value)
    } catch {
      // A serde's fingerprint may be pickier than its serialize: what was serialized still tells most values apart.
    }
  }
  return { encoded, fingerprint: fingerprint(basis) }
}

/** Characters of a SHA-256 in base64url. */
const digestChars = 43

/**
 * SHA-256, whole: no pair of payloads collides by chance or by intent. A slice of it would keep all of it in memory anyway.
 * A text that is shorter than any digest is its own fingerprint, and taken for no other's (ADR 0011).
 */
function fingerprint(basis: Encoded): string {
  if (typeof basis === 'string' && basis.length < digestChars && basis !== '' && basis.isWellFormed()) return basis
  return hash('sha256', basis, 'base64url')
}

/** Whether `JSON.stringify(value)` is canonical as it is: a cheap look that spares most payloads the sorting. */
function isCanonical(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (depth > 4 || typeof (value as { toJSON?: unknown }).toJSON === 'function') return false
  if (Array.isArray(value)) return value.length <= 32 && value.every((item) => isCanonical(item, depth + 1))
  let last = ''
  for (const key in value) {
    if (key < last) return false
    last = key
    if (!isCanonical((value as Record<string, unknown>)[key], depth + 1)) return false
  }
  return true
}

/**
 * Decodes what was stored.
 *
 * @throws {@link SerializationError} if it can't be decoded
 */
export function decode<T>(serde: Serde<T>, encoded: Encoded | null, field: string): T {
  if (encoded === null) throw new SerializationError(field, 'was lost by the storage')
  try {
    // A copy, again: a storage in memory hands out what it keeps.
    return serde.deserialize(typeof encoded === 'string' ? encoded : new Uint8Array(encoded))
  } catch (cause) {
    throw new SerializationError(field, 'as stored could not be deserialized. Was it written with another serde?', {
      cause: safeCause(cause),
    })
  }
}

/** An error as it is kept: what callers can act on. No stack: it would tell paths, and weighs most. */
interface StoredError {
  name?: string
  message: string
  code?: string | number
  /** JSON-able data of the error's own. */
  details?: unknown
  cause?: StoredError
  /** Set when what was thrown was no Error. */
  thrown?: string
}

/** Encodes whatever a handler threw: any value, frozen errors, cycles of causes, throwing getters. Never throws itself. */
export function encodeError(error: unknown): string {
  const text = JSON.stringify(storedError(error, 0))
  if (text.length * 3 <= limits.errorBytesMax || Buffer.byteLength(text) <= limits.errorBytesMax) return text
  const { name, message, code } = storedError(error, limits.errorCauseDepthMax)
  return JSON.stringify({
    ...(name !== undefined && { name: name.slice(0, 200) }),
    message: `${message.slice(0, 2_000)}… (shortened)`.toWellFormed(),
    ...(code !== undefined && String(code).length <= 200 && { code }),
  } satisfies StoredError)
}

function storedError(error: unknown, depth: number): StoredError {
  if (!isError(error)) return { message: messageOfThrown(error), thrown: error === null ? 'null' : typeof error }
  const name = read(error, 'name')
  const message = read(error, 'message')
  const code = read(error, 'code')
  const details = depth < limits.errorCauseDepthMax ? jsonable(read(error, 'details')) : undefined
  const cause = read(error, 'cause')
  return {
    ...(typeof name === 'string' && name !== 'Error' && { name }),
    message: typeof message === 'string' ? message : '',
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(details !== undefined && { details }),
    ...(cause !== undefined && depth < limits.errorCauseDepthMax && { cause: storedError(cause, depth + 1) }),
  }
}

/** Even `instanceof` throws: on a revoked proxy. */
function isError(value: unknown): value is Error {
  try {
    return value instanceof Error
  } catch {
    return false
  }
}

/** A property, or undefined if its getter throws. */
export function read(error: Error, key: string): unknown {
  try {
    return (error as unknown as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

function jsonable(value: unknown): unknown {
  if (value === undefined) return undefined
  try {
    return JSON.parse(JSON.stringify(value))
  } catch {
    return undefined
  }
}

function messageOfThrown(value: unknown): string {
  if (typeof value === 'string') return value
  try {
    const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
    return `a non-error was thrown: ${text ?? typeof value}`
  } catch {
    return 'a non-error was thrown'
  }
}

/** An Error out of what was stored: the name, message, code, details and causes that were there. */
export function decodeError(encoded: Encoded | null): Error {
  try {
    if (encoded === null) throw new TypeError('lost')
    const stored: unknown = JSON.parse(typeof encoded === 'string' ? encoded : Buffer.from(encoded).toString())
    return revive(stored as StoredError)
  } catch {
    return new SerializationError('error', encoded === null ? 'was lost by the storage' : 'as stored could not be read')
  }
}

function revive(stored: StoredError): Error {
  const { name, message, code, details, cause } = stored
  const error = new Error(String(message), cause === undefined ? undefined : { cause: revive(cause) })
  // It was thrown elsewhere; the stack of this decoding would only mislead.
  error.stack = `${name ?? 'Error'}: ${message}`
  if (name !== undefined) Object.defineProperty(error, 'name', { value: name, configurable: true, writable: true })
  if (code !== undefined) Object.assign(error, { code })
  if (details !== undefined) Object.assign(error, { details })
  return error
}

/** What a handler threw, as an Error that hooks and events can rely on. */
export function toError(thrown: unknown): Error {
  if (isError(thrown)) return thrown
  const error = new Error(messageOfThrown(thrown))
  wrapped.set(error, thrown)
  return error
}

const wrapped = new WeakMap<Error, unknown>()

/** What was really thrown, where {@link toError} had to wrap it. */
export function thrownIn(error: Error): unknown {
  return wrapped.has(error) ? wrapped.get(error) : error
}

function safeCause(cause: unknown): Error {
  // A serde's error may quote the value it choked on; its kind is enough.
  const error = toError(cause)
  const name = read(error, 'name')
  return new Error(`the serde threw ${typeof name === 'string' ? name : 'an error'}`)
}
