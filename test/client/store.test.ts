import t from 'tap'
import { type AttemptStore, attemptStore, type SessionStorage, sendAttempt } from '../../src/client/index.ts'
import { answer, ClientRig } from './rig.ts'

/** A tab's storage. `bytesMax` is its quota; `forbidden` makes each call throw, as with cookies blocked. */
class FakeStorage implements SessionStorage {
  readonly items = new Map<string, string>()
  bytesMax = Number.POSITIVE_INFINITY
  forbidden = false

  #check(): void {
    if (this.forbidden) throw new DOMException('denied', 'SecurityError')
  }

  getItem(name: string): string | null {
    this.#check()
    return this.items.get(name) ?? null
  }

  setItem(name: string, value: string): void {
    this.#check()
    let bytes = name.length + value.length
    for (const [other, text] of this.items) if (other !== name) bytes += other.length + text.length
    if (bytes > this.bytesMax) throw new DOMException('full', 'QuotaExceededError')
    this.items.set(name, value)
  }

  removeItem(name: string): void {
    this.#check()
    this.items.delete(name)
  }
}

let time = 1_700_000_000_000
const now = () => time

/** What a page that was loaded anew would see. */
function reload(storage: SessionStorage): AttemptStore {
  return attemptStore(storage, { now })
}

t.test('one attempt a subject: a second click gets the same, another subject another', async (t) => {
  const store = reload(new FakeStorage())
  const first = store.obtain('vin:1', { ttlMs: 30_000 })
  t.match(first, { subject: 'vin:1', createdAt: time, ttlMs: 30_000 })
  t.strictSame(store.obtain('vin:1', { ttlMs: 99 }), first, 'the first one fixes its life')
  t.not(store.obtain('vin:2').key, first.key)
  t.strictSame(
    store.pending().map(({ subject }) => subject),
    ['vin:1', 'vin:2'],
  )
})

t.test('survives a reload, frozen as before; another tab has its own', async (t) => {
  const storage = new FakeStorage()
  const attempt = reload(storage).obtain('vin:1')
  const after = reload(storage).obtain('vin:1')
  t.strictSame(after, attempt)
  t.ok(Object.isFrozen(after))
  t.equal(reload(storage).survivesReload, true)
  t.not(reload(new FakeStorage()).obtain('vin:1').key, attempt.key)
})

t.test('strange subjects are only subjects', async (t) => {
  const storage = new FakeStorage()
  const subjects = ['__proto__', 'constructor', 'a"b\\c', '\ud800', 'vin:\u2028', '[]', 'x'.repeat(1_024)]
  const keys = subjects.map((subject) => reload(storage).obtain(subject).key)
  t.strictSame(
    subjects.map((subject) => reload(storage).obtain(subject).key),
    keys,
  )
  t.equal(new Set(keys).size, subjects.length)
})

t.test('expired: forgotten, and nothing of it stays behind', async (t) => {
  const storage = new FakeStorage()
  const store = reload(storage)
  const short = store.obtain('vin:1', { ttlMs: 1_000 })
  store.obtain('vin:2', { ttlMs: 5_000 })
  time += 1_000
  t.strictSame(
    store.pending().map(({ subject }) => subject),
    ['vin:2'],
  )
  t.notMatch([...storage.items.values()].join(), short.key)
  t.not(store.obtain('vin:1', { ttlMs: 1_000 }).key, short.key)
  time += 5_000
  t.strictSame(reload(storage).pending(), [])
  t.equal(storage.items.size, 0)
})

t.test('removed: the next click is a new question; a newer attempt of the subject is let be', async (t) => {
  const storage = new FakeStorage()
  const store = reload(storage)
  const first = store.obtain('vin:1')
  store.remove(first)
  t.equal(storage.items.size, 0)
  const second = store.obtain('vin:1')
  t.not(second.key, first.key)
  store.remove(first)
  t.equal(store.obtain('vin:1').key, second.key)
})

t.test('sendAttempt clears it on success, cancel and expiry, and keeps it for another try', async (t) => {
  const storage = new FakeStorage()
  const rig = new ClientRig(answer(503), answer(429), answer(200), answer(404), answer(200))
  rig.now = time
  const store = attemptStore(storage, { now: () => rig.now })
  const send = (more = {}) =>
    sendAttempt(store.obtain('vin:1'), rig.send, rig.options({ store, retries: 0, ...more })).catch((error) => error)
  await send()
  const { key } = store.obtain('vin:1')
  await send()
  await send()
  t.equal(rig.keys.length, 1, 'tried again with the same key')
  t.strictSame(store.pending(), [], 'success')
  await send()
  t.strictSame(store.pending(), [], 'a final refusal')
  t.not(store.obtain('vin:1').key, key)
  await send({ signal: AbortSignal.abort() })
  t.strictSame(store.pending(), [], 'cancel')
  const late = store.obtain('vin:1')
  rig.now += 60_000
  await t.rejects(sendAttempt(late, rig.send, rig.options({ store })), { code: 'ASKONCE_ATTEMPT_EXPIRED' })
  t.equal(storage.items.size, 0, 'expiry')
})

t.test('a storage that is full: memory serves, what was kept before is still found', async (t) => {
  const storage = new FakeStorage()
  const store = reload(storage)
  const kept = store.obtain('vin:1')
  storage.bytesMax = [...storage.items].join().length + 10
  const inMemory = store.obtain('vin:2')
  t.equal(store.survivesReload, false)
  t.equal(store.obtain('vin:2').key, inMemory.key)
  t.equal(store.obtain('vin:1').key, kept.key)
  t.equal(reload(storage).obtain('vin:1').key, kept.key)
  storage.bytesMax = Number.POSITIVE_INFINITY
  const third = store.obtain('vin:3')
  t.equal(store.survivesReload, true, 'room again: all of it is kept')
  t.strictSame(
    reload(storage)
      .pending()
      .map(({ key }) => key),
    [kept.key, inMemory.key, third.key],
  )
})

t.test('a storage that fails while an attempt ends: a reload does not find it', async (t) => {
  const storage = new FakeStorage()
  const store = reload(storage)
  const first = store.obtain('vin:1')
  store.obtain('vin:2')
  storage.bytesMax = 0
  store.remove(first)
  t.equal(store.pending().length, 1)
  t.equal(storage.items.size, 0)
})

t.test('a storage that is forbidden, from the beginning or later', async (t) => {
  const denied = () => {
    throw new DOMException('denied', 'SecurityError')
  }
  for (const source of [denied, () => undefined, null, Object.assign(new FakeStorage(), { forbidden: true })]) {
    const store = attemptStore(source, { now })
    t.equal(store.survivesReload, false)
    const { key } = store.obtain('vin:1')
    t.equal(store.obtain('vin:1').key, key)
    store.remove(store.obtain('vin:1'))
    t.strictSame(store.pending(), [])
  }
  const storage = new FakeStorage()
  const store = reload(storage)
  const first = store.obtain('vin:1')
  storage.forbidden = true
  t.doesNotThrow(() => store.remove(first))
  t.strictSame(store.pending(), [])
  t.ok(store.obtain('vin:1').key)
})

t.test('what other code wrote there is not believed', async (t) => {
  const good = { subject: 's', key: crypto.randomUUID(), createdAt: time, ttlMs: 60_000 }
  const bad = [
    'not json',
    '{}',
    'null',
    '7',
    '[null, 7, "x", [], {}]',
    JSON.stringify([{ ...good, key: 'with "quotes"' }]),
    JSON.stringify([{ ...good, key: 'line\nbreak-and-more' }]),
    JSON.stringify([{ ...good, key: 'k'.repeat(129) }]),
    JSON.stringify([{ ...good, subject: '' }]),
    JSON.stringify([{ ...good, ttlMs: 1e12 }]),
    JSON.stringify([{ ...good, ttlMs: '60000' }]),
    JSON.stringify([{ ...good, createdAt: -1 }]),
    JSON.stringify([{ ...good, createdAt: time + 3_600_000 }]),
  ]
  for (const text of bad) {
    const storage = new FakeStorage()
    storage.items.set('askonce.attempts', text)
    t.strictSame(reload(storage).pending(), [], text.slice(0, 60))
    t.ok(reload(storage).obtain('s'))
  }
  const storage = new FakeStorage()
  storage.items.set('askonce.attempts', JSON.stringify([good]))
  t.equal(reload(storage).obtain('s').key, good.key, 'the same, unspoilt')
})

t.test('localStorage is refused: itself, another window’s, and what hands on to it', async (t) => {
  const local = new FakeStorage()
  const shared = new FakeStorage()
  Object.defineProperty(shared, 'items', { value: local.items })
  const through: SessionStorage = {
    getItem: (name) => local.getItem(name),
    setItem: (name, value) => local.setItem(name, value),
    removeItem: (name) => local.removeItem(name),
  }
  const before = Object.getOwnPropertyDescriptor(globalThis, 'localStorage')
  Object.defineProperty(globalThis, 'localStorage', { get: () => local, configurable: true })
  t.teardown(() => {
    if (before === undefined) Reflect.deleteProperty(globalThis, 'localStorage')
    else Object.defineProperty(globalThis, 'localStorage', before)
  })
  for (const storage of [local, shared, through, () => local]) {
    t.throws(() => attemptStore(storage), { name: 'AttemptError', code: 'ASKONCE_LOCAL_STORAGE', field: 'storage' })
  }
  t.equal(local.items.size, 0, 'nothing was left there')
  local.bytesMax = 0
  t.throws(() => attemptStore(local), { code: 'ASKONCE_LOCAL_STORAGE' }, 'though it is full')
  const session = new FakeStorage()
  t.ok(attemptStore(session).survivesReload)
  t.equal(session.items.size, 0, 'the probe is gone')
  Object.defineProperty(globalThis, 'localStorage', {
    get: () => {
      throw new DOMException('denied', 'SecurityError')
    },
    configurable: true,
  })
  t.doesNotThrow(() => attemptStore(session))
})

t.test('localStorage that was full when it was to be found out is refused by the first write', async (t) => {
  const local = new FakeStorage()
  const other = new FakeStorage()
  Object.defineProperty(other, 'items', { value: local.items })
  const before = Object.getOwnPropertyDescriptor(globalThis, 'localStorage')
  Object.defineProperty(globalThis, 'localStorage', { get: () => local, configurable: true })
  t.teardown(() => {
    if (before === undefined) Reflect.deleteProperty(globalThis, 'localStorage')
    else Object.defineProperty(globalThis, 'localStorage', before)
  })
  other.bytesMax = 0
  const store = attemptStore(other)
  store.obtain('vin:1')
  t.equal(store.survivesReload, false)
  other.bytesMax = Number.POSITIVE_INFINITY
  t.throws(() => store.obtain('vin:2'), { code: 'ASKONCE_LOCAL_STORAGE' })
  t.equal(local.items.size, 0)
})

t.test('without an argument: the global sessionStorage', async (t) => {
  const session = new FakeStorage()
  const before = Object.getOwnPropertyDescriptor(globalThis, 'sessionStorage')
  Object.defineProperty(globalThis, 'sessionStorage', { value: session, configurable: true })
  t.teardown(() => {
    if (before === undefined) Reflect.deleteProperty(globalThis, 'sessionStorage')
    else Object.defineProperty(globalThis, 'sessionStorage', before)
  })
  const { key } = attemptStore().obtain('vin:1')
  t.match(session.items.get('askonce.attempts'), key)
})

t.test('bad input is refused', async (t) => {
  const store = attemptStore(new FakeStorage())
  const cases: [() => unknown, string][] = [
    [() => attemptStore({} as never), 'storage'],
    [() => attemptStore(7 as never), 'storage'],
    [() => attemptStore(new FakeStorage(), { itemName: '' }), 'options.itemName'],
    [() => attemptStore(new FakeStorage(), { now: 7 as never }), 'options.now'],
    [() => store.obtain(''), 'subject'],
    [() => store.obtain('s', { ttlMs: -1 }), 'options.ttlMs'],
  ]
  for (const [call, field] of cases) t.throws(call, { code: 'ASKONCE_INVALID_ARGUMENT', field }, field)
  store.obtain('s')
  const again = () => store.obtain('s', { uuid: 5 as never })
  t.throws(again, { code: 'ASKONCE_INVALID_ARGUMENT', field: 'options.uuid' }, 'also where one is kept')
})
