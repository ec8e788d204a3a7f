import { isDeepStrictEqual } from 'node:util'
import t from 'tap'
import type { Clock } from '../src/clock.ts'
import { AskonceError } from '../src/errors.ts'
import type { Command, Step } from '../src/machine.ts'
import { living, step } from '../src/machine.ts'
import type { JobRecord, Verdict } from '../src/record.ts'
import { complete, fail, release, retry } from '../src/record.ts'
import { claimableFrom, fromRecordStore } from '../src/record-store.ts'
import type { Delivery, EnqueueItem, StorageHandle } from '../src/storage.ts'
import { VirtualClock } from '../storages/conformance/virtual-clock.ts'
import type { Faults } from './support/row-store.ts'
import { noFaults, RowStore, RowTable, rowTraits } from './support/row-store.ts'
import { Seeded } from './support/seeded.ts'

const ids = ['a', 'b', 'c', 'd', 'e', 'f']
const graceMs = 7

/** One random history: two processes on one table, every answer and every row held against the machine. */
class History {
  readonly random: Seeded
  readonly clock = new VirtualClock()
  readonly table = new RowTable()
  readonly handles: StorageHandle[] = []
  readonly generations = ['g']
  readonly incarnations = ['i']
  readonly relays = ['r']
  readonly exact: boolean
  readonly #faults: Partial<Faults>
  /** What the machine says is stored. */
  model = new Map<string, JobRecord | null>()
  rejected = 0
  answered = 0
  #trail: string[] = []
  #tokens = 0

  constructor(seed: number | undefined, faults: Partial<Faults>) {
    this.random = new Seeded(seed)
    this.#faults = faults
    this.exact = Object.values(faults).every((chance) => chance === 0)
  }

  async open(): Promise<void> {
    const now = (): number => this.clock.now()
    const clock: Clock = {
      now,
      monotonic: now,
      timer: (callback) => {
        setImmediate(callback)
        return { clear() {} }
      },
    }
    const { table } = this
    const { next } = this.random
    for (const createFirst of [false, true]) {
      const faults = { ...noFaults, rows: createFirst ? 0.5 : 0, ...this.#faults }
      const open = async (): Promise<RowStore> =>
        new RowStore({ table, clock: this.clock, graceMs, faults, random: next })
      const storage = fromRecordStore({ traits: rowTraits, open, clock, graceMs, createFirst, random: next })
      this.handles.push(await storage.open('q'))
    }
  }

  async run(commands: number): Promise<void> {
    for (let i = 0; i < commands; i++) {
      if (this.random.chance(0.3)) this.clock.skewMs += this.random.below(30)
      await this.#one(this.handles[this.random.below(2)]!)
      this.#compare()
    }
  }

  fail(what: string): never {
    throw new Error(`${what}\nASKONCE_SEED=${this.random.seed} replays this\n${this.#trail.slice(-12).join('\n')}`)
  }

  async #one(handle: StorageHandle): Promise<void> {
    const { random } = this
    const some = Array.from({ length: 1 + random.below(4) }, () => random.pick(ids))
    const now = this.clock.now()
    switch (
      random.pick([
        ...(['enqueue', 'enqueue', 'claim', 'claim', 'ids', 'extend', 'settle', 'settle', 'cancel', 'touch'] as const),
        ...(['mark', 'deliver', 'collect', 'collect', 'sweep'] as const),
      ])
    ) {
      case 'enqueue': {
        const items = some.map((id) => this.#item(id))
        return this.#expect(
          'enqueue',
          some,
          items.map(({ wait: _, lease, ...item }) => ({
            ...item,
            type: 'enqueue',
            lease: lease === null ? null : { ...lease, graceMs },
            refresh: item.refresh === true,
            inline: lease !== null,
          })),
          async () => (await handle.enqueue(items)).answers,
          (answer, record) => ({ ...(answer as object), record }),
        )
      }
      case 'extend': {
        const items = some.map((id) => ({ id, generation: this.#generation(id), leaseMs: 1 + random.below(40) }))
        const commands = items.map(({ id: _, ...item }): Command => ({ type: 'extend', ...item }))
        return this.#expect('extend', some, commands, () => handle.extend(items))
      }
      case 'settle': {
        const items = some.map((id) => ({ id, generation: this.#generation(id), verdict: this.#verdict() }))
        const commands = items.map(({ id: _, ...item }): Command => ({ type: 'settle', ...item }))
        return this.#expect('settle', some, commands, async () => (await handle.settle(items, null)).answers)
      }
      case 'cancel': {
        const commands = some.map((): Command => ({ type: 'cancel' }))
        return this.#expect('cancel', some, commands, () => handle.cancel(some))
      }
      case 'touch': {
        const items = some.map((id) => ({ id, ttlMs: 1 + random.below(40) }))
        const commands = items.map(({ ttlMs }): Command => ({ type: 'touch', ttlMs }))
        return this.#expect('touch', some, commands, () => handle.touch(items))
      }
      case 'mark': {
        const items = some.map((id) => ({ id, name: random.pick(['m', 'mm']), token: random.pick(['one', 'two']) }))
        const commands = items.map(({ id: _, ...item }): Command => ({ type: 'mark', ...item }))
        return this.#expect('mark', some, commands, () => handle.mark(items))
      }
      case 'deliver': {
        const items = some.map((id) => this.#delivery(id))
        const commands = items.map(({ id: _, ...item }): Command => ({ type: 'deliver', ...item }))
        return this.#expect('deliver', some, commands, async () => (await handle.deliver(items, null)).answers)
      }
      case 'collect':
        return this.#collect(handle)
      case 'sweep': {
        const gone = ids.filter((id) => this.#stored(id) !== null && living(this.#stored(id), now) === null)
        const swept = await this.#try('sweep', () => handle.sweep(10))
        if (swept !== undefined && this.exact && swept !== gone.length) this.fail(`swept ${swept}, not ${gone.length}`)
        return
      }
      default:
        return this.#claim(handle, random.chance(0.4) ? [...new Set(some)] : undefined)
    }
  }

  /** Runs it, and holds answers against what the machine says to the same commands, one after the other. */
  async #expect(
    name: string,
    keys: readonly string[],
    commands: readonly Command[],
    run: () => Promise<readonly unknown[]>,
    shape: (answer: unknown, record: JobRecord | null) => unknown = (answer) => answer,
  ): Promise<void> {
    const now = this.clock.now()
    const after = new Map(this.model)
    const steps = keys.map((key, i): Step<unknown> => {
      const made = step(after.get(key) ?? null, commands[i]!, now)
      after.set(key, made.record)
      return made
    })
    const expected = steps.map(({ answer, record }) => shape(answer, record))
    const answers = await this.#try(`${name} ${keys}`, run)
    if (answers === undefined) return this.#settleFor(after)
    if (!isDeepStrictEqual(answers, expected)) {
      this.fail(`${name}: answered ${JSON.stringify(answers)}, the machine ${JSON.stringify(expected)}`)
    }
    this.model = after
  }

  async #claim(handle: StorageHandle, named: string[] | undefined): Promise<void> {
    const now = this.clock.now()
    const generation = this.#token('g', this.generations)
    const request = { generation, leaseMs: 1 + this.random.below(40), limit: 1 + this.random.below(3) }
    const command: Command = { type: 'claim', generation, leaseMs: request.leaseMs, graceMs }
    const due = ids
      .map((id) => living(this.model.get(id) ?? null, now))
      .filter((record) => record !== null && step(record, command, now).answer !== 'refused') as JobRecord[]
    const possible = due.filter((r) => named?.includes(r.spec.id) ?? claimableFrom(r, graceMs) !== null)
    const answer = await this.#try(`claim ${named ?? ''}`, () =>
      handle.claim({ ...request, ...(named === undefined ? {} : { ids: named }) }),
    )
    const after = new Map(this.model)
    for (const record of possible) after.set(record.spec.id, step(record, command, now).record)
    if (answer === undefined) return this.#settleFor(after)
    const { jobs, exhausted } = answer
    if (jobs.length > request.limit) this.fail(`${jobs.length} jobs, more than ${request.limit}`)
    for (const record of [...jobs, ...exhausted]) {
      const { id } = record.spec
      if (!isDeepStrictEqual(after.get(id), record)) {
        this.fail(`claimed ${JSON.stringify(record)}, the machine ${JSON.stringify(after.get(id))}`)
      }
      if (!possible.some(({ spec }) => spec.id === id)) this.fail(`${id} was not to be claimed`)
      this.model.set(id, record)
    }
    const left = possible.length - jobs.length - exhausted.length
    if (this.exact && jobs.length < request.limit && left > 0) this.fail(`${left} due jobs were left`)
    // A lease whose reply was lost beyond repair may have been made without being told of.
    if (!this.exact) this.#settleFor(after)
  }

  async #collect(handle: StorageHandle): Promise<void> {
    const now = this.clock.now()
    const generation = this.#token('r', this.relays)
    const request = { generation, leaseMs: 1 + this.random.below(40), limit: 1 + this.random.below(3) }
    const command: Command = { type: 'collect', generation, leaseMs: request.leaseMs, graceMs }
    const after = new Map(this.model)
    const possible = ids.filter((id) => {
      const { record, answer } = step(this.model.get(id) ?? null, command, now)
      after.set(id, record)
      return answer === 'collected'
    })
    const answer = await this.#try('collect', () => handle.deliver([], request))
    if (answer === undefined) return this.#settleFor(after)
    const { records } = answer.collected!
    if (records.length > request.limit) this.fail(`${records.length} outboxes, more than ${request.limit}`)
    for (const record of records) {
      const { id } = record.spec
      if (!isDeepStrictEqual(after.get(id), record)) {
        this.fail(`collected ${JSON.stringify(record)}, the machine ${JSON.stringify(after.get(id))}`)
      }
      if (!possible.includes(id)) this.fail(`the outbox of ${id} was not to be collected`)
      this.model.set(id, record)
    }
    const left = possible.length - records.length
    if (this.exact && records.length < request.limit && left > 0) this.fail(`${left} due outboxes were left`)
    // A lease whose reply was lost beyond repair may have been made without being told of.
    if (!this.exact) this.#settleFor(after)
  }

  /** After a failed call each row is as before it or as after it; the model takes over which. */
  #settleFor(after: ReadonlyMap<string, JobRecord | null>): void {
    const now = this.clock.now()
    for (const id of ids) {
      const stored = living(this.#stored(id), now)
      const before = living(this.model.get(id) ?? null, now)
      const then = living(after.get(id) ?? null, now)
      if (isDeepStrictEqual(stored, then)) this.model.set(id, then)
      else if (!isDeepStrictEqual(stored, before)) this.fail(`${id} is neither as before nor as after the call`)
    }
  }

  #compare(): void {
    const now = this.clock.now()
    for (const id of ids) {
      const stored = living(this.#stored(id), now)
      const expected = living(this.model.get(id) ?? null, now)
      if (!isDeepStrictEqual(stored, expected)) {
        this.fail(`${id} is ${JSON.stringify(stored)}, should be ${JSON.stringify(expected)}`)
      }
    }
  }

  async #try<T>(what: string, run: () => Promise<T>): Promise<T | undefined> {
    try {
      const answer = await run()
      this.answered++
      this.#trail.push(`${this.clock.now()} ${what} -> ${JSON.stringify(answer)}`)
      return answer
    } catch (error) {
      this.#trail.push(`${this.clock.now()} ${what} -> ${error}`)
      if (this.exact || !(error instanceof AskonceError) || error.cause instanceof TypeError) this.fail(`${error}`)
      this.rejected++
      return undefined
    }
  }

  #stored(id: string): JobRecord | null {
    const row = this.table.rows.get(id)
    return row?.type === 'job' ? row.record : null
  }

  #item(id: string): EnqueueItem {
    const { random } = this
    const again = random.chance(0.2)
    const spec = {
      id,
      incarnation: again ? random.pick(this.incarnations) : this.#token('i', this.incarnations),
      fingerprint: random.pick(['', 'x', 'y']),
      maxAttempts: 1 + random.below(3),
      resultTTL: 1 + random.below(60),
      failureTTL: 1 + random.below(60),
    }
    const lease = random.chance(0.4)
      ? { generation: this.#token('g', this.generations), leaseMs: 1 + random.below(40) }
      : null
    const delayMs = lease === null && random.chance(0.3) ? random.below(40) : 0
    const refresh = random.chance(0.3)
    const rejectMismatch = random.chance(0.3)
    return { spec, payload: `p${random.below(9)}`, delayMs, rejectMismatch, lease, wait: false, refresh }
  }

  #verdict(): Verdict {
    const { random } = this
    const ms = random.below(40)
    // Some are kept for long: much can happen to them before they end.
    const keptMs = random.chance(0.5) ? ms + 1 : 500
    const posted = complete(`r${ms}`, ms + 1, { rows: `rows ${ms}`, ttlMs: keptMs })
    return random.pick([
      complete(`r${ms}`, keptMs),
      posted,
      posted,
      fail(`e${ms}`, ms + 1),
      retry(`e${ms}`, ms),
      release(ms),
    ])
  }

  #delivery(id: string): Delivery {
    const { random } = this
    const record = this.model.get(id)
    const present = record?.state === 'completed' ? record.outbox?.generation : undefined
    const generation = present && random.chance(0.8) ? present : random.pick(this.relays)
    return { id, generation, rows: random.chance(0.5) ? null : 'rest', delayMs: random.below(40) }
  }

  #generation(id: string): string {
    const present = this.model.get(id)?.generation
    return present && this.random.chance(0.7) ? present : this.random.pick(this.generations)
  }

  #token(kind: string, all: string[]): string {
    const token = `${kind}${this.#tokens++}`
    all.push(token)
    return token
  }
}

const scenarios: { readonly [name: string]: Partial<Faults> } = {
  'no faults': {},
  'replies lost': { after: 0.2, echo: 0.1, rowless: 0.3 },
  'writes failing before, after and one by one': { before: 0.1, after: 0.1, change: 0.15, rowless: 0.5 },
  'hints stale, wrong and incomplete': { stale: 0.4, wrong: 0.4, incomplete: 0.3 },
  'everything at once': {
    load: 0.05,
    due: 0.05,
    before: 0.05,
    after: 0.05,
    change: 0.05,
    echo: 0.05,
    rowless: 0.3,
    stale: 0.2,
    wrong: 0.2,
    incomplete: 0.1,
    rows: 0.5,
  },
}

for (const [name, faults] of Object.entries(scenarios)) {
  t.test(`random commands of two processes do what the machine says: ${name}`, async (t) => {
    const first = new Seeded().seed
    let answered = 0
    let rejected = 0
    for (let run = 0; run < 25; run++) {
      // A replay runs the given seed first.
      const history = new History(first + run, faults)
      await history.open()
      await history.run(160)
      answered += history.answered
      rejected += history.rejected
    }
    t.comment(`seeds from ${first}: ${answered} calls answered, ${rejected} rejected`)
    t.ok(answered > rejected, 'most calls get through')
  })
}
