/**
 * A run as plain data: what is written to a file, compared, and made into the page.
 *
 * @module
 */

import { readFileSync, writeFileSync } from 'node:fs'
import type { BackendName } from '../backends/backend.ts'
import { checked } from './check.ts'
import type { MetricName } from './metrics.ts'

/** The rounds of one figure. */
export interface Series {
  readonly scenario: string
  readonly case: string
  readonly backend: BackendName
  /** `askonce`, `bare`, or a peer. */
  readonly system: string
  readonly metric: MetricName
  /** One a round, in order: round n of one system ran beside round n of the others. NaN where a round has none. */
  readonly samples: readonly number[]
}

/** What was to be measured and was not. */
export interface Omission {
  readonly scenario: string
  readonly case: string
  readonly backend: BackendName
  readonly system: string
  readonly reason: string
  /** Whether it was tried, in vain. Without it, it was left out on purpose. */
  readonly failed?: boolean
}

export interface RunBackend {
  readonly name: BackendName
  readonly title: string
  readonly baseline: string
  readonly software: string
}

export interface Results {
  readonly format: 1
  readonly askonce: string
  /** Of the repository, if it was run in one; with `+` where files had been changed. */
  readonly commit: string | null
  /** ISO 8601. */
  readonly begunAt: string
  readonly seconds: number
  /** Versions and processors, in a line. */
  readonly machine: string
  /** Load average before the first and after the last measurement. */
  readonly load: readonly [number, number]
  readonly quick: boolean
  /** The command's arguments, as they were typed. */
  readonly arguments: string
  readonly rounds: number
  readonly backends: readonly RunBackend[]
  readonly series: readonly Series[]
  readonly omissions: readonly Omission[]
}

/** JSON, a field a line, rounds in one line. */
export function textOf(results: Results): string {
  const text = JSON.stringify(results, null, 2)
  // Only arrays of numbers: strings could hold anything.
  const lines = text.replace(/\[\n\s+((?:null|-?\d)[^"[\]{}]*?)\n\s+\]/g, (_, inner: string) => {
    return `[${inner.replace(/,\s+/g, ', ')}]`
  })
  return `${lines}\n`
}

export function writeResults(file: string, results: Results): void {
  writeFileSync(file, textOf(results))
}

/**
 * Reads a run.
 *
 * @throws Error that names the file and what is wrong with it, in a line
 */
export function readResults(file: string): Results {
  try {
    return checked(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    // A parser shows what it was given, line breaks and all.
    throw new Error(`${file}: ${(error as Error).message.replace(/\s+/g, ' ')}`)
  }
}
