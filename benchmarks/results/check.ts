/**
 * Whether what a file holds is a run: files come from other versions, other machines, and editors.
 *
 * @module
 */

import { backendNames } from '../backends/backend.ts'
import { metrics } from './metrics.ts'
import type { Results, Series } from './results.ts'

/** Throws an error that names the field, if the value is not as it should be. */
type Check = (value: unknown, field: string) => void

/** A check of one value, and how people would call what it asks for. */
function is(what: string, good: (value: unknown) => boolean): Check {
  return (value, field) => {
    if (!good(value)) throw new Error(value === undefined ? `${field} is missing` : `${field} must be ${what}`)
  }
}

const text = is('a text', (value) => typeof value === 'string')
const truth = is('true or false', (value) => typeof value === 'boolean')
const number = is('a number from 0', (value) => Number.isFinite(value) && (value as number) >= 0)
const figure = is('a number or null', (value) => value === null || Number.isFinite(value))

function oneOf(names: readonly string[]): Check {
  return is(`one of ${names.join(', ')}`, (value) => names.includes(value as string))
}

function orNot(check: Check): Check {
  return (value, field) => {
    if (value !== undefined) check(value, field)
  }
}

function listOf(check: Check, min = 0): Check {
  const list = is(min === 0 ? 'a list' : `a list of at least ${min}`, (value) => {
    return Array.isArray(value) && value.length >= min
  })
  return (value, field) => {
    list(value, field)
    for (const [index, element] of (value as unknown[]).entries()) check(element, `${field}[${index}]`)
  }
}

const object = is('an object', (value) => typeof value === 'object' && value !== null && !Array.isArray(value))

function objectOf<Of>(fields: Record<keyof Of & string, Check>): Check {
  return (value, field) => {
    object(value, field === '' ? 'the whole' : field)
    for (const [name, check] of Object.entries<Check>(fields)) {
      check((value as Record<string, unknown>)[name], field === '' ? name : `${field}.${name}`)
    }
  }
}

const place = { scenario: text, case: text, backend: oneOf(backendNames), system: text }

const run = objectOf<Results>({
  format: is('1: files of other formats are of other versions', (value) => value === 1),
  askonce: text,
  commit: is('a text or null', (value) => value === null || typeof value === 'string'),
  begunAt: text,
  seconds: number,
  machine: text,
  load: is('two numbers', (value) => Array.isArray(value) && value.length === 2 && value.every(Number.isFinite)),
  quick: truth,
  arguments: text,
  rounds: is('a whole number from 1', (value) => Number.isSafeInteger(value) && (value as number) >= 1),
  backends: listOf(
    objectOf<Results['backends'][number]>({ name: oneOf(backendNames), title: text, baseline: text, software: text }),
  ),
  series: listOf(objectOf<Series>({ ...place, metric: oneOf(Object.keys(metrics)), samples: listOf(figure, 1) })),
  omissions: listOf(objectOf<Results['omissions'][number]>({ ...place, reason: text, failed: orNot(truth) })),
})

/**
 * The value, as a run.
 *
 * @throws Error that names the field that is wrong
 */
export function checked(value: unknown): Results {
  run(value, '')
  const results = value as Results
  const names = results.backends.map(({ name }) => name)
  for (const [index, { backend }] of results.series.entries()) {
    if (!names.includes(backend)) throw new Error(`series[${index}].backend is not among the backends`)
  }
  // JSON has no NaN: it became null, which would count as 0.
  const series = results.series.map((one) => ({ ...one, samples: one.samples.map((sample) => sample ?? Number.NaN) }))
  return { ...results, series }
}
