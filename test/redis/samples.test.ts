/**
 * Every ```js block of the guide is run, on a server of the test's own in place of the one it names; where a ```text block
 * follows, that is what it must print.
 */

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { RedisServer } from '../support/redis-server.ts'
import { skip } from './suite.ts'

const root = resolve(import.meta.dirname, '../..')
const guide = 'docs/guides/redis.md'
const sources: Readonly<Record<string, string>> = {
  askonce: join(root, 'src/index.ts'),
  'askonce/redis': join(root, 'storages/redis/index.ts'),
}

t.test('samples of the guide', { skip }, async (t) => {
  const server = await RedisServer.start()
  const folder = await mkdtemp(join(root, 'test/redis/.samples-'))
  t.teardown(async () => {
    await rm(folder, { recursive: true, force: true })
    await server.dispose()
  })
  const markdown = await readFile(join(root, guide), 'utf8')
  let count = 0
  for (const match of markdown.matchAll(/^```js\n([\s\S]*?)^```\n(?:\s*```text\n([\s\S]*?)^```$)?/gm)) {
    const line = markdown.slice(0, match.index).split('\n').length
    const [, code, output] = match as unknown as [string, string, string | undefined]
    count++
    await t.test(`${guide}:${line}`, async (t) => {
      t.ok(code.includes('redis://127.0.0.1:6379'), 'names the server that is replaced')
      const text = code
        .replaceAll('redis://127.0.0.1:6379', server.url)
        .replace(/from '(askonce[^']*)'/g, (_, name: string) => `from ${JSON.stringify(sources[name] ?? name)}`)
      const file = join(folder, `line-${line}.mjs`)
      await writeFile(file, text)
      const { TAP: _, ...env } = process.env
      const ran = await promisify(execFile)(process.execPath, ['--import', 'tsx', file], {
        cwd: root,
        env: { ...env, NODE_OPTIONS: '' },
        timeout: 60_000,
        killSignal: 'SIGKILL',
      })
      t.equal(ran.stderr, '')
      if (output !== undefined) t.equal(ran.stdout, output, 'prints what the page shows')
    })
  }
  t.ok(count > 0)
})
