/**
 * Attribute values, as the service has them: `{ S: 'text' }`. Only text, numbers and bytes are stored, so this is less, and
 * faster, than the SDK's general conversion; and it needs no document client, which would change the configuration of the
 * client that it is made of.
 *
 * @module
 */

import type { AttributeValue } from '@aws-sdk/client-dynamodb'

/** Attributes by their names; undefined ones are left out. */
export function marshalled(attributes: Readonly<Record<string, unknown>>): Record<string, AttributeValue> {
  const item: Record<string, AttributeValue> = {}
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'string') item[name] = { S: value }
    else if (typeof value === 'number') item[name] = { N: String(value) }
    else if (value instanceof Uint8Array) item[name] = { B: value }
    else if (value !== undefined) throw new TypeError(`attribute ${name} is neither text, number nor bytes`)
  }
  return item
}

/** The other way; attributes of other kinds, which others may have put there, are left out. */
export function unmarshalled(item: Readonly<Record<string, AttributeValue>>): Record<string, unknown> {
  const attributes: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(item)) {
    if (value.S !== undefined) attributes[name] = value.S
    else if (value.N !== undefined) attributes[name] = Number(value.N)
    else if (value.B !== undefined) attributes[name] = value.B
  }
  return attributes
}
