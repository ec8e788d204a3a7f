/**
 * What can be asked of a storage, as commands of fast-check: it makes up sequences of them, and shrinks one that fails to the
 * shortest that still does.
 *
 * @module
 */

import fc from 'fast-check'
import type { Verdict } from '../../src/record.ts'
import { complete, fail, release, retry } from '../../src/record.ts'
import type { Model } from '../../storages/conformance/index.ts'

/** Tokens given so far: later commands can use them once more. */
export interface Tokens {
  readonly generations: string[]
  readonly incarnations: string[]
}

type Command = fc.AsyncCommand<Tokens, Model>

/** Which token: a new one, the record's present one, or one given before. */
type Choice = { readonly kind: 'new' | 'present' } | { readonly kind: 'old'; readonly back: number }

const ids = ['a', 'b', '__proto__', 'd/…']
const id = fc.constantFrom(...ids)
const ms = fc.integer({ min: 1, max: 60 })
const choice: fc.Arbitrary<Choice> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ kind: 'new' } as const) },
  { weight: 3, arbitrary: fc.constant({ kind: 'present' } as const) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('old' as const), back: fc.nat(20) }) },
)
const encoded = fc.constantFrom<(string | Uint8Array)[]>('', 'one', 'two', new Uint8Array([0, 128, 255]))

function pick(choice: Choice, present: string | null | undefined, given: string[], model: Model): string {
  if (choice.kind === 'present' && present) return present
  if (choice.kind === 'old' && given.length > 0) return given[given.length - 1 - (choice.back % given.length)]!
  const token = model.token()
  given.push(token)
  return token
}

/** One command: says what it is, and does it. */
function command<T>(
  name: string,
  arg: fc.Arbitrary<T>,
  run: (arg: T, tokens: Tokens, model: Model) => Promise<unknown>,
) {
  return arg.map(
    (value): Command => ({
      check: () => true,
      run: async (tokens, model) => void (await run(value, tokens, model)),
      toString: () => `${name} ${fc.stringify(value)}`,
    }),
  )
}

const item = fc.record({
  id,
  incarnation: choice,
  generation: fc.option(choice, { nil: null }),
  payload: encoded,
  fingerprint: fc.constantFrom('', 'x', 'y'),
  maxAttempts: fc.integer({ min: 1, max: 3 }),
  resultTTL: ms,
  failureTTL: ms,
  delayMs: fc.oneof(fc.constant(0), ms),
  rejectMismatch: fc.boolean(),
  leaseMs: ms,
  refresh: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
})

/** A claim of whatever is due has a generation of its own: what it leased before is not due. */
const claim = fc.record({
  generation: fc.constant<Choice>({ kind: 'new' }),
  leaseMs: ms,
  limit: fc.integer({ min: 1, max: 4 }),
})

const outbox = fc.record({ rows: encoded, ttlMs: ms })

const verdict: fc.Arbitrary<Verdict> = fc.oneof(
  fc.tuple(encoded, ms).map(([result, ttlMs]) => complete(result, ttlMs)),
  fc.tuple(encoded, ms, outbox).map(([result, ttlMs, outbox]) => complete(result, ttlMs, outbox)),
  ms.map((ttlMs) => fail('error', ttlMs)),
  fc.oneof(fc.constant(0), ms).map((delayMs) => retry('error', delayMs)),
  fc.oneof(fc.constant(0), ms).map((delayMs) => release(delayMs)),
)

/** A lease is mostly ended by who has it. */
const settlement = fc.record({
  id,
  generation: fc.oneof({ weight: 4, arbitrary: fc.constant({ kind: 'present' } as const) }, choice),
  verdict,
})

const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.array(arbitrary, { minLength: 1, maxLength: 3 })

function request(
  { generation, ...terms }: { generation: Choice; leaseMs: number; limit: number },
  tokens: Tokens,
  model: Model,
) {
  return { ...terms, generation: pick(generation, null, tokens.generations, model) }
}

const enqueue = command('enqueue', some(item), (items, tokens, model) =>
  model.checked.enqueue(
    items.map(({ id, incarnation, generation, payload, delayMs, rejectMismatch, leaseMs, refresh, ...fixed }) => {
      const known = model.checked.record(id)
      const lease =
        generation === null
          ? null
          : { generation: pick(generation, known?.generation, tokens.generations, model), leaseMs }
      return {
        spec: { ...fixed, id, incarnation: pick(incarnation, known?.spec.incarnation, tokens.incarnations, model) },
        payload,
        delayMs: lease === null ? delayMs : 0,
        rejectMismatch,
        lease,
        wait: false,
        refresh,
      }
    }),
  ),
)

const settle = command(
  'settle',
  fc.record({ items: some(settlement), claim: fc.option(claim, { nil: null }) }),
  (arg, tokens, model) =>
    model.checked.settle(
      arg.items.map(({ id, generation, verdict }) => ({
        id,
        verdict,
        generation: pick(generation, model.checked.record(id)?.generation, tokens.generations, model),
      })),
      arg.claim === null ? null : request(arg.claim, tokens, model),
    ),
)

const extend = command('extend', some(fc.record({ id, generation: choice, leaseMs: ms })), (items, tokens, model) =>
  model.checked.extend(
    items.map(({ id, generation, leaseMs }) => ({
      id,
      leaseMs,
      generation: pick(generation, model.checked.record(id)?.generation, tokens.generations, model),
    })),
  ),
)

const claimDue = command('claim', claim, (arg, tokens, model) => model.checked.claim(request(arg, tokens, model)))

const claimIds = command('claim by id', fc.record({ claim, generation: choice, ids: some(id) }), (arg, tokens, model) =>
  model.checked.claim({ ...request({ ...arg.claim, generation: arg.generation }, tokens, model), ids: arg.ids }),
)

/** Some tokens are one another's: a mark that is there is repeated by its owner, and tried by others. */
const mark = fc.record({ id, name: fc.constantFrom('a', 'ab'), token: fc.constantFrom('one', 'two') })

/** The lease of the outbox of a record that has one. */
function relayOf(model: Model, id: string): string | null | undefined {
  const record = model.checked.record(id)
  return record?.state === 'completed' ? record.outbox?.generation : undefined
}

const delivery = fc.record({
  id,
  generation: fc.oneof({ weight: 4, arbitrary: fc.constant({ kind: 'present' } as const) }, choice),
  rows: fc.option(encoded),
  delayMs: fc.oneof(fc.constant(0), ms),
})

const deliver = command(
  'deliver',
  fc.record({ items: some(delivery), request: fc.option(claim, { freq: 2, nil: null }) }),
  (arg, tokens, model) =>
    model.checked.deliver(
      arg.items.map(({ generation, ...item }) => ({
        ...item,
        generation: pick(generation, relayOf(model, item.id), tokens.generations, model),
      })),
      arg.request === null ? null : request(arg.request, tokens, model),
    ),
)

/** Sequences of commands. */
export const sequences: fc.Arbitrary<Iterable<Command>> = fc.commands(
  [
    enqueue,
    enqueue,
    claimDue,
    claimDue,
    claimIds,
    settle,
    settle,
    extend,
    deliver,
    deliver,
    command('mark', some(mark), (items, _, model) => model.checked.mark(items)),
    command('cancel', some(id), (ids, _, model) => model.checked.cancel(ids)),
    command('touch', some(fc.record({ id, ttlMs: ms })), (items, _, model) => model.checked.touch(items)),
    command('sweep', fc.integer({ min: 1, max: 5 }), (limit, _, model) => model.checked.sweep(limit)),
    command('hold', fc.oneof(fc.constant(0), ms), (length, _, model) => model.checked.hold(length)),
    command('wait', ms, (length, _, model) => model.wait(length)),
    command('audit', fc.constant(null), (_, __, model) => model.checked.audit()),
  ],
  { maxCommands: 40, size: '+1' },
)
