/**
 * What scripts tell: the messages on a handle's channel, and the same things in the replies to its own calls, as hints.
 *
 * @module
 */

import type { Hint } from '../../src/storage.ts'
import { decodeRecord } from './layout.ts'

/** One telling as a hint; null if it can't be read. */
export function hintOf(kind: string, id: string, text: string): Hint | null {
  switch (kind) {
    case 'd':
      return { type: 'due', inMs: Number(text) }
    case 'o':
      return { type: 'outbox', inMs: Number(text) }
    case 's':
      return text === '' ? { type: 'settled', id } : { type: 'settled', id, record: decodeRecord(id, text) }
    case 'c':
      return { type: 'cancelled', id, incarnation: text }
    default:
      return null
  }
}

/** A message: kind, bytes of the id, a colon, the id, the text. */
export function hintOfMessage(data: Buffer): Hint | null {
  const colon = data.indexOf(0x3a)
  if (colon < 2) return null
  const idEnd = colon + 1 + Number(data.toString('latin1', 1, colon))
  if (!(idEnd <= data.length)) return null
  return hintOf(
    String.fromCharCode(data[0] as number),
    data.toString('utf8', colon + 1, idEnd),
    data.toString('utf8', idEnd),
  )
}
