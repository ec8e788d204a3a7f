/**
 * Ids: any characters at all, each id its own.
 *
 * @module
 */

import assert from 'node:assert/strict'
import { quoteId } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import { complete, retry } from '../../src/record.ts'
import { claimIds, enqueueNew, expectAbsent, item, lease, payloadOf, settlement } from './items.ts'
import { collectIds } from './relays.ts'
import type { Case } from './rig.ts'
import { longMs } from './rig.ts'

/** Ids that broke somebody, alone or next to each other. */
const awkwardIds: readonly string[] = [
  // Names of an object's own machinery.
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  'null',
  'undefined',
  'NaN',
  'true',
  '0',
  '-0',
  '00',
  '1e3',
  // Paths.
  '/',
  '//',
  '.',
  '..',
  '../',
  '../../etc/passwd',
  './a',
  'a/b',
  'a/b/',
  'a\\b',
  'C:\\a',
  'CON',
  'a.json',
  '.lock',
  // Separators and hash tags.
  ':',
  '::',
  'a:b',
  'a:b:c',
  'a::b',
  '{a}',
  '{a}:b',
  '{',
  '}',
  '{}',
  '{}{a}',
  '#',
  '|',
  'a|b',
  'a,b',
  'a;b',
  'a&b=c',
  '*',
  'a*',
  '?',
  '[a-z]',
  '%',
  '%00',
  '%2F',
  '%s',
  '$',
  `$\{a}`,
  '$&',
  '~',
  '@',
  '!',
  // Quotes and code.
  "'",
  '"',
  '`',
  "it's",
  '"a"',
  "'; DROP TABLE jobs; --",
  '<script>',
  '["a"]',
  '{"id":"a"}',
  // Blanks and control characters.
  ' ',
  '  ',
  ' a',
  'a ',
  'a b',
  '\t',
  '\n',
  'a\n',
  'a\nb',
  '\r\n',
  '\0',
  'a\0',
  '\0a',
  'a\0b',
  '\u0001',
  '\u001f',
  '\u007f',
  '\u0085',
  '\u00a0',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\ufeffa',
  '\uffff',
  '\u200b',
  '\u202e',
  // Case, prefixes.
  'a',
  'A',
  'aa',
  'aA',
  'AA',
  'aaa',
  'ı',
  'İ',
  'ß',
  'ẞ',
  'ss',
  // One letter in two forms (NFC, NFD), and look-alikes.
  'caf\u00e9',
  'cafe\u0301',
  '\u00c5',
  'A\u030a',
  '\u212b',
  '\ufb01',
  'fi',
  '\u0430',
  // Beyond the basic plane.
  '😀',
  '😀😀',
  '👩‍👩‍👧‍👦',
  '🇩🇪',
  '𝒜',
  '\u{10ffff}',
  '漢字',
  'עברית',
  // Length: 1,024 bytes of UTF-8, in one to four bytes a character, differing at the end alone.
  'x'.repeat(limits.idBytesMax),
  `${'x'.repeat(limits.idBytesMax - 1)}y`,
  'x'.repeat(limits.idBytesMax - 1),
  'x'.repeat(255),
  'x'.repeat(256),
  'é'.repeat(limits.idBytesMax / 2),
  `${'€'.repeat(341)}z`,
  '😀'.repeat(limits.idBytesMax / 4),
  '\0'.repeat(limits.idBytesMax),
  '/'.repeat(limits.idBytesMax),
  '"'.repeat(limits.idBytesMax),
]

export const idCases: readonly Case[] = [
  {
    name: 'ids: any characters, each id its own, through a whole life',
    async run(rig) {
      const [handle, other] = await rig.pair()
      assert.equal(new Set(awkwardIds).size, awkwardIds.length)
      await enqueueNew(rig, handle, awkwardIds)
      const { records } = await other.get(awkwardIds)
      for (const [index, id] of awkwardIds.entries()) assert.equal(records[index]?.spec.id, id, quoteId(id))

      const jobs = await claimIds(rig, other, awkwardIds)
      for (const [index, job] of jobs.entries()) {
        const id = awkwardIds[index]!
        assert.equal(job.spec.id, id, quoteId(id))
        assert.equal(job.payload, payloadOf(id), quoteId(id))
      }
      const extended = await other.extend(
        jobs.map(({ spec, generation }) => ({ id: spec.id, generation, leaseMs: longMs })),
      )
      assert.deepEqual(extended, Array(jobs.length).fill('extended'))
      const retried = await handle.settle(
        jobs.map((job) => settlement(job, retry(`error of ${job.spec.id}`, 0))),
        null,
      )
      assert.deepEqual(retried.answers, Array(jobs.length).fill('settled'))

      const found = new Set<string>()
      await rig.until('all are claimed without being named', async () => {
        const { jobs } = await handle.claim({ ...lease(rig), limit: awkwardIds.length })
        const settlements = jobs.map((job) => settlement(job, complete(`result of ${job.spec.id}`, longMs)))
        await other.settle(settlements, null)
        for (const { spec } of jobs) found.add(spec.id)
        return found.size >= awkwardIds.length
      })
      const ended = await other.get(awkwardIds)
      for (const [index, id] of awkwardIds.entries()) {
        const record = ended.records[index]
        assert.equal(record?.state === 'completed' && record.result, `result of ${id}`, quoteId(id))
      }
      const items = awkwardIds.map((id) => ({ id, ttlMs: rig.shortMs }))
      assert.deepEqual(await handle.touch(items), Array(items.length).fill('updated'))
      await rig.wait(handle, rig.shortMs)
      assert.deepEqual((await other.get(awkwardIds)).records, Array(items.length).fill(null))
    },
  },
  {
    name: 'ids: any characters, each id its own, refreshed, marked and with rows to deliver',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const all = <T>(answer: T): T[] => Array(awkwardIds.length).fill(answer)
      await enqueueNew(rig, handle, awkwardIds)
      const first = await claimIds(rig, other, awkwardIds)
      const olds = first.map((job) => settlement(job, complete(`old result of ${job.spec.id}`, longMs)))
      await handle.settle(olds, null)
      const begun = await other.enqueue(awkwardIds.map((id) => item(rig, id, { refresh: true })))
      for (const [index, { outcome, record }] of begun.answers.entries()) {
        const id = awkwardIds[index]!
        const kept = record.state === 'queued' ? record.kept?.result : null
        assert.deepEqual([outcome, kept], ['created', `old result of ${id}`], quoteId(id))
      }
      const marks = (token: string) => awkwardIds.map((id) => ({ id, name: 'mail', token }))
      assert.deepEqual(await handle.mark(marks('one')), all('marked'))
      assert.deepEqual(await other.mark(marks('two')), all('taken'))
      const second = await claimIds(rig, handle, awkwardIds)
      const posts = second.map((job) => {
        return settlement(job, complete('new', longMs, { rows: `rows of ${job.spec.id}`, ttlMs: longMs }))
      })
      await other.settle(posts, null)
      const found = await collectIds(rig, handle, awkwardIds)
      const deliveries = found.map(({ spec, outbox }) => {
        assert.equal(outbox?.rows, `rows of ${spec.id}`, quoteId(spec.id))
        return { id: spec.id, generation: outbox!.generation!, rows: null, delayMs: 0 }
      })
      assert.deepEqual((await other.deliver(deliveries, null)).answers, all('delivered'))
    },
  },
  {
    name: 'ids: what is done to one is done to no other',
    async run(rig) {
      const handle = await rig.open()
      await enqueueNew(rig, handle, awkwardIds)
      const gone = awkwardIds.filter((_, index) => index % 2 === 0)
      const kept = awkwardIds.filter((_, index) => index % 2 === 1)
      assert.deepEqual(await handle.cancel(gone), Array(gone.length).fill('cancelled'))
      assert.deepEqual((await handle.get(gone)).records, Array(gone.length).fill(null))
      const { records } = await handle.get(kept)
      for (const [index, id] of kept.entries()) assert.equal(records[index]?.spec.id, id, quoteId(id))
    },
  },
  {
    name: 'ids: unknown ones are absent, whatever they look like',
    async run(rig) {
      const handle = await rig.open()
      const { records } = await handle.get(awkwardIds)
      assert.deepEqual(records, Array(awkwardIds.length).fill(null))
      assert.deepEqual(await handle.cancel(awkwardIds), Array(awkwardIds.length).fill('not_found'))
      for (const id of ['__proto__', 'constructor', '..', '\0']) await expectAbsent(rig, handle, id)
    },
  },
  {
    name: 'ids: generations and incarnations are as opaque as ids',
    async run(rig) {
      const handle = await rig.open()
      for (const [index, token] of ['a:b', '__proto__', '0', ' ', 'ü😀', 'x'.repeat(200), '{t}', '"'].entries()) {
        const id = `id ${index}`
        await enqueueNew(rig, handle, [id], { incarnation: token, fingerprint: token })
        const { jobs } = await handle.claim({ generation: token, leaseMs: longMs, limit: 1, ids: [id] })
        assert.equal(jobs[0]?.generation, token)
        assert.equal(jobs[0].spec.incarnation, token)
        assert.equal(jobs[0].spec.fingerprint, token)
        assert.deepEqual((await handle.settle([settlement(jobs[0], complete('x', longMs))], null)).answers, ['settled'])
      }
    },
  },
]
