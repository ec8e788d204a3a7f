/**
 * Runs the simulation on a program with one thing wrong: a copy of the sources, in JavaScript, with one change.
 *
 * @module
 */

import { spawn } from 'node:child_process'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Compiled, writeCompiled } from '../../support/compiled.ts'
import type { SourceMutant } from './list.ts'

const folders = ['src', 'storages/memory', 'storages/conformance', 'test/sim', 'test/support/arguments.ts']

/** How a mutant fared. */
export interface Verdict {
  readonly mutant: SourceMutant
  /** The oracle that caught it; null if none did. */
  readonly oracle: string | null
  /** What the oracle said, or what went wrong. */
  readonly message: string
  /** How many seeds that took. */
  readonly seeds: number
}

/** The program as it is, ready to be broken. */
class Workshop {
  readonly #compiled = new Compiled(folders)
  #made = 0

  /**
   * Tries one mutant.
   *
   * @throws if what it is to replace is not there exactly once: the source has changed, and so must the mutant
   */
  async try(mutant: SourceMutant, seeds: number, ops: number): Promise<Verdict> {
    const source = this.#compiled.sources.get(mutant.file) ?? ''
    const parts = source.split(mutant.find)
    if (parts.length !== 2) {
      throw new Error(`${mutant.name}: what it replaces is ${parts.length - 1} times in ${mutant.file}`)
    }
    const folder = join(this.#compiled.folder, `mutant ${this.#made++}`)
    cpSync(this.#compiled.program, folder, { recursive: true })
    writeCompiled(folder, mutant.file, parts.join(mutant.replace))
    try {
      return { mutant, ...(await simulateIn(folder, mutant, seeds, ops)) }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }

  end(): void {
    this.#compiled.end()
  }
}

interface Totals {
  readonly seeds: number
  readonly violations: readonly { readonly seed: number; readonly oracle: string; readonly message: string }[]
}

/** How long one mutant may take, for one may never end. Most take half a second, but not where many others run. */
const patienceMs = 180_000

async function simulateIn(
  folder: string,
  { weather, tier, from }: SourceMutant,
  seeds: number,
  ops: number,
): Promise<Omit<Verdict, 'mutant'>> {
  const args = ['test/sim/sim.js', '--seeds', `${seeds}`, '--ops', `${ops}`, '--json', '--violations', '1']
  if (from !== undefined) args.push('--from', `${from}`)
  if (weather !== undefined) args.push('--weather', weather)
  if (tier !== undefined) args.push('--tier', tier)
  const child = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
  let totals: Totals | null = null
  let output = ''
  child.on('message', (message) => {
    totals = message as Totals
  })
  child.stdout?.on('data', (chunk) => {
    output = `${output}${chunk}`.slice(-2_000)
  })
  child.stderr?.on('data', (chunk) => {
    output = `${output}${chunk}`.slice(-2_000)
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs)
  await new Promise((resolve) => child.once('close', resolve))
  clearTimeout(timer)
  const ended = totals as Totals | null
  // A program that goes round for ever, or ends, is not one that keeps its promises.
  if (ended === null)
    return { oracle: child.killed ? 'liveness' : null, message: output.trim() || 'it never ends', seeds: 0 }
  const [first] = ended.violations
  return { oracle: first?.oracle ?? null, message: first?.message ?? '', seeds: ended.seeds }
}

/** Tries several at once, and tells of each as it is done. */
export async function tryAll(
  mutants: readonly SourceMutant[],
  options: { seeds: number; ops: number; jobs: number },
  tell: (verdict: Verdict) => void,
): Promise<Verdict[]> {
  const workshop = new Workshop()
  const left = [...mutants]
  const verdicts: Verdict[] = []
  const work = async (): Promise<void> => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      const verdict = await workshop.try(mutant, options.seeds, options.ops)
      verdicts.push(verdict)
      tell(verdict)
    }
  }
  try {
    await Promise.all(Array.from({ length: options.jobs }, work))
  } finally {
    workshop.end()
  }
  return verdicts
}
