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
  const expires = async (kind: string, end: number) => {
    const leftMs = await client.pttl(`${base}:${kind}`)
    const off = end === Number.POSITIVE_INFINITY ? leftMs + 1 : Date.now() + leftMs - (end - 1)
    if (Math.abs(off) > 1_000) faults.push(`${kind} expires in ${leftMs} ms, ${off} too late`)
  }
  const beside = new Set<string>()
  for (const key of await client.keys('*')) {
    if (!key.startsWith(`${base}:`)) continue
    const kind = key.slice(base.length + 1)
    if (/^[ko]:/.test(kind)) beside.add(kind)
    else if (!kind.startsWith('r:') && !/^([dlfhiow]|n[pqf])$/.test(kind)) {
      faults.push(`the key ${JSON.stringify(key)} is nobody's`)
    }
    if (!kind.startsWith('r:')) continue
    const id = kind.slice(2)
    const record = await read(client, base, id)
    await expires(kind, forgottenFrom(record))
    if (forgottenFrom(record) > now) records.set(id, record)
    if ('kept' in record && record.kept !== undefined) await expires(`k:${id}`, record.kept.until)
    if ('outbox' in record && record.outbox !== undefined) await expires(`o:${id}`, forgottenFrom(record))
  }
  for (const kind of beside) {
    const record = records.get(kind.slice(2))
    const wanted = record !== undefined && (kind.startsWith('k:') ? 'kept' in record : 'outbox' in record)
    const until = Number((await client.get(`${base}:${kind}`))?.slice(0, 13))
    if (!wanted && until > now && record !== undefined) faults.push(`${kind} is beside nothing`)
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
  const posted = (record: JobRecord) => 'outbox' in record
  const boxes = await client.zrange(`${base}:o`, '0', '-1')
  // Records expire by themselves; the next look for outboxes takes them off.
  const missing = ids(posted).filter((id) => !boxes.includes(id))
  if (missing.length > 0) faults.push(`the outbox set does not hold ${missing}`)
  if (boxes.length > 0 && (await client.pttl(`${base}:o`)) < 0) faults.push('the outbox set does not expire')
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

/** A record with what is beside it. */
async function read(client: Redis, base: string, id: string): Promise<JobRecord> {
  const text = (await client.get(`${base}:r:${id}`)) as string
  if (text.charCodeAt(27) < 0x32) return decodeRecord(id, text)
  const open = 'qpf'.includes(text[26] as string)
  const beside = await client.get(`${base}:${open ? 'k' : 'o'}:${id}`)
  if (beside === null) return decodeRecord(id, text)
  return decodeRecord(id, open ? `k${beside.slice(0, 26)}${text}` : `O${beside}${text}`)
}
