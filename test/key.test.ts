import { spawnSync } from 'node:child_process'
import vm from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { InvalidArgumentError, SerializationError } from '../src/errors.ts'
import { canonicalJson, contentId } from '../src/key.ts'
import { typescript } from './support/typescript.ts'

function double(hex: string): number {
  return new DataView(new BigUint64Array([BigInt(`0x${hex}`)]).buffer).getFloat64(0, true)
}

t.test('RFC 8785, 3.2.2 and 3.2.3: the worked example', async (t) => {
  const value = {
    // biome-ignore lint/correctness/noPrecisionLoss: the RFC's own number
    numbers: [333333333.33333329, 1e30, 4.5, 2e-3, 0.000000000000000000000000001],
    string: '€$\u000f\u000aA\'\u0042\u0022\u005c\\"/',
    literals: [null, true, false],
  }
  t.equal(
    canonicalJson(value),
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],' +
      '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
  )
})

t.test('RFC 8785, 3.2.3: properties are sorted by UTF-16 units, not by code points', async (t) => {
  const value = {
    '€': 'Euro Sign',
    '\r': 'Carriage Return',
    '\ufb33': 'Hebrew Letter Dalet With Dagesh',
    '1': 'One',
    '😀': 'Emoji: Grinning Face',
    '\u0080': 'Control',
    ö: 'Latin Small Letter O With Diaeresis',
  }
  const order = [...canonicalJson(value).matchAll(/:"([^"]+)"/g)].map((match) => match[1])
  t.strictSame(order, [
    'Carriage Return',
    'One',
    'Control',
    'Latin Small Letter O With Diaeresis',
    'Euro Sign',
    'Emoji: Grinning Face',
    'Hebrew Letter Dalet With Dagesh',
  ])
})

t.test('RFC 8785, appendix B: numbers', async (t) => {
  const samples: [string, string][] = [
    ['0000000000000000', '0'],
    ['8000000000000000', '0'],
    ['0000000000000001', '5e-324'],
    ['8000000000000001', '-5e-324'],
    ['7fefffffffffffff', '1.7976931348623157e+308'],
    ['ffefffffffffffff', '-1.7976931348623157e+308'],
    ['4340000000000000', '9007199254740992'],
    ['c340000000000000', '-9007199254740992'],
    ['4430000000000000', '295147905179352830000'],
    ['44b52d02c7e14af5', '9.999999999999997e+22'],
    ['44b52d02c7e14af6', '1e+23'],
    ['44b52d02c7e14af7', '1.0000000000000001e+23'],
    ['444b1ae4d6e2ef4e', '999999999999999700000'],
    ['444b1ae4d6e2ef4f', '999999999999999900000'],
    ['444b1ae4d6e2ef50', '1e+21'],
    ['3eb0c6f7a0b5ed8c', '9.999999999999997e-7'],
    ['3eb0c6f7a0b5ed8d', '0.000001'],
    ['41b3de4355555553', '333333333.3333332'],
    ['41b3de4355555554', '333333333.33333325'],
    ['41b3de4355555555', '333333333.3333333'],
    ['41b3de4355555556', '333333333.3333334'],
    ['41b3de4355555557', '333333333.33333343'],
    ['becbf647612f3696', '-0.0000033333333333333333'],
    ['43143ff3c1cb0959', '1424953923781206.2'],
  ]
  for (const [hex, text] of samples) t.equal(canonicalJson(double(hex)), text, hex)
  t.throws(() => canonicalJson(double('7fffffffffffffff')), SerializationError)
  t.throws(() => canonicalJson(double('7ff0000000000000')), SerializationError)
})

t.test('one question is one id, whatever the order of its properties', async (t) => {
  t.equal(contentId('q', '1', { a: 1, b: [2, { c: 3, d: 4 }] }), contentId('q', '1', { b: [2, { d: 4, c: 3 }], a: 1 }))
  t.match(contentId('q', '1', null), /^[\w-]{43}$/)
  t.equal(contentId('q', 1, 0), contentId('q', '1', -0), 'version 1 is version "1", and -0 is 0')
  t.equal(contentId('q', '1', { a: 1 }), contentId('q', '1', { a: 1, b: undefined }), 'undefined properties are absent')
  const date = new Date(0)
  t.equal(contentId('q', '1', date), contentId('q', '1', date.toISOString()))
  t.equal(contentId('q', '1', vm.runInNewContext('({ a: [1] })')), contentId('q', '1', { a: [1] }), 'another realm')
  t.equal(contentId('q', '1', Object.assign(Object.create(null), { a: 1 })), contentId('q', '1', { a: 1 }))
})

t.test('the ids of this release are those of every other: they are written down', async (t) => {
  t.equal(contentId('vin', '1', { vin: '1HGCM82633A004352' }), 'kuzafc438LROiUXNeWCufdlXGCorkC946aBPrh-qvPs')
  t.equal(contentId('x', '2', ['€', 1.5, null, true]), '95JLszsmlWV6RE5TfJyqUXgtz4WKhaUqMYk3hGJ2PKo')
})

t.test('other questions have other ids', async (t) => {
  const ids = [
    contentId('q', '1', 1),
    contentId('q', '1', '1'),
    contentId('q', '2', 1),
    contentId('r', '1', 1),
    contentId('q","1', '1', 1),
    contentId('q', '1', [1]),
    contentId('q', '1', { a: 1 }),
    contentId('q', '1', {}),
    contentId('q', '1', []),
    contentId('q', '1', null),
    contentId('q', '1', { a: null }),
    contentId('q', '1', 'é'),
    contentId('q', '1', 'e\u0301'),
  ]
  t.equal(new Set(ids).size, ids.length)
})

t.test('__proto__ and its like are ordinary properties', async (t) => {
  const own = JSON.parse('{"__proto__":{"a":1},"constructor":2,"hasOwnProperty":3,"toJSON":4}')
  t.equal(canonicalJson(own), '{"__proto__":{"a":1},"constructor":2,"hasOwnProperty":3,"toJSON":4}')
  t.not(contentId('q', '1', JSON.parse('{"__proto__":{"a":1}}')), contentId('q', '1', {}))
  t.equal(({} as Record<string, unknown>)['a'], undefined, 'no prototype was touched')
})

t.test('what has no canonical form is refused, naming where and never what', async (t) => {
  const secret = 'hunter2'
  const cycle: Record<string, unknown> = {}
  cycle['inner'] = [cycle]
  let deep: unknown = 1
  for (let level = 0; level < 10_000; level++) deep = [deep]
  class Money {
    readonly amount = secret
  }
  const cases: [string, unknown, string][] = [
    ['undefined', undefined, 'value'],
    ['undefined in an array', { list: [1, undefined] }, 'value.list[1]'],
    // biome-ignore lint/suspicious/noSparseArray: that is the case
    ['a hole', [1, , 3], 'value[1]'],
    ['NaN', { a: { b: Number.NaN } }, 'value.a.b'],
    ['Infinity', [Number.POSITIVE_INFINITY], 'value[0]'],
    ['a BigInt', { big: 1n }, 'value.big'],
    ['a function', { 'odd name': () => secret }, 'value["odd name"]'],
    ['a symbol', [Symbol(secret)], 'value[0]'],
    ['a symbol key', { [Symbol('s')]: secret }, 'value'],
    ['a cycle', cycle, 'value.inner[0]'],
    ['ten thousand levels', deep, 'value'],
    ['a lone surrogate', { text: `${secret}\ud800` }, 'value.text'],
    ['a lone surrogate in a name', { '\udc00': 1 }, 'value'],
    ['a Map', { map: new Map([[secret, 1]]) }, 'value.map'],
    ['a Set', new Set([secret]), 'value'],
    ['bytes', new Uint8Array(3), 'value'],
    ['a RegExp', /hunter2/, 'value'],
    ['an error', new Error(secret), 'value'],
    ['a class instance', new Money(), 'value'],
    ['a boxed number', Object(1), 'value'],
    ['a promise', Promise.resolve(secret), 'value'],
    ['an invalid Date', { at: new Date(Number.NaN) }, 'value.at'],
    ['an array with properties', Object.assign([1], { extra: secret }), 'value'],
    ['a toJSON that throws', { toJSON: () => { throw new Error(secret) } }, 'value'], // biome-ignore format: one line a case
    ['a toJSON without an answer', { a: { toJSON: () => undefined } }, 'value.a'],
    ['a toJSON that answers NaN', { a: { toJSON: () => Number.NaN } }, 'value.a'],
    ['a getter that throws', { get a() { throw new Error(secret) } }, 'value.a'], // biome-ignore format: one line a case
  ]
  for (const [name, value, field] of cases) {
    for (const ask of [() => contentId('q', '1', value), () => canonicalJson(value)]) {
      try {
        ask()
        t.fail(`${name} was accepted`)
      } catch (error) {
        if (!(error instanceof SerializationError)) throw error
        if (name === 'ten thousand levels') t.ok(error.field.startsWith('value') || error.field.startsWith('['), name)
        else t.equal(error.field, field, name)
        t.notMatch(error.message, secret, `${name}: no content`)
        t.ok(error.message.length < 300, `${name}: a short message`)
      }
    }
  }
})

t.test('what JSON would make null is said to be so', async (t) => {
  t.throws(() => contentId('q', '1', [undefined]), {
    message: /value\[0\] is undefined or a hole; JSON would make it null/,
  })
})

t.test('a getter or toJSON is asked once, so that what is checked is what is hashed', async (t) => {
  let asked = 0
  const id = contentId('q', '1', {
    get a() {
      asked++
      return asked === 1 ? 1 : undefined
    },
  })
  t.equal(asked, 1)
  t.equal(id, contentId('q', '1', { a: 1 }))
})

t.test('bad names and versions are refused', async (t) => {
  for (const name of ['', '\ud800', 5, undefined, null]) {
    t.throws(() => contentId(name as string, '1', 1), { name: 'InvalidArgumentError', field: 'name' })
  }
  for (const version of ['', '\ud800', -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, undefined, null]) {
    t.throws(() => contentId('q', version as string, 1), { name: 'InvalidArgumentError', field: 'version' })
  }
  t.throws(() => contentId('', '1', 1), InvalidArgumentError)
})

t.test('any JSON value: the canonical text parses back to it, and a shuffled copy has the same id', async (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      if (!JSON.stringify(value).isWellFormed()) return
      const shuffled = reversed(value)
      return (
        canonicalJson(JSON.parse(canonicalJson(value))) === canonicalJson(value) &&
        contentId('q', '1', shuffled) === contentId('q', '1', value)
      )
    }),
    { numRuns: 300 },
  )
  t.pass('300 values')
})

t.test('another process comes to the same id', async (t) => {
  const script = `import { contentId } from './src/key.ts'; console.log(contentId('q', '1', { b: ['€'], a: 1e21 }))`
  const child = spawnSync(process.execPath, [...typescript, '--input-type=module', '-e', script], {
    cwd: new URL('..', import.meta.url).pathname,
    encoding: 'utf8',
    timeout: 60_000,
  })
  t.equal(child.stdout.trim(), contentId('q', '1', { a: 1e21, b: ['€'] }), child.stderr)
})

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).reverse().map(([key, item]) => [key, reversed(item)])) // biome-ignore format: -
}
