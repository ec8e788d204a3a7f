/**
 * Random sequences of commands, each answer compared with the machine. A failure tells the seed that replays it.
 *
 * @module
 */

import type { JobRecord, Outbox, Verdict } from '../../src/record.ts'
import { complete, fail, isTerminal, release, retry } from '../../src/record.ts'
import type { Delivery, EnqueueItem, Mark, Settlement } from '../../src/storage.ts'
import { Checked } from './checked.ts'
import { item, lease } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** Numbers from a seed (mulberry32): the same in every run. */
class Chance {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let t = this.#state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }

  /** A whole number from 0 to below `bound`. */
  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0
  }
}

/** One sequence. */
class Sequence {
  readonly #rig: Rig
  readonly #checked: Checked
  readonly #chance: Chance
  readonly #ids: readonly string[]
  readonly #generations: string[] = []
  readonly #incarnations: string[] = []
  /** The longest short duration that the last command used, ms: where time is real, its end is waited for. */
  #shortest = 0

  constructor(rig: Rig, checked: Checked, chance: Chance) {
    this.#rig = rig
    this.#checked = checked
    this.#chance = chance
    this.#ids = Array.from({ length: 8 }, (_, index) => `id ${index}`)
  }

  async step(): Promise<void> {
    this.#shortest = 0
    await this.#command()
    // With real time nothing may end while a command runs: what is short ends before the next one.
    if (!this.#rig.virtual && this.#shortest > 0) {
      await this.#rig.wait(this.#checked.handle, this.#shortest + this.#rig.graceMs)
    }
  }

  async #command(): Promise<unknown> {
    const checked = this.#checked
    const chance = this.#chance
    switch (chance.below(24)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return checked.enqueue(this.#some(() => this.#item()))
      case 4:
      case 5:
      case 6:
        return checked.claim(this.#claim())
      case 7:
      case 8:
        return checked.claim({ ...this.#claim(), ids: this.#some(() => this.#id()) })
      case 9:
      case 10:
      case 11:
      case 12:
        return checked.settle(
          this.#some(() => this.#settlement()),
          chance.once(3) ? this.#claim() : null,
        )
      case 13:
        return checked.extend(this.#some(() => this.#extension()))
      case 14:
        return checked.cancel(this.#some(() => this.#id()))
      case 15:
        return checked.touch(this.#some(() => ({ id: this.#id(), ttlMs: this.#duration() })))
      case 16:
        return checked.sweep(1 + chance.below(10))
      case 17:
        return chance.once(3) ? checked.hold(chance.once(2) ? 0 : this.#duration()) : checked.hold(0)
      case 18:
        return checked.audit()
      case 19:
        return checked.mark(this.#some(() => this.#mark()))
      case 20:
      case 21:
      case 22:
        return checked.deliver(
          this.#some(() => this.#delivery()),
          chance.once(3) ? null : this.#claim(),
        )
      default:
        return this.#pass()
    }
  }

  /** Lets time go on: to the moment something ends, to just before it, or anywhere. */
  async #pass(): Promise<void> {
    if (!this.#rig.virtual) return
    const { handle } = this.#checked
    const now = await this.#rig.now(handle)
    const ends = this.#checked.ids.flatMap((id) => endsOf(this.#checked.record(id))).filter((at) => at > now)
    const aim = ends.length > 0 ? this.#chance.pick(ends) - now : 0
    const ms = this.#chance.pick([aim, aim - 1, aim + this.#rig.graceMs, 1 + this.#chance.below(50)])
    await this.#rig.waitUntil(handle, now + Math.max(1, ms))
  }

  #some<T>(make: () => T): T[] {
    const length = this.#chance.once(20) ? 0 : this.#chance.pick([1, 1, 1, 2, 3, 5])
    return Array.from({ length }, make)
  }

  #id(): string {
    return this.#chance.pick(this.#ids)
  }

  /** A duration of 1 ms and up. */
  #duration(): number {
    const { shortMs, virtual } = this.#rig
    if (this.#chance.once(virtual ? 2 : 12)) {
      const ms = virtual ? 1 + this.#chance.below(100) : shortMs
      this.#shortest = Math.max(this.#shortest, 2 * ms)
      return ms
    }
    return longMs
  }

  #delay(): number {
    return this.#chance.once(2) ? 0 : this.#duration()
  }

  #generation(): string {
    const generation = this.#rig.token('generation')
    this.#generations.push(generation)
    return generation
  }

  #item(): EnqueueItem {
    const chance = this.#chance
    const id = this.#id()
    const payload = chance.pick(['', 'one', 'two', new Uint8Array([0, 128, 255])])
    const known = this.#checked.record(id)
    const incarnation = known !== null && chance.once(6) ? known.spec.incarnation : this.#rig.token('incarnation')
    this.#incarnations.push(incarnation)
    const leased = chance.once(3)
    const old = chance.once(10) ? known?.generation : undefined
    return item(this.#rig, id, {
      incarnation,
      payload,
      fingerprint: chance.pick(['', 'one', 'two']),
      maxAttempts: chance.pick([1, 2, 3, 1_000_000]),
      resultTTL: this.#duration(),
      failureTTL: this.#duration(),
      delayMs: leased ? 0 : this.#delay(),
      rejectMismatch: chance.once(3),
      lease: leased ? { generation: old ?? this.#generation(), leaseMs: this.#duration() } : null,
      wait: chance.once(2),
      refresh: chance.once(3),
    })
  }

  #claim() {
    return { generation: this.#generation(), leaseMs: this.#duration(), limit: 1 + this.#chance.below(4) }
  }

  /** An id with, mostly, its present lease. */
  #leased(): { id: string; generation: string } {
    const id = this.#id()
    const present = this.#checked.record(id)?.generation
    if (present && !this.#chance.once(5)) return { id, generation: present }
    const { generation } = lease(this.#rig)
    return { id, generation: this.#generations.length > 0 ? this.#chance.pick(this.#generations) : generation }
  }

  #settlement(): Settlement {
    const verdict: Verdict = this.#chance.pick([
      () => complete(this.#chance.pick(['', 'result', new Uint8Array([1, 0])]), this.#duration()),
      () => complete('result', this.#duration(), { rows: this.#rows(), ttlMs: this.#duration() }),
      () => fail('error', this.#duration()),
      () => retry('error', this.#delay()),
      () => release(this.#delay()),
    ])()
    return { ...this.#leased(), verdict }
  }

  #extension() {
    return { ...this.#leased(), leaseMs: this.#duration() }
  }

  #mark(): Mark {
    const chance = this.#chance
    return { id: this.#id(), name: chance.pick(['a', 'ab', 'b']), token: chance.pick(['one', 'two', 'three']) }
  }

  /** Mostly by who has the lease. */
  #delivery(): Delivery {
    const chance = this.#chance
    const posted = this.#ids.filter((id) => outboxOf(this.#checked.record(id)) !== undefined)
    const id = posted.length > 0 && !chance.once(5) ? chance.pick(posted) : this.#id()
    const present = outboxOf(this.#checked.record(id))?.generation
    const generation = present && !chance.once(5) ? present : chance.pick(['never was', ...this.#generations])
    return { id, generation, rows: chance.once(3) ? null : this.#rows(), delayMs: this.#delay() }
  }

  #rows() {
    return this.#chance.pick(['rows', '[]', new Uint8Array([2, 0, 255])])
  }
}

function outboxOf(record: JobRecord | null): Outbox | undefined {
  return record?.state === 'completed' ? record.outbox : undefined
}

/** Every moment at which something of a record ends. */
function endsOf(record: JobRecord | null): number[] {
  if (record === null) return []
  const outbox = outboxOf(record)
  const beside = outbox === undefined ? [] : [outbox.at, outbox.until]
  return isTerminal(record) || record.kept === undefined ? [record.at, ...beside] : [record.at, record.kept.until]
}

async function runSequence(rig: Rig, seed: number, commands: number, namespace: string): Promise<void> {
  const chance = new Chance(seed)
  const [one, two] = await rig.pair(namespace)
  const sequence = new Sequence(rig, new Checked(rig, one, two), chance)
  for (let count = 1; count <= commands; count++) {
    try {
      await sequence.step()
    } catch (error) {
      const replay = `command ${count} of { random: { seed: ${seed}, runs: 1, commands: ${commands} } }`
      if (error instanceof Error) error.message = `${replay}: ${error.message}`
      throw error
    }
  }
}

export const randomCases: readonly Case[] = [
  {
    name: 'random: sequences of commands do what the machine does',
    async run(rig) {
      const { seed, runs = 4, commands = rig.virtual ? 400 : 100 } = rig.options.random ?? {}
      if (runs === 0) return rig.note('random sequences: random.runs is 0')
      const first = seed ?? Math.floor(Math.random() * 2 ** 32)
      for (let run = 0; run < runs; run++) await runSequence(rig, (first + run) >>> 0, commands, `random ${run}`)
    },
  },
]
