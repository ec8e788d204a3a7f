import t from 'tap'
import { JobFailedError } from '../../src/errors.ts'
import {
  checkDigitOf,
  createVinDecoder,
  createVpicClient,
  type RefusedOutcome,
  type VinDecoder,
  type VinDecoderOptions,
  type VinOutcome,
  vinId,
} from '../../src/presets/vin/index.ts'
import { VirtualClock } from '../../storages/conformance/virtual-clock.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { seededFaults, startVpic, vehicles } from '../support/vpic/index.ts'
import { FakeClient, type FakeRule, failure } from './fake-client.ts'

const vin = '1HGCM82633A004352'
const vins = vehicles.map(({ vin }) => vin)
const minuteMs = 60_000
const dayMs = 86_400_000

async function all(outcomes: AsyncIterable<VinOutcome>): Promise<VinOutcome[]> {
  const list: VinOutcome[] = []
  for await (const outcome of outcomes) list.push(outcome)
  return list
}

/** A decoder whose time stands still until told to move. */
function virtual(rule: FakeRule, options: VinDecoderOptions = {}) {
  const clock = new VirtualClock(Date.UTC(2025, 5, 1))
  const client = new FakeClient(rule)
  const random = () => 0.5
  const decoder = createVinDecoder({ client, clock, random, minIntervalMs: 0, ...options })
  return { clock, client, decoder }
}

/** Lets the time run until the promise settles, at most `ms`. */
async function within<T>(clock: VirtualClock, ms: number, promise: Promise<T>): Promise<T> {
  let settled = false
  const done = () => {
    settled = true
  }
  promise.then(done, done)
  for (let gone = 0; gone < ms && !settled; gone += 100) await clock.advance(100)
  if (!settled) throw new Error(`not settled within ${ms} ms of virtual time`)
  return promise
}

async function keptFor(decoder: VinDecoder, id: string): Promise<number> {
  const status = await decoder.queue.getStatus(id)
  return (status?.expiresAt ?? 0) - (status?.settledAt ?? 0)
}

t.test('one vehicle is asked for once, however it is written and whoever asks', async (t) => {
  const client = new FakeClient()
  await using decoder = createVinDecoder({ client, minIntervalMs: 0 })
  const writings = [vin, vin.toLowerCase(), ` ${vin}`, `"${vin}"`, '1HG-CM8-26-33A004352', `VIN: ${vin}`, `I${vin}`]
  const outcomes = await Promise.all(writings.map((raw) => decoder.decode(raw)))
  for (const [index, outcome] of outcomes.entries()) {
    t.match(outcome, {
      ok: true,
      class: 'CLEAN',
      vin,
      id: vinId(vin),
      raw: writings[index],
      decoded: { make: 'HONDA' },
    })
  }
  t.strictSame(outcomes.map(({ origin }) => origin).sort(), ['asked', ...Array(6).fill('shared')].sort())
  t.strictSame(client.calls, [[vin]])
  t.equal((await decoder.decode(vin)).origin, 'cache')
  t.match(decoder.counters, {
    decode_jobs_claimed: 1,
    decode_jobs_deduped: 7,
    decode_jobs_upstream: 1,
    decode_jobs_stale_ignored: 0,
    vpic_calls: 1,
    upstream_per_unique: 1,
  })
})

t.test('what is no VIN never reaches vPIC, nor the queue', async (t) => {
  const client = new FakeClient()
  await using decoder = createVinDecoder({ client, minIntervalMs: 0 })
  for (const raw of ['', 'x', null, undefined, 5, {}, '1'.repeat(17), '1HGCM82633A00435O', `${vin}0`, '5UXWX7C5*BA']) {
    const outcome = (await decoder.decode(raw)) as RefusedOutcome
    t.match(outcome, { ok: false, class: 'LOCAL_INVALID', id: null, origin: 'local', details: null }, String(raw))
    t.ok(outcome.problems.length > 0 && outcome.message.length > 0)
  }
  t.strictSame([client.calls, decoder.counters.decode_jobs_claimed], [[], 0])
})

t.test('what others put in the queue is checked as well, and kept as LOCAL_INVALID', async (t) => {
  const client = new FakeClient()
  await using decoder = createVinDecoder({ client, minIntervalMs: 0 })
  await decoder.start()
  for (const [id, payload] of Object.entries({ a: { vin: '1'.repeat(17) }, b: null, c: { vin: vin.toLowerCase() } })) {
    await t.rejects(decoder.queue.enqueueAndWait(id, payload as never), { cause: { code: 'LOCAL_INVALID' } })
    t.equal(await keptFor(decoder, id), 365 * dayMs)
  }
  t.strictSame(client.calls, [])
})

t.test('many: answers in order, each row its own, no row’s trouble another’s', async (t) => {
  await using standIn = await startVpic()
  await using decoder = createVinDecoder({ client: { baseUrl: standIn.baseUrl }, minIntervalMs: 0 })
  const rows: unknown[] = [
    ...vins,
    null,
    'bad',
    { vin: vins[0], modelYear: 1 },
    { vin: vins[1], modelYear: 2010 },
    7,
    ...vins,
  ]
  rows.splice(
    100,
    0,
    { vin: vins[2] },
    {
      get vin() {
        throw new Error('a getter that throws')
      },
    },
  )
  const outcomes = await all(decoder.decodeMany(rows))
  t.equal(outcomes.length, rows.length)
  for (const [index, outcome] of outcomes.entries()) {
    const row = rows[index]
    if (typeof row === 'string') t.equal(outcome.raw, row)
    if (typeof row === 'string' && row !== 'bad') t.match(outcome, { ok: true, vin: row })
  }
  const classes = new Set(outcomes.filter(({ ok }) => !ok).map((outcome) => outcome.class))
  t.strictSame([...classes].sort(), ['LOCAL_INVALID', 'UNDECIDED'])
  t.match(outcomes[101], { class: 'UNDECIDED', error: { name: 'InvalidArgumentError' } })
  t.equal(standIn.vinsAsked.length, 237, 'each VIN once, and one of them for another model year too')
  t.ok(standIn.calls.length <= 12, `${standIn.calls.length} calls`)
  t.equal(decoder.counters.decode_jobs_upstream, 237)
})

t.test('one VIN with two model years: two questions, two calls, no mix-up', async (t) => {
  const client = new FakeClient()
  await using decoder = createVinDecoder({ client, minIntervalMs: 0 })
  const rows = [{ vin }, { vin, modelYear: 2003 }, { vin, modelYear: 2004 }, { vin: vins[0] }]
  const outcomes = await all(decoder.decodeMany(rows))
  const codes = outcomes.map((outcome) => outcome.ok && outcome.decoded.codes)
  t.strictSame(codes, [[0], [0], [0, 12], [0]])
  t.equal(new Set(outcomes.map(({ id }) => id)).size, 4)
  for (const call of client.calls) t.equal(new Set(call).size, call.length, 'no VIN twice in one call')
})

t.test('bounded: ten thousand rows of a hundred vehicles, fifty in flight', async (t) => {
  const client = new FakeClient()
  await using decoder = createVinDecoder({ client, minIntervalMs: 0 })
  let read = 0
  let taken = 0
  let aheadMax = 0
  function* rows() {
    for (; read < 10_000; read++) {
      aheadMax = Math.max(aheadMax, read - taken)
      yield vins[read % 100]
    }
  }
  for await (const outcome of decoder.decodeMany(rows(), { inFlightMax: 50 })) {
    if (outcome.vin !== vins[taken % 100] || !outcome.ok) t.fail(`row ${taken}`)
    taken++
  }
  t.equal(taken, 10_000)
  t.ok(aheadMax <= 51, `${aheadMax} ahead`)
  t.equal(client.calls.flat().length, 100)
  t.match(decoder.counters, { decode_jobs_claimed: 100, decode_jobs_deduped: 9_900, upstream_per_unique: 1 })
})

t.test('a throttle holds the whole queue for ten minutes, and costs no attempt', async (t) => {
  const { clock, client, decoder } = virtual((_vins, call) => {
    if (call <= 2) throw failure('THROTTLED', { status: 429 })
    return undefined
  })
  const first = decoder.decode(vin)
  await clock.advance(1_000)
  const second = decoder.decode(vins[0])
  await clock.advance(10 * minuteMs - 2_000)
  t.strictSame(client.calls, [[vin]], 'nobody asks during the hold')
  await clock.advance(2_000)
  t.equal(client.calls.length, 2)
  const [one, two] = await within(clock, 60 * minuteMs, Promise.all([first, second]))
  t.match([one, two], [{ ok: true }, { ok: true }])
  t.equal((await decoder.queue.getStatus(vinId(vin)))?.attempts, 1, 'two throttles, one attempt')
  await decoder.close()
})

t.test('Retry-After is heeded, from a second to a day', async (t) => {
  for (const [asked, heldMs] of [
    [7_000, 7_000],
    [0, 1_000],
    [99 * dayMs, dayMs],
  ] as const) {
    const { clock, client, decoder } = virtual(
      (_vins, call) => {
        if (call === 1) throw failure('THROTTLED', { status: 429, retryAfterMs: asked })
        return undefined
      },
      { timeout: Number.POSITIVE_INFINITY },
    )
    const outcome = decoder.decode(vin)
    await clock.advance(heldMs - 20)
    t.equal(client.calls.length, 1, `${asked}: held`)
    await clock.advance(100)
    t.equal(client.calls.length, 2, `${asked}: and no longer`)
    t.match(await outcome, { ok: true })
    await decoder.close()
  }
})

t.test('a throttle holds every decoder on the storage', async (t) => {
  const clock = new VirtualClock()
  const storage = new MemoryStorage({ clock })
  const throttled = virtual(
    () => {
      throw failure('THROTTLED')
    },
    { storage, clock },
  )
  const other = virtual(() => undefined, { storage, clock })
  const waits = [throttled.decoder.decode(vin), other.decoder.decode(vins[1])]
  void Promise.allSettled(waits)
  await clock.advance(5 * minuteMs)
  t.ok(throttled.client.calls.length + other.client.calls.length <= 2, 'both are held')
  await Promise.all([throttled.decoder.close(), other.decoder.close()])
})

t.test(
  'a failing service is asked again with back-off, four times, as one batch each time; then kept five minutes',
  async (t) => {
    const { clock, client, decoder } = virtual((_vins, call) => {
      if (call <= 4) throw failure('UPSTREAM', { reason: 'timeout' })
      return undefined
    })
    const wait = all(decoder.decodeMany(vins.slice(0, 50)))
    const outcomes = await within(clock, 10 * minuteMs, wait)
    t.strictSame(
      client.calls.map((call) => call.length),
      [50, 50, 50, 50],
    )
    for (const outcome of outcomes) t.match(outcome, { ok: false, class: 'UPSTREAM', origin: 'asked' })
    const again = await within(clock, minuteMs, all(decoder.decodeMany(vins.slice(0, 50))))
    for (const outcome of again) t.match(outcome, { class: 'UPSTREAM', origin: 'cache' })
    t.equal(client.calls.length, 4)
    await clock.advance(5 * minuteMs)
    const healed = await within(clock, minuteMs, all(decoder.decodeMany(vins.slice(0, 50))))
    for (const outcome of healed) t.match(outcome, { ok: true, origin: 'asked' })
    t.equal(client.calls.length, 5)
    t.equal(decoder.counters.upstream_per_unique, 5, 'the ratio shows it')
    await decoder.close()
  },
)

t.test('one VIN that the service chokes on fails alone', async (t) => {
  const choking = vins[17]!
  const { clock, decoder } = virtual((asked) => {
    if (asked.includes(choking)) throw failure('UPSTREAM', { reason: 'execution' })
    return undefined
  })
  const outcomes = await within(clock, 10 * minuteMs, all(decoder.decodeMany(vins.slice(0, 50))))
  t.strictSame(
    outcomes.filter(({ ok }) => !ok).map(({ vin }) => vin),
    [choking],
  )
  await decoder.close()
})

t.test('a request that vPIC refuses: the culprit alone, an hour, and an alarm', async (t) => {
  const culprit = vins[9]!
  const logged: unknown[] = []
  const silent = () => {}
  const logger = { debug: silent, info: silent, warn: silent, error: (fields: object) => logged.push(fields) }
  const { clock, decoder } = virtual(
    (asked) => {
      if (asked.includes(culprit)) throw failure('REQUEST_BUG', { status: 400 })
      return undefined
    },
    { logger },
  )
  const outcomes = await within(clock, minuteMs, all(decoder.decodeMany(vins.slice(0, 50))))
  const failed = outcomes.filter(({ ok }) => !ok)
  t.match(failed, [{ vin: culprit, class: 'REQUEST_BUG', details: { status: 400 } }])
  t.equal(failed.length, 1)
  t.equal(await keptFor(decoder, vinId(culprit)), 60 * minuteMs)
  t.match(logged, [{ class: 'REQUEST_BUG', status: 400 }])
  t.equal(decoder.counters.request_bugs, 1)
  await decoder.close()
})

t.test('how long each outcome is kept: by its class', async (t) => {
  const { clock, decoder } = virtual(() => undefined)
  const kept: [string, string, number][] = [
    [vin, 'CLEAN', 90],
    ['1FTFW1ET5DFC10312', 'WARN', 30],
    ['ZZZCM82633A004352', 'BAD_VIN', 180],
    ['VF1RFB00X56123456', 'NO_DATA', 30],
    ['WBAZZZ00XS6123456', 'NO_DATA', 30],
    ['WBAZZZA0XS6123456', 'NO_DATA', 7],
    [`ZZZCM826${checkDigitOf('ZZZCM82603A004352')}3A004352`, 'UNKNOWN_MAKER', 30],
  ]
  for (const [asked, name, days] of kept) {
    const outcome = await within(clock, minuteMs, decoder.decode(asked))
    t.equal(outcome.class, name, asked)
    t.equal(await keptFor(decoder, vinId(asked)), days * dayMs, `${asked}: ${days} days`)
  }
  await decoder.close()
})

t.test('the policy is the caller’s: other TTLs, other retries, a hook of its own, another version', async (t) => {
  const seen: unknown[] = []
  const storage = new MemoryStorage()
  const client = new FakeClient((asked) => {
    if (asked.includes(vins[3]!)) throw failure('THROTTLED')
    return undefined
  })
  await using mine = createVinDecoder({
    storage,
    client,
    minIntervalMs: 0,
    policy: {
      version: 'mine-1',
      rules: { CLEAN: { retry: 'never', ttlMs: 1_234 }, THROTTLED: { retry: 'never', ttlMs: 99 } },
    },
    afterExecution: (context) => {
      seen.push([context.status, context.ttl])
      if (context.status === 'failed') context.ttl = 77_000
    },
  })
  const outcome = await mine.decode(vin)
  t.equal(outcome.id, vinId(vin, { policy: 'mine-1' }))
  t.not(outcome.id, vinId(vin))
  t.match(await mine.decode(vins[3]), { ok: false, class: 'THROTTLED', details: { class: 'THROTTLED' } })
  t.strictSame(seen, [
    ['completed', 1_234],
    ['failed', 99],
  ])
  t.equal(await keptFor(mine, vinId(vins[3]!, { policy: 'mine-1' })), 77_000)
  await using theirs = createVinDecoder({ storage, client, minIntervalMs: 0 })
  t.equal((await theirs.decode(vin)).origin, 'asked', 'another version shares no answers')
})

t.test('a retryable refusal, if the policy wants it', async (t) => {
  const { clock, client, decoder } = virtual(() => undefined, {
    policy: { rules: { NO_DATA: { retry: 'backoff', ttlMs: 1_000 } }, maxAttempts: 2 },
  })
  t.match(await within(clock, minuteMs, decoder.decode('VF1RFB00X56123456')), { class: 'NO_DATA' })
  t.equal(client.calls.length, 2)
  await decoder.close()
})

t.test('a producer without a worker, and a worker elsewhere on the storage', async (t) => {
  const storage = new MemoryStorage()
  const client = new FakeClient()
  await using producer = createVinDecoder({
    storage,
    worker: false,
    client: new FakeClient(() => t.fail('asked') as never),
  })
  await using worker = createVinDecoder({ storage, client, minIntervalMs: 0 })
  const wait = producer.decode(vin)
  await worker.start()
  t.match(await wait, { ok: true, origin: 'asked' })
  t.strictSame([producer.counters.decode_jobs_claimed, worker.counters.decode_jobs_claimed], [1, 0])
  t.strictSame([producer.counters.decode_jobs_upstream, worker.counters.decode_jobs_upstream], [0, 1])
  t.equal((await worker.decode(vin)).origin, 'cache')
})

t.test('four workers, one storage, a seeded storm of faults: every VIN is decoded, all of them once', async (t) => {
  const seed = Number(process.env['SEED'] ?? 20_240_601)
  const faults = seededFaults(seed, 0.4, [
    { kind: 'gateway_timeout' },
    { kind: 'xml' },
    { kind: 'broken_json' },
    { kind: 'execution_error' },
    { kind: 'empty_results' },
    { kind: 'missing' },
    { kind: 'doubled' },
    { kind: 'reversed' },
    { kind: 'reset' },
    { kind: 'reset', halfway: true },
    { kind: 'latency', ms: 15 },
    { kind: 'throttle', retryAfter: '1' },
    { kind: 'html' },
  ])
  await using standIn = await startVpic({ faults })
  const storage = new MemoryStorage()
  const policy = { maxAttempts: 50, retryBaseMs: 1, retryMaxMs: 5 }
  const client = createVpicClient({ baseUrl: standIn.baseUrl })
  const decoders = Array.from({ length: 4 }, () =>
    createVinDecoder({ storage, client, policy, minIntervalMs: 0, batch: { size: 20, waitMs: 1 } }),
  )
  const lists = await Promise.all(decoders.map((decoder) => all(decoder.decodeMany(vins))))
  for (const list of lists) {
    t.strictSame(
      list.map(({ ok, vin }) => (ok ? vin : `failed ${vin}`)),
      vins,
      `seed ${seed}`,
    )
  }
  t.ok(
    standIn.calls.some(({ fault }) => fault !== null),
    'there were faults',
  )
  const makes = new Map(vehicles.map(({ vin, make }) => [vin, make.toUpperCase()]))
  for (const outcome of lists.flat()) if (outcome.ok) t.equal(outcome.decoded.make, makes.get(outcome.vin))
  const claimed = decoders.reduce((sum, { counters }) => sum + counters.decode_jobs_claimed, 0)
  t.equal(claimed, vins.length, 'one job a VIN')
  await Promise.all(decoders.map((decoder) => decoder.close()))
})

t.test('stop, start, close', async (t) => {
  const client = new FakeClient()
  const decoder = createVinDecoder({ client, minIntervalMs: 0 })
  await decoder.decode(vin)
  await decoder.stop()
  await decoder.stop()
  await t.rejects(decoder.decode(vin), { name: 'StoppedError' })
  t.match(await all(decoder.decodeMany([vin, 'bad'])), [{ class: 'UNDECIDED' }, { class: 'LOCAL_INVALID' }])
  await decoder.start()
  t.match(await decoder.decode(vin), { ok: true })
  await decoder.close()
})

t.test('stop in the middle of a call: the attempt is given back, waits end', async (t) => {
  const client = new FakeClient(() => new Promise<never>(() => {}))
  const decoder = createVinDecoder({ client, minIntervalMs: 0, stopTimeout: 20 })
  client.decode = (_query, options?: { signal?: AbortSignal }) => {
    void decoder.stop()
    return new Promise((_resolve, reject) =>
      options?.signal?.addEventListener('abort', () => reject(options.signal?.reason)),
    )
  }
  await t.rejects(decoder.decode(vin), { name: 'StoppedError' })
  await decoder.stop()
  t.equal(decoder.queue.phase, 'stopped')
})

t.test('a wait can be cut short by a time-out or a signal; the job goes on', async (t) => {
  const { clock, client, decoder } = virtual(() => undefined)
  client.decode = () => new Promise(() => {})
  const timed = decoder.decode(vin, { timeout: 500 })
  timed.catch(() => {})
  await clock.advance(600)
  await t.rejects(timed, { name: 'TimeoutError' })
  const rows = all(decoder.decodeMany([vin], { timeout: 500 }))
  await clock.advance(600)
  t.match(await rows, [{ ok: false, class: 'UNDECIDED', error: { name: 'TimeoutError' }, vin, id: vinId(vin) }])
  const reason = new Error('enough')
  await t.rejects(decoder.decode(vin, { signal: AbortSignal.abort(reason) }), reason)
  const controller = new AbortController()
  const waiting = decoder.decodeMany([vin], { signal: controller.signal }).next()
  await clock.advance(10)
  controller.abort(reason)
  await t.rejects(waiting, reason)
  await t.rejects(decoder.decodeMany([vin], { signal: controller.signal }).next(), reason)
  const stopping = decoder.stop()
  await clock.advance(60_000)
  await stopping
})

t.test('leaving the loop early ends the waits it began', async (t) => {
  await using decoder = createVinDecoder({ client: new FakeClient(), minIntervalMs: 0 })
  for await (const outcome of decoder.decodeMany(vins)) {
    t.match(outcome, { ok: true })
    break
  }
  t.match(await decoder.decode(vins[5]), { ok: true })
})

t.test('calls keep their distance, whoever makes them', async (t) => {
  const at: number[] = []
  const { clock, decoder } = virtual(
    () => {
      at.push(clock.monotonic())
      return undefined
    },
    { minIntervalMs: 250, batch: { size: 1, concurrency: 5 } },
  )
  await within(clock, minuteMs, all(decoder.decodeMany(vins.slice(0, 6))))
  for (let index = 1; index < at.length; index++)
    t.ok(at[index]! - at[index - 1]! >= 250, `${at[index]! - at[index - 1]!}`)
  t.equal(at.length, 6)
  await decoder.close()
})

t.test('a failure of a job that is no decode failure is told as what it is', async (t) => {
  const policy = { retryBaseMs: 1, retryMaxMs: 1 }
  const decoder = createVinDecoder({ client: new FakeClient(), worker: false, policy })
  decoder.queue.execute(() => {
    throw new RangeError('another handler')
  })
  await decoder.start()
  await t.rejects(decoder.decode(vin), JobFailedError)
  await decoder.close()
})

t.test('bad options are refused by name', async (t) => {
  const bad: [object, string][] = [
    [{ batch: { size: 51 } }, 'options.batch.size'],
    [{ batch: { size: 0 } }, 'options.batch.size'],
    [{ batch: { waitMs: 0 } }, 'options.batch.waitMs'],
    [{ batch: { concurrency: 0 } }, 'options.batch.concurrency'],
    [{ minIntervalMs: -1 }, 'options.minIntervalMs'],
    [{ timeout: 0 }, 'options.timeout'],
    [{ storage: {} }, 'options.storage'],
    [{ client: 5 }, 'options.client'],
    [{ client: { decode: () => {} } }, 'options.client'],
    [{ client: { baseUrl: 'nowhere' } }, 'options.baseUrl'],
  ]
  for (const [options, field] of bad) {
    t.throws(() => createVinDecoder(options as never), { name: 'InvalidArgumentError', field }, JSON.stringify(options))
  }
  await using decoder = createVinDecoder({ client: new FakeClient() })
  for (const rows of [vin, null, undefined, 5, {}]) {
    t.throws(() => decoder.decodeMany(rows as never), { name: 'InvalidArgumentError', field: 'rows' })
  }
  t.throws(() => decoder.decodeMany([], { inFlightMax: 0 }), {
    name: 'InvalidArgumentError',
    field: 'options.inFlightMax',
  })
  t.throws(() => decoder.decodeMany([], { timeout: -1 }), { name: 'InvalidArgumentError', field: 'options.timeout' })
  await t.rejects(decoder.decode(vin, { modelYear: 1_066 }), {
    name: 'InvalidArgumentError',
    field: 'options.modelYear',
  })
  await t.rejects(decoder.decode(vin, { timeout: -1 }), { name: 'InvalidArgumentError' })
})
