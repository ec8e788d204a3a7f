/**
 * Every ```js block of the guide is run, on a server of the test's own in place of the one it names; where a ```text block
 * follows, that is what it must print.
 */

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { RedisServer } from '../support/redis-server.ts'
import { root, SampleRunner, samplesOf } from '../support/samples.ts'
import { skip } from './suite.ts'

const guide = 'docs/guides/redis.md'
const named = 'redis://127.0.0.1:6379'

t.test('samples of the guide', { skip }, async (t) => {
  const server = await RedisServer.start()
  const runner = new SampleRunner()
  t.teardown(async () => {
    runner.end()
    await server.dispose()
  })
  const samples = samplesOf(await readFile(join(root, guide), 'utf8'), 'js')
  for (const { line, code, output } of samples) {
    await t.test(`${guide}:${line}`, async (t) => {
      t.ok(code.includes(named), 'names the server that is replaced')
      const ran = await runner.run(code.replaceAll(named, server.url))
      t.equal(ran.code, 0, 'exits by itself with 0')
      t.equal(ran.stderr, '')
      if (output !== null) t.equal(ran.stdout, output, 'prints what the page shows')
    })
  }
  t.ok(samples.length > 0)
})
