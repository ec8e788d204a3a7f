/**
 * The stand-in of NHTSA's vPIC, in a process of its own.
 *
 * @module
 */

import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { isChild, serve, spawned } from '../run/child.ts'

/** Calls and VINs that it was asked for since the last look. */
export interface Asked {
  readonly calls: number
  readonly vins: number
}

export interface StandIn {
  readonly baseUrl: string
  asked(): Promise<Asked>
  stop(): Promise<void>
}

/** How long it takes over each call, ms. The real one takes ten times as long and more. */
export const latencyMs = 20

export async function startStandIn(): Promise<StandIn> {
  // From source, wherever this module runs: its facts lie beside the source.
  const source = path.join(process.cwd(), 'benchmarks', 'vin', 'stand-in.ts')
  const child = spawned(pathToFileURL(source).href)
  return {
    baseUrl: (await child.ask('start')) as string,
    asked: () => child.ask('asked') as Promise<Asked>,
    stop: () => child.end(),
  }
}

if (isChild(import.meta.url)) {
  const { startVpic } = await import('../../test/support/vpic/index.ts')
  const vpic = await startVpic({ latencyMs })
  serve((question) => {
    if (question === 'start') return vpic.baseUrl
    const asked: Asked = { calls: vpic.calls.length, vins: vpic.calls.reduce((sum, { vins }) => sum + vins.length, 0) }
    vpic.calls.length = 0
    return asked
  })
}
