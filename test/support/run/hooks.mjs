/**
 * How modules are found and read in test processes. Types are stripped by esbuild, once: what comes of a source is kept in
 * `node_modules/.cache/askonce-test` until it changes. And tap is kept from following every promise; see `domain.mjs`.
 */
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const cache = join(root, 'node_modules/.cache/askonce-test')
const domain = new URL('./domain.mjs', import.meta.url).href
const { version } = createRequire(import.meta.url)('esbuild/package.json')

export async function resolve(specifier, context, next) {
  if (specifier === 'async-hook-domain') return { url: domain, format: 'module', shortCircuit: true }
  return next(specifier, context)
}

export async function load(url, context, next) {
  if (!/^file:.*\.m?ts$/.test(url)) return next(url, context)
  return { format: 'module', source: await stripped(fileURLToPath(url)), shortCircuit: true }
}

async function stripped(path) {
  const source = readFileSync(path, 'utf8')
  const kept = join(cache, relative(root, path).replace(/[^\w.-]/g, '+'))
  const key = `// ${createHash('sha256').update(`${version}\0${source}`).digest('hex')}\n`
  try {
    const code = readFileSync(kept, 'utf8')
    if (code.endsWith(key)) return code
  } catch {
    // It is the first time.
  }
  const { transform } = await import('esbuild')
  const { code } = await transform(source, {
    loader: 'ts',
    // Beside the module itself: where the source is.
    sourcefile: basename(path),
    sourcemap: 'inline',
    sourcesContent: false,
    target: 'node20',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
  })
  // Not what lies elsewhere, nor what a test makes up in its own folder.
  if (!relative(root, path).startsWith('.')) keep(kept, code + key)
  return code
}

function keep(path, code) {
  const half = `${path}.${process.pid}`
  try {
    mkdirSync(cache, { recursive: true })
    writeFileSync(half, code)
    renameSync(half, path)
  } catch {
    // Then it will be stripped again.
  }
}
