/** The examples and scenarios of draft-ietf-httpapi-idempotency-key-header-07. */

import t from 'tap'
import { parseIdempotencyKey } from '../../src/http/index.ts'
import { HttpRig, outcome, post, seen } from './support/rig.ts'

t.test('section 2.1: the examples of keys', async (t) => {
  for (const key of ['8e03978e-40d5-43e8-bc93-6894a57f9324', '8e03978e-40d5-43dd-bc93-6894a57f9324']) {
    t.strictSame(parseIdempotencyKey(`"${key}"`), { ok: true, key })
  }
})

t.test('section 2.6: first request, retry after it was done, retry while it runs', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const key = '"8e03978e-40d5-43dd-bc93-6894a57f9324"'
  const first = handle(post(key))
  const { end } = await rig.upstream.call(0)
  t.equal((await handle(post(key))).status, 409)
  end.open(new Response('created', { status: 201 }))
  const { status, body } = await seen(first)
  const retry = await seen(handle(post(key)))
  t.strictSame([retry.status, retry.body], [status, body])
  // "success or an error": an error of the first request is its result, too.
  const failing = handle(post('"other"'))
  ;(await rig.upstream.call(1)).end.open(new Response('refused', { status: 402 }))
  t.equal((await failing).status, 402)
  t.equal(await outcome(handle(post('"other"'))), '402 replay')
})

t.test('section 2.7: the three errors, as problem details', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({
    problemBase: 'https://developer.example.com/idempotency#',
    documentation: 'https://developer.example.com/idempotency',
  })
  void handle(post('"k"'))
  const { end } = await rig.upstream.call(0)
  const examples: [Request, number, string][] = [
    [post(null), 400, 'Idempotency-Key is missing'],
    [post('"k"', 'another'), 422, 'Idempotency-Key is already used'],
    [post('"k"'), 409, 'A request is outstanding for this Idempotency-Key'],
  ]
  for (const [request, status, title] of examples) {
    const answer = await seen(handle(request))
    t.equal(answer.status, status)
    t.equal(answer.headers.get('content-type'), 'application/problem+json')
    t.equal(answer.headers.get('content-language'), 'en')
    t.equal(
      answer.headers.get('link'),
      '<https://developer.example.com/idempotency>; rel="describedby"; type="text/html"',
    )
    const problem = JSON.parse(answer.body) as Record<string, unknown>
    t.match(problem, { title, status, detail: String })
    t.match(problem['type'], /^https:\/\/developer\.example\.com\/idempotency#[a-z-]+$/)
  }
  end.open(new Response())
})
