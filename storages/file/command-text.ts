/**
 * Commands as lines: a letter, the time at which the writer gave the command, the id, and what the command says.
 *
 * @module
 */

import type { Command, EnqueueCommand } from '../../src/machine.ts'
import type { Verdict } from '../../src/record.ts'
import type { Fields } from './text.ts'
import { encodedField, FieldError, textField } from './text.ts'

/** A command on one id, with the time at which its writer gave it. */
export interface CommandEntry {
  readonly kind: 'command'
  readonly id: string
  readonly command: Command
  readonly now: number
}

/** Makes lines of entries that carry no token of their own different from all others: a writer must know its own. */
export type Nonce = () => string

/** What an enqueue is beside its values, as bits of one number. */
const flagBits = { rejectMismatch: 1, inline: 2, lease: 4, refresh: 8 } as const

/** The line of a command. */
export function commandText({ id, command, now }: CommandEntry, nonce: Nonce): string {
  const name = textField(id)
  switch (command.type) {
    case 'enqueue':
      return enqueueText(name, command, now)
    case 'claim':
      return `C\t${now}\t${name}\t${textField(command.generation)}\t${command.leaseMs}\t${command.graceMs}`
    case 'extend':
      return `X\t${now}\t${name}\t${textField(command.generation)}\t${command.leaseMs}`
    case 'settle':
      return `S\t${now}\t${name}\t${textField(command.generation)}\t${verdictText(command.verdict)}`
    case 'cancel':
      return `K\t${now}\t${name}\t${nonce()}`
    case 'touch':
      return `T\t${now}\t${name}\t${command.ttlMs}\t${nonce()}`
    case 'mark':
      return `M\t${now}\t${name}\t${textField(command.name)}\t${textField(command.token)}`
    case 'collect':
      return `G\t${now}\t${name}\t${textField(command.generation)}\t${command.leaseMs}\t${command.graceMs}`
    case 'deliver':
      return `D\t${now}\t${name}\t${textField(command.generation)}\t${command.delayMs}\t${encodedField(command.rows)}`
    case 'forget':
      return `F\t${now}\t${name}`
  }
}

function enqueueText(name: string, command: EnqueueCommand, now: number): string {
  const { spec, payload, delayMs, rejectMismatch, lease, inline, refresh } = command
  const flags =
    (rejectMismatch ? flagBits.rejectMismatch : 0) +
    (inline ? flagBits.inline : 0) +
    (lease === null ? 0 : flagBits.lease) +
    (refresh === true ? flagBits.refresh : 0)
  const terms = lease === null ? '' : `\t${textField(lease.generation)}\t${lease.leaseMs}\t${lease.graceMs}`
  return `E\t${now}\t${name}\t${textField(spec.incarnation)}\t${textField(spec.fingerprint)}\t${spec.maxAttempts}\t${spec.resultTTL}\t${spec.failureTTL}\t${delayMs}\t${flags}\t${encodedField(payload)}${terms}`
}

function verdictText(verdict: Verdict): string {
  switch (verdict.kind) {
    case 'complete': {
      const { ttlMs, result, outbox } = verdict
      if (outbox === undefined) return `c\t${ttlMs}\t${encodedField(result)}`
      return `o\t${ttlMs}\t${encodedField(result)}\t${outbox.ttlMs}\t${encodedField(outbox.rows)}`
    }
    case 'fail':
      return `f\t${verdict.ttlMs}\t${encodedField(verdict.error)}`
    case 'retry':
      return `r\t${verdict.delayMs}\t${encodedField(verdict.error)}`
    case 'release':
      return `g\t${verdict.delayMs}`
  }
}

/**
 * What the line of a command says.
 *
 * @param letter - the first field, taken from `fields` already
 * @throws FieldError if it is none
 */
export function parseCommand(letter: string, fields: Fields): CommandEntry {
  const now = fields.number()
  const id = fields.text()
  return { kind: 'command', id, command: commandOf(letter, id, fields), now }
}

function commandOf(letter: string, id: string, fields: Fields): Command {
  switch (letter) {
    case 'E':
      return parseEnqueue(id, fields)
    case 'C':
      return { type: 'claim', generation: fields.text(), leaseMs: fields.number(), graceMs: fields.number() }
    case 'X':
      return { type: 'extend', generation: fields.text(), leaseMs: fields.number() }
    case 'S':
      return { type: 'settle', generation: fields.text(), verdict: parseVerdict(fields) }
    case 'K':
      return { type: 'cancel' }
    case 'T':
      return { type: 'touch', ttlMs: fields.number() }
    case 'M':
      return { type: 'mark', name: fields.text(), token: fields.text() }
    case 'G':
      return { type: 'collect', generation: fields.text(), leaseMs: fields.number(), graceMs: fields.number() }
    case 'D':
      return { type: 'deliver', generation: fields.text(), delayMs: fields.number(), rows: fields.encodedOrNull() }
    case 'F':
      return { type: 'forget' }
    default:
      throw new FieldError()
  }
}

function parseEnqueue(id: string, fields: Fields): EnqueueCommand {
  const spec = {
    id,
    incarnation: fields.text(),
    fingerprint: fields.text(),
    maxAttempts: fields.number(),
    resultTTL: fields.number(),
    failureTTL: fields.number(),
  }
  const delayMs = fields.number()
  const flags = fields.number()
  const payload = fields.encoded()
  const lease =
    (flags & flagBits.lease) === 0
      ? null
      : { generation: fields.text(), leaseMs: fields.number(), graceMs: fields.number() }
  const command: EnqueueCommand = {
    type: 'enqueue',
    spec,
    payload,
    delayMs,
    rejectMismatch: (flags & flagBits.rejectMismatch) !== 0,
    lease,
    inline: (flags & flagBits.inline) !== 0,
  }
  return (flags & flagBits.refresh) === 0 ? command : { ...command, refresh: true }
}

function parseVerdict(fields: Fields): Verdict {
  switch (fields.next()) {
    case 'c':
      return { kind: 'complete', ttlMs: fields.number(), result: fields.encoded() }
    case 'o':
      return {
        kind: 'complete',
        ttlMs: fields.number(),
        result: fields.encoded(),
        outbox: { ttlMs: fields.number(), rows: fields.encoded() },
      }
    case 'f':
      return { kind: 'fail', ttlMs: fields.number(), error: fields.encoded() }
    case 'r':
      return { kind: 'retry', delayMs: fields.number(), error: fields.encoded() }
    case 'g':
      return { kind: 'release', delayMs: fields.number() }
    default:
      throw new FieldError()
  }
}
