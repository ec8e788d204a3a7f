/** The table against the machine over a plain map and a sort: the same records, the same order, the same counts. */

import t from 'tap'
import type { ClaimTerms, Command } from '../../src/machine.ts'
import { collectableFrom, living, step } from '../../src/machine.ts'
import type { JobRecord, ProcessingRecord } from '../../src/record.ts'
import { complete, fail, forgottenFrom, release, retry } from '../../src/record.ts'
import { RecordTable } from '../../storages/memory/table.ts'
import { Seeded } from '../support/seeded.ts'

/** The slow one. */
class PlainTable {
  readonly records = new Map<string, { record: JobRecord; order: number }>()
  #order = 0

  apply(id: string, command: Command, now: number) {
    const kept = this.records.get(id)
    const done = step(kept?.record ?? null, command, now)
    this.put(id, done.record)
    return done.answer
  }

  put(id: string, record: JobRecord | null) {
    if (record === null) this.records.delete(id)
    else if (this.records.get(id)?.record !== record) this.records.set(id, { record, order: this.#order++ })
  }

  due(now: number, graceMs: number): string[] {
    return [...this.records.entries()]
      .filter(([, { record }]) => {
        if (record.state === 'completed' || record.state === 'failed') return false
        if (forgottenFrom(record) !== Number.POSITIVE_INFINITY) return false
        return record.at + (record.state === 'processing' ? graceMs : 0) <= now
      })
      .sort(([, a], [, b]) => a.record.at - b.record.at || a.order - b.order)
      .map(([id]) => id)
  }

  /** Outboxes that are due, those of records past their end among them. */
  posted(now: number, graceMs: number): string[] {
    return [...this.records.values()]
      .flatMap(({ record, order }) => {
        if (record.state !== 'completed' || record.outbox === undefined) return []
        return collectableFrom(record.outbox, graceMs) <= now
          ? [{ id: record.spec.id, at: record.outbox.at, order }]
          : []
      })
      .sort((a, b) => a.at - b.at || a.order - b.order)
      .map(({ id }) => id)
  }
}

/** Until the next of these is due, ms, as the table tells it: leases by their end, without the grace. */
function nextOf(plain: PlainTable, now: number): number | null {
  const ats = [...plain.records.values()].flatMap(({ record }) => {
    return record.state === 'completed' && record.outbox !== undefined ? [record.outbox.at] : []
  })
  return ats.length === 0 ? null : Math.max(0, Math.min(...ats) - now)
}

t.test('at random, command by command', async (t) => {
  const seeded = new Seeded()
  let outboxes = 0
  for (let run = 0; run < 12; run++) {
    const graceMs = run % 3 === 0 ? 20 : 0
    const table = new RecordTable()
    const plain = new PlainTable()
    let now = 1_000_000
    let token = 0
    const where = () => `seed ${seeded.seed}, run ${run}, token ${token}`
    for (let turn = 0; turn < 700; turn++) {
      token++
      now += seeded.chance(0.3) ? seeded.below(60) : 0
      const id = `id-${seeded.below(25)}`
      const terms: ClaimTerms = { generation: `g${token}`, leaseMs: 10 + seeded.below(50), graceMs }
      const record = table.get(id)
      const generation = record !== null && 'generation' in record ? (record.generation ?? 'none') : 'none'
      const inline = seeded.chance(0.15)
      const relay = record?.state === 'completed' ? (record.outbox?.generation ?? 'none') : 'none'
      // Rows are kept for long: few relays look for them.
      const posted = complete('r', 1 + seeded.below(80), { rows: 'rows', ttlMs: 1 + seeded.below(2_000) })
      const verdict = seeded.pick([
        posted,
        posted,
        complete('r', 1 + seeded.below(80)),
        fail('e', 1 + seeded.below(80)),
        retry('e', seeded.below(80)),
        release(seeded.below(80)),
      ])
      const commands: Command[] = [
        {
          type: 'enqueue',
          spec: {
            id,
            incarnation: `i${token}`,
            fingerprint: seeded.pick(['', 'a', 'b']),
            maxAttempts: 1 + seeded.below(3),
            resultTTL: 1 + seeded.below(80),
            failureTTL: 1 + seeded.below(80),
          },
          payload: 'p'.repeat(seeded.below(5)),
          delayMs: seeded.chance(0.5) ? 0 : seeded.below(80),
          rejectMismatch: seeded.chance(0.3),
          lease: inline && seeded.chance(0.8) ? terms : null,
          inline,
          refresh: seeded.chance(0.3),
        },
        { type: 'claim', ...terms },
        { type: 'mark', name: seeded.pick(['a', 'b']), token: seeded.pick(['one', 'two']) },
        { type: 'collect', ...terms },
        { type: 'deliver', generation: relay, rows: seeded.pick([null, 'rest']), delayMs: seeded.below(80) },
        { type: 'extend', generation, leaseMs: 10 + seeded.below(50) },
        { type: 'settle', generation, verdict },
        { type: 'settle', generation, verdict },
        { type: 'cancel' },
        { type: 'touch', ttlMs: 1 + seeded.below(80) },
      ]
      if (seeded.chance(0.4)) {
        const limit = 1 + seeded.below(4)
        const expected: string[] = []
        const exhausted: string[] = []
        for (const due of plain.due(now, graceMs)) {
          if (expected.length === limit) break
          if (plain.apply(due, { type: 'claim', ...terms }, now) === 'leased') expected.push(due)
          else exhausted.push(due)
        }
        const claim = table.claimDue(terms, limit, now)
        const ids = (records: readonly JobRecord[]) => records.map(({ spec }) => spec.id)
        t.strictSame([ids(claim.jobs), ids(claim.exhausted)], [expected, exhausted], where())
        // Else few would be settled before their leases end, and of these fewer with an outbox.
        for (const { spec, generation } of claim.jobs) {
          if (!seeded.chance(0.1)) continue
          const settle = { type: 'settle', generation, verdict: posted } as const
          t.strictSame(table.apply(spec.id, settle, now).answer, plain.apply(spec.id, settle, now), where())
        }
      } else if (seeded.chance(0.2)) {
        const limit = 1 + seeded.below(4)
        const expected = plain.posted(now, graceMs).slice(0, limit)
        t.strictSame(table.outboxIds(limit, now, graceMs), expected, where())
        const alive = expected.filter((due) => plain.apply(due, { type: 'collect', ...terms }, now) === 'collected')
        const collected = table.collectDue(terms, limit, now).map(({ spec }) => spec.id)
        t.strictSame(collected, alive, where())
        outboxes += collected.length
      } else if (seeded.chance(0.1)) {
        const limit = seeded.below(5)
        const swept = table.sweep(limit, now)
        let left = limit
        const dead = [...plain.records.entries()].filter(([, { record }]) => living(record, now) === null)
        dead.sort(([, a], [, b]) => forgottenFrom(a.record) - forgottenFrom(b.record) || a.order - b.order)
        for (const [gone] of dead) if (left-- > 0) plain.put(gone, null)
        t.equal(swept, Math.min(limit, dead.length), where())
      } else {
        const command = seeded.pick(commands)
        t.strictSame(table.apply(id, command, now).answer, plain.apply(id, command, now), where())
      }
      const due = plain.due(now, graceMs)
      const nextDue = table.nextDueInMs(now, graceMs)
      if ((nextDue === 0) !== due.length > 0) t.fail(`nextDueInMs ${nextDue}, due ${due}: ${where()}`)
      t.equal(table.nextOutboxInMs(now), nextOf(plain, now), where())
      const limit = 1 + seeded.below(10)
      t.strictSame(
        table.dueIds(limit, now, graceMs, () => false),
        due.slice(0, limit),
        where(),
      )
      if (turn % 50 === 0) {
        const counts = { queued: 0, processing: 0, failing: 0, completed: 0, failed: 0 }
        for (const { record: one } of plain.records.values()) counts[one.state]++
        t.strictSame({ ...table.counts }, counts, where())
        t.equal(table.size, plain.records.size, where())
        t.strictSame(
          [...table.records()].map((one) => JSON.stringify(one)).sort(),
          [...plain.records.values()].map((one) => JSON.stringify(one.record)).sort(),
          where(),
        )
        const forget = [...plain.records.values()].map((one) => forgottenFrom(one.record)).filter(Number.isFinite)
        t.equal(table.nextForgetAt(), forget.length === 0 ? null : Math.min(...forget), where())
      }
    }
    for (const id of [...plain.records.keys()]) table.put(id, null, now)
    t.equal(table.size, 0)
    t.equal(table.bytes, 0, 'what was weighed in is weighed out')
    t.strictSame({ ...table.counts }, { queued: 0, processing: 0, failing: 0, completed: 0, failed: 0 })
    t.equal(table.nextDueInMs(now, 0), null)
    t.equal(table.nextForgetAt(), null)
    t.equal(table.nextOutboxInMs(now), null)
  }
  t.ok(outboxes > 10, `${outboxes} outboxes were collected`)
})

t.test('an exhausted record does not hide the due ones behind it', async (t) => {
  const table = new RecordTable()
  const enqueue = (id: string, maxAttempts: number, now: number) =>
    table.apply(
      id,
      {
        type: 'enqueue',
        spec: { id, incarnation: id, fingerprint: '', maxAttempts, resultTTL: 1_000, failureTTL: 1_000 },
        payload: '',
        delayMs: 0,
        rejectMismatch: false,
        lease: null,
        inline: false,
      },
      now,
    )
  enqueue('spent', 1, 0)
  const first = table.claimDue({ generation: 'g1', leaseMs: 10, graceMs: 0 }, 5, 0)
  t.strictSame(
    first.jobs.map(({ spec }: ProcessingRecord) => spec.id),
    ['spent'],
  )
  enqueue('fresh', 1, 5)
  const second = table.claimDue({ generation: 'g2', leaseMs: 10, graceMs: 0 }, 5, 20)
  t.strictSame(
    second.jobs.map(({ spec }) => spec.id),
    ['fresh'],
  )
  t.strictSame(
    second.exhausted.map(({ spec }) => spec.id),
    ['spent'],
  )
})
