/**
 * How long after an enqueue in this process an idle worker in another process has claimed the job.
 *
 * @module
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { StorageHandle } from '../../src/storage.ts'
import { FileStorage } from '../../storages/file/index.ts'

/** Milliseconds from before the enqueue to after the claim, one for each round. */
export async function wakeUps(
  basePath: string,
  rounds: number,
  enqueue: (handle: StorageHandle, index: number) => Promise<void>,
): Promise<number[]> {
  const file = fileURLToPath(import.meta.url)
  const loader = file.endsWith('.ts') ? ['--import', 'tsx'] : []
  const worker = fork(file, [basePath], { execArgv: loader })
  const handle = await new FileStorage({ basePath }).open('wake')
  await once(worker, 'message')
  const times: number[] = []
  for (let round = 0; round < rounds; round++) {
    const claimed = once(worker, 'message')
    const begun = process.hrtime.bigint()
    await enqueue(handle, round)
    const [at] = (await claimed) as [string]
    times.push(Number(BigInt(at) - begun) / 1e6)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  worker.disconnect()
  await once(worker, 'exit')
  await handle.close()
  return times
}

/** In the other process: claims whenever it is told that something is due. */
async function idleWorker(basePath: string): Promise<void> {
  const handle = await new FileStorage({ basePath }).open('wake')
  let claims = 0
  const claim = async () => {
    const generation = `worker-${process.pid}-${claims++}`
    const { jobs } = await handle.claim({ generation, leaseMs: 60_000, limit: 10 })
    if (jobs.length > 0) process.send?.(String(process.hrtime.bigint()))
  }
  handle.watch((hint) => {
    if (hint.type === 'due') void claim()
  })
  process.on('disconnect', () => process.exit())
  process.send?.('ready')
}

if (process.argv[1] === fileURLToPath(import.meta.url) && process.send !== undefined) {
  await idleWorker(process.argv[2] ?? '')
}
