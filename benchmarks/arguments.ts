/**
 * The command line of `npm run bench`.
 *
 * @module
 */

import path from 'node:path'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { BackendName } from './backends/backend.ts'
import { backendNames } from './backends/backend.ts'
import { backendsOf } from './backends/index.ts'

/** The storages that have a report of their own. */
export const reportNames = ['memory', 'file', 'redis', 'dynamodb'] as const
export type ReportName = (typeof reportNames)[number]

export const usage = `usage: npm run bench [-- NAME...] [options]

NAME: memory, file, file-fsync, file-os, redis, dynamodb. Default: all.

  --scenario NAME  only this one (may be repeated): SCENARIOS
  --quick          smaller and fewer; all in less than two minutes
  --json FILE      write the figures
  --out DIR        write DIR/benchmarks.md, its pictures, and the figures, in DIR/benchmarks/; needs vega
  --compare FILE   tell what moved beyond noise against the figures in FILE; status 1 if anything got worse, or failed
  --profile DIR    profile askonce instead of measuring: DIR gets .cpuprofile and .heapprofile files, summaries are printed
  --render FILE    run nothing: make the page of the figures in FILE (--out DIR; default: docs); needs vega
  --details        of one of memory, file, redis, dynamodb: its own report and nothing else; further options are the report's
  --help

One storage alone (memory, file, redis, dynamodb), without any of these options, is measured in all scenarios, and then by
its own report. Status 1 if nothing at all could be measured, or recorded; 2 if something can't be understood, read or written:
that is told before anything is run.
`

export type Command =
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'report'; readonly name: ReportName; readonly arguments: readonly string[] }
  | { readonly kind: 'render'; readonly file: string; readonly out: string }
  | RunCommand

export interface RunCommand {
  readonly kind: 'run'
  readonly backends: readonly BackendName[]
  /** Names; all if none. */
  readonly scenarios: readonly string[]
  readonly quick: boolean
  readonly json: string | null
  readonly out: string | null
  readonly compare: string | null
  readonly profile: string | null
  /** The report that follows. */
  readonly report: ReportName | null
}

const options = {
  scenario: { type: 'string', multiple: true },
  quick: { type: 'boolean', default: false },
  json: { type: 'string' },
  out: { type: 'string' },
  compare: { type: 'string' },
  profile: { type: 'string' },
  render: { type: 'string' },
  details: { type: 'boolean', default: false },
} as const satisfies ParseArgsConfig['options']

/** Options that only the storages' own reports have: whoever gives one wants the report. */
const reportOptions = /^--(?:rounds|scale|deep|only|svg|jobs)(?:=|$)/

function isReport(name: string | undefined): name is ReportName {
  return (reportNames as readonly (string | undefined)[]).includes(name)
}

/**
 * @param scenarios - the names of those that there are
 * @param folder - what relative paths start from
 */
export function commandOf(argv: readonly string[], scenarios: readonly string[], folder: string): Command {
  const [first, ...rest] = argv
  if (argv.includes('--help')) return { kind: 'help' }
  if (isReport(first) && (rest.includes('--details') || rest.some((argument) => reportOptions.test(argument)))) {
    return { kind: 'report', name: first, arguments: rest.filter((argument) => argument !== '--details') }
  }
  try {
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true })
    for (const name of ['json', 'out', 'compare', 'profile', 'render'] as const) {
      if (values[name] === '') throw new Error(`--${name} needs a name`)
    }
    const at = (file: string | undefined) => (file === undefined ? null : path.resolve(folder, file))
    if (values.render !== undefined) {
      const { render, out, ...others } = values
      const given = Object.entries(others).find(([, value]) => value !== undefined && value !== false)
      const alien = positionals[0] ?? (given === undefined ? undefined : `--${given[0]}`)
      if (alien !== undefined) throw new Error(`--render runs nothing, and goes without ${alien}`)
      return {
        kind: 'render',
        file: path.resolve(folder, render),
        out: path.resolve(folder, out ?? 'docs'),
      }
    }
    if (values.details) throw new Error(`--details needs one of ${reportNames.join(', ')} before it`)
    const unknown = values.scenario?.find((name) => !scenarios.includes(name))
    if (unknown !== undefined) throw new Error(`no scenario '${unknown}'; there are ${scenarios.join(', ')}`)
    const { scenario, quick, json, out, compare, profile } = values
    if (profile !== undefined && (json ?? out ?? compare) !== undefined) {
      throw new Error('--profile goes without --json, --out and --compare: what is being watched is slower')
    }
    const plain = scenario === undefined && !quick && !json && !out && !compare && !profile
    return {
      kind: 'run',
      backends: namedBackends(positionals),
      scenarios: scenario ?? [],
      quick,
      json: at(json),
      out: at(out),
      compare: at(compare),
      profile: at(profile),
      report: plain && positionals.length === 1 && isReport(positionals[0]) ? positionals[0] : null,
    }
  } catch (error) {
    return { kind: 'wrong', message: (error as Error).message }
  }
}

function namedBackends(names: readonly string[]): readonly BackendName[] {
  if (names.length === 0) return backendNames
  const unknown = names.find((name) => backendsOf(name).length === 0)
  if (unknown !== undefined) throw new Error(`no backend '${unknown}'; there are ${backendNames.join(', ')}`)
  return backendNames.filter((name) => names.some((named) => backendsOf(named).includes(name)))
}
