/**
 * Random histories of one id for fast-check: commands with ever new tokens and with old ones again, time passing between them.
 *
 * @module
 */

import fc from 'fast-check'
import type { Command, EnqueueCommand, EnqueueOutcome, Step } from '../../src/machine.ts'
import { living, step } from '../../src/machine.ts'
import type { JobRecord, Verdict } from '../../src/record.ts'
import { complete, fail, release, retry } from '../../src/record.ts'

/** One thing that happened. */
export interface Happened {
  readonly command: Command
  readonly now: number
  /** As it counted: null past its end. */
  readonly before: JobRecord | null
  readonly after: JobRecord | null
  readonly answer: unknown
}

const ms = fc.integer({ min: 0, max: 12 })
const lengthMs = fc.integer({ min: 1, max: 12 })

interface Move {
  readonly type: Command['type'] | 'wait'
  readonly waitMs: number
  readonly old: number | null
  readonly a: number
  readonly b: number
  readonly maxAttempts: number
  readonly fingerprint: string
  readonly flag: boolean
  /** Of an inline run, and whether the queue is held then. */
  readonly inline: boolean
  readonly held: boolean
  readonly refresh: boolean
  /** Of a completion: with rows; of a delivery: leaves some. */
  readonly rows: boolean
  readonly verdict: Verdict['kind']
  readonly graceMs: number
}

const move: fc.Arbitrary<Move> = fc.record({
  type: fc.constantFrom<Move['type'][]>(
    ...(['enqueue', 'enqueue', 'claim', 'claim', 'claim', 'extend', 'settle', 'settle', 'settle'] as const),
    ...(['cancel', 'touch', 'mark', 'collect', 'collect', 'deliver', 'forget', 'wait'] as const),
  ),
  waitMs: fc.oneof(fc.constant(0), ms),
  old: fc.option(fc.nat(20), { freq: 2 }),
  a: lengthMs,
  b: lengthMs,
  maxAttempts: fc.integer({ min: 1, max: 4 }),
  fingerprint: fc.constantFrom('', 'x', 'y'),
  flag: fc.boolean(),
  inline: fc.boolean(),
  held: fc.boolean(),
  refresh: fc.boolean(),
  rows: fc.boolean(),
  verdict: fc.constantFrom<Verdict['kind'][]>('complete', 'complete', 'fail', 'retry', 'release', 'retry', 'release'),
  graceMs: fc.constantFrom(0, 0, 3),
})

/** Moves to be made into a history by {@link play}. */
export const moves: fc.Arbitrary<readonly Move[]> = fc.array(move, { minLength: 5, maxLength: 60, size: 'max' })

/** Plays the moves from nothing; every command gets new tokens, or some that were given before. */
export function play(script: readonly Move[]): readonly Happened[] {
  const generations: string[] = []
  const incarnations: string[] = []
  const relays: string[] = []
  const token = (kind: string, all: string[], old: number | null): string => {
    if (old !== null && all.length > 0) return all[all.length - 1 - (old % all.length)]!
    const fresh = `${kind}${all.length}`
    all.push(fresh)
    return fresh
  }
  const history: Happened[] = []
  let stored = null as JobRecord | null
  let now = 1_000
  for (const { type, waitMs, old, a, b, ...more } of script) {
    now += waitMs
    if (type === 'wait') continue
    const generation = (): string => token('g', generations, old)
    let command: Command
    switch (type) {
      case 'enqueue': {
        const { maxAttempts, fingerprint, flag, inline, held, graceMs, refresh } = more
        const incarnation = token('i', incarnations, old)
        const spec = { id: 'id', incarnation, fingerprint, maxAttempts, resultTTL: a, failureTTL: b }
        const lease = inline && !held ? { generation: token('g', generations, null), leaseMs: b, graceMs } : null
        const delayMs = flag ? a : 0
        command = { type, spec, payload: 'p', delayMs, rejectMismatch: flag, lease, inline, refresh }
        break
      }
      case 'claim':
        // A worker never claims with a token that it used before, unless it repeats that very claim.
        command = { type, generation: token('g', generations, null), leaseMs: a, graceMs: more.graceMs }
        break
      case 'extend':
        command = { type, generation: stored?.generation ?? generation(), leaseMs: a }
        if (old !== null) command = { ...command, generation: generation() }
        break
      case 'settle': {
        // Some are kept for long: much can happen to them before they end.
        const keptMs = more.flag ? a : 10 * a
        const completed = more.rows ? complete('r', a, { rows: 'rows', ttlMs: 10 * b }) : complete('r', keptMs)
        const verdicts = { complete: completed, fail: fail('e', a), retry: retry('e', b), release: release(b) }
        const own = stored?.generation
        command = { type, generation: old === null && own ? own : generation(), verdict: verdicts[more.verdict] }
        break
      }
      case 'touch':
        command = { type, ttlMs: a }
        break
      case 'mark':
        command = { type, name: more.flag ? 'm' : 'mm', token: more.held ? 'one' : 'two' }
        break
      case 'collect':
        // A relay's wishes have new tokens, like a worker's claims.
        command = { type, generation: token('r', relays, null), leaseMs: a, graceMs: more.graceMs }
        break
      case 'deliver': {
        const own = stored?.state === 'completed' ? stored.outbox?.generation : undefined
        const generation = old === null && own ? own : token('r', relays, old)
        command = { type, generation, rows: more.rows ? 'rest' : null, delayMs: b }
        break
      }
      default:
        command = { type }
    }
    const before = living(stored, now)
    const made: Step<unknown> = step(stored, command, now)
    history.push({ command, now, before, after: made.record, answer: made.answer })
    stored = made.record
  }
  return history
}

/** Whether this made a new lease, with an attempt of its own. */
export function isNewLease({ command, before, after, answer }: Happened): boolean {
  const leased =
    command.type === 'claim' ? answer === 'leased' : isEnqueue(command) && (answer as EnqueueOutcome).leased
  return leased && (before?.state !== 'processing' || before.generation !== after?.generation)
}

function isEnqueue(command: Command): command is EnqueueCommand {
  return command.type === 'enqueue'
}
