/** What is said when the storage is away or the queue stops: "nothing was sent" only where that is known. On Memory in virtual time. */

import t from 'tap'
import { executeUpstream, type IdempotentOptions } from '../../src/http/index.ts'
import { StorageFullError } from '../../src/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { FaultyStorage, failAfter, failBefore, refusal } from '../queue/support/faulty-storage.ts'
import { HttpRig, post, seen, until } from './support/rig.ts'

/** Stops, and lets the time pass that a handler is given to end after its abort: less than upstream may take. */
async function stop({ queue, clock }: HttpRig): Promise<void> {
  const stopped = queue.stop()
  await clock.advance(20_000)
  await stopped
}

/** Status, code, `Retry-After` and what is said of sending. */
async function told(answer: Promise<Response>): Promise<readonly unknown[]> {
  const { status, code, headers, body } = await seen(answer)
  const { detail } = JSON.parse(body) as { detail: string }
  const said = /nothing was sent/i.test(detail) ? 'nothing sent' : /same key/.test(detail) ? 'same key' : detail
  return [status, code, headers.get('retry-after'), said]
}

const unknown = [503, 'outcome-unknown', '1', 'same key']
const unsent = [503, 'unavailable', '1', 'nothing sent']

t.test('the queue stops in mid-call: the outcome is unknown', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler()
  const answer = told(handle(post('k')))
  await rig.upstream.call(0)
  await stop(rig)
  t.strictSame(await answer, unknown)
  t.equal(handle.counters.unavailable, 1)
})

t.test('the queue stops while another’s run is waited for: the outcome is unknown', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ busy: 'wait' })
  const first = told(handle(post('k')))
  await rig.upstream.call(0)
  const second = told(handle(post('k')))
  await until(() => rig.queue.counters.deduped === 1)
  await stop(rig)
  t.strictSame([await first, await second], [unknown, unknown])
})

t.test('the storage is away, or the queue stopped, before a run begins: nothing was sent', async (t) => {
  const storage = new FaultyStorage(new MemoryStorage())
  const rig = new HttpRig(t, { storage })
  const handle = rig.handler()
  storage.on('enqueue', failBefore(refusal))
  t.strictSame(await told(handle(post('k'))), unsent)
  await stop(rig)
  t.strictSame(await told(handle(post('k'))), unsent)
  t.equal(rig.upstream.calls.length, 0)
})

t.test('workers: a request that may have been stored is not said to be unsent', async (t) => {
  const full = () => new StorageFullError('recordsMax', 1)
  const accepted: Partial<IdempotentOptions> = { busy: 'accepted', statusUrl: (id) => `/${id}` }
  for (const options of [{}, accepted]) {
    const storage = new FaultyStorage(new MemoryStorage())
    const rig = new HttpRig(t, { storage })
    const handle = rig.handler({ ...options, mode: 'workers' })
    storage.on('enqueue', failAfter(refusal))
    t.strictSame(await told(handle(post('a'))), unknown)
    storage.on('enqueue', failBefore(full))
    t.strictSame(await told(handle(post('b'))), unsent, 'full: nothing was written')
  }
})

t.test('workers: the server stops while it waits for a worker: the outcome is unknown', async (t) => {
  const rig = new HttpRig(t)
  const handle = rig.handler({ mode: 'workers' })
  executeUpstream(rig.queue, { upstream: rig.upstream.handle, clock: rig.clock })
  await rig.queue.start()
  const answer = told(handle(post('k')))
  await rig.upstream.call(0)
  await stop(rig)
  t.strictSame(await answer, unknown)
})

t.test('a breaker that opens before a second attempt: what the first one sent is not denied', async (t) => {
  const rig = new HttpRig(t, { retry: () => 1_000 })
  let isOpen = false
  const open = Object.assign(new Error(), { isBrokenCircuitError: true })
  const breaker = { execute: <T>(call: () => Promise<T>) => (isOpen ? Promise.reject(open) : call()) }
  const handle = rig.handler({ breaker, retryFailures: true })
  const answer = seen(handle(post('k')))
  const { end } = await rig.upstream.call(0)
  isOpen = true
  end.open(new Response('down', { status: 503 }))
  await until(() => handle.counters.failed === 1)
  await rig.clock.advance(1_000)
  const { status, code, body } = await answer
  t.strictSame([status, code], [503, 'unavailable'])
  t.notMatch(body, 'Nothing was sent')
  t.match((await seen(handle(post('other')))).body, 'Nothing was sent')
})
