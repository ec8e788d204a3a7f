/**
 * A small history of jobs, run on a storage that may die at any moment, with notes of what was acknowledged; and the judge
 * that says, from what is there afterwards, whether anything acknowledged is missing.
 */

import assert from 'node:assert/strict'
import type { Verdict } from '../../../src/record.ts'
import { complete, fail, release, retry } from '../../../src/record.ts'
import type { EnqueueItem, StorageHandle } from '../../../src/storage.ts'
import type { Seeded } from '../../support/seeded.ts'

const hour = 3_600_000

/** What is known of one id: what was acknowledged, and what was asked for since and may have happened. */
export interface Known {
  acknowledged: string
  possible: Set<string>
}

/** Notes of a history, by id. */
export type Notes = Map<string, Known>

/** A payload of many bytes, so that logs grow fast. */
function payloadOf(id: string): string {
  return `payload of ${id} `.repeat(600)
}

function itemOf(id: string, incarnation: string, maxAttempts = 5): EnqueueItem {
  return {
    spec: { id, incarnation, fingerprint: '', maxAttempts, resultTTL: hour, failureTTL: hour },
    payload: payloadOf(id),
    delayMs: 0,
    rejectMismatch: false,
    lease: null,
    wait: false,
  }
}

/** Notes an attempt; the function returned notes that it was acknowledged. */
function attempt(notes: Notes, id: string, outcome: string): () => void {
  const known = notes.get(id) ?? { acknowledged: 'absent', possible: new Set<string>() }
  known.possible.add(outcome)
  notes.set(id, known)
  return () => {
    known.acknowledged = outcome
    known.possible.clear()
  }
}

/** Runs a history of some 40 calls until it ends or the storage dies. Deterministic by its seed. */
export async function runScript(handle: StorageHandle, notes: Notes, random: Seeded, name: string): Promise<void> {
  let tokens = 0
  const token = () => `${name}-${tokens++}`
  for (let round = 0; round < 10; round++) {
    const ids = Array.from({ length: 1 + random.below(4) }, (_, index) => `${name}/${round}/${index}`)
    const enqueued = ids.map((id) => attempt(notes, id, 'open'))
    await handle.enqueue(ids.map((id) => itemOf(id, token())))
    for (const acknowledge of enqueued) acknowledge()
    if (random.chance(0.3)) {
      const id = random.pick(ids)
      const cancelled = attempt(notes, id, 'absent')
      const [answer] = await handle.cancel([id])
      if (answer === 'cancelled') cancelled()
    }
    const { jobs } = await handle.claim({ generation: token(), leaseMs: 30_000, limit: 1 + random.below(4) })
    for (const job of jobs) {
      const { id } = job.spec
      const [verdict, outcome] = random.pick<() => [Verdict, string]>([
        () => [complete(`result of ${id}`, hour), `completed: result of ${id}`],
        () => [complete(`result of ${id}`, hour), `completed: result of ${id}`],
        () => [fail(`error of ${id}`, hour), `failed: error of ${id}`],
        () => [retry(`error of ${id}`, hour), 'open'],
        () => [release(0), 'open'],
      ])()
      const settled = attempt(notes, id, outcome)
      const { answers } = await handle.settle([{ id, generation: job.generation, verdict }], null)
      assert.equal(answers[0], 'settled', `settle of ${id}, whose lease lives`)
      settled()
    }
  }
}

async function look(handle: StorageHandle, id: string): Promise<string> {
  const { records } = await handle.get([id])
  const record = records[0] ?? null
  if (record === null) return 'absent'
  if (record.state === 'completed') return `completed: ${record.result}`
  if (record.state === 'failed') return `failed: ${record.error}`
  assert.equal(record.payload, payloadOf(id), `payload of ${id}`)
  return 'open'
}

/** Expects all that was acknowledged, and nothing that was never asked for. */
export async function judge(handle: StorageHandle, notes: Notes): Promise<void> {
  for (const [id, { acknowledged, possible }] of notes) {
    const state = await look(handle, id)
    assert.ok(
      state === acknowledged || possible.has(state),
      `${id} was acknowledged as ${acknowledged}${possible.size > 0 ? `, may be ${[...possible].join(' or ')}` : ''}; is ${state}`,
    )
  }
}

/** Expects that every id can be used and finished: nothing is stuck. Leases of the dead must have ended before. */
export async function finishAll(handle: StorageHandle, notes: Notes, name: string): Promise<void> {
  const ids = [...notes.keys()]
  await handle.enqueue(ids.map((id, index) => itemOf(id, `${name}-again-${index}`)))
  for (;;) {
    const { jobs, exhausted } = await handle.claim({ generation: `${name}-last`, leaseMs: 30_000, limit: 1_000 })
    if (jobs.length === 0 && exhausted.length === 0) break
    const settlements = jobs.map((job) => ({
      id: job.spec.id,
      generation: job.generation,
      verdict: complete('finished', hour),
    }))
    const { answers } = await handle.settle(settlements, null)
    assert.deepEqual(new Set(answers), new Set(settlements.length > 0 ? ['settled'] : []))
  }
  for (const id of ids) assert.notEqual(await look(handle, id), 'absent', `${id} was enqueued again`)
  const { queued, processing } = await handle.stats()
  assert.deepEqual({ queued, processing }, { queued: 0, processing: 0 }, 'nothing is left open')
}

/** Everything that two processes must agree on. */
export async function stateOf(handle: StorageHandle, notes: Notes): Promise<unknown> {
  return (await handle.get([...notes.keys()])).records
}
