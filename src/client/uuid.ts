/**
 * UUIDs of RFC 9562.
 *
 * @module
 */

/** Version 4. `crypto.randomUUID` is missing on pages that came by plain HTTP, `getRandomValues` never. */
export function uuidV4(): string {
  return crypto.randomUUID?.() ?? text(random(), 4)
}

/** Version 7: 48 bits of time, then random ones. */
export function uuidV7(now: number): string {
  const bytes = random()
  for (let at = 5, rest = now; at >= 0; at--, rest = Math.floor(rest / 256)) bytes[at] = rest % 256
  return text(bytes, 7)
}

function random(): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(16))
}

function text(bytes: Uint8Array, version: number): string {
  bytes[6] = (bytes[6]! & 0x0f) | (version << 4)
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
