/**
 * `npm run demo`: decodes a file of VINs, each vehicle once.
 *
 * @module
 */

import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { createVpicClient, type VinDecoderOptions } from '../../../src/presets/vin/index.ts'
import type { Storage } from '../../../src/storage.ts'
import { FileStorage } from '../../../storages/file/index.ts'
import { MemoryStorage } from '../../../storages/memory/index.ts'
import { type Fault, seededFaults, startVpic } from '../../../test/support/vpic/index.ts'
import { type DemoOptions, help, readOptions, UsageError } from './options.ts'
import { progressFor } from './progress.ts'
import { type DemoResult, runDemo } from './run.ts'
import { tableOf } from './table.ts'

/** All that the stand-in can do wrong without costing minutes. */
const storm: readonly Fault[] = [
  { kind: 'gateway_timeout' },
  { kind: 'xml' },
  { kind: 'html' },
  { kind: 'broken_json' },
  { kind: 'execution_error' },
  { kind: 'empty_results' },
  { kind: 'missing' },
  { kind: 'doubled' },
  { kind: 'reversed' },
  { kind: 'reset' },
  { kind: 'latency', ms: 500 },
  { kind: 'throttle', retryAfter: '1' },
]

function storageOf(options: DemoOptions): Storage {
  if (options.storage === 'memory') return new MemoryStorage()
  return new FileStorage({ basePath: options.dir ?? path.join(tmpdir(), 'askonce-demo') })
}

async function demo(options: DemoOptions, signal: AbortSignal): Promise<DemoResult> {
  const file = options.file ?? fileURLToPath(new URL('vins.csv', import.meta.url))
  const progress = progressFor(process.stderr, options.json)
  const storage = storageOf(options)
  if (options.live) return runDemo(options, { file, source: 'NHTSA', progress, signal, decoder: { storage } })
  const faults = options.faults === null ? {} : { faults: seededFaults(options.faults, 0.4, storm) }
  await using standIn = await startVpic({ latencyMs: 100, ...faults })
  const decoder: VinDecoderOptions = {
    storage,
    client: createVpicClient({ baseUrl: standIn.baseUrl }),
    // Made-up answers are kept apart from real ones.
    name: 'vin-decode-stand-in',
    minIntervalMs: 50,
    policy: { retryBaseMs: 100, retryMaxMs: 1_000, maxAttempts: 8 },
  }
  return await runDemo(options, { file, source: 'a stand-in on this machine', progress, signal, decoder })
}

async function main(args: readonly string[]): Promise<number> {
  const controller = new AbortController()
  const onInterrupt = () => controller.abort(new Error('interrupted'))
  process.once('SIGINT', onInterrupt)
  try {
    const options = readOptions(args)
    if (options === null) {
      process.stdout.write(help)
      return 0
    }
    const result = await demo(options, controller.signal)
    process.stdout.write(options.json ? `${JSON.stringify(result)}\n` : tableOf(result))
    return result.interrupted ? 130 : 0
  } catch (error) {
    if (!(error instanceof UsageError)) throw error
    process.stderr.write(`demo: ${error.message}\nnpm run demo -- --help tells more\n`)
    return 2
  } finally {
    process.off('SIGINT', onInterrupt)
  }
}

process.exitCode = await main(process.argv.slice(2))
