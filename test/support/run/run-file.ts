/**
 * Runs a test file in a process of its own.
 *
 * @module
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants, setPriority } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { FileEnd } from './tap-totals.ts'

/** The project's folder. */
export const root = fileURLToPath(new URL('../../..', import.meta.url))
const preload = new URL('preload.mjs', import.meta.url).href

/** How long a file may take that does not say so itself, by `t.setTimeout` outside of any test, s. */
const timeoutS = 120
/** What tap gets to end by itself, and to say what it was at, before it is ended by force, ms. */
const patienceMs = 10_000

const running = new Set<ChildProcess>()

/** Passes a signal on to all files that run. */
export function endAll(signal: NodeJS.Signals): void {
  for (const child of running) child.kill(signal)
}

/**
 * Runs one to its end; answers what it has written, and how it ended.
 *
 * @param behind - whether others have the processor first
 */
export async function runFile(file: string, behind: boolean): Promise<{ stream: string; end: FileEnd }> {
  const begun = performance.now()
  const child = spawn(process.execPath, ['--enable-source-maps', `--import=${preload}`, file], {
    cwd: root,
    env: { ...process.env, TAP: '1', TAP_TIMEOUT: String(timeoutS) },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  running.add(child)
  if (behind) stepBehind(child)
  let timedOutAfter: number | undefined
  let timer: NodeJS.Timeout | undefined
  const limit = (ms: number): void => {
    clearTimeout(timer)
    if (ms === 0) return
    timer = setTimeout(() => {
      timedOutAfter = Math.round((performance.now() - begun) / 1_000)
      child.kill('SIGKILL')
      // A process that it has started may hold on to it.
      child.stdout!.destroy()
    }, ms + patienceMs)
  }
  limit(timeoutS * 1_000)
  // What tap tells its runner.
  child.on('message', (message: { setTimeout?: number }) => {
    if (typeof message?.setTimeout === 'number') limit(message.setTimeout)
  })
  const chunks: Buffer[] = []
  child.stdout!.on('data', (chunk: Buffer) => chunks.push(chunk))
  const [code, signal] = await once(child, 'close')
  clearTimeout(timer)
  running.delete(child)
  return {
    stream: Buffer.concat(chunks).toString(),
    end: {
      code,
      signal,
      ms: performance.now() - begun,
      ...(timedOutAfter === undefined ? {} : { timedOutAfter }),
    },
  }
}

function stepBehind({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL)
  } catch {
    // It has ended already.
  }
}
