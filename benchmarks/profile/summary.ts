/**
 * What a profile says, in a few lines: which functions spent most, each for itself.
 *
 * @module
 */

import { existsSync, readFileSync } from 'node:fs'
import type { HeapProfiler, Profiler, Runtime } from 'node:inspector'
import type { Results } from '../results/results.ts'
import { figure, table } from '../support/report.ts'
import { profileFile, recordings } from './files.ts'

/** What one function spent. */
export interface Spending {
  /** `name file:line`, or what the engine calls its own doings. */
  readonly where: string
  /** Microseconds or bytes. */
  readonly amount: number
}

/** What is no spending of the work's: rest, and the inspector's own orders. */
const notSpent: readonly string[] = ['(idle)', '(root)', 'dispatch']

function whereOf({ functionName, url, lineNumber }: Runtime.CallFrame): string {
  const name = functionName === '' ? '(anonymous)' : functionName
  if (url === '') return name
  const file = url.replace(/^file:\/\/.*?\/(?=\.bench\/|node_modules\/)/, '').replace(/^\.bench\//, '')
  return `${name} ${file}:${lineNumber + 1}`
}

function summed(parts: Iterable<readonly [Runtime.CallFrame, number]>): Spending[] {
  const amounts = new Map<string, number>()
  for (const [frame, amount] of parts) {
    if (amount === 0 || (frame.url === '' && notSpent.includes(frame.functionName))) continue
    const where = whereOf(frame)
    amounts.set(where, (amounts.get(where) ?? 0) + amount)
  }
  return [...amounts].map(([where, amount]) => ({ where, amount })).sort((a, b) => b.amount - a.amount)
}

/** Microseconds by function, most first. */
export function cpuSpendings({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): Spending[] {
  const frames = new Map(nodes.map((node) => [node.id, node.callFrame]))
  return summed(
    samples.map((id, index) => [frames.get(id) as Runtime.CallFrame, Math.max(0, timeDeltas[index] ?? 0)] as const),
  )
}

/** Bytes by function, most first. */
export function heapSpendings({ head }: HeapProfiler.SamplingHeapProfile): Spending[] {
  const parts: [Runtime.CallFrame, number][] = []
  const left = [head]
  for (let node = left.pop(); node !== undefined; node = left.pop()) {
    parts.push([node.callFrame, node.selfSize])
    left.push(...node.children)
  }
  return summed(parts)
}

/** A table of what spent most, from a file that was recorded. */
function summaryOf(file: string, kind: 'cpu' | 'heap', rows = 25): string {
  const profile: unknown = JSON.parse(readFileSync(file, 'utf8'))
  const spendings =
    kind === 'cpu'
      ? cpuSpendings(profile as Profiler.Profile)
      : heapSpendings(profile as HeapProfiler.SamplingHeapProfile)
  const total = spendings.reduce((sum, { amount }) => sum + amount, 0)
  const said = kind === 'cpu' ? `${figure(total / 1_000)} ms of processor time` : `${figure(total / 1e6)} MB allocated`
  const lines = spendings.slice(0, rows).map(({ where, amount }) => [where, `${figure((amount / total) * 100)} %`])
  return `${said} (${file})\n${table(['function, for itself', 'share'], lines)}`
}

/** Of all profiles of a run, where there are some: not every case has a part that is measured. */
export function* summaries({ series }: Results, folder: string): Generator<string> {
  const told = new Set<string>()
  for (const { scenario, case: one, backend } of series) {
    for (const kind of recordings) {
      const file = profileFile(folder, scenario, one, backend, kind)
      if (told.has(file) || !existsSync(file)) continue
      told.add(file)
      yield `${scenario}, ${one}, ${backend}: ${summaryOf(file, kind)}`
    }
  }
}
