import t from 'tap'
import { JobFailedError } from '../../src/errors.ts'
import { createVinDecoder, type RefusedOutcome, vinId } from '../../src/presets/vin/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { startVpic, vehicles } from '../support/vpic/index.ts'
import { all, keptFor, virtual } from './decoder-rig.ts'
import { FakeClient } from './fake-client.ts'

const vin = '1HGCM82633A004352'
const vins = vehicles.map(({ vin }) => vin)
const dayMs = 86_400_000

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
