/** The linearizability checker itself: histories made by hand, and histories of machines that are broken. */

import t from 'tap'
import type { Command, EnqueueCommand } from '../../src/machine.ts'
import { step } from '../../src/machine.ts'
import type { JobRecord } from '../../src/record.ts'
import { complete, fail } from '../../src/record.ts'
import type { Storage } from '../../src/storage.ts'
import {
  checkLinearizability,
  faultyStorage,
  type HistoryEntry,
  type Linearizability,
  noFaults,
  type ReadCommand,
  ReferenceStorage,
  recordedStorage,
  Seeded,
  type Seen,
  settle,
  type TimedCommand,
  timedCommands,
  VirtualClock,
} from '../../storages/conformance/index.ts'
import { brokenMachines } from '../conformance/broken-machines.ts'
import { RandomCalls } from './random-calls.ts'

const long = 1_000_000

function enqueue(incarnation: string, lease: string | null = null): EnqueueCommand {
  const spec = { id: 'a', incarnation, fingerprint: '', maxAttempts: 3, resultTTL: long, failureTTL: long }
  const terms = lease === null ? null : { generation: lease, leaseMs: 100, graceMs: 0 }
  return {
    type: 'enqueue',
    spec,
    payload: 'p',
    delayMs: 0,
    rejectMismatch: false,
    lease: terms,
    inline: lease !== null,
  }
}

const claim = (generation: string): Command => ({ type: 'claim', generation, leaseMs: 100, graceMs: 0 })
const done = (generation: string, ttlMs = long): Command => {
  return { type: 'settle', generation, verdict: complete('r', ttlMs) }
}
const failed = (generation: string): Command => ({ type: 'settle', generation, verdict: fail('e', long) })
const created = { outcome: 'created', leased: false, mismatch: false } as const
const exists = { outcome: 'exists', leased: false, mismatch: false } as const

interface Line {
  readonly command: Command | ReadCommand
  /** From and to; null: never answered. */
  readonly span: readonly [number, number | null]
  /** The storage's time, if told; else the span is. */
  readonly now?: number
  readonly answer?: Seen['answer']
  readonly record?: JobRecord | null
}

/** A history of the id `a`, in which time is told in ms. */
function history(...lines: readonly Line[]): ReadonlyMap<string, TimedCommand[]> {
  const commands = lines.map(({ command, span: [calledAt, returnedAt], now, answer, record }, index): TimedCommand => {
    const seen: Seen | null =
      returnedAt === null ? null : { answer: answer ?? null, owner: false, ...(record === undefined ? {} : { record }) }
    const span = now === undefined ? { lo: calledAt, hi: returnedAt ?? calledAt + long } : { lo: now, hi: now }
    const latest = returnedAt ?? long
    const deadline = returnedAt ?? Number.POSITIVE_INFINITY
    return { id: 'a', caller: `p${index}`, command, calledAt, returnedAt, deadline, now: span, latest, seen }
  })
  return new Map([['a', commands]])
}

/** The record after commands at their times. */
function recordAfter(...commands: readonly (readonly [Command, number])[]): JobRecord | null {
  return commands.reduce<JobRecord | null>((record, [command, now]) => step(record, command, now).record, null)
}

const good: Record<string, ReadonlyMap<string, TimedCommand[]>> = {
  'one after the other': history(
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: claim('g'), span: [20, 30], answer: 'leased' },
    { command: done('g'), span: [40, 50], answer: 'settled' },
    { command: done('g'), span: [60, 70], answer: 'settled' },
    { command: { type: 'cancel' }, span: [80, 90], answer: 'completed' },
  ),
  'two at once, the later call first': history(
    { command: enqueue('i'), span: [0, 30], answer: exists },
    { command: enqueue('j'), span: [10, 20], answer: created },
  ),
  'an enqueue that was never answered has happened': history(
    { command: enqueue('i'), span: [0, null] },
    { command: enqueue('j'), span: [100, 110], answer: exists },
    { command: { type: 'read' }, span: [120, 130], record: recordAfter([enqueue('i'), 90]) },
  ),
  'an enqueue that was never answered has not happened': history(
    { command: enqueue('i'), span: [0, null] },
    { command: enqueue('j'), span: [100, 110], answer: created },
  ),
  'it happened long after the call': history(
    { command: enqueue('i'), span: [0, null] },
    { command: { type: 'cancel' }, span: [100, 110], answer: 'not_found' },
    { command: { type: 'cancel' }, span: [200, 210], answer: 'cancelled' },
  ),
  'a claim that was never answered holds the lease': history(
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: claim('g'), span: [20, null] },
    { command: claim('h'), span: [50, 60], answer: 'refused' },
    { command: claim('h'), span: [500, 510], answer: 'leased' },
  ),
  'a lease ran out and was taken over': history(
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: claim('g'), span: [20, 30], answer: 'leased' },
    { command: claim('h'), span: [130, 140], answer: 'leased' },
    { command: done('g'), span: [150, 160], answer: 'stale' },
    { command: done('h'), span: [170, 180], answer: 'settled' },
  ),
  'a result that ended, and its id anew': history(
    { command: enqueue('i', 'g'), span: [0, 10], answer: { outcome: 'created', leased: true, mismatch: false } },
    { command: done('g', 50), span: [20, 30], answer: 'settled' },
    { command: enqueue('j'), span: [60, 90], answer: created },
  ),
  'the time of a settle shows later': history(
    {
      command: enqueue('i', 'g'),
      span: [0, 10],
      now: 5,
      answer: { outcome: 'created', leased: true, mismatch: false },
    },
    { command: done('g'), span: [20, 90], answer: 'settled' },
    { command: { type: 'read' }, span: [95, 99], record: recordAfter([enqueue('i', 'g'), 5], [done('g'), 77]) },
  ),
}

const bad: Record<string, ReadonlyMap<string, TimedCommand[]>> = {
  'a double create': history(
    { command: enqueue('i'), span: [0, 30], answer: created },
    { command: enqueue('j'), span: [10, 20], answer: created },
  ),
  'a lost enqueue': history(
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: { type: 'read' }, span: [20, 30], record: null },
  ),
  'a lost update: settled, and still under lease': history(
    {
      command: enqueue('i', 'g'),
      span: [0, 10],
      now: 5,
      answer: { outcome: 'created', leased: true, mismatch: false },
    },
    { command: done('g'), span: [20, 30], answer: 'settled' },
    { command: { type: 'read' }, span: [40, 50], record: recordAfter([enqueue('i', 'g'), 5]) },
  ),
  'two leases at once': history(
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: claim('g'), span: [20, 40], answer: 'leased' },
    { command: claim('h'), span: [30, 50], answer: 'leased' },
  ),
  'a stale settle that was accepted': history(
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: claim('g'), span: [20, 30], answer: 'leased' },
    { command: claim('h'), span: [130, 140], answer: 'leased' },
    { command: done('g'), span: [150, 160], answer: 'settled' },
  ),
  'two verdicts': history(
    { command: enqueue('i', 'g'), span: [0, 10], answer: { outcome: 'created', leased: true, mismatch: false } },
    { command: done('g'), span: [20, 60], answer: 'settled' },
    { command: failed('g'), span: [30, 50], answer: 'settled' },
  ),
  'a record that came back after its end': history(
    {
      command: enqueue('i', 'g'),
      span: [0, 10],
      now: 5,
      answer: { outcome: 'created', leased: true, mismatch: false },
    },
    { command: done('g', 50), span: [20, 30], answer: 'settled' },
    { command: { type: 'cancel' }, span: [100, 110], answer: 'not_found' },
    { command: { type: 'cancel' }, span: [120, 130], answer: 'completed' },
  ),
  'a record that came back after its cancellation': history(
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: { type: 'cancel' }, span: [20, 30], answer: 'cancelled' },
    { command: claim('g'), span: [40, 50], answer: 'leased' },
  ),
  'an answer from the future': history(
    { command: { type: 'read' }, span: [0, 10], record: recordAfter([enqueue('i'), 25]) },
    { command: enqueue('i'), span: [20, 30], answer: created },
  ),
  'a lease that was taken over too early': history(
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: claim('g'), span: [20, 30], answer: 'leased' },
    { command: claim('h'), span: [100, 119], answer: 'leased' },
  ),
}

for (const [name, given] of Object.entries(good)) {
  t.test(`linearizable: ${name}`, async (t) => {
    const result = checkLinearizability(given)
    t.equal(result.outcome, 'linearizable', name, { message: 'message' in result ? result.message : '' })
  })
}

for (const [name, given] of Object.entries(bad)) {
  t.test(`not linearizable: ${name}`, async (t) => {
    t.equal(checkLinearizability(given).outcome, 'violation')
  })
}

t.test('a search that takes too long is undecided', async (t) => {
  const given = history(
    ...Array.from({ length: 4 }, (_, index): Line => ({ command: claim(`g${index}`), span: [0, null] })),
    { command: enqueue('i'), span: [0, 10], answer: created },
    { command: { type: 'cancel' }, span: [2_000, 2_010], answer: 'not_found' },
  )
  t.equal(checkLinearizability(given, { nodesMax: 3 }).outcome, 'undecided')
  t.equal(checkLinearizability(given).outcome, 'violation')
})

t.test('holds bind all ids together', async (t) => {
  const at = { at: 0, wall: 0 }
  const entry: HistoryEntry = { kind: 'call', n: 0, caller: 'p', operation: 'hold', args: [1], ...at }
  t.throws(() => timedCommands([entry]), /holds/)
})

/** How long a message travels at most, ms. */
const latencyMs = 6

/** What several callers of one storage record on a virtual clock, with a network that delays, overtakes and loses. */
async function historyOf(make: (clock: VirtualClock) => Storage, seed: number): Promise<HistoryEntry[]> {
  const clock = new VirtualClock()
  const { next: random } = new Seeded(seed)
  const inner = make(clock)
  const entries: HistoryEntry[] = []
  let order = 0
  const callers = Array.from({ length: 3 }, async (_, index) => {
    const caller = `c${index}`
    const faults = { ...noFaults, latencyMs, before: 0.02, after: 0.03, late: 0.02 }
    const storage = recordedStorage(faultyStorage(inner, { clock, random, faults }), {
      caller,
      monotonic: () => order++,
      wall: () => clock.now(),
      write: (entry) => entries.push(structuredClone(entry)),
    })
    const handle = await storage.open('q').catch(() => storage.open('q'))
    await new RandomCalls(handle, {
      caller,
      seed: seed * 3 + index,
      calls: 120,
      outboxes: true,
      now: () => clock.now(),
    }).run()
  })
  let running = true
  const all = Promise.all(callers).finally(() => (running = false))
  for (let turns = 0; running && turns < 100_000; turns++) {
    await clock.advance(1)
    await settle()
  }
  await all
  return entries
}

function check(entries: readonly HistoryEntry[]): Linearizability {
  return checkLinearizability(timedCommands(entries, { openMsMax: 5 * latencyMs }), { nodesMax: 20_000 })
}

t.test('histories of the sound machine are linearizable', async (t) => {
  for (let seed = 1; seed <= 10; seed++) {
    const entries = await historyOf((clock) => new ReferenceStorage({ clock }), seed)
    const result = checkLinearizability(timedCommands(entries, { openMsMax: 5 * latencyMs }))
    t.equal(result.outcome, 'linearizable', `seed ${seed}`, { message: 'message' in result ? result.message : '' })
  }
})

t.test('answers that are changed are noticed', async (t) => {
  const entries = await historyOf((clock) => new ReferenceStorage({ clock }), 7)
  const words: Record<string, string> = {
    settled: 'stale',
    stale: 'settled',
    extended: 'stale',
    cancelled: 'not_found',
    updated: 'not_found',
    not_found: 'cancelled',
    created: 'exists',
    exists: 'created',
  }
  let changed = 0
  let noticed = 0
  for (const [index, entry] of entries.entries()) {
    if (entry.kind !== 'return') continue
    const text = JSON.stringify(entry)
    const word = Object.keys(words).find((known) => text.includes(`"${known}"`))
    if (word === undefined || changed >= 100) continue
    const other = JSON.parse(text.replace(`"${word}"`, `"${words[word]}"`)) as HistoryEntry
    changed++
    if (check(entries.with(index, other)).outcome === 'violation') noticed++
  }
  t.comment(`${noticed} of ${changed} changed answers were noticed`)
  t.ok(changed > 50)
  // A second settle of a lease may be answered either way for all that anybody can tell of one whose first was not answered.
  t.ok(noticed > 0.9 * changed, `${noticed} of ${changed}`)
})

/** Broken only in what these histories do not have. */
const elsewhere = /hold|held|mark|outbox|refresh|kept|deliver|collect|relay/

for (const { name, make } of brokenMachines) {
  if (elsewhere.test(name)) continue
  t.test(`noticed: ${name}`, async (t) => {
    let outcome = ''
    for (let seed = 1; seed <= 60 && outcome !== 'violation'; seed++) {
      const entries = await historyOf((clock) => make({ clock }), seed)
      outcome = check(entries).outcome
    }
    t.equal(outcome, 'violation')
  })
}
