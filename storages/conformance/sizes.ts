/**
 * Payloads, results and errors: text comes back as that text, bytes as those bytes, whatever they are and however long.
 *
 * @module
 */

import assert from 'node:assert/strict'
import type { Encoded } from '../../src/record.ts'
import { complete, fail, retry } from '../../src/record.ts'
import type { StorageHandle } from '../../src/storage.ts'
import { assertEncoded, begin, claimId, enqueueNew, expectState, item, lease, settleOne } from './items.ts'
import type { Case, Rig } from './rig.ts'
import { longMs } from './rig.ts'

/** What the suite takes for large: a storage's own bound may be more than a test should move. */
const largeBytesMax = 1024 * 1024

const everyByte = Uint8Array.from({ length: 256 }, (_, index) => index)

const samples: Readonly<Record<string, Encoded>> = {
  'empty text': '',
  'no bytes': new Uint8Array(0),
  'one byte': new Uint8Array([0]),
  'every byte': everyByte,
  'bytes that are no UTF-8': new Uint8Array([0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80]),
  'bytes that are text': new TextEncoder().encode('{"a":1}'),
  'bytes in a larger buffer': new Uint8Array(everyByte.buffer.slice(0), 100, 20),
  'a Buffer': Buffer.from('from the pool, so with an offset'),
  'a byte order mark': new Uint8Array([0xef, 0xbb, 0xbf, 0x41]),
  'text that is JSON': '{"a":[1,2,{"b":null}]}',
  'text that is null': 'null',
  'text that is a number': '0',
  'text that looks like base64': 'AAECAw==',
  'text of blanks': ' \t\n\r\n ',
  'text with NUL': 'a\0b\0',
  'every control character': String.fromCharCode(...Array.from({ length: 32 }, (_, index) => index), 0x7f, 0x85),
  'line separators': 'a\u2028b\u2029c',
  'a byte order mark as text': '\ufeffa',
  'quotes and slashes': `"'\\/\`$\{a}`,
  'surrogate pairs': '😀👩‍👩‍👧‍👦\u{10ffff}',
  'composed and decomposed': 'caf\u00e9 cafe\u0301',
  'highest units': '\ufffd\ufffe\uffff',
}

/** Takes one value through payload, error and result. */
async function roundTrip(rig: Rig, one: StorageHandle, two: StorageHandle, id: string, value: Encoded): Promise<void> {
  await enqueueNew(rig, one, [id], { payload: value })
  const first = await claimId(rig, two, id)
  assertEncoded(first.payload, value, `payload (${id})`)
  assert.equal(await settleOne(two, first, retry(value, 0)), 'settled')
  assertEncoded((await expectState(one, id, 'failing')).error, value, `error of a retry (${id})`)
  const second = await claimId(rig, one, id)
  assertEncoded(second.payload, value, `payload of the second attempt (${id})`)
  assert.equal(await settleOne(one, second, complete(value, longMs)), 'settled')
  assertEncoded((await expectState(two, id, 'completed')).result, value, `result (${id})`)
  const [found] = (await two.enqueue([item(rig, id)])).answers
  assertEncoded(found?.record.state === 'completed' ? found.record.result : null, value, `result of an enqueue (${id})`)
  const failed = await begin(rig, one, `${id}, failed`, longMs, { payload: value })
  assert.equal(await settleOne(one, failed, fail(value, longMs)), 'settled')
  assertEncoded((await expectState(two, `${id}, failed`, 'failed')).error, value, `error (${id})`)
  const inline = item(rig, `${id}, inline`, { payload: value, lease: lease(rig) })
  const [answer] = (await two.enqueue([inline])).answers
  assertEncoded(answer?.record.state === 'processing' ? answer.record.payload : null, value, `inline payload (${id})`)
}

export const sizeCases: readonly Case[] = [
  {
    name: 'sizes: content and kind are kept, in payloads, results and errors',
    async run(rig) {
      const [handle, other] = await rig.pair()
      for (const [name, value] of Object.entries(samples)) await roundTrip(rig, handle, other, name, value)
    },
  },
  {
    name: 'sizes: up to payloadBytesMax',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const { payloadBytesMax } = rig.traits
      assert.ok(Number.isSafeInteger(payloadBytesMax) && payloadBytesMax > 0, 'traits.payloadBytesMax')
      const bytes = Math.min(payloadBytesMax, largeBytesMax)
      if (bytes < payloadBytesMax) rig.note(`values from ${bytes} to ${payloadBytesMax} bytes: tried up to a megabyte`)
      const values: Record<string, Encoded> = {
        'ASCII text': 'x'.repeat(bytes),
        'text of three bytes a character': '€'.repeat(Math.floor(bytes / 3)),
        'text that JSON escapes': '"'.repeat(bytes),
        'text of control characters': '\u0001'.repeat(bytes),
        'pairs of surrogates': '😀'.repeat(Math.floor(bytes / 4)),
        bytes: Uint8Array.from({ length: bytes }, (_, index) => (index * 7919) >> 3),
      }
      for (const [name, value] of Object.entries(values)) {
        const job = await begin(rig, handle, name, longMs, { payload: value })
        assertEncoded(job.payload, value, `payload: ${name}`)
        assert.equal(await settleOne(handle, job, complete(value, longMs)), 'settled', name)
        assertEncoded((await expectState(other, name, 'completed')).result, value, `result: ${name}`)
      }
    },
  },
  {
    name: 'sizes: small and large, text and bytes, in one call',
    async run(rig) {
      const [handle, other] = await rig.pair()
      const names = Object.keys(samples)
      await handle.enqueue(names.map((id) => item(rig, id, { payload: samples[id]! })))
      const { jobs } = await other.claim({ ...lease(rig), limit: names.length, ids: names })
      assert.equal(jobs.length, names.length)
      for (const { spec, payload } of jobs) assertEncoded(payload, samples[spec.id]!, `payload of ${spec.id}`)
      const settlements = jobs.map(({ spec, generation }) => {
        return { id: spec.id, generation, verdict: complete(samples[spec.id]!, longMs) }
      })
      await handle.settle(settlements, null)
      const { records } = await other.get(names)
      for (const [index, id] of names.entries()) {
        const record = records[index]
        assertEncoded(record?.state === 'completed' ? record.result : null, samples[id]!, `result of ${id}`)
      }
    },
  },
]
