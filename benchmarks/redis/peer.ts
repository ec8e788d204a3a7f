/**
 * Loads a peer from `benchmarks/redis`'s own packages.
 *
 * @module
 */

import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

// biome-ignore lint/suspicious/noExplicitAny: the peers' types are not installed with ours
export type Peer = any

export interface LoadedPeer {
  readonly module: Record<string, Peer>
  readonly version: string
}

const folder = path.join(process.cwd(), 'benchmarks', 'redis')

export function versionOf(file: string): string {
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
}

/** Imports a peer; answers why not where it is not installed or this Node can't run it. */
export async function peer(name: string): Promise<LoadedPeer | string> {
  const manifest = path.join(folder, 'node_modules', name, 'package.json')
  if (!existsSync(manifest)) return `${name}: not installed (npm ci --prefix benchmarks/redis)`
  try {
    const resolved = createRequire(path.join(folder, 'package.json')).resolve(name)
    return { module: await import(pathToFileURL(resolved).href), version: versionOf(manifest) }
  } catch (error) {
    return `${name} ${versionOf(manifest)}: does not run on Node ${process.versions.node}: ${(error as Error).message.split('\n')[0]}`
  }
}
