/**
 * A history with every kind of line and every shape of record, to be kept as files: what a format was must be read for ever,
 * and what it is must not change by accident. `npx tsx test/file/support/golden.ts FORMAT` writes the files of
 * `test/file/golden/FORMAT` anew, by the code as it is: to be done once, when a format is made. Those of format 1 were written by
 * the last version of askonce that wrote format 1.
 */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from '../../../src/machine.ts'
import type { Encoded, Verdict } from '../../../src/record.ts'
import { complete, fail, release, retry } from '../../../src/record.ts'
import { VirtualClock } from '../../../storages/conformance/index.ts'
import type { LogEntry } from '../../../storages/file/entries.ts'
import { nodeFileSystem } from '../../../storages/file/file-system.ts'
import { Folder, folderName } from '../../../storages/file/folder.ts'
import { FileStorage } from '../../../storages/file/index.ts'
import { Change, ReplicatedLog } from '../../../storages/file/replicated-log.ts'
import { writeSnapshot } from '../../../storages/file/snapshot.ts'
import { tempFolder } from './temp.ts'

const golden = fileURLToPath(new URL('../golden', import.meta.url))
/** Logs are no files that git keeps by their own name. */
const suffix = '.txt'
const expectedName = 'expected.json'
const namespace = 'golden'

const startAt = 1_800_000_000_000
const minute = 60_000
const hour = 60 * minute

interface Job {
  readonly payload?: Encoded
  readonly fingerprint?: string
  readonly maxAttempts?: number
  readonly delayMs?: number
  readonly rejectMismatch?: boolean
  /** Inline: the generation of the lease. */
  readonly lease?: string
  readonly refresh?: true
}

/** Entries one after the other, each some ms after the one before. */
class History {
  readonly entries: LogEntry[] = []
  readonly ids = new Set<string>()
  #now: number
  #incarnations = 0

  constructor(now: number) {
    this.#now = now
  }

  get now(): number {
    return this.#now
  }

  wait(ms: number): void {
    this.#now += ms
  }

  command(id: string, command: Command): void {
    this.ids.add(id)
    this.entries.push({ kind: 'command', id, command, now: this.#now })
    this.#now += 10
  }

  hold(ms: number): void {
    this.entries.push({ kind: 'hold', ms, now: this.#now })
    this.#now += 10
  }

  enqueue(id: string, job: Job = {}): void {
    const { payload = `{"id":${this.ids.size}}`, fingerprint = '', maxAttempts = 3, delayMs = 0 } = job
    const { rejectMismatch = false, lease, refresh } = job
    const spec = {
      id,
      incarnation: `i${this.#now}-${this.#incarnations++}`,
      fingerprint,
      maxAttempts,
      resultTTL: hour,
      failureTTL: 2 * hour,
    }
    const terms = lease === undefined ? null : { generation: lease, leaseMs: hour, graceMs: 0 }
    const command = {
      type: 'enqueue',
      spec,
      payload,
      delayMs,
      rejectMismatch,
      lease: terms,
      inline: terms !== null,
    } as const
    this.command(id, refresh === undefined ? command : { ...command, refresh })
  }

  claim(id: string, leaseMs = hour, generation = `g of ${id}`): void {
    this.command(id, { type: 'claim', generation, leaseMs, graceMs: 0 })
  }

  settle(id: string, verdict: Verdict, generation = `g of ${id}`): void {
    this.command(id, { type: 'settle', generation, verdict })
  }

  /** A job from beginning to end. */
  run(id: string, verdict: Verdict, job: Job = {}): void {
    this.enqueue(id, job)
    this.claim(id)
    this.settle(id, verdict)
  }

  /** A second run of one that was completed. */
  refresh(id: string, job: Job = {}): void {
    this.run(id, complete(`first result of ${id}`, hour))
    this.enqueue(id, { ...job, refresh: true })
  }

  collect(id: string, leaseMs = hour): void {
    this.command(id, { type: 'collect', generation: `c of ${id}`, leaseMs, graceMs: 0 })
  }

  deliver(id: string, rows: Encoded | null, delayMs = 0): void {
    this.command(id, { type: 'deliver', generation: `c of ${id}`, rows, delayMs })
  }

  mark(id: string, name: string, token: string): void {
    this.command(id, { type: 'mark', name, token })
  }
}

const odd = 'odd \t\n\r\u0010 🦊 \ud800 __proto__'

/** What formats from 1 on can say, up to the seal. */
function plainBefore(history: History): void {
  history.enqueue('plain', { payload: '{"vin":"1HGCM82633A004352"}' })
  history.enqueue('later', { delayMs: hour })
  history.enqueue('bytes', { payload: new Uint8Array([0, 9, 10, 16, 255]) })
  history.enqueue('empty', { payload: '' })
  history.enqueue(odd, { payload: 'a\tb\nc\r\u0010d \ud800', fingerprint: 'f1', rejectMismatch: true })
  history.enqueue(odd, { payload: 'other', fingerprint: 'f2', rejectMismatch: true })
  history.enqueue('inline', { lease: 'g of inline' })
  history.enqueue('inline, released', { lease: 'g of inline, released' })
  history.settle('inline, released', release(minute))
  history.enqueue('inline, taken over', { lease: 'g of inline, taken over' })
  history.enqueue('inline, taken over')
  history.enqueue('processing')
  history.claim('processing')
  history.enqueue('extended')
  history.claim('extended', 1_000)
  history.command('extended', { type: 'extend', generation: 'g of extended', leaseMs: 2 * hour })
  history.enqueue('released')
  history.claim('released')
  history.settle('released', release(hour))
  history.run('failing', retry('{"name":"Error","message":"again"}', minute))
  history.run('failed', fail('{"name":"Error","message":"for good"}', hour))
  history.run('failed at the last attempt', retry('the last', 0), { maxAttempts: 1 })
  history.enqueue('exhausted', { maxAttempts: 1 })
  history.claim('exhausted', 30)
  history.wait(100)
  history.claim('exhausted', hour, 'another')
  history.run('completed', complete('{"decoded":true}', hour))
  history.settle('completed', complete('too late', hour), 'stale')
  history.run('completed with bytes', complete(new Uint8Array([1, 0, 10]), hour))
  history.run('touched', complete('r', 1_000))
  history.command('touched', { type: 'touch', ttlMs: hour })
  history.enqueue('cancelled')
  history.command('cancelled', { type: 'cancel' })
  history.run('swept', complete('r', 30))
  history.wait(100)
  history.command('swept', { type: 'forget' })
  history.run('gone by the seal', complete('r', 30))
  history.wait(100)
  history.hold(10 * minute)
}

/** And after it. */
function plainAfter(history: History): void {
  history.claim('plain')
  history.hold(0)
  history.settle('processing', complete('from the snapshot', hour))
  history.wait(minute)
  history.claim('failing', hour, 'second')
  history.command('later', { type: 'cancel' })
  history.command('completed', { type: 'touch', ttlMs: 3 * hour })
  history.run('late', complete('result of late', hour))
  history.run('gone by the look', complete('r', minute))
  history.hold(hour)
}

/** What formats from 2 on can say, up to the seal. */
function refreshesBefore(history: History): void {
  history.refresh('refreshed, queued')
  history.refresh('refreshed, processing')
  history.claim('refreshed, processing', hour, 'second')
  history.refresh('refreshed, failing')
  history.claim('refreshed, failing', hour, 'second')
  history.settle('refreshed, failing', retry('again', minute), 'second')
  history.run('refreshed, inline', complete(new Uint8Array([7, 10]), hour))
  history.enqueue('refreshed, inline', { lease: 'second', refresh: true })
  history.run('refreshed after it failed', fail('e', hour))
  history.enqueue('refreshed after it failed', { refresh: true })
  history.refresh('in vain: error')
  history.claim('in vain: error', hour, 'second')
  history.settle('in vain: error', fail('the error', hour), 'second')
  history.refresh('in vain: exhausted', { maxAttempts: 1 })
  history.claim('in vain: exhausted', 30, 'second')
  history.wait(100)
  history.claim('in vain: exhausted', hour, 'third')
  history.refresh('in vain: cancelled')
  history.command('in vain: cancelled', { type: 'cancel' })
  const rows = '[["mail",{"to":"a\\tb"}]]'
  history.run('posted', complete('r', hour, { rows, ttlMs: 24 * hour }))
  history.run('posted, bytes', complete('r', hour, { rows: new Uint8Array([1, 9, 10]), ttlMs: 24 * hour }))
  history.run('collected', complete('r', hour, { rows, ttlMs: 24 * hour }))
  history.collect('collected')
  history.run('partly delivered', complete('r', hour, { rows, ttlMs: 24 * hour }))
  history.collect('partly delivered')
  history.deliver('partly delivered', 'left', minute)
  history.run('delivered', complete('r', hour, { rows, ttlMs: 24 * hour }))
  history.collect('delivered')
  history.deliver('delivered', null)
  history.run('kept for its rows', complete('r', 30, { rows, ttlMs: 24 * hour }))
  history.run('given up', complete('r', 30, { rows, ttlMs: 50 }))
  history.enqueue('marked')
  history.mark('marked', 'mail', 'token-1')
  history.mark('marked', 'mail', 'token-2')
  history.mark('marked', 'charge:2', 'token-3')
  history.run('marked when it had ended', complete('r', hour))
  history.mark('marked when it had ended', 'mail', 'token-4')
  history.run('marked, then refreshed', complete('r', hour))
  history.mark('marked, then refreshed', 'mail', 'token-5')
  history.enqueue('marked, then refreshed', { refresh: true })
  history.wait(100)
}

/** And after it. */
function refreshesAfter(history: History): void {
  history.settle('refreshed, processing', complete('second result', hour), 'second')
  history.claim('refreshed, queued', hour, 'second')
  history.enqueue('in vain: error', { refresh: true })
  history.collect('posted')
  history.deliver('posted', 'left of posted', minute)
  history.deliver('collected', null)
  history.collect('kept for its rows', 1_000)
  history.mark('marked', 'mail', 'token-6')
  history.mark('marked', 'third', 'token-7')
  history.refresh('refreshed late')
}

function historyOf(format: number): { before: History; after: History } {
  const before = new History(startAt)
  if (format >= 2) refreshesBefore(before)
  plainBefore(before)
  const after = new History(before.now + 10)
  plainAfter(after)
  if (format >= 2) refreshesAfter(after)
  return { before, after }
}

function refuse(code: string, message: string): void {
  throw new Error(`${code}: ${message}`)
}

/** Writes the history by the code as it is: a log, sealed; its snapshot; and a second log. Answers the files. */
export async function writeHistory(format: number): Promise<Map<string, Buffer>> {
  const { path: basePath, remove } = tempFolder(true)
  try {
    const fs = nodeFileSystem
    const folder = new Folder(fs, path.join(basePath, folderName(namespace)))
    folder.make(false)
    const { before, after } = historyOf(format)
    let nonces = 0
    const nonce = () => `n${nonces++}`
    const state = await ReplicatedLog.load({ fs, folder, warn: refuse, nonce, fsync: false })
    const append = ({ entries }: History) => {
      // Three lines in one write, as busy processes do it.
      for (let first = 0; first < entries.length; first += 3) {
        state.append(entries.slice(first, first + 3).map((entry) => new Change(entry)))
      }
    }
    append(before)
    const source = state.seal(before.now)
    if (source === null) throw new Error('the seal is not there')
    await writeSnapshot(fs, folder, source)
    append(after)
    state.release()
    return new Map(
      readdirSync(folder.path)
        .sort()
        .map((name) => [name, readFileSync(path.join(folder.path, name))]),
    )
  } finally {
    remove()
  }
}

/** The files as they are kept. */
export function goldenFiles(format: number): Map<string, Buffer> {
  const folder = path.join(golden, String(format))
  return new Map(
    readdirSync(folder)
      .filter((name) => name.endsWith(suffix))
      .sort()
      .map((name) => [name.slice(0, -suffix.length), readFileSync(path.join(folder, name))]),
  )
}

/** What was read in them when they were made. */
export function goldenState(format: number): unknown {
  return JSON.parse(readFileSync(path.join(golden, String(format), expectedName), 'utf8'))
}

/** Puts files in a folder, to be opened by {@link openGolden}. */
export function placeFiles(basePath: string, files: ReadonlyMap<string, Buffer>): string {
  const folder = path.join(basePath, folderName(namespace))
  mkdirSync(folder, { recursive: true })
  for (const [name, bytes] of files) writeFileSync(path.join(folder, name), bytes)
  return folder
}

/** Opens them at the time at which they were read when they were made. */
export async function openGolden(basePath: string) {
  const clock = new VirtualClock(startAt + 10 * minute)
  return new FileStorage({ basePath, durability: 'os', clock }).open(namespace)
}

/** What is read now, in the form of {@link goldenState}. */
export async function readState(basePath: string, format: number): Promise<unknown> {
  const handle = await openGolden(basePath)
  const { before, after } = historyOf(format)
  const ids = [...new Set([...before.ids, ...after.ids])]
  const { records } = await handle.get(ids)
  const stats = await handle.stats()
  await handle.close()
  const text = JSON.stringify({ stats, records: ids.map((id, index) => [id, records[index]]) }, (_key, value) => {
    return value instanceof Uint8Array ? { base64: Buffer.from(value).toString('base64') } : value
  })
  return JSON.parse(text)
}

async function make(format: number): Promise<void> {
  const files = await writeHistory(format)
  const folder = path.join(golden, String(format))
  mkdirSync(folder, { recursive: true })
  for (const [name, bytes] of files) writeFileSync(path.join(folder, `${name}${suffix}`), bytes)
  const { path: basePath, remove } = tempFolder()
  placeFiles(basePath, files)
  writeFileSync(path.join(folder, expectedName), `${JSON.stringify(await readState(basePath, format), null, 2)}\n`)
  remove()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await make(Number(process.argv[2]))
