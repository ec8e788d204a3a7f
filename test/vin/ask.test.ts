import t from 'tap'
import { type Answer, ask } from '../../src/presets/vin/ask.ts'
import { vehicles } from '../support/vpic/index.ts'
import { FakeClient, type FakeRule, failure } from './fake-client.ts'

const vins = vehicles.slice(0, 50).map(({ vin }) => vin)

async function run(rule: FakeRule, options: { halveFailures?: boolean; gapsSingly?: boolean; vins?: string[] } = {}) {
  const client = new FakeClient(rule)
  const answers = await ask(
    (options.vins ?? vins).map((vin) => ({ vin })),
    {
      client,
      signal: new AbortController().signal,
      before: async () => {},
      gapsSingly: options.gapsSingly ?? true,
      halveFailures: options.halveFailures ?? false,
    },
  )
  return { client, answers, classes: tally(answers) }
}

function tally(answers: ReadonlyMap<string, Answer>): Record<string, number> {
  const classes: Record<string, number> = {}
  for (const answer of answers.values()) {
    const name = 'row' in answer ? 'row' : answer.error.code
    classes[name] = (classes[name] ?? 0) + 1
  }
  return classes
}

function vinOf(answer: Answer | undefined): unknown {
  return answer !== undefined && 'row' in answer ? answer.row['VIN'] : answer
}

t.test('fifty VINs are one call', async (t) => {
  const { client, answers, classes } = await run(() => undefined)
  t.equal(client.calls.length, 1)
  t.strictSame(classes, { row: 50 })
  for (const vin of vins) t.equal(vinOf(answers.get(vin)), vin)
})

t.test('gaps are asked for singly, and only they', async (t) => {
  const missing = [vins[0]!, vins[7]!, vins[49]!]
  const { client, classes } = await run((asked) => (asked.length > 1 ? missing : undefined))
  t.strictSame(
    client.calls.slice(1),
    missing.map((vin) => [vin]),
  )
  t.strictSame(classes, { row: 50 })
})

t.test('gaps that stay gaps: the failure is theirs alone; a service in trouble is not asked on', async (t) => {
  const missing = [vins[0]!, vins[7]!, vins[49]!]
  const { client, classes } = await run((asked) => (asked.length > 1 ? missing : missing))
  t.strictSame(classes, { row: 47, UPSTREAM: 3 })
  t.equal(client.calls.length, 2, 'after the first failed single the others are not tried')
})

t.test('gaps are left for later where the policy says so', async (t) => {
  const { client, classes } = await run((asked) => asked.slice(0, 2), { gapsSingly: false })
  t.strictSame(classes, { row: 48, BATCH_GAP: 2 })
  t.equal(client.calls.length, 1)
})

t.test('a rejected batch is halved down to the culprit', async (t) => {
  for (const culprit of [0, 1, 24, 25, 49]) {
    const { client, answers, classes } = await run((asked) => {
      if (asked.includes(vins[culprit]!)) throw failure('REQUEST_BUG', { status: 400 })
      return undefined
    })
    t.strictSame(classes, { row: 49, REQUEST_BUG: 1 }, `culprit ${culprit}`)
    t.match(answers.get(vins[culprit]!), { error: { code: 'REQUEST_BUG', details: { status: 400 } } })
    t.ok(client.calls.length <= 13, `${client.calls.length} calls`)
  }
})

t.test('several culprits are all found', async (t) => {
  const culprits = new Set([vins[3]!, vins[4]!, vins[30]!])
  const { answers, classes } = await run((asked) => {
    if (asked.some((vin) => culprits.has(vin))) throw failure('REQUEST_BUG')
    return undefined
  })
  t.strictSame(classes, { row: 47, REQUEST_BUG: 3 })
  for (const vin of culprits) t.match(answers.get(vin), { error: { code: 'REQUEST_BUG' } })
})

t.test('a request that is wrong whatever the VIN is not tried a hundred times', async (t) => {
  const { client, classes } = await run(() => {
    throw failure('REQUEST_BUG', { status: 404 })
  })
  t.strictSame(classes, { REQUEST_BUG: 50 })
  t.ok(client.calls.length <= 13, `${client.calls.length} calls`)
})

t.test('a throttle in the middle: what is answered stays, nothing more is asked', async (t) => {
  const { client, classes } = await run((asked, call) => {
    if (call === 1) throw failure('REQUEST_BUG')
    if (call === 3) throw failure('THROTTLED', { status: 429 })
    return asked.length > 100 ? [] : undefined
  })
  t.strictSame(classes, { row: 25, THROTTLED: 25 })
  t.equal(client.calls.length, 3)
})

t.test('a failing service fails the batch in one call, unless it is the last attempt', async (t) => {
  const choking = vins[13]!
  const rule: FakeRule = (asked) => {
    if (asked.includes(choking)) throw failure('UPSTREAM', { reason: 'execution' })
    return undefined
  }
  const first = await run(rule)
  t.strictSame([first.classes, first.client.calls.length], [{ UPSTREAM: 50 }, 1])
  const last = await run(rule, { halveFailures: true })
  t.strictSame(last.classes, { row: 49, UPSTREAM: 1 }, 'one VIN that it chokes on does not fail fifty')
  t.match(last.answers.get(choking), { error: { code: 'UPSTREAM' } })
})

t.test('silence is not halved: fifty time-outs one after the other help nobody', async (t) => {
  for (const reason of ['timeout', 'network']) {
    const { client, classes } = await run(
      () => {
        throw failure('UPSTREAM', { reason })
      },
      { halveFailures: true },
    )
    t.strictSame([classes, client.calls.length], [{ UPSTREAM: 50 }, 1], reason)
  }
})

t.test('whatever a client throws is an answer for each VIN', async (t) => {
  const { answers, classes } = await run(() => Promise.reject(new RangeError('own client')))
  t.strictSame(classes, { UPSTREAM: 50 })
  t.match(answers.get(vins[0]!), { error: { details: { reason: 'client' }, cause: { message: 'own client' } } })
})

t.test('a client that leaves VINs out of rows and gaps: gaps', async (t) => {
  const client = new FakeClient()
  client.decodeBatch = async () => ({ rows: new Map([['OTHER', {}]]), gaps: ['ANOTHER'] })
  const signal = new AbortController().signal
  const options = { client, signal, before: async () => {}, gapsSingly: true, halveFailures: false }
  t.strictSame(tally(await ask([{ vin: vins[0]! }, { vin: vins[1]! }], options)), { BATCH_GAP: 2 })
})

t.test('an aborted signal is thrown, not answered', async (t) => {
  const controller = new AbortController()
  const reason = new Error('stop')
  const client = new FakeClient(() => {
    controller.abort(reason)
    throw failure('UPSTREAM')
  })
  const options = { client, signal: controller.signal, before: async () => {}, gapsSingly: true, halveFailures: true }
  await t.rejects(ask([{ vin: vins[0]! }, { vin: vins[1]! }], options), reason)
})
