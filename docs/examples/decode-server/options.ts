/**
 * The example's command line.
 *
 * @module
 */

import { parseArgs } from 'node:util'

/** What was asked for. */
export interface ServerOptions {
  readonly live: boolean
  readonly port: number
  readonly dir: string
  readonly latencyMs: number
}

/** Something the user can put right; shown as it is. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

export const help = `npm run example:decode -- [flags]

Serves a page that decodes VINs, and POST /api/decode behind it, on 127.0.0.1.

  --port N       0 to 65535; default: 8080; 0 takes a free one
  --live         asks NHTSA itself; default: a stand-in on this machine
  --latency MS   how long the stand-in takes, 0 to 60000; default: 2000, time enough for a second click
  --dir FOLDER   where the records are kept; default: askonce-decode-server in the folder for temporary files
  --help         prints this

Without a browser, where visitor is who you are:
  curl -b visitor=somebody -H 'Idempotency-Key: "5f1c6a3e"' -H 'Content-Type: application/json' \\
    -d '{"vin":"1HGCM82633A004352"}' http://127.0.0.1:8080/api/decode
`

/** Reads the command line; null if help is asked for. */
export function readOptions(args: readonly string[], dir: string): ServerOptions | null {
  const values = parse(args)
  if (values.help) return null
  const live = values.live ?? false
  if (live && values.latency !== undefined)
    throw new UsageError('--latency is for the stand-in; it goes not with --live')
  return {
    live,
    port: whole('--port', values.port ?? '8080', 65_535),
    latencyMs: whole('--latency', values.latency ?? '2000', 60_000),
    dir: values.dir ?? dir,
  }
}

function parse(args: readonly string[]) {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        live: { type: 'boolean' },
        help: { type: 'boolean', short: 'h' },
        port: { type: 'string' },
        latency: { type: 'string' },
        dir: { type: 'string' },
      },
    })
    return values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function whole(flag: string, text: string, max: number): number {
  const value = /^\d{1,6}$/.test(text) ? Number(text) : Number.NaN
  if (!(value <= max)) throw new UsageError(`${flag} is a whole number from 0 to ${max}, not ${text}`)
  return value
}
