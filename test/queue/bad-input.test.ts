/** Bad input is refused before anything is written, by a typed error that names the field and its bound. */

import t, { type Test } from 'tap'
import { RateLimitedError } from '../../src/errors.ts'
import { limits } from '../../src/limits.ts'
import type { QueueOptions } from '../../src/options.ts'
import { Queue } from '../../src/queue.ts'
import { exponential, fixed } from '../../src/retry.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'

const invalid = 'ASKONCE_INVALID_ARGUMENT'
const tooLarge = 'ASKONCE_TOO_LARGE'
const serialization = 'ASKONCE_SERIALIZATION'

/** What is no number of any kind. */
const noNumbers: readonly unknown[] = [null, '1', '', 'abc', true, {}, [], [1], 10n, () => 1, Symbol('1'), new Date(1)]
/** What is no whole number from 1. */
const noCounts: readonly unknown[] = [
  ...noNumbers,
  0,
  -0,
  -1,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  1.5,
  0.1,
  2 ** 53,
  1e300,
]
const noDurations = [...noCounts, limits.durationMsMax + 1]
/** Infinity is one. */
const noWaits = noDurations.filter((value) => value !== Number.POSITIVE_INFINITY)
const goodDurations = [1, 2, 1_000, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 32, limits.durationMsMax]
const noFunctions = [null, 1, 'handler', {}, [], true, Symbol('f')]
const noObjects = [null, 1, 'options', true, Symbol('o'), 1n]
const noIds: readonly (readonly [unknown, string])[] = [
  ...[undefined, null, '', 1, 0, true, {}, [], ['id'], Symbol('id'), 1n, new String('id'), () => 'id'].map(
    (id) => [id, invalid] as const,
  ),
  ['x'.repeat(1_025), tooLarge],
  ['€'.repeat(342), tooLarge],
  ['x'.repeat(10_000_000), tooLarge],
  ['\ud800', invalid],
  ['a\udc00b', invalid],
]

function show(value: unknown): string {
  if (typeof value === 'string')
    return JSON.stringify(value.length > 20 ? `${value.slice(0, 9)}… (${value.length})` : value)
  if (typeof value === 'object' && value !== null) return `${value.constructor.name} ${JSON.stringify(value)}`
  return typeof value === 'bigint' ? `${value}n` : String(value)
}

interface Refusal {
  code?: unknown
  field?: unknown
  message: string
}

function refused(t: Test, error: unknown, code: string, field: string | RegExp, of: string): void {
  const { code: actual, field: named, message } = error as Refusal
  const ok =
    actual === code &&
    (typeof field === 'string' ? named === field && message.startsWith(field) : field.test(String(named)))
  if (!ok) t.fail(`${of}: ${String(actual)}, field ${String(named)}: ${message}`)
}

function thrown(call: () => unknown): unknown {
  try {
    call()
  } catch (error) {
    return error
  }
  return new Error('nothing was thrown')
}

const rejection = (call: () => Promise<unknown>): Promise<unknown> => {
  let promise: Promise<unknown>
  try {
    promise = call()
  } catch (error) {
    return Promise.resolve(new Error(`thrown, not rejected: ${String(error)}`))
  }
  return promise.then(
    () => new Error('nothing was thrown'),
    (error) => error,
  )
}

type AnyQueue = Queue<any, any>
type AnyOptions = QueueOptions<any, any>

t.test('the constructor: every option', async (t) => {
  const bad: Record<string, readonly unknown[]> = {
    resultTTL: noDurations,
    failureTTL: noDurations,
    maxAttempts: [...noCounts, limits.maxAttemptsMax + 1],
    concurrency: [...noCounts, limits.concurrencyMax + 1],
    leaseMs: [...noDurations, limits.leaseMsMin - 1],
    handlerTimeoutMs: noWaits,
    timeout: noWaits,
    stopTimeout: noWaits.filter((value) => value !== 0),
    payloadBytesMax: [...noCounts, limits.payloadBytesMax + 1],
    sweepIntervalMs: noDurations,
    payloadMismatch: [null, '', 'Ignore', 'throw', true, 1, {}],
    retry: noFunctions,
    random: noFunctions,
    afterExecution: noFunctions,
    payloadSerde: [null, 1, 'json', {}, { serialize() {} }, { deserialize() {} }, () => 1],
    resultSerde: [null, 1, 'json', {}, { serialize() {} }, { deserialize() {} }, () => 1],
    storage: [null, 0, '', 1, 'memory', {}, { open() {} }, { open() {}, traits: null }, MemoryStorage],
    clock: [null, 1, 'system', {}, { now() {} }, { now() {}, monotonic() {} }],
    logger: [null, 1, 'pino', {}, { info() {} }, () => 1],
    name: [null, '', 1, {}, [], '\ud800', Symbol('n')],
  }
  for (const [option, values] of Object.entries(bad)) {
    for (const value of values) {
      const error = thrown(() => new Queue({ [option]: value } as AnyOptions))
      refused(t, error, invalid, `options.${option}`, `${option}: ${show(value)}`)
    }
  }
  refused(
    t,
    thrown(() => new Queue({ name: 'x'.repeat(129) })),
    tooLarge,
    'options.name',
    'a long name',
  )
  refused(
    t,
    thrown(() => new Queue({ name: '€'.repeat(43) })),
    tooLarge,
    'options.name',
    'a long name',
  )
  for (const options of noObjects) {
    refused(
      t,
      thrown(() => new Queue(options as AnyOptions)),
      invalid,
      'options',
      `options: ${show(options)}`,
    )
  }
  t.pass('all were refused')
})

t.test('the constructor takes every option at its bounds, and undefined for each', async (t) => {
  const wide: AnyOptions[] = [
    ...goodDurations.flatMap((ms) => [
      { resultTTL: ms },
      { failureTTL: ms },
      { timeout: ms },
      { handlerTimeoutMs: ms },
    ]),
    ...goodDurations.flatMap((ms) => [{ stopTimeout: ms }, { sweepIntervalMs: ms }]),
    ...goodDurations.filter((ms) => ms >= limits.leaseMsMin).map((leaseMs) => ({ leaseMs })),
    { leaseMs: limits.leaseMsMin },
    { stopTimeout: 0 },
    { stopTimeout: Number.POSITIVE_INFINITY },
    { timeout: Number.POSITIVE_INFINITY },
    { handlerTimeoutMs: Number.POSITIVE_INFINITY },
    { maxAttempts: 1 },
    { maxAttempts: limits.maxAttemptsMax },
    { concurrency: 1 },
    { concurrency: limits.concurrencyMax },
    { payloadBytesMax: 1 },
    { payloadBytesMax: limits.payloadBytesMax },
    { name: 'x'.repeat(128) },
    { name: '€'.repeat(42) },
    {},
  ]
  for (const options of wide) t.ok(new Queue(options))
  const names = [
    'storage',
    'name',
    'resultTTL',
    'failureTTL',
    'maxAttempts',
    'concurrency',
    'leaseMs',
    'clock',
    'logger',
  ]
  names.push('handlerTimeoutMs', 'timeout', 'stopTimeout', 'payloadMismatch', 'payloadBytesMax', 'retry', 'random')
  names.push('afterExecution', 'payloadSerde', 'resultSerde', 'sweepIntervalMs')
  t.ok(new Queue(Object.fromEntries(names.map((name) => [name, undefined])) as AnyOptions))
  t.ok(new Queue(undefined))
  const statics = Object.assign(() => {}, { serialize: () => '', deserialize: () => 1 })
  t.ok(new Queue({ payloadSerde: statics, resultSerde: statics }), 'a class with static methods is a serde, too')
})

/** A queue with one job that must come through whatever is tried beside it; and a check that nothing was written. */
async function harness(t: Test, options: AnyOptions = {}) {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock })
  const queue: AnyQueue = new Queue<any, any>({ storage, clock, ...options })
  await queue.enqueue('bystander', 'fine')
  const status = await queue.getStatus('bystander')
  return {
    queue,
    async unharmed() {
      t.equal(storage.size, 1, 'nothing was written')
      t.strictSame(await queue.getStatus('bystander'), status, 'no other job noticed')
      t.strictSame(queue.counters.claimed, 1)
      queue.execute(({ payload }) => payload)
      await queue.start()
      const wait = queue.enqueueAndWait('bystander', 'fine')
      await clock.advance(10)
      t.equal(await wait, 'fine')
      await queue.stop()
    },
  }
}

const idCalls: Record<string, (queue: AnyQueue, id: never) => Promise<unknown>> = {
  enqueue: (queue, id) => queue.enqueue(id, 1),
  enqueueAndWait: (queue, id) => queue.enqueueAndWait(id, 1),
  run: (queue, id) => queue.run(id, 1, async () => 1),
  cancel: (queue, id) => queue.cancel(id),
  getStatus: (queue, id) => queue.getStatus(id),
  getResult: (queue, id) => queue.getResult(id),
  updateResultTTL: (queue, id) => queue.updateResultTTL(id, 1),
}

t.test('ids, in every call that takes one', async (t) => {
  const { queue, unharmed } = await harness(t)
  for (const [name, call] of Object.entries(idCalls)) {
    for (const [id, code] of noIds) {
      refused(t, await rejection(() => call(queue, id as never)), code, 'id', `${name}: ${show(id)}`)
    }
  }
  for (const [id, code] of noIds) {
    const items = [
      { id: 'fine', payload: 1 },
      { id, payload: 1 },
    ] as never
    refused(t, await rejection(() => queue.enqueueMany(items)), code, 'items[1].id', `enqueueMany: ${show(id)}`)
  }
  await unharmed()
})

const optionCalls: Record<string, (queue: AnyQueue, options: never) => Promise<unknown>> = {
  enqueue: (queue, options) => queue.enqueue('id', 1, options),
  enqueueAndWait: (queue, options) => queue.enqueueAndWait('id', 1, options),
  run: (queue, options) => queue.run('id', 1, async () => 1, options),
}

t.test('options, in every call that takes them', async (t) => {
  const { queue, unharmed } = await harness(t)
  const shared: Record<string, readonly unknown[]> = {
    resultTTL: noDurations,
    failureTTL: noDurations,
    maxAttempts: [...noCounts, limits.maxAttemptsMax + 1],
    payloadMismatch: [null, '', 'Ignore', 'throw', true, 1, {}],
  }
  const noSignals = [null, 1, 'abort', {}, { aborted: false }, new AbortController(), () => 1]
  const own: Record<string, Record<string, readonly unknown[]>> = {
    enqueue: { ...shared, delay: noDurations },
    enqueueAndWait: { ...shared, delay: noDurations, timeout: noWaits, signal: noSignals },
    run: { ...shared, timeout: noWaits, signal: noSignals },
  }
  for (const [name, call] of Object.entries(optionCalls)) {
    for (const [option, values] of Object.entries(own[name]!)) {
      for (const value of values) {
        const error = await rejection(() => call(queue, { [option]: value } as never))
        refused(t, error, invalid, `options.${option}`, `${name}, ${option}: ${show(value)}`)
      }
    }
    for (const options of noObjects) {
      const error = await rejection(() => call(queue, options as never))
      refused(t, error, invalid, 'options', `${name}, options: ${show(options)}`)
    }
  }
  for (const [option, values] of Object.entries(own['enqueue']!)) {
    for (const value of values) {
      const items = [
        { id: 'fine', payload: 1 },
        { id: 'bad', payload: 1, [option]: value },
      ] as never
      const error = await rejection(() => queue.enqueueMany(items))
      refused(t, error, invalid, `items[1].${option}`, `enqueueMany, ${option}: ${show(value)}`)
    }
  }
  for (const ttl of [undefined, ...noDurations]) {
    const error = await rejection(() => queue.updateResultTTL('bystander', ttl as never))
    refused(t, error, invalid, 'ttlMs', `updateResultTTL: ${show(ttl)}`)
  }
  await unharmed()
})

t.test('payloads that can’t be serialized, or are too large', async (t) => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  const payloads: Record<string, unknown> = {
    bigint: { deep: [1n] },
    cycle,
    function: () => 1,
    symbol: Symbol('s'),
    'throwing toJSON': {
      toJSON() {
        throw new Error('secret content')
      },
    },
    'throwing getter': {
      get secret() {
        throw new Error('secret content')
      },
    },
    'toJSON of nothing': { toJSON: () => undefined },
  }
  const { queue, unharmed } = await harness(t, { payloadBytesMax: 100 })
  const calls: ((payload: unknown) => Promise<unknown>)[] = [
    (payload) => queue.enqueue('id', payload),
    (payload) => queue.enqueueAndWait('id', payload),
    (payload) => queue.run('id', payload, async () => 1),
    (payload) =>
      queue.enqueueMany([
        { id: 'fine', payload: 1 },
        { id: 'bad', payload },
      ]),
  ]
  for (const [name, payload] of Object.entries(payloads)) {
    if (name === 'toJSON of nothing') continue
    for (const call of calls) {
      const error = await rejection(() => call(payload))
      refused(t, error, serialization, /payload$/, name)
      t.notMatch(`${(error as Error).message} ${String((error as Error).cause)}`, 'secret content')
    }
  }
  for (const call of calls) {
    for (const payload of ['x'.repeat(99), '€'.repeat(33), { a: 'x'.repeat(95) }]) {
      const error = (await rejection(() => call(payload))) as Error
      refused(t, error, tooLarge, /payload$/, show(payload))
      t.match(error.message, /100/)
      t.notMatch(error.message, /xxx|€/)
    }
  }
  await unharmed()
  const exact = await harness(t, { payloadBytesMax: 100 })
  t.match(await exact.queue.enqueue('exact', 'x'.repeat(98)), { status: 'queued' })
  t.match(await exact.queue.enqueue('exact bytes', '€'.repeat(32)), { status: 'queued' })
})

t.test('serdes that answer nonsense', async (t) => {
  for (const answer of [undefined, null, 1, {}, [1], new ArrayBuffer(1), '\ud800']) {
    const serde = { serialize: () => answer as never, deserialize: (value: unknown) => value }
    const clock = new VirtualClock()
    const storage = new MemoryStorage({ clock })
    const queue: AnyQueue = new Queue({ storage, clock, payloadSerde: serde })
    refused(t, await rejection(() => queue.enqueue('id', 1)), serialization, 'payload', show(answer))
    t.equal(storage.size, 0)
  }
})

t.test('enqueueMany: what is no iterable, and items that are no objects', async (t) => {
  const { queue, unharmed } = await harness(t)
  for (const items of [undefined, null, 1, true, {}, 'text', () => []]) {
    refused(t, await rejection(() => queue.enqueueMany(items as never)), invalid, 'items', `items: ${show(items)}`)
  }
  for (const item of [undefined, null, 1, 'id', true]) {
    const items = [{ id: 'fine', payload: 1 }, item] as never
    refused(t, await rejection(() => queue.enqueueMany(items)), invalid, 'items[1]', `item: ${show(item)}`)
  }
  function* broken() {
    yield { id: 'fine', payload: 1 }
    throw new Error('the source broke')
  }
  t.match(await rejection(() => queue.enqueueMany(broken())), { message: 'the source broke' })
  await unharmed()
})

t.test('handlers, and the options of execute and executeBatch', async (t) => {
  const { queue, unharmed } = await harness(t)
  for (const handler of [undefined, ...noFunctions]) {
    const of = `handler: ${show(handler)}`
    refused(
      t,
      thrown(() => queue.execute(handler as never)),
      invalid,
      'handler',
      of,
    )
    refused(
      t,
      thrown(() => queue.executeBatch(handler as never)),
      invalid,
      'handler',
      of,
    )
    refused(t, await rejection(() => queue.run('id', 1, handler as never)), invalid, 'handler', of)
  }
  for (const options of noObjects) {
    const of = `options: ${show(options)}`
    refused(
      t,
      thrown(() => queue.execute(() => 1, options as never)),
      invalid,
      'options',
      of,
    )
    refused(
      t,
      thrown(() => queue.executeBatch(() => [], options as never)),
      invalid,
      'options',
      of,
    )
  }
  for (const concurrency of [...noCounts, limits.concurrencyMax + 1]) {
    const of = `concurrency: ${show(concurrency)}`
    const options = { concurrency } as never
    refused(
      t,
      thrown(() => queue.execute(() => 1, options)),
      invalid,
      'options.concurrency',
      of,
    )
    refused(
      t,
      thrown(() => queue.executeBatch(() => [], options)),
      invalid,
      'options.concurrency',
      of,
    )
  }
  for (const size of [...noCounts, limits.batchSizeMax + 1]) {
    const error = thrown(() => queue.executeBatch(() => [], { size } as never))
    refused(t, error, invalid, 'options.size', `size: ${show(size)}`)
  }
  for (const waitMs of noDurations) {
    const error = thrown(() => queue.executeBatch(() => [], { waitMs } as never))
    refused(t, error, invalid, 'options.waitMs', `waitMs: ${show(waitMs)}`)
  }
  await unharmed()
})

t.test('listeners', async (t) => {
  const queue = new Queue()
  for (const listener of [undefined, ...noFunctions]) {
    const of = `listener: ${show(listener)}`
    refused(
      t,
      thrown(() => queue.on('completed', listener as never)),
      invalid,
      'listener',
      of,
    )
    refused(
      t,
      thrown(() => queue.once('completed', listener as never)),
      invalid,
      'listener',
      of,
    )
    refused(
      t,
      thrown(() => queue.off('completed', listener as never)),
      invalid,
      'listener',
      of,
    )
  }
  t.equal(queue.listenerCount('completed'), 0)
})

t.test('retry policies and rate limits', async (t) => {
  for (const value of [undefined, ...noDurations]) {
    const ms = value as never
    const of = show(value)
    refused(
      t,
      thrown(() => exponential({ baseMs: ms, maxMs: 1 })),
      invalid,
      'retry.baseMs',
      of,
    )
    refused(
      t,
      thrown(() => exponential({ baseMs: 1, maxMs: ms })),
      invalid,
      'retry.maxMs',
      of,
    )
    refused(
      t,
      thrown(() => fixed(ms)),
      invalid,
      'retry.delayMs',
      of,
    )
    refused(
      t,
      thrown(() => new RateLimitedError(ms)),
      invalid,
      'retryAfterMs',
      of,
    )
  }
  for (const factor of [0, 0.9, 1_001, Number.NaN, Number.POSITIVE_INFINITY, 'x', {}, null]) {
    const error = thrown(() => exponential({ baseMs: 1, maxMs: 1, factor: factor as never }))
    refused(t, error, invalid, 'retry.factor', show(factor))
  }
  t.pass('all were refused')
})

t.test('MemoryStorage: its bounds', async (t) => {
  for (const value of noCounts) {
    const error = (option: string) => thrown(() => new MemoryStorage({ [option]: value }))
    refused(t, error('recordsMax'), invalid, 'options.recordsMax', show(value))
    refused(t, error('bytesMax'), invalid, 'options.bytesMax', show(value))
  }
  t.pass('all were refused')
})

t.test('messages tell the kind of what was received and the bound, never the content', async (t) => {
  const queue = new Queue()
  const messages = [
    [await rejection(() => queue.enqueue('x'.repeat(2_000), 1)), /2000 bytes.*1024/],
    [
      await rejection(() => queue.enqueue('id', 1, { resultTTL: 1.5 })),
      /from 1 to 3155760000000; received the number 1.5/,
    ],
    [thrown(() => new Queue({ leaseMs: 29 })), /from 30 to .*; received the number 29/],
    [thrown(() => new Queue({ maxAttempts: 'hunter2' as never })), /received a string of 7 characters/],
    [thrown(() => new Queue({ storage: { url: 'redis://user:hunter2@host' } as never })), /received an object/],
  ] as const
  for (const [error, pattern] of messages) {
    t.match((error as Error).message, pattern)
    t.notMatch((error as Error).message, /hunter2|xxxx/)
  }
})

t.test('hibiken/asynq#338, case 49: a TTL of 1 ms works', async (t) => {
  const clock = new VirtualClock()
  const queue: AnyQueue = new Queue<any, any>({ storage: new MemoryStorage({ clock }), clock })
  queue.execute(() => 'done')
  await queue.start()
  const wait = queue.enqueueAndWait('id', 1, { resultTTL: 1 })
  t.equal(await wait, 'done')
  t.equal((await queue.getStatus('id'))?.state, 'completed')
  await clock.advance(1)
  t.equal(await queue.getStatus('id'), null)
  await queue.stop()
})
