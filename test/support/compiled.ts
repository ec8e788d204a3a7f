/**
 * The sources as JavaScript, in a temporary folder: processes that are started by the thousand need no loader, and what is to be
 * broken is broken in a copy.
 *
 * @module
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { atExit, TemporaryFolder } from './tidy.ts'

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

  /** @param folders - what to compile, from the root; tests in them are left out */
  constructor(folders: readonly string[]) {
    this.folder = this.#temporary.path
    this.program = join(this.folder, 'sound')
    for (const folder of folders) this.#compile(folder)
    writeFileSync(join(this.program, 'package.json'), '{"type":"module"}')
    symlinkSync(join(root, 'node_modules'), join(this.folder, 'node_modules'))
  }

  #compile(folder: string): void {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) this.#compile(path)
      else if (/(?<!\.test)\.ts$/.test(entry.name)) {
        const source = readFileSync(join(root, path), 'utf8')
        this.sources.set(path, source)
        writeCompiled(this.program, path, source)
      }
    }
  }

  /** Starts a source as a process of its own, that can be sent messages. */
  spawn(path: string): ChildProcess {
    const entry = join(this.program, path.replace(/\.ts$/, '.js'))
    const child = spawn(process.execPath, [entry], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    child.on('error', () => {})
    // It ends with this process by itself, but not while it is paused.
    const forget = atExit(() => void child.kill('SIGKILL'))
    child.once('exit', forget)
    return child
  }

  /** Removes all. */
  end(): void {
    this.#temporary.end()
  }
}

/** Writes one source's JavaScript below a folder. */
export function writeCompiled(to: string, path: string, source: string): void {
  const { outputText } = ts.transpileModule(source, {
    fileName: path,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      verbatimModuleSyntax: true,
      rewriteRelativeImportExtensions: true,
    },
  })
  const target = join(to, path.replace(/\.ts$/, '.js'))
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, outputText)
}
