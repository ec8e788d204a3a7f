/**
 * File, in each durability, and its baseline: an append loop.
 *
 * @module
 */

import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { FileStorage } from '../../storages/file/index.ts'
import { appendLoop } from '../baselines/file.ts'
import { counting } from '../file/counting.ts'
import { askonceSession } from './askonce.ts'
import type { Backend } from './backend.ts'

function bytesIn(folder: string): number {
  let bytes = 0
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += statSync(path.join(entry.parentPath, entry.name)).size
  }
  return bytes
}

function file(durability: 'fsync' | 'os', pace: number): Backend {
  return {
    name: `file-${durability}`,
    title: `File, ${durability}`,
    baseline: `a Map and an array; ${durability === 'fsync' ? 'append and fdatasync' : 'append'} for all steps of a turn`,
    pace,
    depthMax: 500_000,
    async start() {
      const folder = mkdtempSync(path.join(tmpdir(), 'askonce-bench-'))
      const basePath = path.join(folder, 'queues')
      const { fs, counts } = counting()
      let bareCalls = 0
      return {
        address: { kind: 'file', basePath, durability },
        software: `in ${tmpdir()}, durability '${durability}'`,
        async open(system) {
          rmSync(basePath, { recursive: true, force: true })
          if (system === 'bare') {
            return appendLoop(basePath, durability === 'fsync', () => {
              bareCalls++
            })
          }
          return askonceSession(() => new FileStorage({ basePath, durability }, fs), 'bench')
        },
        async spent() {
          let calls = bareCalls
          for (const count of counts.values()) calls += count
          return { serverUs: 0, calls }
        },
        bytesOutside: async () => bytesIn(basePath),
        stop: async () => rmSync(folder, { recursive: true, force: true }),
      }
    },
  }
}

export const fileFsync = file('fsync', 80_000)
export const fileOs = file('os', 120_000)
