import t from 'tap'
import { conformance, ReferenceStorage, VirtualClock } from '../../storages/conformance/index.ts'

t.test('the reference storage, virtual clock', async (t) => {
  const clock = new VirtualClock()
  const { cases } = conformance({
    test: (name, run) =>
      t.test(name, async (t) => {
        await run()
        t.pass('holds')
      }),
    create: async () => new ReferenceStorage({ clock }),
    advance: (ms) => clock.advance(ms),
  })
  t.not(cases.length, 0)
})

t.test('the reference storage, real time', async (t) => {
  conformance({
    test: (name, run) =>
      t.test(name, async (t) => {
        await run()
        t.pass('holds')
      }),
    create: async () => new ReferenceStorage(),
  })
})
