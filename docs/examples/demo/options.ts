/**
 * The demo's command line.
 *
 * @module
 */

import { parseArgs } from 'node:util'

/** What was asked for. */
export interface DemoOptions {
  readonly file: string | null
  readonly live: boolean
  readonly json: boolean
  readonly storage: 'memory' | 'file'
  readonly dir: string | null
  readonly workers: number
  readonly passes: number
  readonly faults: number | null
  readonly out: string | null
  readonly column: string | null
}

/** Something the user can put right; shown as it is. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const help = `npm run demo -- [FILE.csv] [flags]

Decodes the VINs of a CSV file, each vehicle once, twice over: the second pass asks nobody.

  FILE.csv           your own file; default: the 478 rows beside this script
  --column NAME      the column with the VINs; default: vin, or the first
  --out FILE.csv     writes the rows again with what was found beside them
  --live             asks NHTSA itself; default: a stand-in on this machine
  --faults [SEED]    has the stand-in fail in many ways; the same seed fails alike (with --workers 1)
  --workers N        decoders that share the storage, 1 to 16; default: 3, with --live 1
  --passes N         1 to 10; default: 2
  --storage KIND     file: a second run finds what the first one asked; or memory. Default: file
  --dir FOLDER       where the records are kept; default: askonce-demo in the folder for temporary files
  --json             prints one JSON object and nothing else
  --help             prints this
`

/** Reads the command line; null if help is asked for. */
export function readOptions(args: readonly string[]): DemoOptions | null {
  const { values, positionals } = parse(args)
  if (values.help) return null
  if (positionals.length > 1) throw new UsageError(`one file at a time, not ${positionals.length}`)
  const live = values.live ?? false
  const faults = values.faults === undefined ? null : whole('--faults', values.faults, 0, 4_294_967_295)
  if (live && faults !== null) throw new UsageError('--faults is for the stand-in; it goes not with --live')
  const storage = values.storage ?? 'file'
  if (storage !== 'memory' && storage !== 'file') throw new UsageError(`--storage is memory or file, not ${storage}`)
  if (values.dir !== undefined && storage !== 'file') throw new UsageError('--dir goes only with --storage file')
  return {
    file: positionals[0] ?? null,
    live,
    json: values.json ?? false,
    storage,
    dir: values.dir ?? null,
    workers: whole('--workers', values.workers ?? (live ? '1' : '3'), 1, 16),
    passes: whole('--passes', values.passes ?? '2', 1, 10),
    faults,
    out: values.out ?? null,
    column: values.column ?? null,
  }
}

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      // A seed is optional: a bare --faults is 1.
      args: args.map((arg, index) => (arg === '--faults' && !/^\d+$/.test(args[index + 1] ?? '') ? '--faults=1' : arg)),
      allowPositionals: true,
      options: {
        live: { type: 'boolean' },
        json: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        storage: { type: 'string' },
        dir: { type: 'string' },
        workers: { type: 'string' },
        passes: { type: 'string' },
        faults: { type: 'string' },
        out: { type: 'string' },
        column: { type: 'string' },
      },
    })
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function whole(flag: string, text: string, min: number, max: number): number {
  const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= min && value <= max))
    throw new UsageError(`${flag} is a whole number from ${min} to ${max}, not ${text}`)
  return value
}
