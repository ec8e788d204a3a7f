/**
 * One process that calls a storage at random, and records what it called and was answered: each entry is one line of a file of its
 * own, written before the call is made, or before its answer is used. A SIGKILL leaves its last calls open.
 *
 * @module
 */

import { openSync, writeSync } from 'node:fs'
import { recordedStorage } from '../../storages/conformance/testing/recorded-storage.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { RandomCalls } from './random-calls.ts'

/** What a process is to do. */
export interface CallerTask {
  readonly stage:
    | { readonly kind: 'file'; readonly basePath: string }
    | { readonly kind: 'redis'; readonly url: string }
  readonly namespace: string
  /** For its entries. */
  readonly path: string
  readonly caller: string
  readonly seed: number
  readonly calls: number
  readonly outboxes: boolean
}

async function run(task: CallerTask): Promise<void> {
  const { stage, path, caller, seed, calls, outboxes } = task
  const fd = openSync(path, 'a')
  const inner =
    stage.kind === 'file'
      ? new FileStorage({ basePath: stage.basePath, compactionSlackBytes: 64 * 1024 })
      : new RedisStorage({ url: stage.url, commandTimeout: 60_000 })
  const storage = recordedStorage(inner, {
    caller,
    // A double holds nanoseconds for a hundred days only.
    monotonic: () => Number(process.hrtime.bigint() / 100n),
    write: (entry) => void writeSync(fd, `${JSON.stringify(entry)}\n`),
  })
  const handle = await storage.open(task.namespace)
  await new RandomCalls(handle, { caller, seed, calls, outboxes, now: Date.now }).run()
  await handle.close()
}

process.once('disconnect', () => process.exit(1))
process.once('message', async (task: CallerTask) => {
  await run(task)
  process.channel?.unref()
})
