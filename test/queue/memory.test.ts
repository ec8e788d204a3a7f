import t from 'tap'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { type RigOptions, runScenarios } from '../support/queue-rig.ts'
import { dedup } from './scenarios/dedup.ts'

function memory(): RigOptions {
  const clock = new VirtualClock()
  return { clock, makeStorage: async () => ({ storage: new MemoryStorage({ clock }) }) }
}

t.test('dedup', async (t) => runScenarios(t, dedup, memory))
