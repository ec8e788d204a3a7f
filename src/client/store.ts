/**
 * Keeps attempts where a reload finds them and the end of the tab forgets them.
 *
 * @module
 */

import { type Attempt, attemptIn, isAttemptFresh } from './attempt.ts'
import { guardOptionalFunction } from './errors.ts'
import { guardMintOptions, guardSubject, type MintOptions, mintAttempt } from './mint.ts'
import { attemptSlot, type SessionStorage } from './slot.ts'

/** What can be set on a store. */
export interface AttemptStoreOptions {
  /** The item's name in the storage. Default: `askonce.attempts`. */
  readonly itemName?: string
  /** ms since 1970. Default: Date.now. */
  readonly now?: () => number
}

/** What can be set on an attempt that the store makes. */
export type ObtainOptions = Omit<MintOptions, 'now'>

/** One attempt a subject and tab. */
export interface AttemptStore {
  /**
   * The subject's attempt: the one that is kept and fresh, so that a second click or a reload asks the same question; else a
   * new one.
   *
   * @throws {@link AttemptError} with code ASKONCE_INVALID_ARGUMENT
   */
  obtain(subject: string, options?: ObtainOptions): Attempt
  /** The fresh attempts that are kept, oldest first: what a page that was reloaded was waiting for. */
  pending(): Attempt[]
  /** Forgets the attempt: it was answered or given up. Another one of its subject stays. `sendAttempt` calls it. */
  remove(attempt: Attempt): void
  /** Whether a reload would find what is kept: false where the storage is full or forbidden, and memory serves. */
  readonly survivesReload: boolean
}

/**
 * Makes a store on `sessionStorage`. Where that throws, as in private windows, with cookies blocked, or full, it keeps the
 * attempts in memory.
 *
 * @param storage - default: a function that reads the global `sessionStorage`, which itself throws where it is forbidden
 * @throws {@link AttemptError} ASKONCE_LOCAL_STORAGE for localStorage, or what writes there; ASKONCE_INVALID_ARGUMENT
 */
export function attemptStore(
  storage: SessionStorage | null | undefined | (() => SessionStorage | null | undefined) = ownSessionStorage,
  options: AttemptStoreOptions = {},
): AttemptStore {
  const { itemName = 'askonce.attempts', now = Date.now } = options
  guardOptionalFunction('options.now', now)
  const slot = attemptSlot(storage, itemName)

  /** Those that are kept and fresh; what has expired is taken out on the way. */
  function fresh(): Attempt[] {
    const kept = slot.read()
    const attempts = kept.map(attemptIn).filter((attempt) => attempt !== null && isAttemptFresh(attempt, now()))
    if (attempts.length < kept.length) slot.write(attempts)
    return attempts as Attempt[]
  }

  return {
    obtain(subject, options = {}) {
      guardSubject(subject)
      guardMintOptions(options)
      const attempts = fresh()
      const known = attempts.find((attempt) => attempt.subject === subject)
      if (known !== undefined) return known
      const attempt = mintAttempt(subject, { ...options, now })
      slot.write([...attempts, attempt])
      return attempt
    },
    pending: fresh,
    remove(attempt) {
      const attempts = fresh()
      const others = attempts.filter(({ key }) => key !== attempt.key)
      if (others.length < attempts.length) slot.write(others)
    },
    get survivesReload() {
      return slot.survivesReload
    },
  }
}

function ownSessionStorage(): SessionStorage | undefined {
  return (globalThis as { sessionStorage?: SessionStorage }).sessionStorage
}
