/**
 * `npm run crash -- redis --kills N [--seed S] [--cycles C] [--fsync always|everysec]`: four workers and two producers on one
 * Redis, killed with SIGKILL at random instants and started again; then, with `--cycles`, so many times each of what befalls
 * servers: SIGSTOP, SIGKILL and a restart from the append-only file, half-open connections, SCRIPT FLUSH. Then everything
 * acknowledged is looked for.
 *
 * @module
 */

import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { Queue } from '../../src/index.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { RedisServer } from '../support/redis-server.ts'
import { Seeded } from '../support/seeded.ts'
import { FaultyProxy } from './proxy.ts'

const queueName = 'crash'
const leaseMs = 1_000
const hour = 3_600_000
/** New ids a second; both producers ask for the same ones. */
const idsPerSecond = 500
const drainMaxMs = 120_000
/** After a trouble the next job must be done within this. */
const progressMaxMs = 10_000

/** What befalls the server. */
type Trouble = 'stop' | 'kill' | 'half-open' | 'flush'

const troubles: readonly Trouble[] = ['stop', 'kill', 'half-open', 'flush']

/** What is done to whom, and how often. */
export interface CrashOptions {
  readonly kills: number
  readonly seed: number
  /** Of each trouble of the server, after the kills. Default: 0. */
  readonly cycles?: number
  /** Redis's `appendfsync`. Default: `always`. */
  readonly fsync?: 'always' | 'everysec'
  /** Default: all. */
  readonly troubles?: readonly Trouble[]
}

/** What a run of {@link crash} came to. */
export interface CrashReport {
  readonly kills: number
  readonly cycles: number
  readonly acknowledged: number
  readonly lost: number
  readonly settledTwice: number
  readonly ranMoreThanOnce: number
  /** Times that nothing went on for ten seconds after a trouble. */
  readonly stalls: number
  readonly problems: readonly string[]
}

type Role = 'worker' | 'producer'

interface Payload {
  id: string
}

interface Result {
  run: string
}

function open(url: string) {
  return new Queue<Payload, Result>({
    storage: new RedisStorage({ url, commandTimeout: 1_000, connectTimeout: 1_000, lazyConnect: true }),
    name: queueName,
    concurrency: 8,
    leaseMs,
    resultTTL: hour,
    // A killed worker's attempt counts: none may run out.
    maxAttempts: 1_000_000,
  })
}

/** A line for the parent that survives the writer's death: one small append each. */
function noteTo(folder: string): (line: string) => void {
  const fd = openSync(path.join(folder, 'notes'), 'a')
  return (line) => void writeSync(fd, `${line}\n`)
}

async function worker(folder: string, url: string): Promise<void> {
  const note = noteTo(folder)
  const queue = open(url)
  queue.on('completed', ({ id, result }) => note(`settled ${id} ${result.run}`))
  queue.on('error', () => {})
  queue.execute(async (job) => {
    const run = `${job.generation}/${job.attempts}`
    if (job.payload.id !== job.id) note(`problem payload of ${job.payload.id} with ${job.id}`)
    note(`ran ${job.id} ${run}`)
    await sleep(Math.random() * 5)
    return { run }
  })
  await queue.start()
}

async function producer(folder: string, url: string, startedAt: number): Promise<void> {
  const note = noteTo(folder)
  const queue = open(url)
  queue.on('error', () => {})
  let next = Math.max(0, newest(startedAt) - 20)
  for (;;) {
    const end = newest(startedAt)
    const ids: string[] = []
    for (; next < end && ids.length < 500; next++) ids.push(`job-${next}`)
    // An old one, too: it must be known.
    ids.push(`job-${Math.floor(Math.random() * next)}`)
    // What fails is not acknowledged: nothing is claimed about it.
    const answers = await queue.enqueueMany(ids.map((id) => ({ id, payload: { id } }))).catch(() => [])
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
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return
    const ended = new Promise<void>((resolve) => this.#process.once('exit', () => resolve()))
    this.#process.kill('SIGKILL')
    await ended
  }

  restart(): void {
    this.#process = this.#start()
  }
}

/** Runs the test. */
export async function crash(options: CrashOptions): Promise<CrashReport> {
  const { kills, seed, cycles = 0, fsync = 'always' } = options
  const random = new Seeded(seed)
  const folder = mkdtempSync(path.join(tmpdir(), 'askonce-crash-'))
  const server = await RedisServer.start({ appendonly: true, appendfsync: fsync })
  const proxy = await FaultyProxy.start(server.port)
  const args = ['--folder', folder, '--url', proxy.url, '--started-at', String(Date.now())]
  const roles: Role[] = ['worker', 'worker', 'worker', 'worker', 'producer', 'producer']
  const notes = path.join(folder, 'notes')
  closeSync(openSync(notes, 'a'))
  const problems: string[] = []
  /** Whether a job is settled anew before long. */
  const progress = async (): Promise<boolean> => {
    const from = statSync(notes).size
    for (const deadline = Date.now() + progressMaxMs; Date.now() < deadline; await sleep(20)) {
      if (readFileSync(notes).subarray(from).includes('settled ')) return true
    }
    return false
  }
  const children = roles.map((role) => new Child(role, args))
  try {
    if (!(await progress())) problems.push('nothing began')
    for (let kill = 0; kill < kills; kill++) {
      await sleep(random.below(300))
      const child = random.pick(children)
      await child.kill()
      child.restart()
    }
    for (const trouble of options.troubles ?? troubles) {
      for (let cycle = 0; cycle < cycles; cycle++) {
        await befall(trouble, server, proxy, random)
        // Half-open connections are found out by commandTimeout; whatever it was, all must get going again.
        if (!(await progress()))
          problems.push(`nothing went on within ${progressMaxMs} ms after ${trouble} ${cycle + 1}`)
        await sleep(200 + random.below(300))
      }
    }
    await progress()
    for (const child of children) if (child.role === 'producer') await child.kill()
    await drain(server.url)
    for (const child of children) await child.kill()
    const report = await check(folder, server.url, kills, cycles)
    return { ...report, stalls: problems.length, problems: [...problems, ...report.problems] }
  } finally {
    for (const child of children) await child.kill()
    await proxy.stop()
    await server.dispose()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function befall(trouble: Trouble, server: RedisServer, proxy: FaultyProxy, random: Seeded): Promise<void> {
  switch (trouble) {
    case 'stop':
      server.pause()
      // Sometimes longer than a lease, and than a call may take.
      await sleep(random.below(2_000))
      server.resume()
      return
    case 'kill':
      await server.restart('kill')
      return
    case 'half-open':
      if (random.chance(0.5)) {
        proxy.deaden()
      } else {
        proxy.mode = random.pick(['stall', 'mute'])
        await sleep(random.below(1_500))
        proxy.mode = 'pass'
        proxy.deaden()
      }
      return
    case 'flush':
      await server.call('SCRIPT', 'FLUSH')
      return
  }
}

async function drain(url: string): Promise<void> {
  const handle = await new RedisStorage({ url }).open(queueName)
  for (const deadline = Date.now() + drainMaxMs; Date.now() < deadline; await sleep(100)) {
    const { queued, processing, failing } = await handle.stats()
    if (queued === 0 && processing === 0 && failing === 0) break
  }
  await handle.close()
}

async function check(folder: string, url: string, kills: number, cycles: number): Promise<CrashReport> {
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
  const handle = await new RedisStorage({ url }).open(queueName)
  const ids = [...acknowledged.keys()]
  const { records } = await handle.get(ids)
  for (const [index, id] of ids.entries()) {
    const record = records[index]
    const created = acknowledged.get(id) ?? 0
    if (record?.state !== 'completed' || record.result === null) {
      lost++
      problems.push(`${id} is ${record?.state ?? 'absent'}`)
      continue
    }
    if (created > 1) {
      lost++
      problems.push(`${id} was created ${created} times`)
    }
    const winners = (settled.get(id) ?? new Set()).add((JSON.parse(String(record.result)) as Result).run)
    if (winners.size > 1) {
      settledTwice++
      problems.push(`${id} was settled by ${[...winners].join(' and ')}`)
    }
  }
  await handle.close()
  const ranMoreThanOnce = [...runs.values()].filter((count) => count > 1).length
  return { kills, cycles, acknowledged: acknowledged.size, lost, settledTwice, ranMoreThanOnce, stalls: 0, problems }
}

/** The report in one line. */
export function reportLine(report: CrashReport, seed: number): string {
  const { kills, cycles, acknowledged, lost, settledTwice, ranMoreThanOnce, stalls } = report
  const more = cycles === 0 ? '' : `${cycles} cycles each of the server's troubles, `
  return `${kills} kills, ${more}${acknowledged} jobs acknowledged, ${lost} lost, ${settledTwice} settled twice, ${ranMoreThanOnce} ran more than once, ${stalls} stalls (seed ${seed})`
}

/** `npm run crash -- redis`. */
export async function run(argv: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      kills: { type: 'string', default: '500' },
      cycles: { type: 'string', default: '0' },
      seed: { type: 'string' },
      fsync: { type: 'string', default: 'always' },
      troubles: { type: 'string' },
      role: { type: 'string' },
      folder: { type: 'string', default: '' },
      url: { type: 'string', default: '' },
      'started-at': { type: 'string', default: '0' },
    },
  })
  if (values.role === 'worker') return worker(values.folder, values.url)
  if (values.role === 'producer') return producer(values.folder, values.url, Number(values['started-at']))
  const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed)
  const fsync = values.fsync === 'everysec' ? 'everysec' : 'always'
  const chosen = troubles.filter((trouble) => values.troubles?.split(',').includes(trouble) ?? true)
  const report = await crash({
    kills: Number(values.kills),
    cycles: Number(values.cycles),
    seed,
    fsync,
    troubles: chosen,
  })
  for (const problem of report.problems.slice(0, 20)) console.error(problem)
  console.log(reportLine(report, seed))
  if (report.lost > 0 || report.settledTwice > 0 || report.stalls > 0) process.exitCode = 1
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await run(process.argv.slice(2))
