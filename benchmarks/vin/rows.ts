/**
 * The file that is uploaded: every VIN several times, in a random order that replays.
 *
 * @module
 */

import { readFileSync } from 'node:fs'
import path from 'node:path'
import { checkDigitOf } from '../../src/presets/vin/index.ts'

/** From the project's folder: this module may run as it was compiled, far from the file. */
const vehiclesFile = path.join(process.cwd(), 'test', 'vin', 'vins.json')

/** Where the serial numbers begin. */
const firstSerial = 100_000

/** `distinct` VINs that pass every check: real ones, with other serial numbers. */
function vins(distinct: number, first: number): string[] {
  const vehicles = JSON.parse(readFileSync(vehiclesFile, 'utf8')) as { vin: string }[]
  const made = new Set<string>()
  for (let serial = first; made.size < distinct; serial += 37) {
    const { vin } = vehicles[serial % vehicles.length] as { vin: string }
    const other = `${vin.slice(0, 11)}${String(serial).padStart(6, '0')}`
    made.add(`${other.slice(0, 8)}${checkDigitOf(other)}${other.slice(9)}`)
  }
  return [...made]
}

/** mulberry32. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** What is in a file. */
export interface Upload {
  readonly rows: number
  readonly distinct: number
  /** Where its VINs' serial numbers begin: another file has others. */
  readonly first?: number
}

/** The rows: each VIN as often as the others. */
export function upload({ rows, distinct, first = firstSerial }: Upload, seed = 8): string[] {
  const known = vins(distinct, first)
  const random = randomOf(seed)
  const list = Array.from({ length: rows }, (_, index) => known[index % distinct] as string)
  for (let last = list.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1))
    const kept = list[last] as string
    list[last] = list[other] as string
    list[other] = kept
  }
  return list
}
