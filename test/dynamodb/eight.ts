/**
 * Many processes on one table: each enqueues all the jobs and works on them. Every job must be settled once, however often it
 * may have run.
 *
 *     node --import tsx test/dynamodb/eight.ts [--processes 8] [--jobs 2000] [--lag 20] [--kill 0]
 *
 * `--lag`: ms that the index is behind. `--kill`: processes killed with -9 on the way, and replaced.
 *
 * @module
 */

import type { ChildProcess } from 'node:child_process'
import { fork } from 'node:child_process'
import { parseArgs } from 'node:util'
import { Queue } from '../../src/index.ts'
import { DynamoDBStorage } from '../../storages/dynamodb/index.ts'
import { whole } from '../support/arguments.ts'
import { typescript } from '../support/typescript.ts'
import { clientConfig, LocalDynamoDB } from './support/server.ts'

export interface EightOptions {
  readonly processes: number
  readonly jobs: number
  readonly lagMs?: number
  readonly kill?: number
}

export interface EightReport {
  /** Jobs by how often they were settled. */
  readonly settledOnce: number
  readonly settledTwice: number
  readonly unsettled: number
  /** Enqueues answered `queued`: one for each job. */
  readonly queued: number
  readonly executed: number
  readonly claimsLost: number
  readonly killed: number
  readonly ms: number
}

type Message =
  | { readonly type: 'completed'; readonly ids: readonly string[] }
  | { readonly type: 'queued'; readonly count: number }
  | { readonly type: 'end'; readonly executed: number; readonly claimsLost: number }

/** Runs the processes to their end. */
export async function eight({ processes, jobs, lagMs, kill = 0 }: EightOptions): Promise<EightReport> {
  const server = await LocalDynamoDB.start()
  const children = new Set<ChildProcess>()
  try {
    const tableName = 'eight'
    const storage = new DynamoDBStorage({ tableName, client: server.client() })
    await storage.createTable()
    server.wire.oldItems = true
    if (lagMs !== undefined) server.wire.index = { lagMs }
    const settled = new Map<string, number>()
    let queued = 0
    let executed = 0
    let claimsLost = 0
    let killed = 0
    const begun = performance.now()
    let finish!: () => void
    const allSettled = new Promise<void>((resolve) => {
      finish = resolve
    })
    const start = (): ChildProcess => {
      const child = fork(import.meta.filename, ['--child', server.endpoint, tableName, String(jobs)], {
        execArgv: ['--no-warnings', ...typescript],
      })
      children.add(child)
      child.on('exit', () => children.delete(child))
      child.on('message', (message: Message) => {
        if (message.type === 'queued') queued += message.count
        else if (message.type === 'end') {
          executed += message.executed
          claimsLost += message.claimsLost
        } else {
          for (const id of message.ids) settled.set(id, (settled.get(id) ?? 0) + 1)
          if (killed < kill && settled.size > (jobs / (kill + 1)) * (killed + 1)) {
            killed++
            const [victim] = children
            victim?.kill('SIGKILL')
            start()
          }
          if (settled.size === jobs) finish()
        }
      })
      return child
    }
    for (let count = 0; count < processes; count++) start()
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, 240_000)
    })
    // Of a process that is killed, what it settled last may be told to nobody: then the table says so.
    const check = setInterval(async () => {
      if (kill > 0 && (await left(storage, jobs)) === 0) finish()
    }, 1_000)
    await Promise.race([allSettled, late])
    clearTimeout(timer)
    clearInterval(check)
    await Promise.all(
      [...children].map(
        (child) =>
          new Promise((resolve) => {
            child.once('exit', resolve)
            child.send('stop')
          }),
      ),
    )
    const counts = [...settled.values()]
    return {
      settledOnce: counts.filter((count) => count === 1).length,
      settledTwice: counts.filter((count) => count > 1).length,
      unsettled: await left(storage, jobs),
      queued,
      executed,
      claimsLost,
      killed,
      ms: performance.now() - begun,
    }
  } finally {
    for (const child of children) child.kill('SIGKILL')
    await server.stop()
  }
}

function ids(jobs: number): string[] {
  return Array.from({ length: jobs }, (_, n) => `job ${n}`)
}

/** Jobs that are not completed. */
async function left(storage: DynamoDBStorage, jobs: number): Promise<number> {
  const handle = await storage.open('q')
  const { records } = await handle.get(ids(jobs))
  await handle.close()
  return records.filter((record) => record?.state !== 'completed').length
}

async function child(endpoint: string, tableName: string, jobs: number): Promise<void> {
  const storage = new DynamoDBStorage({
    tableName,
    clientConfig: clientConfig(endpoint),
    grace: 500,
    // dynalite and all processes share the machine: under its load an answer may take long.
    requestTimeout: 60_000,
  })
  const queue = new Queue<number, number>({ name: 'q', storage, concurrency: 10, leaseMs: 15_000, maxAttempts: 10 })
  let done: string[] = []
  const tell = (): void => {
    if (done.length > 0) process.send?.({ type: 'completed', ids: done })
    done = []
  }
  queue.on('completed', ({ id }) => {
    done.push(id)
    if (done.length === 1) setImmediate(tell)
  })
  queue.execute((job) => job.payload)
  process.on('message', async () => {
    await queue.stop()
    tell()
    const { executed } = queue.counters
    process.send?.({ type: 'end', executed, claimsLost: storage.counters.claimsLost }, () => process.disconnect())
  })
  await queue.start()
  let queued = 0
  const requests = ids(jobs).map((id, payload) => ({ id, payload }))
  while (requests.length > 0) {
    const answers = await queue.enqueueMany(requests.splice(0, 100))
    queued += answers.filter(({ status }) => status === 'queued').length
  }
  process.send?.({ type: 'queued', count: queued })
}

const [first, ...rest] = process.argv.slice(2)
if (process.argv[1] === import.meta.filename) {
  if (first === '--child') {
    await child(rest[0]!, rest[1]!, Number(rest[2]))
  } else {
    const { values } = parseArgs({
      options: {
        processes: { type: 'string', default: '8' },
        jobs: { type: 'string', default: '2000' },
        lag: { type: 'string' },
        kill: { type: 'string', default: '0' },
      },
    })
    const report = await eight({
      processes: whole(values, 'processes', 1),
      jobs: whole(values, 'jobs', 1),
      ...(values.lag === undefined ? {} : { lagMs: whole(values, 'lag') }),
      kill: whole(values, 'kill'),
    })
    console.log(report)
    if (report.settledTwice > 0 || report.unsettled > 0) process.exitCode = 1
  }
}
