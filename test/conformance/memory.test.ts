import t from 'tap'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { runConformance } from './run.ts'

t.test('Memory, virtual clock', async (t) => {
  const clock = new VirtualClock()
  runConformance(t, {
    create: async () => new MemoryStorage({ clock }),
    advance: (ms) => clock.advance(ms),
    random: { runs: 20, commands: 500 },
  })
})

t.test('Memory, real time', async (t) => {
  runConformance(t, { create: async () => new MemoryStorage() })
})
