/** What a page loads: how much, and from where. */

import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type BuildResult, build, type Metafile } from 'esbuild'
import t from 'tap'

const root = fileURLToPath(new URL('../..', import.meta.url))

type Bundle = BuildResult<{ metafile: true; write: false }>

/** For browsers, where a Node module can't be resolved: such an import fails the build. */
function bundle(file: string): Promise<Bundle> {
  return build({
    absWorkingDir: root,
    entryPoints: [file],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    // Browsers of 2023 and later.
    target: ['chrome110', 'firefox110', 'safari16.4'],
    metafile: true,
    write: false,
    logLevel: 'silent',
  })
}

function filesOf({ inputs }: Metafile): string[] {
  return Object.keys(inputs).sort()
}

t.test('a few kB, of src/client alone, without an import', async (t) => {
  const { outputFiles, metafile } = await bundle('src/client/index.ts')
  const bytes = outputFiles[0]!.contents
  const gzipped = gzipSync(bytes).length
  t.ok(bytes.length < 9_000, `${bytes.length} bytes`)
  t.ok(gzipped < 4_000, `${gzipped} bytes gzipped`)
  t.strictSame(
    filesOf(metafile).filter((file) => !file.startsWith('src/client/')),
    [],
  )
  t.strictSame(
    Object.values(metafile.inputs).flatMap(({ imports }) => imports.filter(({ external }) => external)),
    [],
  )
  const text = outputFiles[0]!.text
  t.notMatch(text, /node:|require\(|\bprocess\b|\bBuffer\b/)
  t.notMatch(text, /\bimport\b/)
})

t.test('what is bundled has the public names, and works', async (t) => {
  const { outputFiles } = await bundle('src/client/index.ts')
  const client = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0]!.contents).toString('base64')}`)
  t.strictSame(Object.keys(client).sort(), [
    'AttemptError',
    'attemptStore',
    'headersFor',
    'isAttemptFresh',
    'mintAttempt',
    'sendAttempt',
  ])
  const answers = [new Response(null, { status: 409, headers: { 'retry-after': '0' } }), new Response('ok')]
  const options = { sleep: async (ms: number) => (ms > 1_000 ? new Promise(() => {}) : undefined) }
  const response = await client.sendAttempt(client.mintAttempt('s'), () => answers.shift(), options)
  t.equal(await response.text(), 'ok')
  t.equal(new client.AttemptError('ASKONCE_NETWORK', 'x').name, 'AttemptError', 'minified or not')
})

t.test('the retry loop has no way to a new key', async (t) => {
  const { outputFiles, metafile } = await bundle('src/client/send.ts')
  t.ok(filesOf(metafile).includes('src/client/attempt.ts'))
  for (const file of ['src/client/mint.ts', 'src/client/uuid.ts', 'src/client/store.ts']) {
    t.notOk(filesOf(metafile).includes(file), file)
  }
  t.notMatch(outputFiles[0]!.text, /randomUUID|getRandomValues/)
})
