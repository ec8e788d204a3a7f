/**
 * Runs a test file in a process of its own.
 *
 * @module
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { TemporaryFolder } from '../tidy.ts'
import type { FileEnd } from './tap-totals.ts'

/** The project's folder. */
export const root = fileURLToPath(new URL('../../..', import.meta.url))
const beside = (name: string): string => new URL(name, import.meta.url).href
const imports = ['preload.mjs', `guard.mjs?runner=${process.pid}`].map((name) => `--import=${beside(name)}`)

/** How long a file may take that does not say so itself, by `t.setTimeout` outside of any test, s. */
const timeoutS = 120
/** What tap gets to end by itself, and to say what it was at, before it is ended by force, ms. */
const patienceMs = 10_000
/** What a file gets to tidy up after a signal, ms. */
const tidyMs = 5_000
/** How long what a file has started may hold on to its output when it has ended itself, ms. */
const lingerMs = 2_000
/** How much a file may write, MB. */
const outputMb = 64
/** Timers can't wait any longer, ms. */
const longestMs = 2 ** 31 - 1

const running = new Set<ChildProcess>()

/** Passes a signal on to all files that run; soon they will have ended. */
export function endAll(signal: NodeJS.Signals): void {
  for (const child of running) {
    child.kill(signal)
    setTimeout(() => child.kill('SIGKILL'), tidyMs).unref()
  }
}

/**
 * Runs one to its end; answers what it has written, and how it ended.
 *
 * @param behind - whether others have the processor first
 */
export async function runFile(file: string, behind: boolean): Promise<{ stream: string; end: FileEnd }> {
  const begun = performance.now()
  const child = spawn(process.execPath, ['--enable-source-maps', ...imports, file], {
    cwd: root,
    env: environment(),
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  running.add(child)
  if (behind) stepBehind(child)
  let ended: string | undefined
  const stop = (why: string): void => {
    ended ??= why
    child.kill('SIGKILL')
  }
  let timer: NodeJS.Timeout | undefined
  const limit = (ms: number): void => {
    clearTimeout(timer)
    if (ms === 0) return
    const late = (): void => stop(`it took ${Math.round((performance.now() - begun) / 1_000)} s`)
    timer = setTimeout(late, Math.min(ms + patienceMs, longestMs))
  }
  limit(timeoutS * 1_000)
  // What tap tells its runner.
  child.on('message', (message: { setTimeout?: number } | null) => {
    if (typeof message?.setTimeout === 'number') limit(message.setTimeout)
  })
  const chunks: Buffer[] = []
  let room = outputMb * 1e6
  child.stdout!.on('data', (chunk: Buffer) => {
    room -= chunk.length
    if (room >= 0) chunks.push(chunk)
    else stop(`it wrote more than ${outputMb} MB`)
  })
  const closed = once(child, 'close')
  const [code, signal] = await once(child, 'exit')
  clearTimeout(timer)
  await Promise.race([closed, pause(lingerMs, null, { ref: false })])
  // A process that it has started may hold on to it.
  child.stdout!.destroy()
  running.delete(child)
  return {
    stream: Buffer.concat(chunks).toString(),
    end: { code, signal, ms: performance.now() - begun, ...(ended === undefined ? {} : { ended }) },
  }
}

let temporary: TemporaryFolder | undefined

/**
 * Ours, but for tap's options: `TAP_GREP` would leave tests out, and they would count as skipped. And with a folder for temporary
 * files that goes with us, whatever becomes of theirs.
 */
function environment(): NodeJS.ProcessEnv {
  temporary ??= new TemporaryFolder('test')
  const kept = Object.entries(process.env).filter(([name]) => !/^_?TAP_/.test(name))
  return { ...Object.fromEntries(kept), TAP: '1', TAP_TIMEOUT: String(timeoutS), TMPDIR: temporary.path }
}

function stepBehind({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // It has ended already.
  }
}
