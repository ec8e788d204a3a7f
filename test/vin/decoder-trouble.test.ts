import t from 'tap'
import { checkDigitOf, createVinDecoder, createVpicClient, vinId } from '../../src/presets/vin/index.ts'
import { VirtualClock } from '../../storages/conformance/virtual-clock.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { seededFaults, startVpic, vehicles } from '../support/vpic/index.ts'
import { all, keptFor, virtual, within } from './decoder-rig.ts'
import { FakeClient, failure } from './fake-client.ts'

const vin = '1HGCM82633A004352'
const vins = vehicles.map(({ vin }) => vin)
const minuteMs = 60_000
const dayMs = 86_400_000

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
