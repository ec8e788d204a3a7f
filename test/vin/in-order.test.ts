import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { inOrder } from '../../src/presets/vin/in-order.ts'

const signal = new AbortController().signal

async function all<R>(answers: AsyncIterable<R>): Promise<R[]> {
  const list: R[] = []
  for await (const answer of answers) list.push(answer)
  return list
}

t.test('answers come in order, whichever is done first, from any iterable', async (t) => {
  const work = async (n: number) => {
    for (let turns = 0; turns < 7 - (n % 7); turns++) await turn()
    return n * 2
  }
  const items = Array.from({ length: 100 }, (_, n) => n)
  const doubled = items.map((n) => n * 2)
  t.strictSame(await all(inOrder(items, work, { inFlightMax: 10, signal })), doubled)
  t.strictSame(await all(inOrder(new Set(items), work, { inFlightMax: 1, signal })), doubled)
  async function* source() {
    for (const n of items) {
      if (n % 9 === 0) await turn()
      yield n
    }
  }
  t.strictSame(await all(inOrder(source(), work, { inFlightMax: 1_000, signal })), doubled)
  t.strictSame(await all(inOrder([], work, { inFlightMax: 3, signal })), [])
})

t.test('nothing is read before it is asked for, and never more than the bound ahead', async (t) => {
  let read = 0
  function* source() {
    for (;;) yield read++
  }
  const answers = inOrder(source(), async (n) => n, { inFlightMax: 8, signal })
  t.equal(read, 0)
  for (let taken = 1; taken <= 20; taken++) {
    t.equal((await answers.next()).value, taken - 1)
    for (let turns = 0; turns < 5; turns++) await turn()
    t.ok(read <= taken + 8, `${read} read, ${taken} taken`)
  }
  await answers.return()
})

t.test('an answer does not wait for a source that is slow to bring the next', async (t) => {
  async function* source() {
    yield 1
    await new Promise(() => {})
  }
  const answers = inOrder(source(), async (n) => n, { inFlightMax: 8, signal })
  t.equal((await answers.next()).value, 1)
  t.strictSame(await answers.return(), { value: undefined, done: true }, 'nor does leaving')
})

t.test('the source is closed when the consumer leaves early', async (t) => {
  let closed = 0
  function* source() {
    try {
      for (let n = 0; ; n++) yield n
    } finally {
      closed++
    }
  }
  for await (const n of inOrder(source(), async (n) => n, { inFlightMax: 3, signal })) if (n === 5) break
  t.equal(closed, 1)
})

t.test('an error of the source comes after the answers before it', async (t) => {
  async function* source() {
    yield 1
    yield 2
    throw new Error('the file broke off')
  }
  const answers = inOrder(source(), async (n) => n, { inFlightMax: 3, signal })
  t.equal((await answers.next()).value, 1)
  t.equal((await answers.next()).value, 2)
  await t.rejects(answers.next(), { message: 'the file broke off' })
})

t.test('a signal ends it, even while the source is silent', async (t) => {
  const reason = new Error('enough')
  await t.rejects(inOrder([1], async (n) => n, { inFlightMax: 3, signal: AbortSignal.abort(reason) }).next(), reason)
  async function* silent(): AsyncGenerator<number> {
    await new Promise(() => {})
  }
  const controller = new AbortController()
  const next = inOrder(silent(), async (n) => n, { inFlightMax: 3, signal: controller.signal }).next()
  await turn()
  controller.abort(reason)
  await t.rejects(next, reason)
})
