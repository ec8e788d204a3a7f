/**
 * What queues cost that have nothing to do: an hour of their looks, on a clock moved by hand and a service that has nothing.
 *
 * @module
 */

import { Queue } from '../../src/index.ts'
import { VirtualClock } from '../../storages/conformance/virtual-clock.ts'
import { DynamoDBStorage } from '../../storages/dynamodb/index.ts'
import { figure, table } from '../support/report.ts'
import { usdPerMillionReads } from './prices.ts'

const workers = 8
const hours = 1
const secondsOfMonth = 30 * 86_400

/** Answers as an empty table would, and counts. */
class EmptyService {
  readonly config = {}
  looks = 0
  reads = 0
  requests = 0

  async send(command: { constructor: { name: string } }): Promise<object> {
    const { name } = command.constructor
    this.requests++
    if (name === 'QueryCommand') {
      this.looks++
      this.reads += 0.5
    } else if (name === 'GetItemCommand') {
      this.reads += 1
    } else if (name === 'DescribeTimeToLiveCommand') {
      return { TimeToLiveDescription: { TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' } }
    }
    return { $metadata: { attempts: 1 } }
  }
}

export async function idle(): Promise<void> {
  const clock = new VirtualClock()
  const service = new EmptyService()
  const queues = Array.from({ length: workers }, () => {
    const storage = new DynamoDBStorage({ tableName: 'idle', client: service, clock })
    const queue = new Queue<number, number>({ name: 'q', storage, clock, concurrency: 4 })
    queue.execute((job) => job.payload)
    return queue
  })
  for (const queue of queues) await queue.start()
  await clock.advance(60_000)
  const before = { ...service }
  await clock.advance(hours * 3_600_000)
  const seconds = hours * 3_600
  const looks = (service.looks - before.looks) / seconds
  const reads = (service.reads - before.reads) / seconds
  const requests = (service.requests - before.requests) / seconds
  const stopping = Promise.all(queues.map((queue) => queue.stop()))
  await clock.advance(60_000)
  await stopping
  console.log(`## Idle: ${workers} workers, one queue, one shard\n`)
  console.log(
    table(
      ['', 'all', 'a worker'],
      [
        ['looks a second (of the index)', figure(looks), figure(looks / workers)],
        ['requests a second', figure(requests), figure(requests / workers)],
        ['read units a second', figure(reads), figure(reads / workers)],
        ['USD a month', (((reads * secondsOfMonth) / 1e6) * usdPerMillionReads).toFixed(2), ''],
      ],
    ),
  )
  console.log()
}
