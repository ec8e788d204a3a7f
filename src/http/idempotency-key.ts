/**
 * The `Idempotency-Key` header: a structured field's string (RFC 9651, 3.3.3), or the bare token that most clients send.
 *
 * @module
 */

import { parseItem } from 'structured-headers'

/** The header's name. */
export const idempotencyKeyHeader = 'idempotency-key'

/** Characters of a key, unless an option says else. A UUID has 36; what is longer is no key but a payload. */
export const keyLengthMax = 255

/** What the header holds. */
export type ParsedKey =
  | { readonly ok: true; readonly key: string }
  | { readonly ok: false; readonly missing: boolean; readonly problem: string }

/**
 * A bare key: what UUIDs, ULIDs, base64 and the like are made of. No comma, so that a header sent twice, which `Headers`
 * joins by one, is no key; no quote, no semicolon, no blank; and it begins unlike any other structured item.
 */
const bareKey = /^[A-Za-z0-9][A-Za-z0-9!#$&'*+\-.^_`|~:/=@]*$/

/**
 * Reads the header. `"abc"` and `abc` are the same key. Parameters of the string are ignored, as RFC 9651 asks of unknown ones.
 *
 * @param value - as `headers.get` answers it: null if absent, several headers joined by a comma
 */
export function parseIdempotencyKey(value: string | null, lengthMax: number = keyLengthMax): ParsedKey {
  if (value === null) return { ok: false, missing: true, problem: 'the header is missing' }
  const text = value.trim()
  if (text === '') return refused('it is empty')
  // Twice the length for escapes, and room for parameters: nothing longer is worth parsing.
  if (text.length > lengthMax * 2 + 256) return refused(`it is longer than ${lengthMax} characters`)
  const key = text.startsWith('"') ? quoted(text) : bareKey.test(text) ? text : null
  if (key === null) {
    return refused('it must be sent once, as a string in double quotes (RFC 9651) or as a bare token of visible ASCII')
  }
  if (key === '') return refused('it is an empty string')
  if (key.length > lengthMax) return refused(`it is longer than ${lengthMax} characters`)
  return { ok: true, key }
}

function refused(problem: string): ParsedKey {
  return { ok: false, missing: false, problem }
}

function quoted(text: string): string | null {
  try {
    const [value] = parseItem(text)
    return typeof value === 'string' ? value : null
  } catch {
    return null
  }
}
