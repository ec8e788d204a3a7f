/**
 * Bytes as JSON can keep them, by nothing but what every JavaScript runtime has.
 *
 * @module
 */

/** Bytes in JSON: as text where they are UTF-8, which most bodies are; base64 otherwise. */
export type StoredBytes = string | { readonly base64: string }

/** More at once would overflow the stack of `String.fromCharCode`. */
const slice = 0x8000

/** Keeps bytes; {@link restored} gives exactly these back. */
export function stored(bytes: Uint8Array): StoredBytes {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return { base64: toBase64(bytes) }
  }
}

/** What {@link stored} was given. */
export function restored(body: StoredBytes): Uint8Array<ArrayBuffer> {
  if (typeof body === 'string') return new TextEncoder().encode(body)
  const binary = atob(body.base64)
  const bytes = new Uint8Array(binary.length)
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index)
  return bytes
}

/** Bytes of UTF-8 that a value takes as JSON. */
export function jsonBytes(value: unknown): number {
  return new TextEncoder().encode(JSON.stringify(value)).byteLength
}

/** Base64 (RFC 4648, 4). */
export function toBase64(bytes: Uint8Array): string {
  let binary = ''
  for (let from = 0; from < bytes.length; from += slice) {
    binary += String.fromCharCode(...bytes.subarray(from, from + slice))
  }
  return btoa(binary)
}
