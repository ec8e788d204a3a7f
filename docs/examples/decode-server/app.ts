/**
 * The example's application: a page, and `POST /api/decode` behind idempotency keys. From Request to Response, so that it
 * runs wherever those do.
 *
 * @module
 */

import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { idempotent } from '../../../src/http/index.ts'
import { Queue } from '../../../src/index.ts'
import { checkVin, createVinDecoder, type VinDecoderOptions } from '../../../src/presets/vin/index.ts'
import type { Storage } from '../../../src/storage.ts'
import { answerOf, notAVin } from './answers.ts'
import { actorOf, withVisitor } from './visitor.ts'

/** What the application is made of. */
export interface DecodeAppOptions {
  /** Keeps the answers of the keys, and those of the VINs. */
  readonly storage: Storage
  /** Of the decoder, but for its storage. */
  readonly decoder: Omit<VinDecoderOptions, 'storage'>
  /** How long a request waits for another one's answer before it is told to come back, ms. Default: 2,000. */
  readonly waitMs?: number
  /** How long a failure is kept for its key, ms: no longer than a person takes to try again. Default: 5,000. */
  readonly failureTtlMs?: number
}

/** A running application. */
export interface DecodeApp {
  handle(request: Request): Promise<Response>
  /** Lets what runs finish, and lets go of the storage. */
  close(): Promise<void>
}

/** An answer of the decoder is kept this long for its key, ms: longer than the page sends a key (60 s). */
const resultTtlMs = 600_000

/** Makes one. */
export async function createDecodeApp(options: DecodeAppOptions): Promise<DecodeApp> {
  const { storage, decoder, waitMs = 2_000, failureTtlMs = 5_000 } = options
  const files = await readFiles()
  const vins = createVinDecoder({ ...decoder, storage })
  const queue = new Queue({ storage, name: 'decode-http' })

  const decode = idempotent(queue, {
    actor: actorOf,
    // Before any key is written: what is no VIN costs nothing.
    validate(incoming) {
      const check = checkVin(vinIn(incoming.text()))
      return check.ok ? null : notAVin(check)
    },
    async upstream(request, { signal }) {
      return answerOf(await vins.decode(vinIn(await request.text()), { signal }))
    },
    busy: 'wait',
    waitMs,
    resultTtlMs,
    failureTtlMs,
  })

  async function handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/api/decode') {
      if (request.method === 'POST') return decode(request)
      return new Response('POST only\n', { status: 405, headers: { allow: 'POST' } })
    }
    if (pathname === '/api/counters') return Response.json({ http: decode.counters, vin: vins.counters })
    const file = files.get(pathname)
    if (file === undefined) return new Response('not here\n', { status: 404 })
    return withVisitor(request, new Response(file.body, { headers: { ...pageHeaders, 'content-type': file.type } }))
  }

  return {
    handle,
    async close() {
      await vins.close()
      await queue.stop()
    },
  }
}

/** The VIN in a body of JSON; anything else is checked, and refused, as it is. */
function vinIn(body: string): unknown {
  try {
    return (JSON.parse(body) as { vin?: unknown } | null)?.vin
  } catch {
    return undefined
  }
}

const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'",
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-cache',
}

interface File {
  readonly type: string
  readonly body: string
}

async function readFiles(): Promise<Map<string, File>> {
  const own = (name: string) => readFile(new URL(name, import.meta.url), 'utf8')
  return new Map([
    ['/', { type: 'text/html; charset=utf-8', body: await own('page.html') }],
    ['/page.js', { type: 'text/javascript; charset=utf-8', body: await own('page.js') }],
    ['/page.css', { type: 'text/css; charset=utf-8', body: await own('page.css') }],
    ['/askonce-client.js', { type: 'text/javascript; charset=utf-8', body: await clientModule() }],
  ])
}

/** `askonce/client` for the browser: one file. From the installed package, your own bundler does this. */
async function clientModule(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL('../../../src/client/index.ts', import.meta.url))],
    bundle: true,
    format: 'esm',
    platform: 'browser',
    write: false,
  })
  return outputFiles[0]!.text
}
