/**
 * Effects behind a record: marks that let an effect begin once, and the rows of an outbox while a handler collects them.
 *
 * @module
 */

import { asIs, Batcher } from './batcher.ts'
import { decode, encode, jsonSerde } from './codec.ts'
import { guardId, InvalidArgumentError, ResultGoneError, StateError, TooLargeError } from './errors.ts'
import { limits } from './limits.ts'
import type { MarkOutcome } from './machine.ts'
import type { Encoded } from './record.ts'
import { guardFunction } from './settings.ts'
import type { Mark, StorageHandle, StorageTraits } from './storage.ts'
import type { TokenSource } from './tokens.ts'

/** Whether an effect ran in this call, and what it answered. */
export type EffectOutcome<T> = { readonly ran: true; readonly value: T } | { readonly ran: false }

const nameForm = new RegExp(`^[A-Za-z0-9_.:-]{1,${limits.effectNameCharsMax}}$`)

/** @throws {@link InvalidArgumentError} */
function guardEffectName(name: unknown): asserts name is string {
  if (typeof name === 'string' && nameForm.test(name)) return
  const expected = `a string of 1 to ${limits.effectNameCharsMax} letters, digits and any of _.:-`
  throw new InvalidArgumentError('name', expected, name)
}

/** Effects of one queue. */
export class Effects {
  readonly #tokens: TokenSource
  readonly #marks: Batcher<Mark, MarkOutcome>

  constructor(tokens: TokenSource, handle: () => Promise<StorageHandle>, gather: StorageTraits['gather']) {
    this.#tokens = tokens
    this.#marks = new Batcher(async (items) => (await handle()).mark(items), gather)
  }

  /**
   * Runs `effect` at most once per record, whoever asks and in whatever process. The mark is stored before the effect
   * begins: one that throws, or whose process dies, is not run again. A refreshed record, or a later one of the same id, has
   * effects of its own.
   *
   * @param id - of a record that lives
   * @param name - 1 to 64 letters, digits and `_.:-`
   * @throws {@link InvalidArgumentError}; {@link ResultGoneError} if there is no record of this id; {@link StateError} if
   * the record has no room for another mark; and whatever the effect throws
   */
  async once<T>(id: string, name: string, effect: () => T | PromiseLike<T>): Promise<EffectOutcome<T>> {
    guardId(id)
    guardEffectName(name)
    guardFunction('effect', effect)
    const outcome = await this.#marks.add({ id, name, token: this.#tokens.next() }, asIs)
    switch (outcome) {
      case 'marked':
        return { ran: true, value: await effect() }
      case 'taken':
        return { ran: false }
      case 'not_found':
        throw new ResultGoneError(id)
      case 'full':
        throw new StateError(`the record has marks of ${limits.marksCharsMax} characters already; use fewer effects`)
    }
  }
}

/** One row of an outbox. */
export interface OutboxRow {
  readonly name: string
  /** As the default serde writes it. */
  readonly payload: Encoded
}

/** The rows that one attempt has collected. */
export class OutboxDraft {
  readonly #rows = new Map<string, string>()

  /**
   * Adds a row, or replaces the one of that name.
   *
   * @throws {@link InvalidArgumentError}, {@link SerializationError}, {@link TooLargeError}
   */
  add(name: string, payload: unknown): void {
    guardEffectName(name)
    const encoded = encode(jsonSerde, payload, 'outbox payload', limits.outboxBytesMax) as string
    const before = this.#rows.get(name)
    this.#rows.set(name, encoded)
    const bytes = Buffer.byteLength(this.toText())
    if (bytes <= limits.outboxBytesMax) return
    if (before === undefined) this.#rows.delete(name)
    else this.#rows.set(name, before)
    throw new TooLargeError('outbox', bytes, limits.outboxBytesMax)
  }

  toText(): string {
    return rowsToText([...this.#rows].map(([name, payload]) => ({ name, payload })))
  }
}

/** Rows as they are stored. */
export function rowsToText(rows: readonly OutboxRow[]): string {
  return JSON.stringify(rows.map(({ name, payload }) => [name, payload]))
}

/** Rows of what was stored. */
export function rowsFromText(text: Encoded): readonly OutboxRow[] {
  const rows = decode(jsonSerde, text, 'outbox') as [string, string][]
  return rows.map(([name, payload]) => ({ name, payload }))
}
