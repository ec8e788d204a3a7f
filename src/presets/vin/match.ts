/**
 * Which row answers which VIN. By the VIN in the row and nothing else: rows were seen to be missing, doubled and moved.
 *
 * @module
 */

import { textOf, type VpicRow } from './row.ts'

/** Rows by the VIN they answer. */
export interface MatchedRows {
  readonly rows: ReadonlyMap<string, VpicRow>
  /** VINs asked for that have no row, or more than one. */
  readonly gaps: readonly string[]
}

/** Matches rows to the VINs asked for. Rows of other VINs are left out. */
export function matchRows(vins: readonly string[], answered: readonly VpicRow[]): MatchedRows {
  const rows = new Map<string, VpicRow>()
  const doubled = new Set<string>()
  for (const row of answered) {
    const vin = textOf(row, 'VIN')?.toUpperCase()
    if (vin === undefined) continue
    if (rows.has(vin)) doubled.add(vin)
    rows.set(vin, row)
  }
  const matched = new Map<string, VpicRow>()
  const gaps: string[] = []
  for (const vin of vins) {
    const row = doubled.has(vin) ? undefined : rows.get(vin)
    if (row === undefined) gaps.push(vin)
    else matched.set(vin, row)
  }
  return { rows: matched, gaps }
}
