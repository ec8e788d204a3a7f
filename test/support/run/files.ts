/**
 * Which test files there are, and in which order they run.
 *
 * @module
 */

import { readdirSync, statSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { root } from './run-file.ts'

/**
 * Those that are asked for, files or folders; all if none is. From the root.
 *
 * @throws RangeError in a line for what is no test file and no folder of such
 */
export function testFiles(asked: readonly string[]): string[] {
  const found = (asked.length === 0 ? [join(root, 'test')] : asked).flatMap((path) => {
    const files = filesAt(resolve(path))
    if (files.length === 0) throw new RangeError(`there is no test file: ${path}`)
    return files
  })
  return [...new Set(found)].map((path) => relative(root, path).replaceAll(sep, '/')).sort()
}

function filesAt(path: string): string[] {
  const stat = statSync(path, { throwIfNoEntry: false })
  const names = stat?.isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : []
  return (stat?.isFile() ? [path] : names.map((name) => join(path, name))).filter((file) => file.endsWith('.test.ts'))
}

/**
 * Files that mostly wait, for real time to pass or for other processes: they run beside those that compute. Of both sorts those
 * that take longest begin, so that in the end nothing long is left over. What is not named here takes less than some 5 s.
 */
export const longest = {
  waiting: [
    'test/redis/scenarios.test.ts',
    'test/file/conformance-processes.test.ts',
    'test/redis/crash.test.ts',
    'test/redis/conformance-plain.test.ts',
    'test/file/conformance.test.ts',
    'test/redis/conformance-partitions.test.ts',
    'test/dynamodb/processes.test.ts',
    'test/redis/conformance-cluster.test.ts',
    'test/http/matrix.test.ts',
    'test/conformance/reference.test.ts',
    'test/conformance/memory.test.ts',
    'test/file/full-disk.test.ts',
    'test/redis/conformance-ioredis5.test.ts',
    'test/dynamodb/faults.test.ts',
    'test/docs/samples.test.ts',
    'test/runner.test.ts',
    'test/redis/keys.test.ts',
    'test/browser/decode.test.ts',
    'test/redis/faults.test.ts',
    'test/redis/waking.test.ts',
    'test/queue/process.test.ts',
    'test/vin/demo.test.ts',
    'test/queue/outbox-kill.test.ts',
    'test/redis/time.test.ts',
  ],
  computing: [
    'test/dynamodb/conformance-plain.test.ts',
    'test/dynamodb/conformance-lost.test.ts',
    'test/sim/mutants.test.ts',
    'test/file/crash-points.test.ts',
    'test/file/crash.test.ts',
    'test/redis/random.test.ts',
    'test/dynamodb/random.test.ts',
    'test/chaos/chaos.test.ts',
    'test/sim/simulation.test.ts',
    'test/sim/model.test.ts',
    'test/file/compaction.test.ts',
    'test/linear/processes.test.ts',
  ],
}

/** The files by what they do, in order. */
export function inOrder(files: readonly string[]): { computing: string[]; waiting: string[] } {
  const named = (names: readonly string[]): string[] => names.filter((name) => files.includes(name))
  const waiting = named(longest.waiting)
  const first = named(longest.computing)
  const rest = files.filter((file) => !waiting.includes(file) && !first.includes(file))
  return { waiting, computing: [...first, ...rest] }
}
