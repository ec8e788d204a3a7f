/**
 * One open namespace: gathers the calls of a turn of the event loop, runs them together, and answers them when what they
 * rest on is as durable as it has to be.
 *
 * @module
 */

import type { Clock } from '../../src/clock.ts'
import { StorageError } from '../../src/errors.ts'
import type { Hint, HintListener } from '../../src/storage.ts'
import type { Plan } from './call.ts'
import { Call } from './call.ts'
import { Compaction } from './compaction.ts'
import { guarded, isNoRoom } from './errors.ts'
import type { FileSystem } from './file-system.ts'
import type { Folder } from './folder.ts'
import type { PendingHints } from './hints.ts'
import { Hints } from './hints.ts'
import { LogReplacedError } from './log-file.ts'
import type { Replica } from './replica.ts'
import { ReplicatedLog } from './replicated-log.ts'
import { breathe } from './snapshot.ts'
import { Syncer } from './syncer.ts'
import { runTurn } from './turn.ts'
import { Wake } from './wake.ts'

/** Times that calls are begun anew because the log was replaced under them. */
const reloadsMax = 10

/** What a {@link Space} needs. */
export interface SpaceOptions {
  readonly fs: FileSystem
  readonly folder: Folder
  readonly clock: Clock
  readonly fsync: boolean
  readonly slackBytes: number
  readonly nonce: () => string
}

/** See the module's description. Shared by the namespace's handles. */
export class Space {
  readonly #options: SpaceOptions
  readonly #compaction: Compaction
  readonly #syncer: Syncer
  readonly #wake: Wake
  readonly #hints: Hints
  #state: ReplicatedLog | null = null
  /** The log that was let go of because it was not what it had been. */
  #left: { readonly epoch: number; readonly path: string } | null = null
  #calls: Call[] = []
  #scheduled = false
  #running: Promise<void> | null = null
  /** A sync failed: what the kernel holds of the log may be lost, only a snapshot of this memory brings it back. */
  #distrusted = false

  constructor(options: SpaceOptions) {
    this.#options = options
    const { fs, folder, clock, slackBytes } = options
    this.#hints = new Hints(clock)
    const warn = this.#hints.warn
    this.#compaction = new Compaction({ fs, folder, clock, warn, slackBytes })
    this.#syncer = new Syncer(fs)
    this.#wake = new Wake({ fs, clock, path: folder.path, warn, look: () => this.#look() })
  }

  /** Makes the folder and loads it, unless it is loaded. */
  async open(): Promise<void> {
    const { folder, fsync } = this.#options
    guarded('make the folder', folder.path, () => folder.make(fsync))
    await this.run({}, () => undefined)
  }

  /**
   * Runs a plan; resolves to what `prepare` made of it.
   *
   * @param ended - called when it was answered, one way or the other
   */
  run<Answer>(
    plan: Plan,
    prepare: (call: Call, replica: Replica) => Answer,
    ended: () => void = () => {},
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#calls.push(new Call(plan, prepare, resolve as (answer: unknown) => void, reject, ended))
      this.#schedule()
    })
  }

  watch(listener: HintListener): () => void {
    const unwatch = this.#hints.add(listener)
    this.#listen()
    return () => {
      unwatch()
      this.#listen()
    }
  }

  /** Lets go of everything, when what runs has ended. Nothing may be asked afterwards. */
  async close(): Promise<void> {
    this.#wake.stop()
    while (this.#running !== null || this.#scheduled) await (this.#running ?? breathe())
    await this.#syncer.idle()
    await this.#compaction.idle()
    this.#drop()
  }

  #schedule(): void {
    if (this.#scheduled || this.#running !== null) return
    this.#scheduled = true
    // All that is called in this turn of the event loop shares one append and one sync.
    setImmediate(() => {
      this.#scheduled = false
      this.#running = this.#turn()
    })
  }

  /** Whether there is news; if so, reads it soon. */
  #look(): boolean {
    if (this.#scheduled || this.#running !== null || this.#state === null) return false
    try {
      if (!this.#state.hasNews()) return false
    } catch {
      // Whatever it is, the turn will meet it again, and say so or mend it.
    }
    this.#schedule()
    return true
  }

  #listen(): void {
    if (this.#hints.isObserved) this.#wake.start()
    else this.#wake.stop()
    if (this.#state !== null) this.#state.replica.listener = this.#hints.isObserved ? this.#hints : null
  }

  async #turn(): Promise<void> {
    const calls = this.#calls
    this.#calls = []
    let failure: unknown = null
    try {
      await this.#runAll(calls)
    } catch (error) {
      failure = error
    }
    const done = failure === null ? calls : calls.filter((call) => call.isDone)
    for (const call of calls) {
      if (failure !== null && !call.isDone) call.reject(failure)
    }
    this.#acknowledge(done)
    if (failure === null && this.#state !== null) this.#compaction.consider(this.#state)
    this.#running = null
    if (this.#calls.length > 0) this.#schedule()
  }

  /** Runs calls; begins again with those that are not done when the log turns out to be another. */
  async #runAll(calls: readonly Call[]): Promise<void> {
    for (let reloads = 0; ; reloads++) {
      try {
        const state = this.#state ?? (await this.#load())
        await state.catchUp()
        if (this.#distrusted) await this.#rewrite(state)
        const now = this.#options.clock.now()
        try {
          runTurn(state, calls, now)
        } finally {
          for (const call of calls) if (call.isDone) call.prepare(state.replica)
        }
        return
      } catch (error) {
        if (!(error instanceof LogReplacedError)) {
          if (isNoRoom(error) && this.#state !== null && (await this.#compaction.makeRoom(this.#state))) continue
          throw error
        }
        this.#drop()
        if (reloads >= reloadsMax)
          throw new StorageError(`the log ${error.path} is removed or replaced again and again`)
      }
    }
  }

  async #load(): Promise<ReplicatedLog> {
    const { fs, folder, clock, nonce, fsync } = this.#options
    this.#state = await ReplicatedLog.load({ fs, folder, warn: this.#hints.warn, nonce, fsync })
    this.#listen()
    this.#wake.renew()
    this.#tellIfReplaced(this.#state)
    // Whatever happened while this process did not read: those who wait must look.
    this.#hints.due(0)
    const outboxInMs = this.#state.replica.table.nextOutboxInMs(clock.now())
    if (outboxInMs !== null) this.#hints.outbox(clock.now() + outboxInMs)
    return this.#state
  }

  #drop(): void {
    if (this.#state === null) return
    this.#left = { epoch: this.#state.position.epoch, path: this.#state.log.path }
    this.#state.release()
    this.#state = null
  }

  /** Others go on to next epochs, and collect what they left; but a log that is no older was not left by them. */
  #tellIfReplaced(state: ReplicatedLog): void {
    const left = this.#left
    this.#left = null
    if (left === null || state.position.epoch > left.epoch) return
    const message = `${left.path} was removed, replaced or cut short while it was open; what is there now counts`
    this.#hints.warn('FILE_LOG_REPLACED', message, { path: left.path })
  }

  /** Puts the state on disk anew after a failed sync. */
  async #rewrite(state: ReplicatedLog): Promise<void> {
    if (await this.#compaction.begin(state)) {
      this.#distrusted = false
      await state.catchUp()
      return
    }
    const { path } = this.#options.folder
    throw new StorageError(`the log in ${path} could not be put on disk, and not be written anew. Check the disk`)
  }

  /** Answers calls, and sends the hints of what they and others did, once it is as durable as it has to be. */
  #acknowledge(calls: readonly Call[]): void {
    const hints = this.#hints.take()
    if (calls.length === 0 && hints === null) return
    const done = () => {
      for (const call of calls) call.resolve()
      if (hints !== null) this.#hints.send(hints)
    }
    const log = this.#state?.log
    if (!this.#options.fsync || log === undefined) {
      done()
      return
    }
    if (calls.length === 0 && hints !== null && log.syncedEnd < log.end) {
      // Others' doings: without the records, which may not be on disk yet. Who wants one asks for it.
      this.#hints.send(withoutRecords(hints))
      return
    }
    this.#syncer.wait(log, done, (error) => {
      this.#distrusted = true
      for (const call of calls) call.reject(error)
    })
  }
}

function withoutRecords(pending: PendingHints): PendingHints {
  const hints = pending.hints.map((hint): Hint => (hint.type === 'settled' ? { type: 'settled', id: hint.id } : hint))
  return { ...pending, hints }
}
