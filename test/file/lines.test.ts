/** Lines and fields: what is written is read, whatever it holds; what is damaged is not. */

import { isDeepStrictEqual } from 'node:util'
import fc from 'fast-check'
import t from 'tap'
import type { Command } from '../../src/machine.ts'
import type { Encoded, JobRecord, Verdict } from '../../src/record.ts'
import type { Entry, LogEntry } from '../../storages/file/entries.ts'
import { entryText, parseEntry } from '../../storages/file/entries.ts'
import { LineBuffer, scanLines } from '../../storages/file/lines.ts'
import { recordText } from '../../storages/file/record-text.ts'
import { encodedField, fieldEncoded, fieldText, textField } from '../../storages/file/text.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom('\t', '\n', '\r', '\u0010', 'e', 't', 'n', 'u', '\ud800', '\udc00', '🦊', "'", '=', '0'),
  }),
)
const encoded: fc.Arbitrary<Encoded> = fc.oneof(text, fc.uint8Array({ maxLength: 60 }))
const number = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const lease = fc.record({ generation: text, leaseMs: number, graceMs: number })
const names = { id: text, incarnation: text, fingerprint: text }
const bounds = { maxAttempts: number, resultTTL: number, failureTTL: number }

const verdict: fc.Arbitrary<Verdict> = fc.oneof(
  fc.record(
    {
      kind: fc.constant('complete' as const),
      ttlMs: number,
      result: encoded,
      outbox: fc.record({ rows: encoded, ttlMs: number }),
    },
    { requiredKeys: ['kind', 'ttlMs', 'result'] },
  ),
  fc.record({ kind: fc.constant('fail' as const), ttlMs: number, error: encoded }),
  fc.record({ kind: fc.constant('retry' as const), delayMs: number, error: encoded }),
  fc.record({ kind: fc.constant('release' as const), delayMs: number }),
)

const command: fc.Arbitrary<Command> = fc.oneof(
  fc.record(
    {
      type: fc.constant('enqueue' as const),
      spec: fc.record({ ...names, ...bounds }),
      payload: encoded,
      delayMs: number,
      rejectMismatch: fc.boolean(),
      lease: fc.option(lease),
      inline: fc.boolean(),
      refresh: fc.constant(true),
    },
    { requiredKeys: ['type', 'spec', 'payload', 'delayMs', 'rejectMismatch', 'lease', 'inline'] },
  ),
  fc.record({ type: fc.constant('claim' as const), generation: text, leaseMs: number, graceMs: number }),
  fc.record({ type: fc.constant('extend' as const), generation: text, leaseMs: number }),
  fc.record({ type: fc.constant('settle' as const), generation: text, verdict }),
  fc.record({ type: fc.constant('cancel' as const) }),
  fc.record({ type: fc.constant('touch' as const), ttlMs: number }),
  fc.record({ type: fc.constant('mark' as const), name: text, token: text }),
  fc.record({ type: fc.constant('collect' as const), generation: text, leaseMs: number, graceMs: number }),
  fc.record({
    type: fc.constant('deliver' as const),
    generation: text,
    rows: fc.option(encoded),
    delayMs: number,
  }),
  fc.record({ type: fc.constant('forget' as const) }),
)

const entry: fc.Arbitrary<LogEntry> = fc.oneof(
  fc
    .record({ kind: fc.constant('command' as const), id: text, command, now: number })
    .map(
      (made): LogEntry =>
        made.command.type === 'enqueue'
          ? { ...made, command: { ...made.command, spec: { ...made.command.spec, id: made.id } } }
          : made,
    ),
  fc.record({ kind: fc.constant('hold' as const), ms: number, now: number }),
  fc.record({ kind: fc.constant('seal' as const), now: number }),
)

const spec = fc.record(
  { ...names, ...bounds, createdAt: number, marks: text },
  { requiredKeys: ['id', 'incarnation', 'fingerprint', 'maxAttempts', 'resultTTL', 'failureTTL', 'createdAt'] },
)
const base = { spec, attempts: number, at: number }
const open = { ...base, payload: encoded, inline: fc.boolean() }
const kept = fc.record({ result: fc.option(encoded), settledAt: number, until: number })
const outbox = fc.record({
  rows: encoded,
  at: number,
  generation: fc.option(text),
  attempts: number,
  until: number,
})
const missed = fc.record({
  reason: fc.constantFrom('error' as const, 'exhausted' as const, 'cancelled' as const),
  error: fc.option(encoded),
})
const openKeys = ['spec', 'attempts', 'at', 'payload', 'inline', 'state', 'generation'] as const
const record: fc.Arbitrary<JobRecord> = fc.oneof(
  fc.record(
    { ...open, state: fc.constant('queued' as const), generation: fc.option(text), kept },
    { requiredKeys: [...openKeys] },
  ),
  fc.record(
    { ...open, state: fc.constant('processing' as const), generation: text, kept },
    { requiredKeys: [...openKeys] },
  ),
  fc.record(
    { ...open, state: fc.constant('failing' as const), generation: text, error: encoded, kept },
    { requiredKeys: [...openKeys, 'error'] },
  ),
  fc.record(
    {
      ...base,
      state: fc.constant('completed' as const),
      generation: fc.option(text),
      result: fc.option(encoded),
      settledAt: number,
      outbox,
      missed,
    },
    { requiredKeys: ['spec', 'attempts', 'at', 'state', 'generation', 'result', 'settledAt'] },
  ),
  fc.record({
    ...base,
    state: fc.constant('failed' as const),
    generation: fc.option(text),
    reason: fc.constantFrom('error' as const, 'exhausted' as const),
    error: fc.option(encoded),
    settledAt: number,
  }),
)

/** The texts of the lines in some bytes, and how many damaged ones there were. */
function scan(bytes: Buffer, seed: number): { texts: string[]; damaged: number; end: number } {
  const texts: string[] = []
  let damaged = 0
  const end = scanLines(bytes, bytes.length, seed, {
    line: (found) => texts.push(found) > 0,
    damage: () => damaged++,
  })
  return { texts, damaged, end }
}

t.test('fields', async (t) => {
  fc.assert(
    fc.property(text, encoded, (some, value) => {
      const field = textField(some)
      if (/[\t\n]/.test(field)) return false
      if (!field.isWellFormed()) return false
      const back = fieldEncoded(encodedField(value))
      return (
        fieldText(field) === some &&
        Buffer.from(back as string).equals(Buffer.from(value as string)) &&
        typeof back === typeof value
      )
    }),
    { numRuns: 2_000 },
  )
  t.equal(textField('{"json":"as \\"it\\" is"}'), '{"json":"as \\"it\\" is"}', 'JSON passes untouched')
})

t.test('entries and records', async (t) => {
  fc.assert(
    fc.property(entry, record, (made, stored) => {
      const lines = new LineBuffer(3)
      lines.add(entryText(made, () => 'nonce'))
      lines.add(recordText(stored))
      const { texts, damaged } = scan(lines.bytes, 3)
      if (damaged > 0) return false
      const [first, second] = texts.map((found): Entry => parseEntry(found))
      // Cloned: fast-check's objects have no prototype.
      return (
        isDeepStrictEqual(first, structuredClone(made)) &&
        isDeepStrictEqual(second, { kind: 'record', record: structuredClone(stored) })
      )
    }),
    { numRuns: 1_000 },
  )
  t.pass('come back as they were')
})

t.test('any damage to any place costs the lines it touches, and no other', async (t) => {
  fc.assert(
    fc.property(
      fc.array(entry, { minLength: 2, maxLength: 8 }),
      fc.nat(),
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      (entries, where, junk) => {
        const lines = new LineBuffer(9)
        const starts: number[] = []
        for (const made of entries) {
          starts.push(lines.length)
          lines.add(entryText(made, () => 'nonce'))
        }
        const whole = Buffer.from(lines.bytes)
        const texts = scan(whole, 9).texts
        const at = where % whole.length
        const damaged = Buffer.from(whole)
        Buffer.from(junk).copy(damaged, at)
        const found = new Set(scan(damaged, 9).texts)
        for (const [index, start] of starts.entries()) {
          const end = starts[index + 1] ?? whole.length
          // A line may be spoiled by damage to the newline before it, too.
          const touched = at < end && at + junk.length >= start
          if (!touched && !found.has(texts[index] as string)) return false
        }
        return [...found].every((line) => texts.includes(line))
      },
    ),
    { numRuns: 2_000 },
  )
  t.pass('holds')
})

t.test('an unfinished line is not taken, whatever its length', async (t) => {
  const lines = new LineBuffer(1)
  lines.add('K\t1\tjob\tn')
  const first = lines.length
  lines.add('K\t2\tjob\tn')
  for (let length = first; length < lines.length; length++) {
    const { texts, damaged, end } = scan(Buffer.from(lines.bytes.subarray(0, length)), 1)
    if (texts.length !== 1 || damaged !== 0 || end !== first) t.fail(`cut at ${length}`)
  }
  t.strictSame(scan(lines.bytes, 1).texts.length, 2)
  t.strictSame(scan(lines.bytes, 2), { texts: [], damaged: 2, end: lines.length }, "another file's lines are none")
})
