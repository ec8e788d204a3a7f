/**
 * What must be true of the keys of a queue beside its records: which ids are in which set, which keys expire, and that there is
 * nothing else.
 *
 * @module
 */

import type { Redis } from 'ioredis'
import type { JobRecord } from '../../src/record.ts'
import { forgottenFrom, isTerminal } from '../../src/record.ts'
import { decodeRecord } from '../../storages/redis/layout.ts'

/** The faults found, in words; none if all is well. `now` is the time that the records go by. */
export async function indexFaults(client: Redis, base: string, now: number): Promise<string[]> {
  const faults: string[] = []
  const records = new Map<string, JobRecord>()
  for (const key of await client.keys('*')) {
    if (!key.startsWith(`${base}:`)) continue
    const kind = key.slice(base.length + 1)
    if (!kind.startsWith('r:')) {
      if (!/^([dlfhi]|n[pqf])$/.test(kind)) faults.push(`the key ${JSON.stringify(key)} is nobody's`)
      continue
    }
    const record = decodeRecord(kind.slice(2), (await client.get(key)) as string)
    const forgotten = forgottenFrom(record)
    const leftMs = await client.pttl(key)
    const off = forgotten === Number.POSITIVE_INFINITY ? leftMs + 1 : Date.now() + leftMs - (forgotten - 1)
    if (Math.abs(off) > 1_000) faults.push(`${kind} expires in ${leftMs} ms, ${off} too late`)
    if (forgotten > now) records.set(kind.slice(2), record)
  }
  const ids = (test: (record: JobRecord) => boolean) =>
    [...records.entries()].filter(([, record]) => test(record)).map(([id]) => id)
  const open = (state: string, inline: boolean) => (record: JobRecord) =>
    !isTerminal(record) && record.state === state && record.inline === inline
  const due = (record: JobRecord) => open('queued', false)(record) || open('failing', false)(record)
  const compare = (name: string, found: readonly string[], expected: readonly string[]) => {
    const [a, b] = [found.toSorted(), expected.toSorted()]
    if (JSON.stringify(a) !== JSON.stringify(b)) faults.push(`${name} holds ${a}, not ${b}`)
  }
  compare('the due set', await client.zrange(`${base}:d`, '0', '-1'), ids(due))
  compare('the lease set', await client.zrange(`${base}:l`, '0', '-1'), ids(open('processing', false)))
  compare('the failing set', await client.smembers(`${base}:f`), ids(open('failing', false)))
  for (const [key, state] of [
    ['np', 'processing'],
    ['nq', 'queued'],
    ['nf', 'failing'],
  ] as const) {
    const found = await client.zrangebyscore(`${base}:${key}`, `(${now}`, '+inf')
    compare(`the inline set of ${state}`, found, ids(open(state, true)))
    if (found.length > 0 && (await client.pttl(`${base}:${key}`)) < 0) faults.push(`${key} does not expire`)
  }
  for (const set of ['d', 'l']) {
    const flat = await client.zrange(`${base}:${set}`, '0', '-1', 'WITHSCORES')
    for (let i = 0; i < flat.length; i += 2) {
      const at = records.get(flat[i] as string)?.at
      if (Math.floor(Number(flat[i + 1]) / 1000) !== at)
        faults.push(`${set} has ${flat[i]} at ${flat[i + 1]}, not ${at}`)
    }
  }
  return faults
}
