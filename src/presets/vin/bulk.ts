/**
 * For files of VINs: columns to put beside the original cells, and a report of what deduplicating saved.
 *
 * @module
 */

import { passesCheckDigit, vinAlphabet } from './alphabet.ts'
import type { OutcomeClass, VinOutcome } from './outcome.ts'

/** The columns that {@link vinCells} fills, in their order. */
export const vinColumns = Object.freeze([
  'vin_raw',
  'vin',
  'vin_id',
  'vin_class',
  'vin_suggestion',
  'make',
  'model',
  'model_year',
  'vin_codes',
  'vin_note',
] as const)

/** An outcome as cells, one for each of {@link vinColumns}; empty where there is nothing to say. The raw cell is kept as it was. */
export function vinCells(outcome: VinOutcome): string[] {
  const decoded = outcome.ok ? outcome.decoded : null
  const details = outcome.ok || outcome.class === 'UNDECIDED' ? null : outcome.details
  const codes = decoded?.codes ?? details?.codes ?? []
  const notes = outcome.ok ? outcome.warnings.map(({ message }) => message) : [outcome.message]
  return [
    typeof outcome.raw === 'string' ? outcome.raw : String(outcome.raw ?? ''),
    outcome.vin,
    outcome.id ?? '',
    outcome.class,
    outcome.suggestions[0] ?? '',
    decoded?.make ?? details?.make ?? '',
    decoded?.model ?? '',
    String(decoded?.modelYear ?? details?.modelYear ?? ''),
    codes.join(','),
    notes.join('; '),
  ]
}

/** What {@link DedupeReport} has counted. */
export interface DedupeSummary {
  /** Rows added. */
  readonly rows: number
  /** Rows with a VIN that could be asked for. */
  readonly valid: number
  /** Different questions among them. */
  readonly unique: number
  /** Rows answered by what was there already. */
  readonly cached: number
  /** Rows that joined a question which somebody had just asked. */
  readonly shared: number
  /** Questions that these rows caused. */
  readonly asked: number
  /** Calls that asking for each valid row by itself would have cost beyond those made. */
  readonly callsSaved: number
  readonly classes: Readonly<Partial<Record<OutcomeClass, number>>>
}

/** Two VINs of a file that may be one vehicle. */
export interface NearDuplicate {
  /** The likelier mistake: its check digit is wrong, or it comes later. */
  readonly vin: string
  readonly like: string
}

/** Counts outcomes as they come. Keeps each different VIN in memory, nothing else. */
export class DedupeReport {
  #rows = 0
  #valid = 0
  readonly #origins = { local: 0, cache: 0, shared: 0, asked: 0 }
  readonly #classes: Partial<Record<OutcomeClass, number>> = {}
  readonly #ids = new Set<string>()
  readonly #vins = new Set<string>()

  add(outcome: VinOutcome): void {
    this.#rows++
    this.#classes[outcome.class] = (this.#classes[outcome.class] ?? 0) + 1
    this.#origins[outcome.origin]++
    if (outcome.id === null) return
    this.#valid++
    this.#ids.add(outcome.id)
    this.#vins.add(outcome.vin)
  }

  /** @param calls - calls that were made meanwhile: the difference of `vpic_calls` in the counters of all workers */
  summary(calls: number): DedupeSummary {
    const { cache, shared, asked } = this.#origins
    return {
      rows: this.#rows,
      valid: this.#valid,
      unique: this.#ids.size,
      cached: cache,
      shared,
      asked,
      callsSaved: Math.max(0, this.#valid - calls),
      classes: { ...this.#classes },
    }
  }

  /**
   * Pairs that differ by one character or by two neighbours swapped. Vehicles of one fleet are no such pairs: another serial
   * number has another check digit, too.
   */
  nearDuplicates(): NearDuplicate[] {
    const pairs: NearDuplicate[] = []
    const seen = new Set<string>()
    // One wrong character breaks the check digit nearly always: looking from the broken ones finds nearly all pairs.
    const broken = [...this.#vins].filter((vin) => vin.length === 17 && !passesCheckDigit(vin))
    for (const vin of broken) {
      for (const like of neighboursOf(vin)) {
        if (!this.#vins.has(like) || seen.has(`${like} ${vin}`)) continue
        seen.add(`${vin} ${like}`)
        pairs.push({ vin, like })
      }
    }
    return pairs
  }
}

function* neighboursOf(vin: string): Generator<string> {
  for (let index = 0; index < vin.length; index++) {
    const before = vin.slice(0, index)
    const after = vin.slice(index + 1)
    for (const character of vinAlphabet) if (character !== vin[index]) yield before + character + after
    const next = vin[index + 1]
    if (next !== undefined && next !== vin[index]) yield before + next + vin[index] + vin.slice(index + 2)
  }
}
