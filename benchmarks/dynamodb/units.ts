/**
 * Request units and requests of each operation, by payload size.
 *
 * @module
 */

import { complete, retry } from '../../src/record.ts'
import type { EnqueueItem, StorageHandle } from '../../src/storage.ts'
import type { DynamoDBStorageOptions } from '../../storages/dynamodb/index.ts'
import { DynamoDBStorage } from '../../storages/dynamodb/index.ts'
import { projectedAttributes } from '../../storages/dynamodb/schema.ts'
import type { Usage } from '../../test/dynamodb/support/meter.ts'
import { Meter } from '../../test/dynamodb/support/meter.ts'
import { LocalDynamoDB } from '../../test/dynamodb/support/server.ts'
import { figure, table } from '../support/report.ts'
import { usdPerMillionReads, usdPerMillionWrites } from './prices.ts'

const jobs = 40
/** Claims that one look serves: what a busy worker of some slots sees. */
const batch = 10
const resultBytes = 1_024
const kilobyte = 1_024
const sizes = [0.5, 4, 100]

let tokens = 0
const token = (): string => `${'t'.repeat(18)}${String(tokens++).padStart(4, '0')}`

function item(id: string, payload: string): EnqueueItem {
  return {
    spec: {
      id,
      incarnation: token(),
      fingerprint: 'f'.repeat(43),
      maxAttempts: 3,
      resultTTL: 3_600_000,
      failureTTL: 60_000,
    },
    payload,
    delayMs: 0,
    rejectMismatch: false,
    lease: null,
    wait: false,
  }
}

/** Usage for one job of each operation. */
async function measure(
  server: LocalDynamoDB,
  tableName: string,
  bytes: number,
  options: Partial<DynamoDBStorageOptions>,
): Promise<Map<string, Usage>> {
  const meter = new Meter({ keys: ['pk'], indexKeys: ['shard', 'due'], projected: projectedAttributes })
  const client = meter.on(server.client())
  const storage = new DynamoDBStorage({ tableName, client, ...options })
  await storage.createTable()
  const handle = await storage.open('bench')
  const payload = 'x'.repeat(bytes)
  const ids = Array.from({ length: jobs }, (_, n) => `vehicle/${String(n).padStart(17, '0')}`)
  const usages = new Map<string, Usage>()
  const note = (name: string) => {
    const usage = meter.take()
    for (const key of ['requests', 'tableWrites', 'indexWrites', 'reads'] as const) usage[key] /= jobs
    usages.set(name, usage)
  }
  await handle.claim({ generation: token(), leaseMs: 1_000, limit: 1 })
  meter.take()

  await handle.enqueue(ids.map((id) => item(id, payload)))
  note('enqueue')
  await handle.enqueue(ids.map((id) => item(id, payload)))
  note('duplicate')
  let leases = await claimAll(handle)
  note('claim')
  await handle.extend(leases.map(({ id, generation }) => ({ id, generation, leaseMs: 60_000 })))
  note('heartbeat')
  await handle.settle(
    leases.map((lease) => ({ ...lease, verdict: retry('a short error', 0) })),
    null,
  )
  note('retry')
  leases = await claimAll(handle)
  meter.take()
  await handle.get(ids)
  note('wait (one look)')
  await handle.settle(
    leases.map((lease) => ({ ...lease, verdict: complete('y'.repeat(resultBytes), 60_000) })),
    null,
  )
  // What is removed behind the verdict belongs to it.
  await handle.close()
  note('complete')
  return usages
}

async function claimAll(handle: StorageHandle): Promise<{ id: string; generation: string }[]> {
  const leases: { id: string; generation: string }[] = []
  while (leases.length < jobs) {
    const generation = token()
    const { jobs: found } = await handle.claim({ generation, leaseMs: 30_000, limit: batch })
    leases.push(...found.map(({ spec }) => ({ id: spec.id, generation })))
  }
  return leases
}

export async function units(): Promise<void> {
  const server = await LocalDynamoDB.start()
  server.wire.oldItems = true
  try {
    const variants: [string, number, Partial<DynamoDBStorageOptions>][] = [
      ...sizes.map((size): [string, number, object] => [`${size} KB`, size * kilobyte, {}]),
      ['4 KB, payload in the record', 4 * kilobyte, { inlinePayloadBytesMax: 40_960 }],
      ['4 KB, payload deleted', 4 * kilobyte, { payloadCleanup: 'delete' }],
    ]
    const columns: Map<string, Usage>[] = []
    for (const [index, [, bytes, options]] of variants.entries()) {
      columns.push(await measure(server, `units-${index}`, bytes, options))
    }
    console.log(
      `## Units of one job, result ${figure(resultBytes / kilobyte)} KB, ${batch} claims a look\n\nwrites of the table + of the index, reads; requests\n`,
    )
    const operations = [...columns[0]!.keys()]
    const cell = ({ tableWrites, indexWrites, reads, requests }: Usage) =>
      `${figure(tableWrites)}+${figure(indexWrites)} W, ${figure(reads)} R; ${figure(requests)}`
    const rows = operations.map((name) => [name, ...columns.map((usages) => cell(usages.get(name)!))])
    const sum = (usages: Map<string, Usage>) => {
      const parts = ['enqueue', 'claim', 'complete'].map((name) => usages.get(name)!)
      const total = (key: 'tableWrites' | 'indexWrites' | 'reads' | 'requests') =>
        parts.reduce((sum, usage) => sum + usage[key], 0)
      return { writes: total('tableWrites') + total('indexWrites'), reads: total('reads'), requests: total('requests') }
    }
    const sums = columns.map(sum)
    rows.push(['job: enqueue, claim, complete: writes', ...sums.map(({ writes }) => figure(writes))])
    rows.push(['job: reads', ...sums.map(({ reads }) => figure(reads))])
    rows.push(['job: requests', ...sums.map(({ requests }) => figure(requests))])
    rows.push([
      'USD per million jobs',
      ...sums.map(({ writes, reads }) => (writes * usdPerMillionWrites + reads * usdPerMillionReads).toFixed(2)),
    ])
    console.log(table(['operation', ...variants.map(([name]) => name)], rows))
    console.log()
  } finally {
    await server.stop()
  }
}
