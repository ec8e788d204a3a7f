/**
 * What every benchmark prints alike: rounds, medians, tables, and the machine it ran on.
 *
 * @module
 */

import { cpus, totalmem } from 'node:os'

export interface Spread {
  readonly median: number
  readonly min: number
  readonly max: number
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  const median =
    sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
  return { median, min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0 }
}

/** Rounds to three significant digits, with thousands separated. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (value === 0) return '0'
  const rounded = Number(value.toPrecision(3))
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))))
  return rounded.toLocaleString('en-US', { maximumFractionDigits: Math.min(100, digits) })
}

/** A table in Markdown, its columns padded for a terminal, too. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((cell, column) => Math.max(cell.length, ...rows.map((row) => (row[column] ?? '').length)))
  const line = (cells: readonly string[]) =>
    `| ${widths.map((width, column) => (column === 0 ? (cells[column] ?? '').padEnd(width) : (cells[column] ?? '').padStart(width))).join(' | ')} |`
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`
  return [line(head), rule, ...rows.map(line)].join('\n')
}

/** The machine and versions, in a line. */
export function machine(): string {
  const [cpu] = cpus()
  return `Node ${process.versions.node}, ${cpus().length} x ${cpu?.model ?? 'unknown CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB, ${new Date().toISOString().slice(0, 10)}`
}

/** Bytes in use on the heap and beside it, after collecting what can be; needs `--expose-gc`. */
export function bytesInUse(): number {
  for (let round = 0; round < 3; round++) globalThis.gc?.()
  const { heapUsed, external, arrayBuffers } = process.memoryUsage()
  return heapUsed + Math.max(external, arrayBuffers)
}
