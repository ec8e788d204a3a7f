/**
 * Every ```ts block of the README and the guides is run; where a ```text block follows, that is what it must print.
 */

import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import t from 'tap'
import { root, SampleRunner, samplesOf } from '../support/samples.ts'

async function markdownFiles(): Promise<string[]> {
  const guides = join(root, 'docs/guides')
  const names = (await readdir(guides)).filter((name) => name.endsWith('.md'))
  return [join(root, 'README.md'), ...names.map((name) => join(guides, name))]
}

t.test('samples of the docs', async (t) => {
  const runner = new SampleRunner()
  t.teardown(() => runner.end())
  let count = 0
  for (const file of await markdownFiles()) {
    const name = relative(root, file)
    for (const { line, code, output } of samplesOf(await readFile(file, 'utf8'), 'ts')) {
      count++
      await t.test(`${name}:${line}`, async (t) => {
        const ran = await runner.run(code)
        t.equal(ran.code, 0, `exits by itself with 0 ${ran.stderr}`)
        if (output !== null) t.equal(ran.stdout, output, 'prints what the page shows')
      })
    }
  }
  t.ok(count > 20, `${count} samples were found`)
})
