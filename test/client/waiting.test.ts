import { getEventListeners } from 'node:events'
import t from 'tap'
import { browserConnectivity, following, sleep } from '../../src/client/waiting.ts'

t.test('sleep: over after its time, or at once with the signal’s reason; leaves no listener', async (t) => {
  const { signal } = new AbortController()
  await sleep(0, signal)
  t.equal(getEventListeners(signal, 'abort').length, 0)
  const reason = new Error('enough')
  await t.rejects(sleep(3_600_000, AbortSignal.abort(reason)), reason)
  const controller = new AbortController()
  const sleeping = sleep(3_600_000, controller.signal)
  controller.abort(reason)
  await t.rejects(sleeping, reason)
})

t.test('a page that is off line waits for its own event', async (t) => {
  const page = new EventTarget()
  const before = Object.getOwnPropertyDescriptor(globalThis, 'navigator')
  const define = (name: string, value: unknown) =>
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true })
  define('navigator', { onLine: false })
  define('addEventListener', page.addEventListener.bind(page))
  define('removeEventListener', page.removeEventListener.bind(page))
  t.teardown(() => {
    Reflect.deleteProperty(globalThis, 'addEventListener')
    Reflect.deleteProperty(globalThis, 'removeEventListener')
    if (before === undefined) Reflect.deleteProperty(globalThis, 'navigator')
    else Object.defineProperty(globalThis, 'navigator', before)
  })
  t.equal(browserConnectivity.isOnline(), false)
  const controller = new AbortController()
  const waiting = browserConnectivity.online(controller.signal)
  page.dispatchEvent(new Event('online'))
  await waiting
  t.equal(getEventListeners(page, 'online').length, 0)
  t.equal(getEventListeners(controller.signal, 'abort').length, 0)
  const given = browserConnectivity.online(controller.signal)
  controller.abort()
  await given
  await browserConnectivity.online(controller.signal)
  t.equal(getEventListeners(page, 'online').length, 0)
  define('navigator', { onLine: true })
  t.equal(browserConnectivity.isOnline(), true)
  define('navigator', {})
  t.equal(browserConnectivity.isOnline(), true, 'what does not know counts as on line')
  define('navigator', undefined)
  t.equal(browserConnectivity.isOnline(), true)
})

t.test('following: aborts with the other, or alone; lets go of it', async (t) => {
  const other = new AbortController()
  const reason = new Error('enough')
  const alone = following(other.signal)
  alone.abort(reason)
  t.strictSame([alone.signal.reason, other.signal.aborted], [reason, false])
  alone.release()
  t.equal(getEventListeners(other.signal, 'abort').length, 0)
  const follower = following(other.signal)
  other.abort(reason)
  t.equal(follower.signal.reason, reason)
  t.equal(following(other.signal).signal.reason, reason)
})
