/** The client and the server side of askonce together, without a network between them. */

import t from 'tap'
import { attemptStore, type Send, sendAttempt } from '../../src/client/index.ts'
import { type IdempotentOptions, idempotent } from '../../src/http/index.ts'
import { Queue } from '../../src/index.ts'

class Setting {
  calls = 0
  release: () => void = () => {}
  readonly queue = new Queue()
  readonly handle: ReturnType<typeof idempotent>
  readonly send: Send
  /** What happens to the answers on the way; a lost one throws. */
  onTheWay: (response: Response) => Response = (response) => response

  constructor(options: Partial<IdempotentOptions>) {
    const released = new Promise<void>((resolve) => {
      this.release = resolve
    })
    this.handle = idempotent(this.queue, {
      actor: () => 'somebody',
      upstream: async () => {
        this.calls++
        await released
        return Response.json({ make: 'HONDA' }, { status: 201 })
      },
      ...options,
    })
    this.send = async (headers, { subject }) => {
      const body = JSON.stringify({ vin: subject })
      return this.onTheWay(await this.handle(new Request('http://server/decode', { method: 'POST', headers, body })))
    }
  }
}

/** No wait of these tests takes real time: each gives way to what else there is to do. */
const sleep = (ms: number) =>
  ms === 30_000 ? new Promise<void>(() => {}) : new Promise<void>((resolve) => setImmediate(resolve))

t.test('202 with a status address: asked again with the same key until it is done', async (t) => {
  const setting = new Setting({ busy: 'accepted', statusUrl: (id) => `/status/${id}` })
  t.teardown(() => setting.queue.stop())
  const store = attemptStore(null)
  const seen: (number | null)[] = []
  const onWait = ({ status }: { status: number | null }) => {
    seen.push(status)
    if (seen.length === 3) setting.release()
  }
  const response = await sendAttempt(store.obtain('vin:1'), setting.send, { store, sleep, onWait })
  t.strictSame([response.status, await response.json(), setting.calls], [201, { make: 'HONDA' }, 1])
  t.equal(response.headers.get('idempotent-replay'), 'true')
  t.ok(seen.length >= 3 && seen.every((status) => status === 202))
  t.strictSame(store.pending(), [])
})

t.test('409: two clicks, one call, one answer', async (t) => {
  const setting = new Setting({ busy: 'conflict' })
  t.teardown(() => setting.queue.stop())
  const store = attemptStore(null)
  const onWait = () => setting.release()
  const click = () => sendAttempt(store.obtain('vin:1'), setting.send, { store, sleep, onWait })
  const answers = await Promise.all([click(), click()])
  t.strictSame(await Promise.all(answers.map((answer) => answer.text())), ['{"make":"HONDA"}', '{"make":"HONDA"}'])
  t.strictSame(
    answers.map(({ status }) => status),
    [201, 201],
  )
  t.equal(setting.calls, 1)
})

t.test('an answer that was lost on the way is replayed', async (t) => {
  const setting = new Setting({})
  t.teardown(() => setting.queue.stop())
  setting.release()
  let lost = 0
  setting.onTheWay = (response) => {
    if (lost++ < 2) throw new TypeError('Failed to fetch')
    return response
  }
  const store = attemptStore(null)
  const attempt = store.obtain('vin:1')
  const response = await sendAttempt(attempt, setting.send, { store, sleep })
  t.strictSame([response.status, response.headers.get('idempotent-replay'), setting.calls], [201, 'true', 1])
  t.equal(setting.handle.counters.upstream, 1)
  const again = await sendAttempt(store.obtain('vin:1'), setting.send, { store, sleep })
  t.strictSame([again.headers.get('idempotent-replay'), setting.calls], [null, 2], 'a later click is another question')
})
