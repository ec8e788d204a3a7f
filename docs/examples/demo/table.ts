/**
 * What came of it, for people.
 *
 * @module
 */

import type { DemoResult } from './run.ts'

/** Lines for a terminal. */
export function tableOf(result: DemoResult): string {
  const header = ['pass', 'rows', 'valid', 'unique', 'upstream calls', 'answered from cache', 'seconds']
  const rows = result.passes.map((pass) => [
    String(pass.pass),
    String(pass.rows),
    String(pass.valid),
    String(pass.unique),
    String(pass.upstream_calls),
    String(pass.answered_from_cache),
    pass.seconds.toFixed(2),
  ])
  const lines = [...aligned([header, ...rows]), '']
  const [first] = result.passes
  if (first !== undefined) {
    const classes = Object.entries(first.classes).map(([name, count]) => `${count} ${name}`)
    lines.push(`outcomes: ${classes.join(', ')}`)
    lines.push(
      `calls saved against one call a row: ${first.calls_saved}; VINs sent per different VIN: ${ratio(result)}`,
    )
  }
  const silent = result.passes.at(-1)?.classes.UPSTREAM ?? 0
  if (silent > 0)
    lines.push(`${silent} rows have no answer yet: vPIC is out of reach or in trouble; run it again later`)
  if (result.interrupted) lines.push('interrupted: what was answered is kept; on files for the next run, too')
  const pairs = result.near_duplicates.slice(0, 5).map(({ vin, like }) => `${vin} ~ ${like}`)
  if (pairs.length > 0) lines.push(`perhaps one vehicle (${result.near_duplicates.length}): ${pairs.join(', ')}`)
  return `${lines.join('\n')}\n`
}

function ratio({ counters }: DemoResult): string {
  return counters.upstream_per_unique === null ? 'none sent' : counters.upstream_per_unique.toFixed(2)
}

function aligned(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) => row.map((cell, column) => cell.padStart(widths[column] ?? 0)).join('  '))
  lines.splice(1, 0, widths.map((width) => '-'.repeat(width)).join('  '))
  return lines
}
