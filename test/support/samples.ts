/**
 * Code blocks of the docs as programs: found, pointed at the sources, run as a reader would run them.
 *
 * @module
 */

import { spawn } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { Compiled, stripped } from './compiled.ts'

/** The project's folder. */
export const root = resolve(import.meta.dirname, '../..')

/** A block, and what it must print where a ```text block follows. */
export interface Sample {
  readonly line: number
  readonly code: string
  readonly output: string | null
}

/** The blocks of one language. */
export function samplesOf(markdown: string, language: 'ts' | 'js'): Sample[] {
  const block = new RegExp(
    `^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`\\n?(?:\\s*\`\`\`text\\n([\\s\\S]*?)^\`\`\`$)?`,
    'gm',
  )
  return [...markdown.matchAll(block)].map((match) => ({
    line: markdown.slice(0, match.index).split('\n').length,
    code: match[1] as string,
    output: match[2] ?? null,
  }))
}

/** How a program went. */
export interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs samples as programs; what an installed package would resolve is taken from its sources, for nothing may be built yet. */
export class SampleRunner {
  readonly #compiled = new Compiled(['src', 'storages', 'test/support/vpic', 'test/vin/vins.json'])
  #count = 0

  /**
   * Runs one in a process of its own, for a minute at most.
   *
   * @throws for what the package does not export
   */
  async run(code: string, env: Record<string, string> = {}): Promise<Ran> {
    const { program } = this.#compiled
    const file = join(program, `sample-${this.#count++}.js`)
    const imports = (await sourced(code, program)).replace(/from '\.\/([^']*)\.ts'/g, `from '${program}/$1.js'`)
    await writeFile(file, stripped(imports))
    return await runProgram(file, env)
  }

  /** Removes all. */
  end(): void {
    this.#compiled.end()
  }
}

async function sourced(code: string, program: string): Promise<string> {
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, { default?: string }>
  }
  return code.replace(/from 'askonce([^']*)'/g, (_, subpath: string) => {
    const target = exports[`.${subpath}`]?.default
    if (target === undefined) throw new Error(`askonce${subpath} is not exported`)
    return `from ${JSON.stringify(join(program, target.replace('./dist/', '')))}`
  })
}

function runProgram(file: string, env: Record<string, string>): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const { TAP: _, ...inherited } = process.env
    const child = spawn(process.execPath, [file], {
      cwd: root,
      env: { ...inherited, ...env },
      timeout: 60_000,
      killSignal: 'SIGKILL',
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}
