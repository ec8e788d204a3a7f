/**
 * `npm run crash -- file --kills N [--seed S] [--durability fsync|os]`: four workers and two producers on one folder, killed
 * with SIGKILL at random instants and started again; then everything acknowledged is looked for.
 *
 * @module
 */

import { spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Queue } from '../../src/index.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { Seeded } from '../support/seeded.ts'
import { namesIn, onlyFolder } from './support/faulty-fs.ts'
import { tempFolder } from './support/temp.ts'

const queueName = 'crash'
const leaseMs = 1_000
const hour = 3_600_000
/** New ids a second; both producers ask for the same ones. */
const idsPerSecond = 500
const drainMaxMs = 120_000

/** What a run of {@link crash} came to. */
export interface CrashReport {
  readonly kills: number
  readonly acknowledged: number
  readonly lost: number
  readonly settledTwice: number
  readonly ranMoreThanOnce: number
  /** Logs that were sealed and compacted meanwhile. */
  readonly compactions: number
  readonly problems: readonly string[]
}

type Role = 'worker' | 'producer'

interface Payload {
  id: string
  filler: string
}

interface Result {
  run: string
}

const serde = {
  serialize: (value: Result) => JSON.stringify(value),
  deserialize: (text: string | Uint8Array) => JSON.parse(String(text)) as Result,
}

function open(folder: string, durability: 'fsync' | 'os') {
  const storage = new FileStorage({ basePath: path.join(folder, 'data'), durability, compactionSlackBytes: 64 * 1024 })
  return new Queue<Payload, Result>({
    storage,
    name: queueName,
    concurrency: 8,
    leaseMs,
    resultTTL: hour,
    resultSerde: serde,
    // A killed worker's attempt counts: none may run out.
    maxAttempts: 1_000_000,
  })
}

/** A line for the parent that survives the writer's death: one small append each. */
function noteTo(folder: string): (line: string) => void {
  const fd = openSync(path.join(folder, 'notes'), 'a')
  return (line) => void writeSync(fd, `${line}\n`)
}

async function worker(folder: string, durability: 'fsync' | 'os'): Promise<void> {
  const note = noteTo(folder)
  const queue = open(folder, durability)
  queue.on('completed', ({ id, result }) => note(`settled ${id} ${result.run}`))
  queue.on('warning', ({ code, message }) => note(`warning ${code} ${message}`))
  queue.on('error', (error) => note(`error ${error.message}`))
  queue.execute(async (job) => {
    const run = `${job.generation}/${job.attempts}`
    if (job.payload.id !== job.id) note(`error payload of ${job.payload.id} with ${job.id}`)
    note(`ran ${job.id} ${run}`)
    await sleep(Math.random() * 5)
    return { run }
  })
  await queue.start()
}

async function producer(folder: string, durability: 'fsync' | 'os', startedAt: number): Promise<void> {
  const note = noteTo(folder)
  const queue = open(folder, durability)
  queue.on('error', (error) => note(`error ${error.message}`))
  const filler = 'x'.repeat(8_000)
  let next = Math.max(0, newest(startedAt) - 20)
  for (;;) {
    const end = newest(startedAt)
    const ids: string[] = []
    for (; next < end; next++) ids.push(`job-${next}`)
    // An old one, too: it must be known.
    ids.push(`job-${Math.floor(Math.random() * end)}`)
    const answers = await queue.enqueueMany(ids.map((id) => ({ id, payload: { id, filler } })))
    for (const [index, id] of ids.entries()) {
      const answer = answers[index]
      if (answer !== undefined && 'status' in answer) note(`acknowledged ${id} ${answer.status}`)
    }
    await sleep(5 + Math.random() * 10)
  }
}

function newest(startedAt: number): number {
  return Math.floor(((Date.now() - startedAt) * idsPerSecond) / 1_000) + 1
}

class Child {
  readonly role: Role
  readonly #args: readonly string[]
  #process: ReturnType<typeof spawn>

  constructor(role: Role, args: readonly string[]) {
    this.role = role
    this.#args = args
    this.#process = this.#start()
  }

  #start() {
    const file = fileURLToPath(import.meta.url)
    const loader = file.endsWith('.ts') ? ['--import', 'tsx'] : []
    return spawn(process.execPath, [...loader, file, '--role', this.role, ...this.#args], {
      stdio: ['ignore', 'inherit', 'inherit'],
    })
  }

  async kill(): Promise<void> {
    const ended = new Promise<void>((resolve) => this.#process.once('exit', () => resolve()))
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    this.#process.kill('SIGKILL')
    await ended
  }

  restart(): void {
    this.#process = this.#start()
  }
}

/** Runs the test. */
export async function crash(kills: number, seed: number, durability: 'fsync' | 'os'): Promise<CrashReport> {
  const random = new Seeded(seed)
  const { path: folder, remove } = tempFolder()
  const startedAt = Date.now()
  const args = ['--folder', folder, '--durability', durability, '--started-at', String(startedAt)]
  const roles: Role[] = ['worker', 'worker', 'worker', 'worker', 'producer', 'producer']
  closeSync(openSync(path.join(folder, 'notes'), 'a'))
  const children = roles.map((role) => new Child(role, args))
  try {
    await sleep(1_000)
    for (let kill = 0; kill < kills; kill++) {
      await sleep(random.below(300))
      const child = random.pick(children)
      await child.kill()
      child.restart()
    }
    await sleep(500)
    for (const child of children) if (child.role === 'producer') await child.kill()
    await drain(folder, durability)
    for (const child of children) await child.kill()
    return await check(folder, durability, kills)
  } finally {
    for (const child of children) await child.kill()
    remove()
  }
}

async function drain(folder: string, durability: 'fsync' | 'os'): Promise<void> {
  const handle = await new FileStorage({ basePath: path.join(folder, 'data'), durability }).open(queueName)
  for (const deadline = Date.now() + drainMaxMs; Date.now() < deadline; await sleep(100)) {
    const { queued, processing, failing } = await handle.stats()
    if (queued === 0 && processing === 0 && failing === 0) break
  }
  await handle.close()
}

async function check(folder: string, durability: 'fsync' | 'os', kills: number): Promise<CrashReport> {
  const acknowledged = new Map<string, number>()
  const settled = new Map<string, Set<string>>()
  const runs = new Map<string, number>()
  const problems: string[] = []
  for (const line of readFileSync(path.join(folder, 'notes'), 'utf8').split('\n')) {
    const [kind, id = '', what = ''] = line.split(' ')
    if (kind === 'acknowledged') acknowledged.set(id, (acknowledged.get(id) ?? 0) + (what === 'queued' ? 1 : 0))
    else if (kind === 'settled') settled.set(id, (settled.get(id) ?? new Set()).add(what))
    else if (kind === 'ran') runs.set(id, (runs.get(id) ?? 0) + 1)
    else if (line !== '') problems.push(line)
  }
  let lost = 0
  let settledTwice = 0
  const handle = await new FileStorage({ basePath: path.join(folder, 'data'), durability }).open(queueName)
  const ids = [...acknowledged.keys()]
  const { records } = await handle.get(ids)
  for (const [index, id] of ids.entries()) {
    const record = records[index]
    if (record?.state !== 'completed' || record.result === null) {
      lost++
      problems.push(`${id} is ${record?.state ?? 'absent'}`)
    } else {
      const winners = (settled.get(id) ?? new Set()).add(serde.deserialize(record.result).run)
      if (winners.size > 1) {
        settledTwice++
        problems.push(`${id} was settled by ${[...winners].join(' and ')}`)
      }
    }
    const created = acknowledged.get(id) ?? 0
    if (created > 1) {
      lost++
      problems.push(`${id} was created ${created} times`)
    }
  }
  await handle.close()
  const ranMoreThanOnce = [...runs.values()].filter((count) => count > 1).length
  const epochs = namesIn(onlyFolder(path.join(folder, 'data'))).map((name) => Number.parseInt(name, 10))
  const compactions = Math.max(...epochs) - 1
  return { kills, acknowledged: acknowledged.size, lost, settledTwice, ranMoreThanOnce, compactions, problems }
}

/** The report in one line. */
export function reportLine(report: CrashReport, seed: number): string {
  const { kills, acknowledged, lost, settledTwice, ranMoreThanOnce, compactions } = report
  return `${kills} kills, ${acknowledged} jobs acknowledged, ${lost} lost, ${settledTwice} settled twice, ${ranMoreThanOnce} ran more than once (${compactions} compactions, seed ${seed})`
}

/** `npm run crash -- file`. */
export async function run(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      kills: { type: 'string', default: '500' },
      seed: { type: 'string' },
      durability: { type: 'string', default: 'fsync' },
      role: { type: 'string' },
      folder: { type: 'string', default: '' },
      'started-at': { type: 'string', default: '0' },
    },
  })
  const durability = values.durability === 'os' ? 'os' : 'fsync'
  if (values.role === 'worker') return worker(values.folder, durability)
  if (values.role === 'producer') return producer(values.folder, durability, Number(values['started-at']))
  const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
  const report = await crash(Number(values.kills), seed, durability)
  for (const problem of report.problems.slice(0, 20)) console.error(problem)
  console.log(reportLine(report, seed))
  if (report.lost > 0 || report.settledTwice > 0) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run(process.argv.slice(2))
