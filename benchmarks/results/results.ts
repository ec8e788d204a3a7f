/**
 * A run as plain data: what is written to a file, compared, and made into the page.
 *
 * @module
 */

import { readFileSync, writeFileSync } from 'node:fs'
import type { BackendName } from '../backends/backend.ts'
import { backendNames } from '../backends/backend.ts'
import { type MetricName, metrics } from './metrics.ts'

/** The rounds of one figure. */
export interface Series {
  readonly scenario: string
  readonly case: string
  readonly backend: BackendName
  /** `askonce`, `bare`, or a peer. */
  readonly system: string
  readonly metric: MetricName
  /** One a round, in order: round n of one system ran beside round n of the others. */
  readonly samples: readonly number[]
}

/** What was to be measured and was not. */
export interface Omission {
  readonly scenario: string
  readonly case: string
  readonly backend: BackendName
  readonly system: string
  readonly reason: string
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
  const lines = text.replace(/\[\n\s+(-?\d[^"[\]{}]*?)\n\s+\]/g, (_, inner: string) => {
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
 * @throws Error that names the file and what is wrong with it
 */
export function readResults(file: string): Results {
  let value: Partial<Results>
  try {
    value = JSON.parse(readFileSync(file, 'utf8')) as Partial<Results>
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}`)
  }
  if (value?.format !== 1) throw new Error(`${file}: not the results of a run in format 1`)
  const faulty = value.series?.find(
    ({ backend, metric, samples }) =>
      !backendNames.includes(backend) || !Object.hasOwn(metrics, metric) || !Array.isArray(samples),
  )
  if (value.series === undefined || faulty !== undefined) {
    throw new Error(`${file}: ${faulty === undefined ? 'no series' : `unknown series ${JSON.stringify(faulty)}`}`)
  }
  return value as Results
}
