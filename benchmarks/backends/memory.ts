/**
 * Memory, and its baseline: a Map and an array.
 *
 * @module
 */

import { MemoryStorage } from '../../storages/memory/index.ts'
import { mapAndArray } from '../baselines/memory.ts'
import { askonceSession } from './askonce.ts'
import type { Backend } from './backend.ts'

export const memory: Backend = {
  name: 'memory',
  title: 'Memory',
  baseline: 'a Map of records and an array of ids, one await a step',
  pace: 500_000,
  depthMax: 500_000,
  async start() {
    return {
      address: { kind: 'memory' },
      software: 'in this process',
      async open(system) {
        if (system === 'bare') return mapAndArray()
        const storage = new MemoryStorage()
        return askonceSession(() => storage, 'bench')
      },
      spent: async () => ({ serverUs: 0, calls: null }),
      bytesOutside: async () => 0,
      stop: async () => {},
    }
  },
}
