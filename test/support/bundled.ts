/**
 * A program as one file of JavaScript, in a temporary folder: processes that are started by the thousand need no loader, and no
 * search for a hundred modules.
 *
 * @module
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { atExit, TemporaryFolder } from './tidy.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** A program, and the packages that it uses. */
export class Bundled {
  readonly #temporary = new TemporaryFolder('bundled')
  readonly #file = join(this.#temporary.path, 'program.mjs')

  /** @param path - its source, from the root; what it reads beside modules is not found by its own place */
  constructor(path: string) {
    buildSync({
      entryPoints: [join(root, path)],
      outfile: this.#file,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      // Packages that are CommonJS ask for Node's modules so.
      banner: { js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);" },
    })
  }

  /** Starts it as a process that can be sent messages. */
  spawn(): ChildProcess {
    const child = spawn(process.execPath, [this.#file], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    child.on('error', () => {})
    // It ends with this process by itself, but not while it is paused.
    const forget = atExit(() => void child.kill('SIGKILL'))
    child.once('exit', forget)
    return child
  }

  /** Removes it. */
  end(): void {
    this.#temporary.end()
  }
}
