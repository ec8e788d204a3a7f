/**
 * What a case of the suite works with: fresh storages, handles, time, and the notes of what could not be tested.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Storage, StorageHandle, StorageTraits } from '../../src/storage.ts'

/** A storage made for one case, and how to clear up after it. */
export interface CreatedStorage {
  readonly storage: Storage
  /** Called once every handle of the case is closed, whether the case passed or not. */
  readonly cleanup?: () => unknown
}

/** For whom a storage is made. */
export interface CreateContext {
  /** The name of the case, unique in the suite: good for a folder's or a key prefix's name after escaping. */
  readonly name: string
}

/** The length of the random sequences. */
export interface RandomOptions {
  /** Replays a run: the failure message shows it. Default: new each time. */
  readonly seed?: number
  /** How many sequences, each on a fresh storage. Default 4. 0 leaves them out, with a note. */
  readonly runs?: number
  /** Commands in one sequence. Default 400, or 100 where time is real. */
  readonly commands?: number
}

/** What the suite needs to know of a storage. */
export interface ConformanceOptions {
  /** Registers a case with the runner: `test` of node:test or vitest, `t.test` of tap. A case fails by rejecting. */
  readonly test: (name: string, run: () => Promise<void>) => unknown
  /** Makes an empty storage. Called at the start of each case. */
  readonly create: (context: CreateContext) => Promise<Storage | CreatedStorage>
  /**
   * Moves the time of every storage that `create` made, by whole ms. Without it the suite waits in real time, with leases
   * and TTLs of `shortMs`.
   */
  readonly advance?: (ms: number) => unknown
  /**
   * A second Storage object on the data of the first, as another process would have it. Must be given where the trait
   * `shared` is true.
   */
  readonly createShared?: (storage: Storage, context: CreateContext) => Promise<Storage | CreatedStorage>
  /** What the storage adds to a lease's end before another may take it over, ms. Default 0. */
  readonly graceMs?: number
  /** A lease or TTL that is waited for, ms. Default: 40, or twice `ttlResolutionMs` if that is more. */
  readonly shortMs?: number
  /** How long the suite waits, in real time, for what must come (a hint, an end of a TTL), ms. Default 10,000. */
  readonly patienceMs?: number
  readonly random?: RandomOptions
  /** Told what is not tested, and why. Default: a line `# not tested: …` on stdout, a comment in TAP. */
  readonly note?: (text: string) => void
}

/** One thing that a storage must do. */
export interface Case {
  readonly name: string
  readonly run: (rig: Rig) => Promise<void>
}

/** Long enough that it never ends while a case runs, ms. */
export const longMs = 3_600_000

function created(made: Storage | CreatedStorage): CreatedStorage {
  return 'storage' in made ? made : { storage: made }
}

/** One case's world. */
export class Rig {
  readonly storage: Storage
  readonly traits: StorageTraits
  readonly options: ConformanceOptions
  readonly graceMs: number
  readonly shortMs: number
  /** Whether time stands still between calls. */
  readonly virtual: boolean
  readonly #name: string
  readonly #created: CreatedStorage[]
  readonly #handles: StorageHandle[] = []
  readonly #note: (text: string) => void
  #other: Storage | undefined
  readonly #run = randomUUID().slice(0, 8)
  #tokens = 0
  #now: number | null = null

  private constructor(options: ConformanceOptions, name: string, made: CreatedStorage, note: (text: string) => void) {
    this.options = options
    this.storage = made.storage
    this.traits = made.storage.traits
    this.graceMs = options.graceMs ?? 0
    this.shortMs = options.shortMs ?? Math.max(40, 2 * this.traits.ttlResolutionMs)
    this.virtual = options.advance !== undefined
    this.#name = name
    this.#created = [made]
    this.#note = note
  }

  static async make(options: ConformanceOptions, name: string, note: (text: string) => void): Promise<Rig> {
    return new Rig(options, name, created(await options.create({ name })), note)
  }

  /** Says that something is not tested on this storage. */
  note(text: string): void {
    this.#note(`${this.#name}: ${text}`)
  }

  /** Opens a namespace; closed for you at the end of the case. */
  async open(namespace = 'conformance', storage = this.storage): Promise<StorageHandle> {
    const handle = await storage.open(namespace)
    this.#handles.push(handle)
    return handle
  }

  /** A second Storage object on the same data; the first one itself where the storage is not shared. */
  async other(): Promise<Storage> {
    if (this.#other === undefined) {
      const { createShared } = this.options
      if (createShared === undefined) {
        assert.equal(
          this.traits.shared,
          false,
          'traits.shared is true: the suite needs `createShared`, which makes a second Storage object on the same data',
        )
        this.#other = this.storage
      } else {
        const made = created(await createShared(this.storage, { name: this.#name }))
        assert.notEqual(
          made.storage,
          this.storage,
          '`createShared` must make another Storage object, as another process would',
        )
        this.#created.push(made)
        this.#other = made.storage
      }
    }
    return this.#other
  }

  /** Two handles on one namespace: of two Storage objects where the storage is shared. */
  async pair(namespace = 'conformance'): Promise<[StorageHandle, StorageHandle]> {
    return [await this.open(namespace), await this.open(namespace, await this.other())]
  }

  /** A token never used before. */
  token(kind = 'token'): string {
    this.#tokens++
    return `${kind}-${this.#tokens}-${this.#run}`
  }

  /** The storage's time, ms since 1970. Where it stands still, it is asked for only after it was moved. */
  async now(handle: StorageHandle): Promise<number> {
    if (this.#now !== null) return this.#now
    const { now } = await handle.get(['what time is it'])
    if (this.virtual) this.#now = now
    return now
  }

  async #advance(ms: number): Promise<void> {
    await this.options.advance?.(ms)
    this.#now = null
  }

  /** Waits until the storage's time has reached `at`, and what ended by then counts as ended. */
  async waitUntil(handle: StorageHandle, at: number): Promise<void> {
    const { patienceMs = 10_000 } = this.options
    if (this.virtual) {
      const left = at - (await this.now(handle))
      if (left > 0) await this.#advance(left)
      return
    }
    const target = at + this.traits.ttlResolutionMs - 1
    const deadline = performance.now() + patienceMs
    for (;;) {
      const left = target - (await this.now(handle))
      if (left <= 0) return
      assert.ok(
        performance.now() < deadline,
        `the storage's time did not reach ${at} in ${patienceMs} ms: ${left} ms to go`,
      )
      await sleep(Math.min(left, 50))
    }
  }

  /** Waits `ms` by the storage's time. */
  async wait(handle: StorageHandle, ms: number): Promise<void> {
    await this.waitUntil(handle, (await this.now(handle)) + ms)
  }

  /** Tries until it is true, giving the storage's time and the event loop room in between. */
  async until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
    const { patienceMs = 10_000 } = this.options
    const deadline = performance.now() + patienceMs
    for (let round = 0; !(await condition()); round++) {
      assert.ok(performance.now() < deadline, `waited ${patienceMs} ms in vain until ${what}`)
      await this.#advance(round < 100 ? 1 : 10)
      await (this.virtual && round < 50 ? immediate() : sleep(5))
    }
  }

  /** Lets what is on its way arrive; for showing that something does not come. */
  async calm(): Promise<void> {
    for (let turn = 0; turn < 5; turn++) {
      await this.#advance(1)
      await immediate()
    }
  }

  /** Closes the handles and clears up. */
  async end(): Promise<void> {
    for (const handle of this.#handles) await handle.close()
    for (const { cleanup } of this.#created.reverse()) await cleanup?.()
  }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function immediate(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
