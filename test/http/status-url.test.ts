/** Status URLs: forged ids, ill-formed actors, and addresses that no header can carry. On Memory in virtual time. */

import t from 'tap'
import { belongsTo, buildKey, type IdempotentOptions, idempotent, statusOf } from '../../src/http/index.ts'
import { Queue } from '../../src/queue.ts'
import { HttpRig, outcome, post, seen } from './support/rig.ts'

const id = buildKey({ actor: 'ada', subject: null, schemaVersion: 1, attempt: 'k' })

t.test('forged and ill-formed ids are 404, ill-formed actors 401, and neither is trouble', async (t) => {
  const rig = new HttpRig(t)
  const errors: unknown[] = []
  const statusFor = (actor: unknown) =>
    statusOf(rig.queue, { actor: () => actor as string, onError: (error) => errors.push(error) })
  const get = new Request('http://host/')
  const prefix = id.slice(0, 23)
  const ids: unknown[] = [
    undefined,
    null,
    5,
    {},
    '',
    id,
    id.slice(0, -1),
    `${id}x`,
    `${id}\n`,
    prefix,
    `${prefix}\ud800`,
    `${prefix}../x`,
    prefix + 'x'.repeat(9_999),
    `${prefix}${'\u00e9'.repeat(43)}`,
    `shared.${id.slice(23)}`,
  ]
  for (const forged of ids) {
    t.equal(await outcome(statusFor('ada')(get, forged as string)), '404 not-found', JSON.stringify(forged))
  }
  for (const actor of ['\ud800', 'a\udc00', '', null, undefined, 5, {}]) {
    t.equal(await outcome(statusFor(actor)(get, id)), '401 actor-missing', JSON.stringify(actor))
    t.equal(belongsTo(id, actor as string), false)
  }
  t.strictSame(errors, [])
})

t.test('an onError that throws makes no rejection of it', async (t) => {
  const rig = new HttpRig(t)
  const fails = () => {
    throw new Error('from a function of the user’s')
  }
  const status = statusOf(rig.queue, { actor: fails, onError: fails })
  t.equal(await outcome(status(new Request('http://host/'), id)), '500 internal')
  t.throws(() => statusOf(rig.queue, { actor: () => 'ada', onError: 5 as never }), { message: /options.onError/ })
})

t.test('a status URL that is none costs no call', async (t) => {
  const rig = new HttpRig(t)
  const bad: (() => unknown)[] = [
    () => {
      throw new Error('no route')
    },
    () => '/a\r\nset-cookie: x=1',
    () => '/a\u0000',
    () => '/\ud800',
    () => '',
    () => 'http://[',
    () => undefined,
    () => Promise.resolve('/a'),
  ]
  for (const statusUrl of bad) {
    const handle = rig.handler({ busy: 'accepted', statusUrl: statusUrl as () => string })
    t.equal(await outcome(handle(post('k'))), '500 internal', String(statusUrl))
  }
  t.strictSame([rig.upstream.calls.length, rig.errors.length, rig.queue.counters.claimed], [0, bad.length, 0])
  const urls = [
    ['/\u00e9 \u65e5/%20?a=b#c', '/%C3%A9%20%E6%97%A5/%20?a=b#c'],
    ['https://h.example/s', 'https://h.example/s'],
    ['status', 'status'],
  ] as const
  for (const [index, [given, sent]] of urls.entries()) {
    const handle = rig.handler({ mode: 'workers', busy: 'accepted', statusUrl: () => given })
    const answer = await seen(handle(post(`k${index}`)))
    t.strictSame([answer.status, answer.headers.get('location')], [202, sent])
    t.equal((JSON.parse(answer.body) as { location: string }).location, sent)
  }
})

t.test('a shared answer has no status URL: refused where it would be needed', (t) => {
  const options: IdempotentOptions = {
    actor: () => 'ada',
    upstream: () => new Response(),
    subject: () => 1,
    busy: 'accepted',
    statusUrl: (id) => `/${id}`,
    cache: { freshMs: 1_000, shared: true },
    requireKey: false,
  }
  const made = (more: Partial<IdempotentOptions>) => () => idempotent(new Queue(), { ...options, ...more })
  t.throws(made({}), { message: /options.requireKey/ })
  t.doesNotThrow(made({ requireKey: true }))
  t.doesNotThrow(made({ cache: { freshMs: 1_000 } }))
  t.doesNotThrow(made({ busy: 'wait' }))
  t.end()
})
