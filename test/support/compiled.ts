/**
 * The sources as JavaScript, in a temporary folder: processes need no loader, and what is to be broken is broken in a copy.
 *
 * @module
 */

import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'esbuild'
import { TemporaryFolder } from './tidy.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A folder of compiled sources. */
export class Compiled {
  /** Holds `node_modules`; programs lie in folders below it. */
  readonly folder: string
  /** The program as it is. */
  readonly program: string
  /** The sources by their path from the root, read once: somebody may be at work on them. */
  readonly sources = new Map<string, string>()
  readonly #temporary = new TemporaryFolder('compiled')

  /** @param paths - folders, from the root, tests in them left out, and files: sources are compiled, what is none is copied */
  constructor(paths: readonly string[]) {
    this.folder = this.#temporary.path
    this.program = join(this.folder, 'sound')
    for (const path of paths) {
      if (statSync(join(root, path)).isDirectory()) this.#compileFolder(path)
      else if (path.endsWith('.ts')) this.#compile(path)
      else cpSync(join(root, path), join(this.program, path))
    }
    writeFileSync(join(this.program, 'package.json'), '{"type":"module"}')
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'))
  }

  #compileFolder(folder: string): void {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) this.#compileFolder(path)
      else if (/(?<!\.test)\.ts$/.test(entry.name)) this.#compile(path)
    }
  }

  #compile(path: string): void {
    const source = readFileSync(join(root, path), 'utf8')
    this.sources.set(path, source)
    writeCompiled(this.program, path, source)
  }

  /** Removes all. */
  end(): void {
    this.#temporary.end()
  }
}

/** Writes one source's JavaScript below a folder. */
export function writeCompiled(to: string, path: string, source: string): void {
  const target = join(to, path.replace(/\.ts$/, '.js'))
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, stripped(source))
}

/** TypeScript as JavaScript, whose imports are of such, too. */
export function stripped(source: string): string {
  const { code } = transformSync(source, {
    loader: 'ts',
    target: 'node20',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  })
  // Imports as esbuild writes them: a line each that begins or ends so, or one awaited.
  return code.replace(/^((?:import|export|\} from) .*?"\.[^"]*|.*\bimport\("\.[^"]*)\.ts"/gm, '$1.js"')
}
