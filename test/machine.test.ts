import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { ClaimCommand, Command, EnqueueCommand, EnqueueOutcome } from '../src/machine.ts'
import { living, step } from '../src/machine.ts'
import type { FailedRecord, JobRecord, Outbox, ProcessingRecord, QueuedRecord } from '../src/record.ts'
import { complete, fail, forgottenFrom, isTerminal, keptAt, release, retry } from '../src/record.ts'
import type { Happened } from './support/machine-history.ts'
import { isNewLease, moves, play } from './support/machine-history.ts'
import { changed, commands, reachable, spaceNow } from './support/machine-space.ts'

const space = reachable()
const history = moves.map(play)
const runs = { numRuns: 1_000 }

const now = 5_000
const spec = { id: 'id', incarnation: 'i', fingerprint: 'x', maxAttempts: 3, resultTTL: 100, failureTTL: 70 }

function enqueue(more: Partial<EnqueueCommand> = {}): EnqueueCommand {
  const base = { type: 'enqueue', spec, payload: 'p', delayMs: 0, rejectMismatch: false, lease: null } as const
  return { ...base, inline: more.lease != null, ...more }
}

function claim(generation: string, more: Partial<ClaimCommand> = {}): ClaimCommand {
  return { type: 'claim', generation, leaseMs: 50, graceMs: 0, ...more }
}

function made(...steps: [Command, number][]): JobRecord {
  let record: JobRecord | null = null
  for (const [command, at] of steps) record = step(record, command, at).record
  assert.ok(record !== null)
  return record
}

const queued = (more: Partial<EnqueueCommand> = {}): QueuedRecord => made([enqueue(more), now]) as QueuedRecord
const leased = (generation = 'g1'): ProcessingRecord =>
  made([enqueue(), now], [claim(generation), now]) as ProcessingRecord
const settled = (verdict = complete('r', 100)): JobRecord =>
  made([enqueue(), now], [claim('g1'), now], [{ type: 'settle', generation: 'g1', verdict }, now])

/** Whether a refresh has begun a new incarnation of what was there. */
function isAnew({ before, after }: Happened): boolean {
  return before !== null && after !== null && before.spec.incarnation !== after.spec.incarnation
}

/** Runs `check` on every state and command of the small space. */
function everywhere(check: (stored: JobRecord | null, command: Command) => void): void {
  for (const stored of space) for (const command of commands) check(stored, command)
}

function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    Object.values(value).forEach(freeze)
  }
  return value
}

t.test('step is pure: frozen input is enough for it, and the same input gets the same answer', async () => {
  freeze(space)
  freeze(commands)
  everywhere((stored, command) => {
    const first = freeze(step(stored, command, spaceNow))
    // Deep comparison of half a million answers would be slow, and references tell most.
    const second = step(stored, command, spaceNow)
    if (first.record !== second.record || first.answer !== second.answer) assert.deepEqual(second, first)
  })
})

t.test('fencing', async (t) => {
  t.test('only the holder extends, and only the holder settles', async () => {
    everywhere((stored, command) => {
      if (command.type !== 'extend' && command.type !== 'settle') return
      const before = living(stored, spaceNow)
      const { record, answer } = step(stored, command, spaceNow)
      const holder = before?.state === 'processing' && before.generation === command.generation
      const earlier = before !== null && before.generation === command.generation
      if (!holder) assert.equal(record, before, 'nothing changes')
      if (!earlier) assert.equal(answer, 'stale')
      if (holder) assert.notEqual(answer, 'stale')
    })
  })

  t.test('only the relay that has the lease of the rows delivers them', async () => {
    everywhere((stored, command) => {
      if (command.type !== 'deliver') return
      const before = living(stored, spaceNow)
      const { record, answer } = step(stored, command, spaceNow)
      if (outboxOf(before)?.generation === command.generation) assert.equal(answer, 'delivered')
      else assert.deepEqual({ record, answer }, { record: before, answer: 'stale' })
    })
  })

  t.test(
    'a lease that was taken over never counts again, nor after the record was forgotten and made anew',
    async () => {
      fc.assert(
        fc.property(history, (happened) => {
          const dead = new Set<string>()
          let present: string | null = null
          for (const { command, before, after, answer } of happened) {
            if (present !== null && before?.generation !== present) dead.add(present)
            if ((command.type === 'extend' || command.type === 'settle') && dead.has(command.generation)) {
              assert.equal(answer, 'stale')
              assert.equal(after, before)
            }
            const next = after?.generation ?? null
            if (present !== null && next !== present) dead.add(present)
            assert.ok(next === null || !dead.has(next), `${next} is back`)
            present = next
          }
        }),
        runs,
      )
    },
  )

  t.test('by the letter: B takes over, then A extends and settles in vain, whatever the verdict', async (t) => {
    const taken = step(leased('A'), claim('B'), now + 50).record!
    t.match(taken, { state: 'processing', generation: 'B', attempts: 2, at: now + 100 })
    for (const verdict of [complete('r', 1), fail('e', 1), retry('e', 1), release(1)]) {
      t.same(step(taken, { type: 'settle', generation: 'A', verdict }, now + 51), { record: taken, answer: 'stale' })
      const done = step(taken, { type: 'settle', generation: 'B', verdict }, now + 52).record!
      t.same(step(done, { type: 'settle', generation: 'A', verdict }, now + 52), { record: done, answer: 'stale' })
    }
    t.same(step(taken, { type: 'extend', generation: 'A', leaseMs: 9 }, now + 51), { record: taken, answer: 'stale' })
  })
})

t.test('at most one unexpired lease: no claim and no inline run gets what another holds', async () => {
  everywhere((stored, command) => {
    const before = living(stored, spaceNow)
    if (before?.state !== 'processing') return
    const lease = command.type === 'claim' ? command : command.type === 'enqueue' ? command.lease : null
    if (lease === null || lease.generation === before.generation) return
    const { record } = step(stored, command, spaceNow)
    if (before.at + lease.graceMs > spaceNow) assert.ok(record === before || record?.generation === before.generation)
  })
})

t.test('attempts', async (t) => {
  t.test('are counted when leased, given back when released, and never more than allowed', async () => {
    fc.assert(
      fc.property(history, (happened) => {
        let counted = 0
        for (const one of happened) {
          const { command, before, after } = one
          if (before === null || isAnew(one)) counted = 0
          if (isNewLease(one)) counted++
          if (command.type === 'settle' && before?.state === 'processing' && after?.state === 'queued') counted--
          if (after === null) continue
          assert.equal(after.attempts, counted)
          assert.ok(after.attempts >= 0 && after.attempts <= after.spec.maxAttempts)
          if (after.state === 'queued' || after.state === 'failing') assert.ok(after.attempts < after.spec.maxAttempts)
        }
      }),
      runs,
    )
  })

  t.test('a retry at the last attempt fails the job, with its error, for its failureTTL', async (t) => {
    let record: JobRecord = queued()
    for (const attempt of [1, 2, 3]) {
      record = step(record, claim(`g${attempt}`), now).record!
      t.equal(record.attempts, attempt)
      record = step(record, { type: 'settle', generation: `g${attempt}`, verdict: retry(`e${attempt}`, 0) }, now)
        .record!
      if (attempt < 3) t.match(record, { state: 'failing', error: `e${attempt}`, at: now, generation: `g${attempt}` })
    }
    t.same(record, {
      state: 'failed',
      spec: { ...spec, createdAt: now },
      attempts: 3,
      at: now + 70,
      generation: 'g3',
      reason: 'error',
      error: 'e3',
      settledAt: now,
    })
  })

  t.test('leases that all ran out fail the job at the next claim, by a worker or an inline run', async (t) => {
    let record: JobRecord = queued()
    for (const attempt of [0, 1, 2]) record = step(record, claim(`g${attempt}`), now + attempt * 50).record!
    const failed: FailedRecord = {
      state: 'failed',
      spec: { ...spec, createdAt: now },
      attempts: 3,
      at: now + 150 + 70,
      generation: null,
      reason: 'exhausted',
      error: null,
      settledAt: now + 150,
    }
    t.same(step(record, claim('g3'), now + 149), { record, answer: 'refused' })
    t.same(step(record, claim('g3'), now + 150), { record: failed, answer: 'exhausted' })
    const run = enqueue({ spec: { ...spec, incarnation: 'j' }, lease: claim('g3') })
    t.same(step(record, run, now + 150), {
      record: failed,
      answer: { outcome: 'exists', leased: false, mismatch: false },
    })
  })
})

t.test('time is exact: not a millisecond early, not one late', async (t) => {
  const waits: [string, JobRecord, number][] = [
    ['queued with a delay', queued({ delayMs: 30 }), now + 30],
    ['failing', settled(retry('e', 30)), now + 30],
    ['released', settled(release(30)), now + 30],
    ['processing', leased(), now + 50],
  ]
  for (const [name, record, at] of waits) {
    t.equal(record.at, at, name)
    t.equal(step(record, claim('g2'), at - 1).answer, 'refused', `${name}: not before`)
    t.equal(step(record, claim('g2'), at).answer, 'leased', `${name}: at once`)
    const graced = claim('g2', { graceMs: 9 })
    const from = record.state === 'processing' ? at + 9 : at
    t.equal(step(record, graced, from - 1).answer, 'refused', `${name}: grace`)
    t.equal(step(record, graced, from).answer, 'leased', `${name}: grace over`)
  }
  const ended: [string, JobRecord, number][] = [
    ['completed', settled(complete('r', 40)), now + 40],
    ['failed', settled(fail('e', 40)), now + 40],
    ['touched', step(settled(), { type: 'touch', ttlMs: 500 }, now + 7).record!, now + 507],
    ['inline', made([enqueue({ lease: claim('g1') }), now]), now + 50 + 100],
    ['inline, held', made([enqueue({ inline: true, delayMs: 20 }), now]), now + 20 + 100],
  ]
  const other = enqueue({ spec: { ...spec, incarnation: 'j' } })
  for (const [name, record, at] of ended) {
    t.equal(forgottenFrom(record), at, name)
    t.equal(living(record, at - 1), record, `${name}: lives`)
    t.equal(living(record, at), null, `${name}: ends`)
    t.match(step(record, other, at - 1).answer, { outcome: 'exists' }, `${name}: known`)
    t.match(step(record, other, at), {
      record: { attempts: 0, spec: { createdAt: at } },
      answer: { outcome: 'created' },
    })
    t.equal(step(record, { type: 'forget' }, at - 1).answer, 'kept', `${name}: kept`)
    t.same(step(record, { type: 'forget' }, at), { record: null, answer: 'forgotten' })
    t.equal(step(record, { type: 'touch', ttlMs: 9 }, at).answer, 'not_found')
    t.equal(step(record, { type: 'cancel' }, at).answer, 'not_found')
    t.equal(step(record, { type: 'extend', generation: 'g1', leaseMs: 9 }, at).answer, 'stale')
    t.equal(step(record, { type: 'settle', generation: 'g1', verdict: complete('r', 9) }, at).answer, 'stale')
    t.equal(step(record, claim('g2'), at).answer, 'refused')
  }
  for (const record of [queued(), leased(), settled(retry('e', 0))]) {
    t.equal(living(record, 1e15), record, `${record.state}: never ends by itself`)
  }
})

t.test(
  'what has ended, and is not refreshed, changes by touch and by nothing else until it is forgotten: marks and rows are beside it',
  async () => {
    everywhere((stored, command) => {
      const before = living(stored, spaceNow)
      if (before === null || !isTerminal(before)) return
      const { record } = step(stored, command, spaceNow)
      if (command.type === 'enqueue' && command.refresh === true) return
      if (command.type === 'mark' || command.type === 'collect' || command.type === 'deliver') return
      if (command.type !== 'touch') return assert.equal(record, before)
      const lost =
        before.state === 'completed' ? before.result === null : before.reason === 'error' && before.error === null
      assert.deepEqual(record, lost ? before : { ...before, at: spaceNow + command.ttlMs })
    })
  },
)

t.test(
  'a command repeated, because its reply was lost, answers as the first time and changes nothing more',
  async () => {
    const told: string[] = []
    everywhere((stored, command) => {
      const first = step(stored, command, spaceNow)
      const second = step(first.record, command, spaceNow)
      const same = first.answer === second.answer && sameRecord(first.record, second.record)
      if (!same) told.push(`${command.type}: ${JSON.stringify(first.answer)}, then ${JSON.stringify(second.answer)}`)
    })
    // These carry no token: the first made it so that the second finds nothing to do.
    assert.deepEqual([...new Set(told)].sort(), [
      'cancel: "cancelled", then "completed"',
      'cancel: "cancelled", then "not_found"',
      'claim: "exhausted", then "refused"',
      'deliver: "delivered", then "stale"',
      'forget: "forgotten", then "kept"',
    ])
  },
)

function sameRecord(a: JobRecord | null, b: JobRecord | null): boolean {
  return a === b || isDeepStrictEqual(a, b)
}

t.test('one creator: of all enqueues from one absence or refresh to the next, one is told `created`', async () => {
  fc.assert(
    fc.property(history, (happened) => {
      let creator: string | null = null
      for (const one of happened) {
        const { command, before, after, answer, now } = one
        if (before === null) creator = null
        if (isAnew(one)) {
          const lease = command.type === 'enqueue' ? command.lease : null
          const usedUp = lease !== null && step(before, { type: 'claim', ...lease }, now).answer === 'exhausted'
          assert.ok(isTerminal(before!) || usedUp, 'only what has ended is run anew')
          assert.ok(command.type === 'enqueue' && command.refresh === true, 'and only if that is asked for')
          creator = null
        }
        if (command.type !== 'enqueue') continue
        const { outcome } = answer as EnqueueOutcome
        if (outcome === 'created') creator ??= command.spec.incarnation
        assert.equal(outcome === 'created', command.spec.incarnation === creator)
        assert.equal(after?.spec.incarnation, creator)
      }
    }),
    runs,
  )
})

t.test('the first accepted enqueue fixes id, attempts and TTLs for the incarnation’s whole life', async () => {
  fc.assert(
    fc.property(history, (happened) => {
      for (const one of happened) {
        const { command, before, after, answer } = one
        if (before === null || after === null || isAnew(one)) continue
        if (command.type !== 'mark' || answer !== 'marked') {
          assert.equal(after.spec, before.spec)
          continue
        }
        const { marks = '', ...fixed } = after.spec
        const { marks: were = '', ...was } = before.spec
        assert.deepEqual(fixed, was)
        assert.ok(marks.startsWith(were), 'what is marked stays')
      }
    }),
    runs,
  )
})

t.test('one effect: from one absence or refresh to the next, each name is marked for one token', async () => {
  fc.assert(
    fc.property(history, (happened) => {
      const owners = new Map<string, string>()
      for (const one of happened) {
        const { command, before, answer } = one
        if (before === null || isAnew(one)) owners.clear()
        if (command.type !== 'mark') continue
        if (before === null) assert.equal(answer, 'not_found')
        else if (owners.has(command.name)) {
          assert.equal(answer, owners.get(command.name) === command.token ? 'marked' : 'taken')
        } else {
          assert.equal(answer, 'marked')
          owners.set(command.name, command.token)
        }
      }
    }),
    runs,
  )
})

t.test(
  'rows: while somebody delivers nobody else does, who lost the lease delivers nothing, and none are lost',
  async () => {
    fc.assert(
      fc.property(history, (happened) => {
        const dead = new Set<string>()
        let present: string | null = null
        for (const { command, before, after, answer, now } of happened) {
          const [was, is] = [outboxOf(before), outboxOf(after)]
          if (present !== null && was?.generation !== present) dead.add(present)
          if (command.type === 'deliver' && dead.has(command.generation)) {
            assert.equal(answer, 'stale')
            assert.equal(after, before)
          }
          if (command.type === 'collect' && is?.generation !== was?.generation) {
            assert.ok(
              was !== undefined && (was.generation === null || was.at + command.graceMs <= now),
              'no lease lives',
            )
            assert.equal(is?.attempts, was.attempts + 1)
          }
          if (was !== undefined && is === undefined) {
            const delivered = command.type === 'deliver' && command.rows === null && answer === 'delivered'
            assert.ok(delivered, `lost by ${command.type}`)
          }
          if (is !== undefined && was === undefined) assert.ok(command.type === 'settle' && answer === 'settled')
          present = is?.generation ?? null
        }
      }),
      runs,
    )
  },
)

function outboxOf(record: JobRecord | null): Outbox | undefined {
  return record?.state === 'completed' ? record.outbox : undefined
}

t.test('`leased` is said exactly when the record is the caller’s now, and was not refused', async () => {
  everywhere((stored, command) => {
    const lease = command.type === 'enqueue' ? command.lease : command.type === 'claim' ? command : null
    if (command.type !== 'enqueue' && command.type !== 'claim') return
    const { record, answer } = step(stored, command, spaceNow)
    const said = typeof answer === 'string' ? answer === 'leased' : (answer as EnqueueOutcome).leased
    const theirs = lease !== null && record?.state === 'processing' && record.generation === lease.generation
    // Twice the same id and lease in one call, the second with a payload that is to be rejected.
    const rejected = command.type === 'enqueue' && command.rejectMismatch && (answer as EnqueueOutcome).mismatch
    assert.equal(said, theirs && !rejected)
  })
})

t.test('another payload', async (t) => {
  t.test('is noticed if both were digested, differ, and it is not the same enqueue again', async () => {
    everywhere((stored, command) => {
      if (command.type !== 'enqueue') return
      const before = living(stored, spaceNow)
      const { record, answer } = step(stored, command, spaceNow)
      const theirs = before?.spec.fingerprint ?? ''
      const ours = command.spec.fingerprint
      const repeated = before?.spec.incarnation === command.spec.incarnation
      const mismatch = theirs !== '' && ours !== '' && theirs !== ours && !repeated
      // A refresh brings its own payload: there is none to differ from.
      assert.equal(answer.mismatch, mismatch && answer.outcome === 'exists')
      if (mismatch && command.rejectMismatch) {
        assert.equal(record, before, 'left wholly alone')
        assert.deepEqual(answer, { outcome: 'exists', leased: false, mismatch: true })
      }
    })
  })

  t.test('ignored, it shares the first one’s answer: the payload stays the first', async (t) => {
    const second = enqueue({ spec: { ...spec, incarnation: 'j', fingerprint: 'y' }, payload: 'other' })
    t.match(step(queued(), second, now), {
      record: { payload: 'p', spec: { fingerprint: 'x', incarnation: 'i' } },
      answer: { outcome: 'exists', leased: false, mismatch: true },
    })
    t.match(step(queued(), { ...second, lease: claim('g1') }, now), {
      record: { payload: 'p', state: 'processing' },
      answer: { outcome: 'exists', leased: true, mismatch: true },
    })
  })
})

t.test('inline runs', async (t) => {
  t.test('are inline from the start, until an enqueue counts on them, and never again', async () => {
    fc.assert(
      fc.property(history, (happened) => {
        for (const one of happened) {
          const { command, before, after, now } = one
          if (after === null || isTerminal(after)) continue
          if (before === null || isAnew(one)) {
            assert.equal(after.inline, command.type === 'enqueue' && command.inline)
            continue
          }
          if (isTerminal(before)) continue
          const rejected =
            command.type === 'enqueue' &&
            command.rejectMismatch &&
            ![before.spec.fingerprint, ''].includes(command.spec.fingerprint) &&
            before.spec.fingerprint !== ''
          const repeated = command.type === 'enqueue' && command.spec.incarnation === before.spec.incarnation
          // Who is answered by the result of the run before does not count on this one.
          const answered = command.type === 'enqueue' && command.refresh !== true && keptAt(before, now) !== null
          const shown = command.type === 'enqueue' && !command.inline && !repeated && !rejected && !answered
          assert.equal(after.inline, before.inline && !shown)
        }
      }),
      runs,
    )
  })

  t.test('a visible record stays visible when an inline run takes it', async (t) => {
    const run = enqueue({ spec: { ...spec, incarnation: 'j' }, lease: claim('g1') })
    t.match(step(queued(), run, now), {
      record: { state: 'processing', inline: false, generation: 'g1', attempts: 1, at: now + 50 },
      answer: { outcome: 'exists', leased: true },
    })
    t.equal(forgottenFrom(step(queued(), run, now).record!), Number.POSITIVE_INFINITY)
  })

  t.test('an enqueue of it changes nothing else: the lease goes on', async (t) => {
    const running = made([enqueue({ lease: claim('g1') }), now]) as ProcessingRecord
    const { record } = step(running, enqueue({ spec: { ...spec, incarnation: 'j' } }), now + 1)
    t.same(record, { ...running, inline: false })
    t.equal(step(record, { type: 'settle', generation: 'g1', verdict: complete('r', 9) }, now + 2).answer, 'settled')
  })

  t.test('while the queue is held, one is made that is due when the hold ends', async (t) => {
    const held = made([enqueue({ inline: true, delayMs: 30 }), now])
    t.match(held, { state: 'queued', inline: true, at: now + 30, attempts: 0 })
    t.equal(step(held, claim('g1'), now + 29).answer, 'refused')
    t.match(step(held, claim('g1'), now + 30), { record: { inline: true }, answer: 'leased' })
  })
})

t.test('cancel removes what nobody holds and what has not ended, and says what it found otherwise', async () => {
  everywhere((stored, command) => {
    if (command.type !== 'cancel') return
    const before = living(stored, spaceNow)
    const { record, answer } = step(stored, command, spaceNow)
    const gone = before?.state === 'queued' || before?.state === 'failing'
    if (gone && keptAt(before, spaceNow) !== null) assert.match(JSON.stringify(record), /"reason":"cancelled"/)
    else assert.equal(record, gone ? null : before)
    assert.equal(answer, gone ? 'cancelled' : (before?.state ?? 'not_found'))
  })
})

t.test('verdicts', async (t) => {
  const base = { spec: { ...spec, createdAt: now }, attempts: 1, generation: 'g1' }
  const later = now + 10
  const end = (verdict: ReturnType<typeof complete>) =>
    step(leased(), { type: 'settle', generation: 'g1', verdict }, later).record
  t.same(end(complete('r', 40)), { state: 'completed', ...base, at: now + 50, result: 'r', settledAt: later })
  t.same(end(fail('e', 40)), {
    ...base,
    state: 'failed',
    at: now + 50,
    reason: 'error',
    error: 'e',
    settledAt: later,
  })
  t.same(end(retry('e', 40)), { state: 'failing', ...base, at: now + 50, payload: 'p', inline: false, error: 'e' })
  t.same(end(release(40)), { state: 'queued', ...base, attempts: 0, at: now + 50, payload: 'p', inline: false })
  t.equal(end(retry('e', 0))!.at, later, 'no delay: due at once')
})

t.test(
  'one verdict a lease: the same again is answered as before, another is stale, and the first one stands',
  async (t) => {
    const verdicts = [complete('r', 40), fail('e', 40), retry('e', 40), release(40)]
    for (const first of verdicts) {
      const record = settled(first)
      for (const second of verdicts) {
        const command = { type: 'settle', generation: 'g1', verdict: second } as const
        // A retry may have ended as failed, and then looks like a fail: so it is taken for the same.
        const same = first.kind === second.kind || (first.kind === 'fail' && second.kind === 'retry')
        t.same(step(record, command, now + 1), { record, answer: same ? 'settled' : 'stale' })
      }
    }
    const other = { type: 'settle', generation: 'g1', verdict: complete('other', 9_000) } as const
    t.match(step(settled(), other, now + 1), { record: { result: 'r', at: now + 100 }, answer: 'settled' })
  },
)

t.test('a lease', async (t) => {
  t.test('is renewed from now, also when it ran out and nobody took it', async (t) => {
    for (const at of [now + 1, now + 50, now + 5_000]) {
      t.match(step(leased(), { type: 'extend', generation: 'g1', leaseMs: 20 }, at), {
        record: { state: 'processing', at: at + 20, attempts: 1 },
        answer: 'extended',
      })
    }
  })

  t.test('that ran out may still be settled, if nobody took it', async (t) => {
    const verdict = complete('r', 9)
    t.equal(step(leased(), { type: 'settle', generation: 'g1', verdict }, now + 5_000).answer, 'settled')
  })

  t.test('that is claimed again with its own token is answered as it is', async (t) => {
    const record = leased()
    t.same(step(record, claim('g1'), now + 10), { record, answer: 'leased' })
    t.equal(step(record, claim('g1'), now + 10).record, record)
  })
})

t.test('a touch is refused where there is nothing to keep', async (t) => {
  const done = settled()
  t.same(step(null, { type: 'touch', ttlMs: 9 }, now), { record: null, answer: 'not_found' })
  for (const record of [queued(), leased(), settled(retry('e', 0))]) {
    t.same(step(record, { type: 'touch', ttlMs: 9 }, now), { record, answer: 'not_terminal' })
  }
  const lost = { ...done, result: null } as JobRecord
  t.same(step(lost, { type: 'touch', ttlMs: 9 }, now), { record: lost, answer: 'missing_payload' })
  t.match(step(done, { type: 'touch', ttlMs: 9 }, now + 5), {
    record: { at: now + 14, result: 'r' },
    answer: 'updated',
  })
})

t.test('reading costs no write: a refused command answers the very record', async () => {
  everywhere((stored, command) => {
    const { record, answer } = step(stored, command, spaceNow)
    if (['refused', 'stale', 'kept', 'not_terminal', 'missing_payload'].includes(answer as string)) {
      assert.ok(!changed(stored, record))
    }
  })
})
