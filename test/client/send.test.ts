import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import {
  type AttemptError,
  mintAttempt,
  type Send,
  type SendAttemptOptions,
  type Sleep,
  sendAttempt,
} from '../../src/client/index.ts'
import { sleep } from '../../src/client/waiting.ts'
import { answer, ClientRig, type Step } from './rig.ts'

/** Sends an attempt through a script; the rig tells what happened. */
async function run(steps: Step[], options: SendAttemptOptions = {}, ttlMs = 60_000) {
  const rig = new ClientRig(...steps)
  const attempt = rig.mint('vin:1', ttlMs)
  let response: Response | null = null
  let error: unknown = null
  try {
    response = await sendAttempt(attempt, rig.send, rig.options(options))
  } catch (thrown) {
    error = thrown
  }
  return { rig, attempt, response, error, requests: rig.sent.length }
}

const offline = () => new TypeError('Failed to fetch')

t.test('one answer, one request; the header and the attempt are handed on', async (t) => {
  const { rig, attempt, response, requests } = await run([answer(200, {}, 'Honda')])
  t.equal(await response?.text(), 'Honda')
  t.strictSame([requests, rig.waits], [1, []])
  t.equal(rig.sent[0]?.attempt, attempt)
  t.strictSame(rig.sent[0]?.headers, { 'Idempotency-Key': `"${attempt.key}"` })
})

t.test('every retry carries the same key', async (t) => {
  const { rig, attempt, response, requests } = await run([
    answer(409),
    answer(503),
    offline(),
    answer(202),
    answer(504),
    answer(200),
  ])
  t.equal(response?.status, 200)
  t.equal(requests, 6)
  t.strictSame(rig.keys, [`"${attempt.key}"`])
})

t.test('the loop cannot mint: nothing in it asks for randomness', async (t) => {
  const { randomUUID, getRandomValues } = crypto
  const rig = new ClientRig(answer(409), offline(), answer(500), answer(200))
  const attempt = rig.mint()
  const forbidden = () => t.fail('a key was made')
  for (const name of ['randomUUID', 'getRandomValues']) {
    Object.defineProperty(crypto, name, { value: forbidden, configurable: true, writable: true })
  }
  t.teardown(() => {
    for (const [name, value] of Object.entries({ randomUUID, getRandomValues })) {
      Object.defineProperty(crypto, name, { value, configurable: true, writable: true })
    }
  })
  const response = await sendAttempt(attempt, rig.send, rig.options())
  t.equal(response.status, 200)
})

t.test('4xx other than those that say "later" are final, as are 2xx other than 202 and 3xx', async (t) => {
  for (const status of [200, 201, 204, 303, 304, 400, 401, 403, 404, 410, 413, 422, 428, 431]) {
    const { response, requests, rig } = await run([answer(status, { 'retry-after': '1' })])
    t.strictSame([response?.status, requests, rig.waits], [status, 1, []], `${status}`)
  }
})

t.test('409 and 202 are waited for, however long, and cost no retry', async (t) => {
  for (const status of [409, 202]) {
    const pending = Array.from({ length: 10 }, () => answer(status))
    const { response, requests, rig } = await run([...pending, answer(200)], { retries: 0 })
    t.strictSame([response?.status, requests], [200, 11])
    t.strictSame(rig.waits.slice(0, 6), [188, 375, 750, 1_500, 3_000, 3_000], 'doubled up to 4 s, half of it jitter')
    t.match(rig.told[0], { kind: 'pending', status, waitMs: 188 })
  }
})

t.test('409 and 202 that the server has stored are the answer', async (t) => {
  for (const status of [409, 202]) {
    const { response, requests } = await run([answer(status, { 'idempotent-replay': 'true' }, 'conflict')])
    t.strictSame([response?.status, requests], [status, 1])
    t.equal(await response?.text(), 'conflict')
  }
})

t.test('still in progress when the attempt ends: a typed error, not a 202 that passes for success', async (t) => {
  for (const status of [409, 202]) {
    const { error, rig, requests } = await run(
      Array.from({ length: 100 }, () => answer(status)),
      {},
      10_000,
    )
    t.match(error, { name: 'AttemptError', code: 'ASKONCE_ATTEMPT_PENDING', status })
    t.ok(requests < 10)
    t.ok(rig.sent.every(({ at }) => at < 1_700_000_010_000))
  }
})

t.test('Retry-After in seconds is honoured: never sooner', async (t) => {
  const { rig } = await run([answer(409, { 'retry-after': '7' }), answer(503, { 'retry-after': '3' }), answer(200)])
  t.strictSame(rig.waits, [7_000, 3_000])
})

t.test('Retry-After of less than the back-off does not shorten it', async (t) => {
  const { rig } = await run([answer(409, { 'retry-after': '0' }), answer(503, { 'retry-after': '0' }), answer(200)])
  t.strictSame(rig.waits, [188, 250])
})

t.test('Retry-After as a date, by the server’s own clock where the answer tells it', async (t) => {
  const date = (ms: number) => new Date(ms).toUTCString()
  const at = 1_700_000_000_000
  const byOurs = await run([answer(503, { 'retry-after': date(at + 5_000) }), answer(200)])
  t.strictSame(byOurs.rig.waits, [5_000])
  const wrongByHours = at - 7_200_000
  const headers = { 'retry-after': date(wrongByHours + 9_000), date: date(wrongByHours) }
  const byTheirs = await run([answer(503, headers), answer(200)])
  t.strictSame(byTheirs.rig.waits, [9_000])
  const past = await run([answer(503, { 'retry-after': date(at - 5_000) }), answer(200)])
  t.strictSame(past.rig.waits, [250], 'a date that has passed asks for nothing')
})

t.test('Retry-After that is nonsense asks for nothing', async (t) => {
  for (const value of ['', '-1', '1.5', 'soon', '0x10', '1e3', '9'.repeat(40), '٣']) {
    const headers = new Headers()
    if (!/[^\x20-\x7e]/.test(value)) headers.set('retry-after', value)
    const { rig } = await run([new Response(null, { status: 503, headers }), answer(200)])
    t.strictSame(rig.waits, [250], JSON.stringify(value))
  }
})

t.test('Retry-After is bounded: what asks for more is not asked again', async (t) => {
  const late = { 'retry-after': '61' }
  const failed = await run([answer(503, late, 'later')], {}, 3_600_000)
  t.strictSame([failed.response?.status, failed.requests, failed.rig.waits], [503, 1, []])
  t.equal(await failed.response?.text(), 'later')
  const pending = await run([answer(409, late)], {}, 3_600_000)
  t.match(pending.error, { code: 'ASKONCE_ATTEMPT_PENDING', status: 409 })
  t.equal(pending.requests, 1)
  const allowed = await run([answer(503, late), answer(200)], { retryAfterMaxMs: 61_000 }, 3_600_000)
  t.strictSame(allowed.rig.waits, [61_000])
})

t.test('a Retry-After past the attempt’s end is not waited for', async (t) => {
  const failed = await run([answer(503, { 'retry-after': '20' })], {}, 20_000)
  t.strictSame([failed.response?.status, failed.requests, failed.rig.waits], [503, 1, []])
  const within = await run([answer(503, { 'retry-after': '19' }), answer(200)], {}, 20_000)
  t.strictSame([within.response?.status, within.rig.waits], [200, [19_000]])
})

t.test('5xx back off with full jitter between 0 and the doubled base', async (t) => {
  const failures = () => Array.from({ length: 8 }, () => answer(500))
  const options = { retries: 8, retryBaseMs: 100, retryMaxMs: 2_000 }
  for (const [random, waits] of [
    [0, [0, 0, 0, 0, 0, 0, 0, 0]],
    [0.5, [50, 100, 200, 400, 800, 1_000, 1_000, 1_000]],
    [0.999_999, [100, 200, 400, 800, 1_600, 2_000, 2_000, 2_000]],
  ] as const) {
    const rig = new ClientRig(...failures(), answer(200))
    rig.random = random
    const response = await sendAttempt(rig.mint(), rig.send, rig.options(options))
    t.strictSame([response.status, rig.waits], [200, waits])
  }
})

t.test(
  '408, 425 and 429 say "later", as 5xx do: tried again, after Retry-After, with the same key; the last is the answer',
  async (t) => {
    for (const status of [408, 425, 429]) {
      const later = await run([answer(status, { 'retry-after': '7' }), answer(200)])
      t.strictSame([later.response?.status, later.rig.waits], [200, [7_000]], `${status}`)
      t.equal(later.rig.keys.length, 1, 'one key')
      const last = await run([answer(status), answer(status)], { retries: 1 })
      t.strictSame([last.response?.status, last.requests], [status, 2])
      const long = await run([answer(status, { 'retry-after': '61' }), answer(200)])
      t.strictSame([long.response?.status, long.requests], [status, 1], 'longer than is waited for')
    }
  },
)

t.test('the last 5xx is the answer, whole', async (t) => {
  const { response, requests, rig } = await run([answer(502), answer(503), answer(504, {}, '{"title":"late"}')], {
    retries: 2,
  })
  t.strictSame([response?.status, requests], [504, 3])
  t.strictSame(await response?.json(), { title: 'late' })
  t.strictSame(
    rig.told.map(({ kind, status }) => [kind, status]),
    [
      ['failed', 502],
      ['failed', 503],
    ],
  )
})

t.test('no answer is tried again, and then told as such with its cause', async (t) => {
  const causes = [offline(), offline(), offline()]
  const { error, requests } = await run([...causes], { retries: 2 })
  t.match(error, { name: 'AttemptError', code: 'ASKONCE_NETWORK', status: null })
  t.equal((error as AttemptError).cause, causes[2])
  t.equal(requests, 3)
  t.equal((await run([offline()], { retries: 0 })).requests, 1)
})

t.test('failures are counted in a row: an answer in progress between them starts anew', async (t) => {
  const steps = [offline(), answer(500), answer(409), offline(), answer(500), answer(200)]
  const { response, rig } = await run(steps, { retries: 2 })
  t.equal(response?.status, 200)
  t.strictSame(rig.waits, [250, 500, 188, 250, 500])
})

t.test('a send that throws at once, or throws something else than an error', async (t) => {
  const rig = new ClientRig(answer(200))
  const thrown = [null, 'text', undefined]
  const attempt = rig.mint()
  const response = await sendAttempt(
    attempt,
    (...args) => {
      if (thrown.length > 0) throw thrown.pop()
      return rig.send(...args)
    },
    rig.options(),
  )
  t.equal(response.status, 200)
})

t.test('a body that breaks is no answer, and is tried again', async (t) => {
  const broken = () =>
    new Response(
      new ReadableStream({
        pull(controller) {
          controller.enqueue(new TextEncoder().encode('{"make":'))
          controller.error(new TypeError('network error'))
        },
      }),
    )
  const { response, requests } = await run([broken, answer(200, {}, '{"make":"Honda"}')])
  t.equal(requests, 2)
  t.strictSame(await response?.json(), { make: 'Honda' })
  const alone = await run([broken], { retries: 0 })
  t.match(alone.error, { code: 'ASKONCE_NETWORK', cause: { message: 'network error' } })
})

t.test('the answer is handed back as it is: bytes, headers, an empty body, one that was read', async (t) => {
  const bytes = Uint8Array.from({ length: 256 }, (_, index) => index)
  const original = new Response(bytes, { status: 201, headers: { etag: '"1"' } })
  const { response } = await run([original])
  t.equal(response, original)
  t.equal(response?.headers.get('etag'), '"1"')
  t.strictSame(new Uint8Array(await response!.arrayBuffer()), bytes)
  t.equal(await (await run([new Response(null, { status: 204 })])).response?.text(), '')
  const read = new Response('x')
  await read.text()
  t.equal((await run([read])).response, read)
})

t.test('silence: the request is aborted after timeoutMs and tried again with the same key', async (t) => {
  let aborted = 0
  const silent = (signal: AbortSignal) =>
    new Promise<Response>((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        aborted++
        reject(signal.reason)
      })
      queueMicrotask(() => rig.beSilent())
    })
  const deaf = () => {
    queueMicrotask(() => rig.beSilent())
    return new Promise<Response>(() => {})
  }
  const rig = new ClientRig(silent, deaf, answer(200))
  const response = await sendAttempt(rig.mint(), rig.send, rig.options())
  t.strictSame([response.status, rig.sent.length, rig.keys.length, aborted], [200, 3, 1, 1])
  const alone = new ClientRig(() => {
    queueMicrotask(() => alone.beSilent())
    return new Promise<Response>(() => {})
  })
  await t.rejects(sendAttempt(alone.mint(), alone.send, alone.options({ retries: 0 })), {
    code: 'ASKONCE_NETWORK',
    cause: { message: /no answer within \d+ ms/ },
  })
})

t.test('an expired attempt is refused before anything is sent', async (t) => {
  const rig = new ClientRig(answer(200))
  const attempt = rig.mint('vin:1', 1_000)
  rig.now += 1_000
  await t.rejects(sendAttempt(attempt, rig.send, rig.options()), {
    name: 'AttemptError',
    code: 'ASKONCE_ATTEMPT_EXPIRED',
    status: null,
  })
  t.equal(rig.sent.length, 0)
})

t.test('an attempt that expires between two sends is refused: a device that slept', async (t) => {
  for (const step of [answer(409), answer(503), offline()]) {
    const rig = new ClientRig(step, answer(200))
    rig.onSleep = () => {
      rig.now += 3_600_000
    }
    await t.rejects(sendAttempt(rig.mint(), rig.send, rig.options()), {
      code: 'ASKONCE_ATTEMPT_EXPIRED',
      status: step instanceof Response ? step.status : null,
    })
    t.equal(rig.sent.length, 1)
  }
})

t.test('an answer that comes after the attempt’s end is an answer', async (t) => {
  const rig = new ClientRig(() => {
    rig.now += 120_000
    return answer(200)
  })
  t.equal((await sendAttempt(rig.mint(), rig.send, rig.options())).status, 200)
})

t.test('the signal ends it: before, during a request, in a wait; with its own reason', async (t) => {
  const reason = new Error('enough')
  const before = await run([answer(200)], { signal: AbortSignal.abort(reason) })
  t.strictSame([before.error, before.requests], [reason, 0])

  const during = new AbortController()
  let seen: unknown
  const hanging = (signal: AbortSignal) => {
    signal.addEventListener('abort', () => {
      seen = signal.reason
    })
    queueMicrotask(() => during.abort(reason))
    return new Promise<Response>(() => {})
  }
  const midway = await run([hanging, answer(200)], { signal: during.signal })
  t.strictSame([midway.error, midway.requests, seen], [reason, 1, reason])

  for (const step of [answer(409), answer(500), offline()]) {
    const waiting = new AbortController()
    const rig = new ClientRig(step, answer(200))
    rig.onSleep = () => waiting.abort(reason)
    const options = rig.options({ signal: waiting.signal })
    await t.rejects(sendAttempt(rig.mint(), rig.send, options), reason)
    t.equal(rig.sent.length, 1)
  }
})

t.test('an abort of the caller’s own is not tried again', async (t) => {
  const own = new DOMException('aborted', 'AbortError')
  const { error, requests } = await run([own as unknown as Error])
  t.strictSame([error, requests], [own, 1])
})

t.test('off line: waits for the network, counts nothing, and goes on at once', async (t) => {
  const goOffline = () => {
    rig.online = false
    throw offline()
  }
  const rig = new ClientRig(goOffline, offline(), offline(), answer(200))
  rig.onSleep = () => {
    if (rig.waits.length === 3) rig.comeOnline()
  }
  const response = await sendAttempt(rig.mint(), rig.send, rig.options({ retries: 0 }))
  t.strictSame([response.status, rig.keys.length], [200, 1])
  t.strictSame(
    rig.told.map(({ kind }) => kind),
    ['offline', 'offline', 'offline'],
  )

  const soon = new ClientRig(() => {
    soon.online = false
    throw offline()
  }, answer(200))
  const options = soon.options({
    // Never over by itself: only coming on line ends it.
    sleep: (ms, signal) => (ms === 10_000 ? new Promise(() => {}) : soon.sleep(ms, signal)),
    onWait: ({ kind }) => {
      t.equal(kind, 'offline')
      setImmediate(() => soon.comeOnline())
    },
  })
  t.equal((await sendAttempt(soon.mint(), soon.send, options)).status, 200)
})

t.test('off line until the attempt’s end: refused as expired, and the signal ends it sooner', async (t) => {
  const never = () => new ClientRig(...Array.from({ length: 50 }, offline))
  const rig = never()
  rig.online = false
  await t.rejects(sendAttempt(rig.mint(), rig.send, rig.options()), { code: 'ASKONCE_ATTEMPT_EXPIRED' })
  t.strictSame(rig.waits, [10_000, 10_000, 10_000, 10_000, 10_000, 10_000])
  const short = never()
  short.online = false
  await t.rejects(sendAttempt(short.mint('s', 12_000), short.send, short.options()), {
    code: 'ASKONCE_ATTEMPT_EXPIRED',
  })
  t.strictSame(short.waits, [10_000, 2_000], 'told at its end, not later')
  const cancelled = never()
  cancelled.online = false
  const controller = new AbortController()
  const reason = new Error('enough')
  cancelled.onSleep = () => controller.abort(reason)
  const options = cancelled.options({ signal: controller.signal })
  await t.rejects(sendAttempt(cancelled.mint(), cancelled.send, options), reason)
  t.equal(cancelled.sent.length, 1)
})

t.test('an onWait that throws does not end the call', async (t) => {
  const { response } = await run([answer(409), answer(500), answer(200)], {
    onWait: () => {
      throw new Error('display')
    },
  })
  t.equal(response?.status, 200)
})

t.test(
  'the store is told of the end: answered, expired or cancelled; not of a failure that may be repeated',
  async (t) => {
    const removed = async (steps: Step[], more: SendAttemptOptions = {}, lateMs = 0) => {
      const rig = new ClientRig(...steps)
      const attempt = rig.mint()
      rig.now += lateMs
      const keys: string[] = []
      const store = { remove: ({ key }: { key: string }) => keys.push(key) }
      await sendAttempt(attempt, rig.send, rig.options({ retries: 1, store, ...more })).catch(() => {})
      t.ok(keys.every((key) => key === attempt.key))
      return keys.length
    }
    t.equal(await removed([answer(200)]), 1)
    t.equal(await removed([answer(422)]), 1)
    t.equal(await removed([answer(409), answer(200)]), 1)
    t.equal(await removed([], {}, 60_000), 1, 'expired')
    t.equal(await removed([answer(200)], { signal: AbortSignal.abort() }), 1, 'cancelled')
    t.equal(await removed([answer(503), answer(503)]), 0)
    t.equal(await removed([offline(), offline()]), 0)
    t.equal(await removed([answer(409, { 'retry-after': '300' })]), 0, 'in progress')
  },
)

t.test('bad options are refused before anything is sent', async (t) => {
  const rig = new ClientRig()
  const attempt = rig.mint()
  const cases: [SendAttemptOptions, string][] = [
    [{ retries: -1 }, 'options.retries'],
    [{ retries: 101 }, 'options.retries'],
    [{ retries: Number.POSITIVE_INFINITY }, 'options.retries'],
    [{ timeoutMs: 0 }, 'options.timeoutMs'],
    [{ retryBaseMs: 0 }, 'options.retryBaseMs'],
    [{ retryMaxMs: 1.5 }, 'options.retryMaxMs'],
    [{ retryAfterMaxMs: -1 }, 'options.retryAfterMaxMs'],
    [{ onWait: 1 as never }, 'options.onWait'],
    [{ now: 1 as never }, 'options.now'],
    [{ random: 1 as never }, 'options.random'],
    [{ sleep: 1 as never }, 'options.sleep'],
    [{ signal: {} as never }, 'options.signal'],
  ]
  for (const [options, field] of cases) {
    await t.rejects(sendAttempt(attempt, rig.send, options), { code: 'ASKONCE_INVALID_ARGUMENT', field }, field)
  }
  for (const bad of [null, {}, { ...attempt, key: 'a"b' }, { ...attempt, ttlMs: 0 }, { ...attempt, createdAt: -1 }]) {
    await t.rejects(sendAttempt(bad as never, rig.send), { code: 'ASKONCE_INVALID_ARGUMENT', field: 'attempt' })
  }
  await t.rejects(sendAttempt(attempt, null as never), { code: 'ASKONCE_INVALID_ARGUMENT', field: 'send' })
  t.equal(rig.sent.length, 0)
})

t.test('with the machine’s own time, network and fetch: a body that breaks, then a long one', async (t) => {
  const body = 'x'.repeat(1_000_000)
  const keys: unknown[] = []
  const server = createServer((request, response) => {
    keys.push(request.headers['idempotency-key'])
    if (keys.length === 1) response.writeHead(409, { 'retry-after': '0' }).end('{}')
    else if (keys.length === 2) response.writeHead(202).end('{}')
    else if (keys.length === 3) response.destroy()
    else if (keys.length === 4) {
      response.writeHead(200, { 'content-length': body.length })
      response.write(body.slice(0, 1_000), () => response.destroy())
    } else response.writeHead(200).end(body)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const attempt = mintAttempt('s')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const post: Send = (headers, _attempt, signal) => fetch(url, { method: 'POST', headers, body: '{}', signal })
  // The waits are none of this test's: only that the machine's timers work.
  const short: Sleep = (ms, signal) => sleep(ms === 5_000 ? ms : 1, signal)
  const response = await sendAttempt(attempt, post, { timeoutMs: 5_000, sleep: short })
  t.equal(response.url, url)
  t.equal(await response.text(), body, 'can be read after the request is over')
  t.strictSame(keys, Array(5).fill(`"${attempt.key}"`))
})
