import { VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { QueueRig } from '../support/queue-rig.ts'
import { Seeded } from '../support/seeded.ts'
import { FaultyStorage } from './support/faulty-storage.ts'
const names = ['dedup','waiting','cancelling','outcomes','hooks','retrying','fencing','inline','batching','lifecycle','trouble','calls']
const scenarios = (await Promise.all(names.map(async (n) => (await import(`./scenarios/${n}.ts`))[n]))).flat()
async function turns(count: number) { for (let i = 0; i < count; i++) await new Promise<void>((r) => setImmediate(r)) }
process.on('unhandledRejection', (e) => { if (process.env.V) console.log('UNHANDLED', e) })
const only = process.argv[3]
for (let seed = 1; seed <= Number(process.argv[2]); seed++) {
  const seeded = new Seeded(seed)
  process.env.ASKONCE_SEED = String(seed)
  for (const s of scenarios) {
    if (s.open || (only && !s.name.includes(only))) continue
    const clock = new VirtualClock()
    const memory = new MemoryStorage({ clock })
    const remote = () => {
      const st = new FaultyStorage(memory, { gather: 'macrotask', push: false, pollMs: { min: 20, max: 200 } })
      const pass = st.do.bind(st)
      const sleep = (ms: number) => new Promise<void>((r) => clock.timer(r, ms, true))
      st.do = async (op, call) => { await turns(seeded.below(4)); if (seeded.chance(0.2)) await turns(seeded.below(30)); const r = await pass(op, call); await turns(seeded.below(8)); return r }
      st.onHint = (h) => (seeded.chance(0.5) ? [h] : [])
      return st
    }
    const rig = await QueueRig.make({ clock, turns: 1 + (seed % 8), prompt: false, patienceMs: 4000, makeStorage: async () => ({ storage: remote(), another: async () => remote() }) })
    const bad: string[] = []
    const soft = (name: string) => { bad.push(name) }
    const t: any = new Proxy({}, { get: (_, k: string) => (...a: any[]) => { if (k === 'fail') soft('fail ' + a[0]); if (k === 'equal' && a[0] !== a[1]) soft(`equal ${a[0]} ${a[1]}`) } })
    try { await s.run(t, rig) } catch (e: any) { bad.push(String(e.message).slice(0, 100) + (e.stack?.match(/scenarios\/\w+\.ts:\d+/)?.[0] ?? '')) }
    try { await rig.end() } catch (e: any) { bad.push('END ' + e.message) }
    const hard = bad.filter((b) => /vain|took longer|END|must not|fail /.test(b))
    if (hard.length) console.log('seed', seed, s.name.slice(0, 60), hard.slice(0, 3))
  }
}
console.log('done')
process.exit()
