/**
 * One item of a session's storage, with memory behind it.
 *
 * @module
 */

import { AttemptError, refused } from './errors.ts'

/** The part of the browser's `sessionStorage` that is used. */
export interface SessionStorage {
  getItem(name: string): string | null
  setItem(name: string, value: string): void
  removeItem(name: string): void
}

/** A list of values that are plain JSON. */
export interface Slot {
  read(): unknown[]
  write(values: readonly unknown[]): void
  readonly survivesReload: boolean
}

/** @throws {@link AttemptError} */
export function attemptSlot(
  source: SessionStorage | null | undefined | (() => SessionStorage | null | undefined),
  itemName: string,
): Slot {
  if (typeof itemName !== 'string' || itemName === '') throw refused('options.itemName', 'non-empty text')
  const storage = sessionStorageOf(source)
  /** What the storage would not take; null while it has everything. */
  let memory: readonly unknown[] | null = null
  let proved = storage !== null && isSessionStorage(storage)
  let works = proved

  function stored(): unknown[] {
    try {
      const values: unknown = JSON.parse(storage?.getItem(itemName) ?? '[]')
      return Array.isArray(values) ? values : []
    } catch {
      // Forbidden by now, or spoilt by other code: nothing is known.
      return []
    }
  }

  function put(storage: SessionStorage, values: readonly unknown[]): boolean {
    proved ||= isSessionStorage(storage)
    try {
      if (values.length === 0) storage.removeItem(itemName)
      else if (proved) storage.setItem(itemName, JSON.stringify(values))
      return proved
    } catch {
      // Full or forbidden.
      return false
    }
  }

  return {
    read: () => [...(memory ?? stored())],
    write(values) {
      works = storage !== null && put(storage, values)
      memory = works ? null : values
      // What it holds may stay, unless it holds what is over.
      if (!works && values.length < stored().length) removeQuietly(storage, itemName)
    },
    get survivesReload() {
      return works
    },
  }
}

function removeQuietly(storage: SessionStorage | null, itemName: string): void {
  try {
    storage?.removeItem(itemName)
  } catch {
    // Then it can't be read after a reload either.
  }
}

/** The storage if it can be used at all, null if memory must do. */
function sessionStorageOf(source: unknown): SessionStorage | null {
  let storage: unknown
  try {
    storage = typeof source === 'function' ? source() : source
  } catch {
    return null
  }
  if (storage === null || storage === undefined) return null
  const { getItem, setItem, removeItem } = storage as { readonly [name: string]: unknown }
  if (![getItem, setItem, removeItem].every((method) => typeof method === 'function')) {
    throw refused('storage', 'sessionStorage, or a function that answers it')
  }
  return storage as SessionStorage
}

/**
 * Whether it is proved that the storage is not localStorage; false where it takes nothing now. Found out by writing, as
 * another window's localStorage, or what hands on to it, is another object. Leaves nothing behind.
 *
 * @throws {@link AttemptError} with code ASKONCE_LOCAL_STORAGE
 */
function isSessionStorage(storage: SessionStorage): boolean {
  const local = ownLocalStorage()
  const probe = `askonce.probe.${Math.random()}`
  let isLocal = local === storage
  try {
    storage.setItem(probe, '')
    isLocal ||= (local?.getItem(probe) ?? null) !== null
    storage.removeItem(probe)
  } catch {
    if (!isLocal) return false
  }
  if (!isLocal) return true
  throw new AttemptError(
    'ASKONCE_LOCAL_STORAGE',
    'attempts are kept in sessionStorage: what localStorage keeps would answer a later question with an old answer',
    { field: 'storage' },
  )
}

function ownLocalStorage(): SessionStorage | null {
  try {
    return (globalThis as { localStorage?: SessionStorage }).localStorage ?? null
  } catch {
    return null
  }
}
