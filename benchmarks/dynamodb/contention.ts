/**
 * Eight workers on one queue, whose index lags: claims that others were faster at, requests and units of a job, and how far the
 * order is from first in, first out.
 *
 * @module
 */

import { Queue } from '../../src/index.ts'
import type { DynamoDBStorageOptions } from '../../storages/dynamodb/index.ts'
import { DynamoDBStorage } from '../../storages/dynamodb/index.ts'
import { projectedAttributes } from '../../storages/dynamodb/schema.ts'
import { Meter } from '../../test/dynamodb/support/meter.ts'
import { LocalDynamoDB } from '../../test/dynamodb/support/server.ts'
import { figure, table } from '../support/report.ts'

const workers = 8
const concurrency = 4
/** What a handler takes: the workers must not all be at the index all the time. */
const handlerMs = 20

async function round(jobs: number, lagMs: number, options: Partial<DynamoDBStorageOptions>): Promise<string[]> {
  const server = await LocalDynamoDB.start()
  try {
    server.wire.oldItems = true
    server.wire.index = { lagMs }
    const meter = new Meter({ keys: ['pk'], indexKeys: ['shard', 'due'], projected: projectedAttributes })
    const tableName = 'contention'
    const storages = Array.from({ length: workers }, () => {
      return new DynamoDBStorage({ tableName, client: meter.on(server.client()), requestTimeout: 60_000, ...options })
    })
    await storages[0]!.createTable()
    const queues = storages.map((storage) => new Queue<number, number>({ name: 'q', storage, concurrency }))
    const requests = Array.from({ length: jobs }, (_, payload) => ({ id: `job ${payload}`, payload }))
    while (requests.length > 0) await queues[0]!.enqueueMany(requests.splice(0, 100))
    meter.take()
    let left = jobs
    let place = 0
    let displaced = 0
    await new Promise<void>((resolve) => {
      for (const queue of queues) {
        queue.on('completed', () => {
          if (--left === 0) resolve()
        })
        queue.execute(async ({ payload }) => {
          displaced += Math.abs(payload - place++)
          await new Promise((resolve) => setTimeout(resolve, handlerMs))
          return payload
        })
        void queue.start()
      }
    })
    const usage = meter.take()
    for (const queue of queues) await queue.stop()
    const lost = storages.reduce((sum, { counters }) => sum + counters.claimsLost, 0)
    return [
      lost / jobs,
      usage.requests / jobs,
      (usage.tableWrites + usage.indexWrites) / jobs,
      usage.reads / jobs,
      displaced / jobs,
    ].map(figure)
  } finally {
    await server.stop()
  }
}

export async function contention(jobs: number): Promise<void> {
  console.log(
    `## ${workers} workers of ${concurrency} slots, ${jobs} jobs of ${handlerMs} ms, claimed and completed (enqueued before)\n`,
  )
  const rows: string[][] = []
  for (const shards of [1, 4]) {
    for (const lagMs of [0, 20, 100]) {
      rows.push([`${lagMs} ms, ${shards} shard${shards === 1 ? '' : 's'}`, ...(await round(jobs, lagMs, { shards }))])
    }
  }
  console.log(
    table(
      ['index lag', 'failed claims a job', 'requests a job', 'writes a job', 'reads a job', 'places from FIFO'],
      rows,
    ),
  )
  console.log()
}
