/**
 * Every ```ts block of the README and the guides is run; where a ```text block follows, that is what it must print.
 */

import { spawn } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import t from 'tap'

const root = resolve(import.meta.dirname, '../..')

/** What an installed package would resolve, from source: samples must run before anything is built. */
async function sourcesOfExports(): Promise<Map<string, string>> {
  const { exports } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
    exports: Record<string, string | { default: string }>
  }
  const sources = new Map<string, string>()
  for (const [subpath, target] of Object.entries(exports)) {
    if (typeof target === 'string') continue
    const source = target.default.replace('./dist/', '').replace(/\.js$/, '.ts')
    sources.set(`askonce${subpath.slice(1)}`, join(root, source))
  }
  return sources
}

interface Sample {
  readonly line: number
  readonly code: string
  readonly output: string | null
}

function samplesOf(markdown: string): Sample[] {
  const samples: Sample[] = []
  for (const match of markdown.matchAll(/^```ts\n([\s\S]*?)^```\n(?:\s*```text\n([\s\S]*?)^```$)?/gm)) {
    const line = markdown.slice(0, match.index).split('\n').length
    samples.push({ line, code: match[1] as string, output: match[2] ?? null })
  }
  return samples
}

async function markdownFiles(): Promise<string[]> {
  const guides = join(root, 'docs/guides')
  const names = (await readdir(guides)).filter((name) => name.endsWith('.md'))
  return [join(root, 'README.md'), ...names.map((name) => join(guides, name))]
}

function run(file: string): Promise<{ code: number | null; stdout: string; stderr: string }> {
  return new Promise((resolve, reject) => {
    const { TAP: _, ...env } = process.env
    const child = spawn(process.execPath, ['--import', 'tsx', file], {
      cwd: root,
      env: { ...env, NODE_OPTIONS: '' },
      timeout: 60_000,
      killSignal: 'SIGKILL',
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

t.test('samples of the docs', async (t) => {
  const sources = await sourcesOfExports()
  const folder = await mkdtemp(join(root, 'test/docs/.samples-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  for (const file of await markdownFiles()) {
    const name = relative(root, file)
    for (const { line, code, output } of samplesOf(await readFile(file, 'utf8'))) {
      await t.test(`${name}:${line}`, async (t) => {
        const resolved = code
          .replace(/from '(askonce[^']*)'/g, (whole, specifier: string) => {
            const source = sources.get(specifier)
            if (source === undefined) t.fail(`${specifier} is not exported`)
            return source === undefined ? whole : `from ${JSON.stringify(source)}`
          })
          .replace(/from '\.\//g, `from '${root}/`)
        const path = join(folder, `${name.replace(/\W/g, '-')}-${line}.mts`)
        await writeFile(path, resolved)
        const ran = await run(path)
        t.equal(ran.code, 0, `exits by itself with 0 ${ran.stderr}`)
        if (output !== null) t.equal(ran.stdout, output, 'prints what the page shows')
      })
    }
  }
})
