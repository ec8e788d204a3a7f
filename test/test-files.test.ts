/** Which files `npm test` runs, and in which order. */

import t from 'tap'
import { inOrder, longest, testFiles } from './support/run/files.ts'

t.test('each file that has a place in the order is there, once', async (t) => {
  const files = testFiles([])
  const named = [...longest.waiting, ...longest.computing]
  t.strictSame(
    named.filter((file) => !files.includes(file)),
    [],
  )
  t.equal(new Set(named).size, named.length)
})

t.test('every file runs, once: those with a place first', async (t) => {
  const files = testFiles([])
  const { computing, waiting } = inOrder(files)
  t.strictSame([...computing, ...waiting].sort(), files)
  t.strictSame(waiting, longest.waiting)
  t.strictSame(computing.slice(0, longest.computing.length), longest.computing)
})

t.test('files and folders that are asked for', async (t) => {
  t.strictSame(testFiles(['test/retry.test.ts', 'test/retry.test.ts']), ['test/retry.test.ts'])
  t.ok(testFiles(['test/sim']).every((file) => file.startsWith('test/sim/') && file.endsWith('.test.ts')))
  for (const none of ['test/nosuch.test.ts', 'retry', 'src', 'src/machine.ts']) {
    t.throws(() => testFiles(['test/retry.test.ts', none]), new RangeError(`there is no test file: ${none}`))
  }
})
