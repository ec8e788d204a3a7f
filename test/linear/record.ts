/**
 * Records the history of several processes on one storage, some of them killed.
 *
 * @module
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { HistoryEntry, TimedCommand } from '../../storages/conformance/testing/index.ts'
import { Seeded, timedCommands } from '../../storages/conformance/testing/index.ts'
import { Bundled } from '../support/bundled.ts'
import { TemporaryFolder } from '../support/tidy.ts'
import type { CallerTask } from './caller.ts'

/** What is recorded. */
export interface RecordOptions {
  readonly stage: CallerTask['stage']
  readonly namespace: string
  readonly seed: number
  /** Calls in all. */
  readonly ops: number
  /** Processes at the same time. */
  readonly processes: number
  /** Processes that are killed with SIGKILL and replaced. */
  readonly kills: number
  /** Whether results have outboxes. Default: true. */
  readonly outboxes?: boolean
}

/** What was recorded. */
export interface Recording {
  readonly histories: Map<string, TimedCommand[]>
  readonly entries: readonly HistoryEntry[]
  readonly kills: number
  /** Makes histories of entries like these. */
  readonly read: (entries: readonly HistoryEntry[]) => Map<string, TimedCommand[]>
}

/** How much later than its sender's death a request may be carried out, ms: it may lie in the server's buffer. */
const afterDeathMs = 2_000

/** Calls and the storage's clock are one machine's: a millisecond is cut off at each end. */
const skewMs = 1

/** The program that the processes run. */
export const callerProgram = (): Bundled => new Bundled('test/linear/caller.ts')

/** Records one. */
export async function record(program: Bundled, options: RecordOptions): Promise<Recording> {
  const { stage, namespace, seed, ops, processes, kills, outboxes = true } = options
  const folder = new TemporaryFolder('linear')
  const random = new Seeded(seed)
  const deaths = new Map<string, number>()
  const running = new Set<ChildProcess>()
  const paths: string[] = []
  let left = ops
  let killed = 0
  const share = Math.max(1, Math.ceil(ops / processes / 2))

  const start = (): { child: ChildProcess; path: string; calls: number } => {
    const caller = `c${paths.length}`
    const path = join(folder.path, caller)
    const child = program.spawn()
    const calls = Math.min(share, left)
    left -= calls
    paths.push(path)
    running.add(child)
    child.once('exit', (_, signal) => {
      running.delete(child)
      if (signal !== null) deaths.set(caller, Date.now())
    })
    child.send({ stage, namespace, path, caller, seed: random.below(2 ** 31), calls, outboxes } satisfies CallerTask)
    return { child, path, calls }
  }

  /** One of the places: a process after the other, the first ones killed in the middle of their calls. */
  const place = async (): Promise<void> => {
    while (left > 0) {
      const { child, path, calls } = start()
      const ended = once(child, 'exit')
      const doomed = killed < kills
      if (doomed) {
        killed++
        const after = random.below(50_000)
        while (running.has(child) && (statSync(path, { throwIfNoEntry: false })?.size ?? 0) < after) await sleep(1)
        child.kill('SIGKILL')
      }
      const [code, signal] = await ended
      left += calls - callsIn(path)
      // It was done before it could be killed: another will be.
      if (signal === null && doomed) killed--
      if (signal === null && code !== 0) throw new Error(`a caller ended with ${code}`)
    }
  }

  try {
    await Promise.all(Array.from({ length: processes }, place))
    const entries = paths.flatMap(readEntries)
    const deadAt = (caller: string): number => (deaths.get(caller) ?? Date.now()) + afterDeathMs
    const read: Recording['read'] = (given) => timedCommands(given, { skewMs, deadAt })
    return { histories: read(entries), entries, kills: deaths.size, read }
  } finally {
    for (const child of running) child.kill('SIGKILL')
    folder.end()
  }
}

function callsIn(path: string): number {
  return readEntries(path).filter(({ kind }) => kind === 'call').length
}

/** A last line without its end is one that was not yet written: its call was not made, or its answer not used. */
function readEntries(path: string): HistoryEntry[] {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return []
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as HistoryEntry)
}
