/**
 * Content-addressed ids: the same question has the same id, whoever asks it and in whatever order its properties came.
 *
 * A value becomes canonical JSON (RFC 8785), together with a name and a version, and that becomes a SHA-256 digest. What
 * has no canonical form is refused: an id that quietly left something out would answer one question with another's answer.
 *
 * @module
 */

import { hash } from 'node:crypto'
import canonicalize from 'canonicalize'
import { InvalidArgumentError, SerializationError } from './errors.ts'

/** Levels of arrays and objects in a value; keeps a runaway structure from ending as an overflow of the stack. */
const depthMax = 500

/**
 * The id of a value: 43 characters of `A-Z a-z 0-9 - _`, the same in every process and release.
 *
 * Change `version` when the meaning of the answer changes: the new ids share nothing with the old ones. Properties that are
 * `undefined` count as absent, as they do in JSON; `-0` is `0`; `toJSON` is honoured, so a `Date` is its ISO text.
 *
 * @param name - what is asked, such as `geocode`; questions of two names never share an id
 * @param version - of the answer's meaning: non-empty text, or a whole number from 0 (`1` and `'1'` are the same)
 * @param value - anything of plain objects, arrays, text, finite numbers, booleans and null
 * @throws {@link InvalidArgumentError} for a bad name or version
 * @throws {@link SerializationError} for a value without a canonical form; names where in it, never what
 */
export function contentId(name: string, version: string | number, value: unknown): string {
  if (typeof name !== 'string' || name === '' || !name.isWellFormed()) {
    throw new InvalidArgumentError('name', 'non-empty, well-formed text', name)
  }
  const isText = typeof version === 'string' && version !== '' && version.isWellFormed()
  const isNumber = typeof version === 'number' && Number.isSafeInteger(version) && version >= 0
  if (!isText && !isNumber) {
    throw new InvalidArgumentError('version', 'non-empty, well-formed text or a whole number from 0', version)
  }
  // One array, so that no choice of name and version can pass for another's.
  const question = canonicalize([name, String(version), plain(value, root, [])]) as string
  return hash('sha256', question, 'base64url')
}

/**
 * A value as canonical JSON by RFC 8785: equal text exactly for equal values. See {@link contentId} for what is equal.
 *
 * @throws {@link SerializationError} for a value without a canonical form; names where in it, never what
 */
export function canonicalJson(value: unknown): string {
  return canonicalize(plain(value, root, [])) as string
}

/** Where in the value we are: a linked list, turned into text only when something is refused. */
interface Path {
  readonly parent: Path | null
  readonly key: string | number
}

const root: Path = { parent: null, key: 'value' }

/**
 * A copy made of nothing but null-prototype objects, arrays, and primitives that JSON can write. The library writes the
 * copy, not the value: each getter, proxy and `toJSON` is asked once, and what the library would write without a word
 * (`undefined` in arrays as null, a Map as `{}`) never reaches it.
 */
function plain(value: unknown, path: Path, parents: object[]): unknown {
  switch (typeof value) {
    case 'boolean':
      return value
    case 'string':
      if (!value.isWellFormed()) throw refused(path, 'has a lone surrogate: two such texts would share one UTF-8 form')
      return value
    case 'number':
      if (!Number.isFinite(value)) throw refused(path, `is ${value}, which JSON can't write`)
      return value
    case 'object':
      return value === null ? null : plainObject(value, path, parents)
    default:
      throw refused(path, `is of type ${typeof value}, which has no canonical JSON`)
  }
}

function plainObject(value: object, path: Path, parents: object[]): unknown {
  if (parents.includes(value)) throw refused(path, 'contains itself')
  if (parents.length >= depthMax) throw refused(path, `is nested more than ${depthMax} levels deep`)
  parents.push(value)
  const copy = copyOf(value, path, parents)
  parents.pop()
  return copy
}

function copyOf(value: object, path: Path, parents: object[]): unknown {
  const toJSON = read(value, 'toJSON', path)
  if (typeof toJSON === 'function') return plain(replacement(value, toJSON as () => unknown, path), path, parents)
  if (Array.isArray(value)) return copyOfArray(value, path, parents)
  if (!isPlain(value)) {
    throw refused(path, 'is neither a plain object nor an array, and has no toJSON. Convert it to plain data')
  }
  if (hasSymbolKeys(value)) throw refused(path, 'has properties named by symbols')
  const copy: Record<string, unknown> = Object.create(null)
  for (const key of Object.keys(value)) {
    const here = { parent: path, key }
    if (!key.isWellFormed()) throw refused(path, 'has a property name with a lone surrogate')
    const item = read(value, key, here)
    if (item !== undefined) copy[key] = plain(item, here, parents)
  }
  return copy
}

function copyOfArray(value: readonly unknown[], path: Path, parents: object[]): unknown[] {
  const copy: unknown[] = []
  for (let index = 0; index < value.length; index++) {
    const here = { parent: path, key: index }
    const item = read(value, index, here)
    if (item === undefined) throw refused(here, 'is undefined or a hole; JSON would make it null')
    copy.push(plain(item, here, parents))
  }
  if (Object.keys(value).length !== value.length || hasSymbolKeys(value)) {
    throw refused(path, 'is an array with properties beside its items')
  }
  return copy
}

function replacement(value: object, toJSON: (key: string) => unknown, path: Path): unknown {
  if (value instanceof Date && Number.isNaN(value.getTime())) throw refused(path, 'is an invalid Date')
  let replaced: unknown
  try {
    replaced = toJSON.call(value, '')
  } catch (cause) {
    throw refused(path, 'has a toJSON that threw', cause)
  }
  if (replaced === undefined) throw refused(path, 'has a toJSON that answers undefined')
  return replaced
}

function read(value: object, key: string | number, path: Path): unknown {
  try {
    return (value as Record<string | number, unknown>)[key]
  } catch (cause) {
    throw refused(path, 'could not be read: its getter threw', cause)
  }
}

/** An object of this or another realm that no class made. */
function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value)
  if (prototype === null || prototype === Object.prototype) return true
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf')
}

function hasSymbolKeys(value: object): boolean {
  return Object.getOwnPropertySymbols(value).some((key) => Object.prototype.propertyIsEnumerable.call(value, key))
}

function refused(path: Path, problem: string, cause?: unknown): SerializationError {
  return new SerializationError(textOf(path), problem, cause === undefined ? {} : { cause })
}

/** `value.lines[3]["odd name"]`; long names and long paths are cut. */
function textOf(path: Path): string {
  const parts: string[] = []
  for (let at: Path | null = path; at !== null && parts.length < 20; at = at.parent) parts.unshift(stepText(at))
  return parts.join('')
}

function stepText({ key, parent }: Path): string {
  if (parent === null) return String(key)
  if (typeof key === 'number') return `[${key}]`
  const short = key.length > 40 ? `${key.slice(0, 40)}…` : key
  return /^[A-Za-z_$][\w$]*$/.test(short) ? `.${short}` : `[${JSON.stringify(short)}]`
}
