/**
 * Ids of HTTP exchanges: who asks, about what, in which version of the answer, and in which attempt.
 *
 * @module
 */

import { InvalidArgumentError } from '../errors.ts'
import { contentId } from '../key.ts'

/** What an id is made of. */
export interface KeyParts {
  /** Who asks, as the server knows it: never a header that anybody can write. Non-empty. */
  readonly actor: string
  /** What is asked, normalised: equal for what shall be one question. Anything that has canonical JSON. */
  readonly subject: unknown
  /** Of the answer's shape; change it, and no older answer is replayed. */
  readonly schemaVersion: string | number
  /** The client's key: one press of a button and its retries. Without it every request about the subject is one. */
  readonly attempt?: string
}

/** Characters of the part that tells the actor: 132 bits of a digest. */
const actorLength = 22

/**
 * An id: `<digest of the actor>.<digest of all parts>`, 66 characters, the same in every process and release. Nothing of its parts
 * can be read from it, and no choice of one part passes for another's.
 *
 * @throws InvalidArgumentError for an actor, version or attempt that is empty or no text, or an undefined subject
 * @throws SerializationError for a subject without canonical JSON
 */
export function buildKey({ actor, subject, schemaVersion, attempt }: KeyParts): string {
  guardText('actor', actor)
  if (attempt !== undefined) guardText('attempt', attempt)
  // A property that was not there must not make one question of all.
  if (subject === undefined) throw new InvalidArgumentError('subject', 'a value; null for none', subject)
  const parts = { actor, subject, ...(attempt !== undefined && { attempt }) }
  return `${actorPart(actor)}.${contentId('askonce/http', schemaVersion, parts)}`
}

/** What an id looks like: two digests. */
const idForm = /^[\w-]{22}\.[\w-]{43}$/

/** Whether an id was built for an actor: an id in a URL proves nothing. What is no id, or no actor, belongs to none. */
export function belongsTo(id: string, actor: string): boolean {
  if (typeof id !== 'string' || !idForm.test(id) || !isActor(actor)) return false
  return id.startsWith(`${actorPart(actor)}.`)
}

/** Whether a value names an actor. */
export function isActor(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.isWellFormed()
}

/** The id of an answer that all actors share; it belongs to none of them. */
export function sharedKey(subject: unknown, schemaVersion: string | number): string {
  return `shared.${contentId('askonce/http shared', schemaVersion, subject)}`
}

function actorPart(actor: string): string {
  return contentId('askonce/http actor', 1, actor).slice(0, actorLength)
}

function guardText(field: string, value: unknown): void {
  if (typeof value !== 'string' || value === '' || !value.isWellFormed()) {
    throw new InvalidArgumentError(field, 'non-empty, well-formed text', value)
  }
}
