import assert from 'node:assert/strict'
import t from 'tap'
import { limits } from '../src/limits.ts'
import type { Command, EnqueueCommand } from '../src/machine.ts'
import { living, step } from '../src/machine.ts'
import type { CompletedRecord, JobRecord, Verdict } from '../src/record.ts'
import { complete, fail, forgottenFrom, isTerminal, keptAt, release, retry } from '../src/record.ts'
import { commands, reachable, spaceNow } from './support/machine-space.ts'

const space = reachable()
const now = 5_000
const spec = { id: 'id', incarnation: 'first', fingerprint: 'x', maxAttempts: 2, resultTTL: 100, failureTTL: 70 }

function enqueue(incarnation: string, more: Partial<EnqueueCommand> = {}): EnqueueCommand {
  const base = { type: 'enqueue', payload: incarnation, delayMs: 0, rejectMismatch: false, lease: null } as const
  return { ...base, spec: { ...spec, incarnation }, inline: more.lease != null, ...more }
}
const refresh = (incarnation = 'second', more: Partial<EnqueueCommand> = {}) =>
  enqueue(incarnation, { refresh: true, ...more })
const claim = (generation: string) => ({ type: 'claim', generation, leaseMs: 50, graceMs: 0 }) as const
const settle = (generation: string, verdict: Verdict) => ({ type: 'settle', generation, verdict }) as const

function play(...script: readonly (readonly [Command, number])[]): JobRecord | null {
  let record: JobRecord | null = null
  for (const [command, at] of script) record = step(record, command, at).record
  return record
}

const done = [[enqueue('first'), now] as const, [claim('g1'), now] as const]
const completed = [...done, [settle('g1', complete('old', 1_000)), now] as const] as const
const posted = [...done, [settle('g1', complete('r', 100, { rows: 'rows', ttlMs: 500 })), now] as const] as const

t.test('a refresh runs anew what has ended, and its result stays readable until its own TTL ends', async (t) => {
  const { record, answer } = step(play(...completed), refresh(), now + 10)
  t.same(answer, { outcome: 'created', leased: false, mismatch: false })
  t.match(record, { state: 'queued', attempts: 0, payload: 'second', generation: null, spec: { createdAt: now + 10 } })
  t.same(keptAt(record as never, now + 999), { result: 'old', settledAt: now, until: now + 1_000 })
  t.equal(keptAt(record as never, now + 1_000), null)

  t.test('who asks without refreshing is answered by it, and leases nothing', async (t) => {
    for (const other of [enqueue('third'), enqueue('third', { lease: claim('g9') })]) {
      const met = step(record, other, now + 11)
      t.equal(met.record, record)
      t.same(met.answer, { outcome: 'exists', leased: false, mismatch: false })
    }
    t.match(
      step(record, enqueue('third', { lease: claim('g9') }), now + 1_000).answer,
      { leased: true },
      'once it is gone',
    )
  })

  t.test('a second refresh finds the first, and may lease it', async (t) => {
    t.same(step(record, refresh('third'), now + 11), { record, answer: { ...answer, outcome: 'exists' } })
    const run = step(record, refresh('third', { lease: claim('g9') }), now + 11)
    t.match(run, {
      record: { state: 'processing', spec: { incarnation: 'second' } },
      answer: { outcome: 'exists', leased: true },
    })
  })

  t.test('completed, the new result is all there is', async (t) => {
    const after = play(
      ...completed,
      [refresh(), now + 10],
      [claim('g2'), now + 20],
      [settle('g2', complete('new', 100)), now + 30],
    )
    t.match(after, { state: 'completed', result: 'new', settledAt: now + 30, at: now + 130 })
    t.notOk(after !== null && 'kept' in after)
  })

  t.test('in vain, the old result is back, with why, for what is left of its time', async (t) => {
    const leased = play(...completed, [refresh(), now + 10], [claim('g2'), now + 20])
    const retried = play(
      ...completed,
      [refresh(), now + 10],
      [claim('g2'), now + 10],
      [settle('g2', retry('oh', 0)), now + 20],
    )
    const old = { state: 'completed', result: 'old', settledAt: now, at: now + 1_000, spec: { incarnation: 'second' } }
    const failed = step(leased, settle('g2', fail('no', 9_999)), now + 30)
    t.match(failed, {
      answer: 'settled',
      record: { ...old, generation: 'g2', missed: { reason: 'error', error: 'no' } },
    })
    t.equal(step(failed.record, settle('g2', fail('no', 9_999)), now + 31).answer, 'settled', 'repeated')
    t.equal(step(failed.record, settle('g2', complete('late', 1)), now + 31).answer, 'stale', 'another verdict')
    t.equal(keptAt(retried as never, now + 30)?.result, 'old')
    t.match(step(retried, { type: 'cancel' }, now + 30), {
      answer: 'cancelled',
      record: { ...old, missed: { reason: 'cancelled' } },
    })
    const last = step(retried, claim('g3'), now + 30).record
    t.match(step(last, settle('g3', retry('no', 0)), now + 40).record, {
      ...old,
      missed: { reason: 'error', error: 'no' },
    })
    t.match(step(last, claim('g4'), now + 500), {
      answer: 'exhausted',
      record: { ...old, missed: { reason: 'exhausted' } },
    })
    t.match(step(last, settle('g3', release(0)), now + 40).record, { kept: { result: 'old' } })
  })

  t.test('in vain after the old result has ended, it is an ordinary failure', async (t) => {
    const leased = play(...completed, [refresh(), now + 10], [claim('g2'), now + 990])
    t.match(step(leased, settle('g2', fail('no', 70)), now + 1_000).record, {
      state: 'failed',
      error: 'no',
      at: now + 1_070,
    })
    t.equal(step(play(...completed, [refresh(), now + 10]), { type: 'cancel' }, now + 1_000).record, null)
  })

  t.test('a failure is run anew with nothing kept; what has not ended is only met', async (t) => {
    const failed = play(...done, [settle('g1', fail('no', 70)), now])
    const again = step(failed, refresh(), now + 10)
    t.match(again, { record: { state: 'queued', attempts: 0 }, answer: { outcome: 'created' } })
    t.notOk('kept' in again.record!)
    const queued = play([enqueue('first'), now])
    t.same(step(queued, refresh(), now + 1), {
      record: queued,
      answer: { outcome: 'exists', leased: false, mismatch: false },
    })
  })

  t.test('another payload is no mismatch, unless it is to be rejected', async (t) => {
    const other = { spec: { ...spec, incarnation: 'second', fingerprint: 'y' } }
    t.match(step(play(...completed), refresh('second', other), now + 1).answer, { outcome: 'created', mismatch: false })
    const rejected = step(play(...completed), refresh('second', { ...other, rejectMismatch: true }), now + 1)
    t.same(rejected, { record: play(...completed), answer: { outcome: 'exists', leased: false, mismatch: true } })
  })

  t.test('inline, it is not forgotten before what it keeps', async (t) => {
    const run = step(play(...completed), refresh('second', { lease: claim('g2') }), now + 10).record!
    t.equal(forgottenFrom(run), now + 1_000)
    t.equal(living(run, now + 999), run)
  })
})

t.test('no result that could be read is lost to a refresh, whatever happens to it', async () => {
  const readable = (record: JobRecord | null): string | null => {
    if (record === null) return null
    if (record.state === 'completed') return record.result as string | null
    return isTerminal(record) ? null : ((keptAt(record, spaceNow)?.result as string | undefined) ?? null)
  }
  for (const stored of space) {
    const before = readable(living(stored, spaceNow))
    if (before === null) continue
    for (const command of commands) {
      const { record } = step(stored, command, spaceNow)
      assert.notEqual(readable(record), null, `${JSON.stringify(command)} on ${JSON.stringify(stored)}`)
    }
  }
})

t.test('rows are written with the completion, and keep its record until they are delivered or given up', async (t) => {
  const record = play(...posted) as CompletedRecord
  t.same(record.outbox, { rows: 'rows', at: now, generation: null, attempts: 0, until: now + 500 })
  t.equal(forgottenFrom(record), now + 500)
  t.equal(living(record, now + 499), record)
  t.equal(living(record, now + 500), null)
  const collect = (generation: string, graceMs = 0) => ({ type: 'collect', generation, leaseMs: 50, graceMs }) as const
  const deliver = (generation: string, rows: string | null) =>
    ({ type: 'deliver', generation, rows, delayMs: 30 }) as const

  t.test('one relay at a time has them, and one that is late delivers nothing more', async (t) => {
    const first = step(record, collect('r1'), now + 200)
    t.match(first, { answer: 'collected', record: { outbox: { generation: 'r1', at: now + 250, attempts: 1 } } })
    t.same(step(first.record, collect('r1'), now + 201), first, 'its reply lost')
    t.equal(step(first.record, collect('r2'), now + 249).answer, 'refused')
    t.equal(step(first.record, collect('r2', 10), now + 259).answer, 'refused', 'within the grace')
    const second = step(first.record, collect('r2'), now + 250)
    t.match(second, { answer: 'collected', record: { outbox: { generation: 'r2', attempts: 2 } } })
    t.same(step(second.record, deliver('r1', null), now + 251), { record: second.record, answer: 'stale' })
    const rest = step(second.record, deliver('r2', 'rest'), now + 260)
    t.match(rest, { answer: 'delivered', record: { outbox: { rows: 'rest', generation: null, at: now + 290 } } })
    t.equal(step(rest.record, collect('r3'), now + 289).answer, 'refused', 'backing off')
    const third = step(rest.record, collect('r3'), now + 290).record
    const all = step(third, deliver('r3', null), now + 300)
    t.equal(all.answer, 'delivered')
    t.notOk('outbox' in all.record!)
    t.equal(living(all.record, now + 300), null, 'its TTL has ended meanwhile')
  })

  t.test('no refresh takes them away', async (t) => {
    t.same(step(record, refresh(), now + 1), { record, answer: { outcome: 'exists', leased: false, mismatch: false } })
    for (const stored of space) {
      const before = living(stored, spaceNow)
      if (before?.state !== 'completed' || before.outbox === undefined) continue
      for (const command of commands) {
        const after = step(stored, command, spaceNow).record
        if (command.type === 'deliver' && command.rows === null) continue
        assert.ok(after?.state === 'completed' && after.outbox !== undefined, JSON.stringify(command))
      }
    }
  })
})

t.test('an effect is marked for one caller, for as long as the record lives', async (t) => {
  const mark = (name: string, token: string) => ({ type: 'mark', name, token }) as const
  const first = step(play(...completed), mark('mail', 'a'), now + 1)
  t.match(first, { answer: 'marked', record: { state: 'completed', result: 'old', spec: { marks: 'mail=a\n' } } })
  t.same(step(first.record, mark('mail', 'a'), now + 2), first, 'its reply lost')
  t.same(step(first.record, mark('mail', 'b'), now + 2), { record: first.record, answer: 'taken' })
  t.equal(step(first.record, mark('mai', 'b'), now + 2).answer, 'marked', 'another name')
  t.equal(step(first.record, mark('il', 'b'), now + 2).answer, 'marked', 'another name')
  t.equal(step(null, mark('mail', 'a'), now).answer, 'not_found')

  const script = [claim('g1'), settle('g1', retry('e', 0)), claim('g2'), settle('g2', complete('r', 9))]
  let record: JobRecord | null = step(play([enqueue('first'), now]), mark('mail', 'a'), now).record
  for (const command of script) {
    record = step(record, command, now).record
    t.equal(record?.spec.marks, 'mail=a\n', 'stays through every attempt')
  }
  t.equal(step(record, refresh(), now).record?.spec.marks, undefined, 'a new run has effects of its own')

  let full: JobRecord | null = play(...completed)
  for (let i = 0; i < 1_000; i++) {
    const { record: after, answer } = step(full, mark(`effect-${i}`, 't'.repeat(40)), now)
    full = after
    if (answer === 'full') break
  }
  t.equal(step(full, mark('one-more', 't'.repeat(40)), now).answer, 'full')
  t.ok(full!.spec.marks!.length <= limits.marksCharsMax)
  t.equal(step(full, mark('effect-0', 't'.repeat(40)), now).answer, 'marked', 'what is there is still told')
})
