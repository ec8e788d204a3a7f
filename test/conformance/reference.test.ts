import t from 'tap'
import { ReferenceStorage, VirtualClock } from '../../storages/conformance/index.ts'
import { runConformance } from './run.ts'

t.test('the reference storage, virtual clock', async (t) => {
  const clock = new VirtualClock()
  runConformance(t, { create: async () => new ReferenceStorage({ clock }), advance: (ms) => clock.advance(ms) })
})

t.test('the reference storage, real time', async (t) => {
  runConformance(t, { create: async () => new ReferenceStorage() })
})
