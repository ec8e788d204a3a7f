/**
 * `npm run example:decode`: a page that decodes VINs, however often it is clicked, reloaded or cut off, with one question to
 * the decoder.
 *
 * @module
 */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { toNodeHandler } from '../../../src/http/index.ts'
import { createVpicClient, type VinDecoderOptions } from '../../../src/presets/vin/index.ts'
import { FileStorage } from '../../../storages/file/index.ts'
import { startVpic } from '../../../test/support/vpic/index.ts'
import { createDecodeApp } from './app.ts'
import { help, readOptions, type ServerOptions, UsageError } from './options.ts'

/** The decoder's options, and what is to be closed with it. */
async function decoderOf(options: ServerOptions): Promise<[Omit<VinDecoderOptions, 'storage'>, () => Promise<void>]> {
  if (options.live) return [{ policy: { rules } }, async () => {}]
  const standIn = await startVpic({ latencyMs: options.latencyMs })
  const client = createVpicClient({ baseUrl: standIn.baseUrl })
  // Made-up answers are kept apart from real ones.
  return [{ client, name: 'vin-decode-stand-in', policy: { rules } }, () => standIn.close()]
}

/** A person who sees "temporarily unavailable" tries again sooner than an import does. */
const rules = { UPSTREAM: { retry: 'backoff', ttlMs: 10_000 } } as const

async function serve(options: ServerOptions): Promise<void> {
  const server = createServer()
  server.listen(options.port, '127.0.0.1')
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError(`port ${options.port} can't be had: ${error.code}`)
  })
  const [decoder, closeDecoder] = await decoderOf(options)
  const app = await createDecodeApp({ storage: new FileStorage({ basePath: options.dir }), decoder })
  server.on('request', toNodeHandler(app.handle))
  const { port } = server.address() as AddressInfo
  const source = options.live ? 'NHTSA' : 'a stand-in on this machine'
  console.log(`http://127.0.0.1:${port}/ asks ${source}; records are in ${options.dir}`)
  const stop = async () => {
    server.close()
    await app.close()
    server.closeAllConnections()
    await closeDecoder()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop())
}

try {
  const options = readOptions(process.argv.slice(2), path.join(tmpdir(), 'askonce-decode-server'))
  if (options === null) process.stdout.write(help)
  else await serve(options)
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`example:decode: ${error.message}\nnpm run example:decode -- --help tells more\n`)
  process.exitCode = 2
}
