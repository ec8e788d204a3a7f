/**
 * A fleet: workers and producers as processes of their own, that can be killed, paused and made wrong in their clocks; and spare
 * ones, started but without a task, so that a killed one's place is taken at once.
 *
 * @module
 */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Bundled } from '../bundled.ts'
import { Seeded } from '../seeded.ts'
import type { Message, Task } from './member.ts'
import { monotonicUs } from './notes.ts'
import type { Stage } from './stage.ts'

/** The program that the processes run; each waits for its task. */
export const fleetProgram = (): Bundled => new Bundled('test/support/fleet/member.ts')

/** What a fleet is made of. */
export interface FleetOptions {
  readonly program: Bundled
  readonly stage: Stage
  readonly queue: string
  /** For the processes' notes; made if it is not there. */
  readonly folder: string
  readonly seed: number
  readonly workers: number
  readonly producers: number
  readonly idsPerSecond: number
  readonly all: boolean
  readonly fillerChars: number
  /** Processes kept ready. */
  readonly spares: number
}

/** How long a process may take to end when asked to, ms: its running jobs and waits among that. */
const endMsMax = 30_000

/** One place in the fleet, and the process that has it now. */
class Member {
  readonly role: Task['role']
  process: ChildProcess
  notes: string
  paused = false
  #busy = false

  constructor(role: Task['role'], process: ChildProcess, notes: string) {
    this.role = role
    this.process = process
    this.notes = notes
  }

  get running(): boolean {
    return this.process.exitCode === null && this.process.signalCode === null
  }

  /** Whether it has begun. */
  get up(): boolean {
    return (statSync(this.notes, { throwIfNoEntry: false })?.size ?? 0) > 0
  }

  /** Whether a call of it was answered, or it has run a job. */
  get busy(): boolean {
    this.#busy ||= this.up && /"kind":"(answer|ran)"/.test(readFileSync(this.notes, 'utf8'))
    return this.#busy
  }

  /** Gives the place to another process. */
  take(process: ChildProcess, notes: string): void {
    this.process = process
    this.notes = notes
    this.#busy = false
  }
}

export type { Member }

/** See the module's description. */
export class Fleet {
  readonly members: readonly Member[]
  readonly #options: FleetOptions
  readonly #random: Seeded
  readonly #startedAt = monotonicUs()
  readonly #spares: ChildProcess[] = []
  #born = 0
  #skewMs = 0
  /** What went wrong with a process itself: it ended unasked, or did not end. */
  readonly problems: string[] = []

  constructor(options: FleetOptions) {
    this.#options = options
    this.#random = new Seeded(options.seed)
    mkdirSync(options.folder, { recursive: true })
    this.#fillSpares()
    const roles = [
      ...Array<Task['role']>(options.workers).fill('worker'),
      ...Array<Task['role']>(options.producers).fill('producer'),
    ]
    this.members = roles.map((role) => {
      const member = new Member(role, this.#spare(), this.#newNotes(role))
      this.#begin(member)
      return member
    })
  }

  get running(): readonly Member[] {
    return this.members.filter((member) => member.running)
  }

  /** Ends a process with SIGKILL and puts another in its place. */
  async replace(member: Member): Promise<void> {
    await this.kill(member)
    member.take(this.#spare(), this.#newNotes(member.role))
    this.#begin(member)
  }

  /** Ends a process with SIGKILL. */
  async kill(member: Member): Promise<void> {
    member.paused = false
    await killed(member.process)
  }

  /** Lets a process hang (SIGSTOP). */
  pause(member: Member): void {
    member.paused = true
    member.process.kill('SIGSTOP')
  }

  /** Lets it go on (SIGCONT). */
  resume(member: Member): void {
    member.paused = false
    member.process.kill('SIGCONT')
  }

  /** Makes one member's clock wrong by so much, or every present and future one's. */
  skew(skewMs: number, member?: Member): void {
    if (member === undefined) this.#skewMs = skewMs
    for (const { process } of member === undefined ? this.running : [member]) send(process, { skewMs })
  }

  /** Asks processes to end in good order, and sees that they do. */
  async stop(role: Task['role']): Promise<void> {
    const members = this.running.filter((member) => member.role === role)
    await Promise.all(
      members.map(async (member) => {
        if (member.paused) this.resume(member)
        await this.#began(member)
        const { process, notes } = member
        const ended = once(process, 'exit')
        process.kill('SIGTERM')
        const timer = setTimeout(() => {
          this.problems.push(`the ${role} of ${notes} did not end within ${endMsMax} ms`)
          process.kill('SIGKILL')
        }, endMsMax)
        await ended
        clearTimeout(timer)
      }),
    )
  }

  /** Kills what is left. */
  async end(): Promise<void> {
    const spares = this.#spares.splice(0)
    await Promise.all([...this.members.map((member) => this.kill(member)), ...spares.map(killed)])
  }

  /** Waits until a process has got so far that it can be asked to end. */
  async #began(member: Member): Promise<void> {
    for (const end = performance.now() + endMsMax; !member.up && member.running; await sleep(10)) {
      if (performance.now() < end) continue
      this.problems.push(`the ${member.role} of ${member.notes} did not begin`)
      return
    }
  }

  #begin(member: Member): void {
    const { stage, queue, idsPerSecond, all, fillerChars } = this.#options
    const { role, process, notes } = member
    process.once('exit', (code, signal) => {
      // Who is killed is killed by SIGKILL, who is asked to end exits with 0.
      if (signal !== 'SIGKILL' && code !== 0)
        this.problems.push(`the ${role} of ${notes} crashed with ${signal ?? code}`)
    })
    const seed = this.#random.below(2 ** 31)
    const startedAt = this.#startedAt
    const skewMs = this.#skewMs
    const task: Task = { role, stage, queue, notes, seed, idsPerSecond, startedAt, all, fillerChars, skewMs }
    send(process, { task })
  }

  #newNotes(role: Task['role']): string {
    return join(this.#options.folder, `${String(this.#born++).padStart(6, '0')}-${role}`)
  }

  #spare(): ChildProcess {
    const spare = this.#spares.shift() ?? this.#options.program.spawn()
    this.#fillSpares()
    return spare
  }

  #fillSpares(): void {
    while (this.#spares.length < this.#options.spares) this.#spares.push(this.#options.program.spawn())
  }
}

function send(process: ChildProcess, message: Message): void {
  // It may have been killed a moment ago.
  if (process.connected) process.send(message, () => {})
}

async function killed(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  const ended = once(process, 'exit')
  process.kill('SIGKILL')
  await ended
}
