/**
 * How long outcomes are kept, by their status.
 *
 * @module
 */

import { guardDuration, InvalidArgumentError } from '../errors.ts'

/** One time for all statuses, ms; or a table: `{ default: 15_000, 503: 2_000 }`. */
export type TtlTable = number | { readonly default: number; readonly [status: number]: number }

/** The time of statuses that have none of their own. */
export function defaultTtl(table: TtlTable): number {
  return typeof table === 'number' ? table : table.default
}

/** The time of a status. */
export function ttlOf(table: TtlTable, status: number): number {
  return typeof table === 'number' ? table : (table[status] ?? table.default)
}

/** @throws InvalidArgumentError for what is neither ms nor a table of them */
export function guardTtl(field: string, value: unknown): asserts value is TtlTable {
  if (typeof value !== 'object' || value === null) {
    guardDuration(field, value)
    return
  }
  guardDuration(`${field}.default`, (value as { default?: unknown }).default)
  for (const [status, ms] of Object.entries(value)) {
    if (status !== 'default' && !/^[2-5]\d\d$/.test(status)) {
      throw new InvalidArgumentError(field, 'ms, or a table by status from 200 to 599 with a default', value)
    }
    guardDuration(`${field}[${status}]`, ms)
  }
}
