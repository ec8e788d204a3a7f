/**
 * The clients of one process: they ask for all that a queue can do, at random, and hold every answer against what really happened.
 *
 * @module
 */

import { AskonceError } from '../../src/errors.ts'
import type { EnqueueOptions } from '../../src/options.ts'
import type { Answer, Life } from './ledger.ts'
import type { SimProcess } from './process.ts'
import type { World } from './world.ts'

/** A call that a client made. */
interface Asking {
  readonly name: string
  readonly id: string
  readonly n: number
  readonly startedAt: number
  readonly waits: boolean
  done: boolean
}

/** What calls may reject with, beside the errors of a storage in trouble. */
const expectedCodes: ReadonlySet<string> = new Set([
  'ASKONCE_TIMEOUT',
  'ASKONCE_STOPPED',
  'ASKONCE_STORAGE_CLOSED',
  'ASKONCE_JOB_FAILED',
  'ASKONCE_JOB_CANCELLED',
  'ASKONCE_RESULT_GONE',
  'ASKONCE_PAYLOAD_MISMATCH',
])

export class Clients {
  readonly #world: World
  readonly #process: SimProcess
  readonly #asking = new Set<Asking>()

  constructor(world: World, process: SimProcess) {
    this.#world = world
    this.#process = process
  }

  /** Asks for something now and then, until the storm is over. */
  begin(): void {
    const { scheduler, random, setting } = this.#world
    scheduler.schedule(this.#process, random.between(0, setting.idleMsMax), () => {
      if (!this.#world.stormy) return
      this.#act()
      // Calls of one tick travel together.
      while (random.chance(0.3)) this.#act()
      this.begin()
    })
  }

  /** Calls without an answer yet. */
  get unanswered(): string[] {
    return [...this.#asking].map(({ name, id, n }) => `${name} of '${id}' (call ${n})`)
  }

  /** The wait for an id that began before `from` and has no answer; null if there is none. */
  waitingFor(id: string, from: number): string | null {
    for (const asking of this.#asking) {
      if (asking.id === id && asking.waits && asking.startedAt <= from) return `${asking.name} (call ${asking.n})`
    }
    return null
  }

  #act(): void {
    const world = this.#world
    const { random, setting } = world
    const process = this.#process
    const { queue } = process
    const id = random.pick(setting.ids)
    if (random.chance(setting.stall)) process.stall()
    if (random.chance(setting.jump)) process.jump()
    const n = world.calls++
    const roll = random.below(100)
    if (roll < 30)
      this.#ask('enqueue', id, n, queue.enqueue(id, { n }, this.#options()), (r, a) =>
        this.#judgeEnqueue({ ...a, id, n }, r),
      )
    else if (roll < 36) this.#enqueueMany()
    else if (roll < 56) this.#wait('enqueueAndWait', id, n)
    else if (roll < 74) this.#wait('run', id, n)
    else if (roll < 80) this.#ask('cancel', id, n, queue.cancel(id), (r, a) => this.#judgeCancel(r.status, a))
    else if (roll < 85) this.#ask('getStatus', id, n, queue.getStatus(id), (r, a) => this.#judgeStatus(r, a))
    else if (roll < 88) this.#ask('getResult', id, n, queue.getResult(id), (r, a) => this.#judgeResult(r, a))
    else if (roll < 93)
      this.#ask('updateResultTTL', id, n, queue.updateResultTTL(id, random.between(1, 2_000)), () => {})
    else if (roll < 94) this.#ask('stats', id, n, queue.stats(), () => {})
    else if (roll < 97) this.#pauseOrResume()
    else void this.#restart(n)
  }

  #options(): EnqueueOptions {
    const { random } = this.#world
    return {
      resultTTL: random.pick([random.between(50, 500), random.between(500, 6_000)]),
      failureTTL: random.between(50, 3_000),
      maxAttempts: random.between(1, 4),
      ...(random.chance(0.25) ? { delay: random.between(1, 2_000) } : {}),
      payloadMismatch: random.chance(0.05) ? 'reject' : 'ignore',
    }
  }

  #enqueueMany(): void {
    const world = this.#world
    const { random, setting } = world
    const items = Array.from({ length: random.between(1, 4) }, () => {
      return { id: random.pick(setting.ids), payload: { n: world.calls++ }, ...this.#options() }
    })
    const { id, payload } = items[0]!
    this.#ask('enqueueMany', id, payload.n, this.#process.queue.enqueueMany(items), (results, asking) => {
      results.forEach((result, index) => {
        const item = items[index]!
        if (result.status !== 'payload_mismatch')
          this.#judgeEnqueue({ ...asking, id: item.id, n: item.payload.n }, result)
      })
    })
  }

  #wait(name: 'enqueueAndWait' | 'run', id: string, n: number): void {
    const world = this.#world
    const { random } = world
    const { queue } = this.#process
    const timeout = random.chance(0.4)
      ? Number.POSITIVE_INFINITY
      : random.pick([random.between(1, 100), random.between(100, 8_000)])
    const { delay: _, ...options } = { ...this.#options(), timeout }
    const signal = random.chance(0.1) ? this.#abortIn(random.between(0, 1_000)) : undefined
    const all = signal === undefined ? options : { ...options, signal }
    const asked =
      name === 'run'
        ? queue.run(id, { n }, (job) => this.#process.handle(job, true), all)
        : queue.enqueueAndWait(id, { n }, all)
    const asking = this.#ask(name, id, n, asked, (result, asking) => this.#judgeAnswer(result, asking))
    if (timeout === Number.POSITIVE_INFINITY) return
    world.scheduler.schedule(this.#process, timeout + 1, () => {
      if (!asking.done) world.fail('time-outs', `${name} of '${id}' (call ${n}) waits for longer than ${timeout} ms`)
    })
  }

  #abortIn(ms: number): AbortSignal {
    const controller = new AbortController()
    this.#world.scheduler.schedule(this.#process, ms, () => controller.abort(new Error('given up')))
    return controller.signal
  }

  #pauseOrResume(): void {
    if (this.#process.queue.paused) this.#process.resume()
    else this.#process.pause()
  }

  async #restart(n: number): Promise<void> {
    const { random, scheduler } = this.#world
    const asking = this.#begin('stop', '', n, false)
    try {
      await this.#process.stop()
    } catch (error) {
      this.#process.judgeError('stop', error)
    }
    this.#asking.delete(asking)
    // It may be started again before its stop has ended, too: this one comes after.
    scheduler.schedule(this.#process, random.between(0, 1_000), () => void this.#process.start())
  }

  #begin(name: string, id: string, n: number, waits: boolean): Asking {
    const asking: Asking = { name, id, n, startedAt: this.#world.now, waits, done: false }
    this.#asking.add(asking)
    this.#world.say(() => `${this.#process.name} ${name} '${id}' (call ${n})`)
    return asking
  }

  #ask<T>(name: string, id: string, n: number, answer: Promise<T>, judge: (answer: T, asking: Asking) => void): Asking {
    const world = this.#world
    const asking = this.#begin(name, id, n, name === 'run' || name === 'enqueueAndWait')
    const end = (): boolean => {
      asking.done = true
      this.#asking.delete(asking)
      world.mix(n)
      return !this.#process.dead
    }
    answer.then(
      (value) => {
        if (!end()) return
        world.say(() => `${this.#process.name} call ${n} answered ${JSON.stringify(value)}`)
        judge(value, asking)
      },
      (error: unknown) => {
        if (!end()) return
        world.say(() => `${this.#process.name} call ${n} rejected ${error}`)
        this.#judgeError(error, asking)
      },
    )
    return asking
  }

  #seen(asking: Asking): Life[] {
    return this.#world.ledger.seenBetween(asking.id, asking.startedAt, this.#world.now)
  }

  #wrong({ name, id, n }: Asking, what: string): void {
    this.#world.fail('answers', `${name} of '${id}' (call ${n}): ${what}`)
  }

  #judgeEnqueue(asking: Asking, result: { status: string; result?: Answer }): void {
    const { id, n } = asking
    if (result.status === 'queued') {
      if (this.#world.ledger.madeBy(n) !== undefined) return
      this.#world.fail('conservation', `'${id}': call ${n} was told 'queued', and no record was made`)
    } else if (result.status === 'completed') {
      this.#judgeAnswer(result.result as Answer, asking)
    } else if (!this.#seen(asking).some((life) => life.n !== n)) {
      this.#wrong(asking, `told '${result.status}', and there was no other`)
    }
  }

  #judgeAnswer(result: Answer, asking: Asking): void {
    const lives = this.#seen(asking).filter(({ n }) => n === result.n)
    const run = [...this.#world.ledger.runs.values()][result.run]
    if (lives.length === 0)
      this.#wrong(asking, `got the result of call ${result.n}, of which there was no living record`)
    else if (run?.id !== asking.id) this.#wrong(asking, 'got what no handler of this id answered')
    else if (!lives.some(({ record }) => record.state === 'completed' && record.result === run.returned)) {
      this.#wrong(asking, `got the answer of handler call ${result.run}, which is not what was stored`)
    }
  }

  #judgeError(error: unknown, asking: Asking): void {
    if (error instanceof Error && error.message === 'given up') return
    if (!(error instanceof AskonceError) || !expectedCodes.has(error.code)) {
      this.#process.judgeError(asking.name, error)
      return
    }
    const lives = this.#seen(asking)
    if (error.code === 'ASKONCE_JOB_FAILED' && !lives.some(({ record }) => record.state === 'failed')) {
      this.#wrong(asking, 'told that the job failed, and none did')
    }
    if (error.code === 'ASKONCE_JOB_CANCELLED' && !lives.some(({ cancelledAt }) => cancelledAt !== null)) {
      this.#wrong(asking, 'told that the job was cancelled, and none was')
    }
    if (error.code === 'ASKONCE_RESULT_GONE' && !lives.some((life) => this.#hasGone(life))) {
      this.#wrong(asking, 'told that the result is gone, and none is')
    }
  }

  #hasGone({ record, cancelledAt, seemedGone }: Life): boolean {
    if (cancelledAt !== null || seemedGone) return true
    const { setting, now } = this.#world
    const open = record.state !== 'completed' && record.state !== 'failed'
    if (open && !record.inline) return false
    const goneFrom = open ? record.at + record.spec.resultTTL : record.at
    return goneFrom <= now + 2 * setting.skewMs
  }

  #judgeCancel(status: string, asking: Asking): void {
    const { now } = this.#world
    if (status !== 'cancelled') return
    const cancelled = (life: Life) =>
      life.cancelledAt !== null && life.cancelledAt >= asking.startedAt && life.cancelledAt <= now
    if (!this.#seen(asking).some(cancelled)) {
      this.#world.fail('cancel', `'${asking.id}': call ${asking.n} was told 'cancelled', and the record is still there`)
    }
  }

  #judgeStatus(status: { state: string; attempts: number; maxAttempts: number } | null, asking: Asking): void {
    if (status === null) {
      this.#mustHaveBeenAbsent(asking)
      return
    }
    if (this.#seen(asking).length === 0) this.#wrong(asking, `told '${status.state}', and there was no record`)
    if (status.attempts > status.maxAttempts) this.#wrong(asking, `told of ${status.attempts} attempts`)
  }

  #judgeResult(result: Answer | null, asking: Asking): void {
    if (result !== null) this.#judgeAnswer(result, asking)
  }

  /** `null` must not be said of a record that lived all the time. */
  #mustHaveBeenAbsent(asking: Asking): void {
    const { now, setting } = this.#world
    const lived = this.#seen(asking).find((life) => {
      const { record, createdAt, cancelledAt } = life
      if (createdAt >= asking.startedAt || cancelledAt !== null) return false
      return (
        !this.#hasGone(life) &&
        (record.at > now + 2 * setting.skewMs || (record.state !== 'completed' && record.state !== 'failed'))
      )
    })
    if (lived !== undefined) this.#wrong(asking, `told 'null' while the record of call ${lived.n} lived`)
  }
}
