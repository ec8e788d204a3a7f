/**
 * Every operation that can meet an id: the columns of the crossed cases.
 *
 * @module
 */

import type { Verdict } from '../../src/record.ts'
import { complete, fail, release, retry } from '../../src/record.ts'
import type { Checked } from './checked.ts'
import { item, lease } from './items.ts'
import { longMs } from './rig.ts'

/** One way to call a storage. */
export interface Operation {
  readonly name: string
  /** Whether it concerns the whole namespace: it then has one of its own. */
  readonly alone?: true
  readonly run: (checked: Checked, id: string) => Promise<unknown>
}

const verdicts: readonly (readonly [name: string, verdict: Verdict])[] = [
  ['complete with rows', complete('a result', longMs, { rows: 'rows', ttlMs: 2 * longMs })],
  ...[
    complete('a result', longMs),
    complete('a result', 2 ** 33 + 1),
    fail('an error', longMs),
    retry('an error', longMs),
    retry('an error', 0),
    release(0),
    release(longMs),
  ].map((verdict) => [verdict.kind, verdict] as const),
]

/** The lease that the record shows, or one that never was. */
function generationOf(checked: Checked, id: string): string {
  return checked.record(id)?.generation ?? checked.rig.token('never was')
}

/** The lease of the outbox that the record shows, or one that never was. */
function relayOf(checked: Checked, id: string): string {
  const record = checked.record(id)
  const outbox = record?.state === 'completed' ? record.outbox : undefined
  return outbox?.generation ?? checked.rig.token('never was')
}

/** Each verdict given by the present lease, and by another. */
const settling: readonly Operation[] = verdicts.flatMap(([kind, verdict]) => {
  const ms = 'delayMs' in verdict ? verdict.delayMs : verdict.ttlMs
  const name = `settle: ${kind}, ${ms} ms`
  return [
    {
      name,
      run: (checked: Checked, id: string) => checked.settle([{ id, generation: generationOf(checked, id), verdict }]),
    },
    {
      name: `${name}, by another lease`,
      run: (checked: Checked, id: string) =>
        checked.settle([{ id, generation: checked.rig.token('never was'), verdict }]),
    },
  ]
})

const refreshing: readonly Operation[] = [
  { name: 'refresh', run: (checked, id) => checked.enqueue([item(checked.rig, id, { refresh: true })]) },
  {
    name: 'refresh with another payload',
    run: (checked, id) => {
      const other = { payload: 'other', fingerprint: 'other', resultTTL: 5 * longMs, delayMs: longMs }
      return checked.enqueue([item(checked.rig, id, { ...other, refresh: true })])
    },
  },
  {
    name: 'refresh with another payload, rejecting',
    run: (checked, id) => {
      const other = { payload: 'other', fingerprint: 'other', rejectMismatch: true }
      return checked.enqueue([item(checked.rig, id, { ...other, refresh: true })])
    },
  },
  {
    name: 'refresh with a lease',
    run: (checked, id) => checked.enqueue([item(checked.rig, id, { refresh: true, lease: lease(checked.rig) })]),
  },
  {
    name: 'refresh, then its very enqueue again',
    run: async (checked, id) => {
      const one = item(checked.rig, id, { refresh: true, lease: lease(checked.rig) })
      await checked.enqueue([one])
      await checked.enqueue([one])
    },
  },
]

const marking: readonly Operation[] = [
  {
    name: 'mark of a name that others may have, by a new token',
    run: (checked, id) => checked.mark([{ id, name: 'mail', token: checked.rig.token('mark') }]),
  },
  { name: 'mark by one token', run: (checked, id) => checked.mark([{ id, name: 'mai', token: 'always-this' }]) },
]

const delivering: readonly Operation[] = [
  {
    name: 'deliver all',
    run: (checked, id) => checked.deliver([{ id, generation: relayOf(checked, id), rows: null, delayMs: 0 }]),
  },
  {
    name: 'deliver a part',
    run: (checked, id) => checked.deliver([{ id, generation: relayOf(checked, id), rows: 'rest', delayMs: longMs }]),
  },
  {
    name: 'deliver by another lease',
    run: (checked, id) => checked.deliver([{ id, generation: checked.rig.token('never was'), rows: null, delayMs: 0 }]),
  },
  { name: 'collect', alone: true, run: (checked) => checked.deliver([], { ...lease(checked.rig), limit: 10 }) },
  {
    name: 'deliver a part and collect, in a held queue',
    alone: true,
    run: async (checked, id) => {
      await checked.hold(longMs)
      const part = { id, generation: relayOf(checked, id), rows: new Uint8Array([0, 255]), delayMs: 0 }
      await checked.deliver([part], { ...lease(checked.rig), limit: 10 })
      await checked.hold(0)
    },
  },
]

/** All of them. Each is run twice: the second answer must be the machine's too. */
export const operations: readonly Operation[] = [
  { name: 'enqueue', run: (checked, id) => checked.enqueue([item(checked.rig, id)]) },
  {
    name: 'enqueue with other options',
    run: (checked, id) =>
      checked.enqueue([item(checked.rig, id, { maxAttempts: 9, resultTTL: 7 * longMs, failureTTL: 8 * longMs })]),
  },
  { name: 'enqueue, delayed', run: (checked, id) => checked.enqueue([item(checked.rig, id, { delayMs: longMs })]) },
  {
    name: 'enqueue of another payload',
    run: (checked, id) => checked.enqueue([item(checked.rig, id, { payload: 'other', fingerprint: 'other' })]),
  },
  {
    name: 'enqueue of another payload, rejecting',
    run: (checked, id) =>
      checked.enqueue([item(checked.rig, id, { payload: 'other', fingerprint: 'other', rejectMismatch: true })]),
  },
  {
    name: 'enqueue without a digest',
    run: (checked, id) => checked.enqueue([item(checked.rig, id, { fingerprint: '', rejectMismatch: true })]),
  },
  {
    name: 'the same enqueue again',
    run: (checked, id) => {
      const incarnation = checked.record(id)?.spec.incarnation ?? checked.rig.token('incarnation')
      return checked.enqueue([item(checked.rig, id, { incarnation })])
    },
  },
  {
    name: 'enqueue with a lease',
    run: (checked, id) => checked.enqueue([item(checked.rig, id, { lease: lease(checked.rig) })]),
  },
  {
    name: 'enqueue with a lease, of another payload, rejecting',
    run: (checked, id) => {
      const other = { payload: 'other', fingerprint: 'other', rejectMismatch: true, lease: lease(checked.rig) }
      return checked.enqueue([item(checked.rig, id, other)])
    },
  },
  {
    name: 'enqueue with the present lease',
    run: (checked, id) => {
      const generation = generationOf(checked, id)
      return checked.enqueue([item(checked.rig, id, { lease: { generation, leaseMs: longMs } })])
    },
  },
  {
    name: 'enqueue with a lease, in a held queue',
    alone: true,
    run: async (checked, id) => {
      await checked.hold(longMs)
      await checked.enqueue([item(checked.rig, id, { lease: lease(checked.rig) })])
      await checked.hold(0)
    },
  },
  {
    name: 'enqueue and claim with the present lease, in a held queue',
    alone: true,
    run: async (checked, id) => {
      const present = { generation: generationOf(checked, id), leaseMs: longMs }
      await checked.hold(longMs)
      await checked.enqueue([item(checked.rig, id, { lease: present })])
      await checked.claim({ ...present, limit: 1, ids: [id] })
      await checked.hold(0)
    },
  },
  { name: 'claim of the id', run: (checked, id) => checked.claim({ ...lease(checked.rig), limit: 1, ids: [id] }) },
  {
    name: 'claim of the id by the present lease',
    run: (checked, id) =>
      checked.claim({ generation: generationOf(checked, id), leaseMs: longMs, limit: 1, ids: [id] }),
  },
  { name: 'claim', alone: true, run: (checked) => checked.claim({ ...lease(checked.rig), limit: 10 }) },
  {
    name: 'claim, in a held queue',
    alone: true,
    run: async (checked, id) => {
      await checked.hold(longMs)
      await checked.claim({ ...lease(checked.rig), limit: 10 })
      await checked.claim({ ...lease(checked.rig), limit: 10, ids: [id] })
      await checked.hold(0)
    },
  },
  {
    name: 'settle and claim',
    alone: true,
    run: (checked, id) =>
      checked.settle([{ id, generation: generationOf(checked, id), verdict: release(0) }], {
        ...lease(checked.rig),
        limit: 10,
      }),
  },
  {
    name: 'extend',
    run: (checked, id) => checked.extend([{ id, generation: generationOf(checked, id), leaseMs: longMs }]),
  },
  { name: 'extend, by another lease', run: (checked, id) => checked.extend([{ id, ...lease(checked.rig) }]) },
  ...settling,
  ...refreshing,
  ...marking,
  ...delivering,
  { name: 'cancel', run: (checked, id) => checked.cancel([id]) },
  { name: 'touch', run: (checked, id) => checked.touch([{ id, ttlMs: 2 * longMs }]) },
  { name: 'get', run: (checked, id) => checked.check([id], 'alone') },
  { name: 'sweep', alone: true, run: (checked) => checked.sweep(1_000) },
]
