/** Hints that tell of an end but bring no record, as File sends them of what others did, and Redis of long results. */

import t from 'tap'
import { Queue } from '../../src/index.ts'
import type { Hint } from '../../src/storage.ts'
import { settle, VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { gate } from '../support/queue-rig.ts'
import { FaultyStorage, failBefore, replyAfter } from './support/faulty-storage.ts'

function rig() {
  const clock = new VirtualClock()
  const memory = new MemoryStorage({ clock })
  const far = new FaultyStorage(memory)
  far.onHint = (hint: Hint) => [hint.type === 'settled' ? { type: 'settled', id: hint.id } : hint]
  const [worker, asker] = [
    new Queue<number, string>({ storage: memory, clock }),
    new Queue<number, string>({ storage: far, clock }),
  ]
  return { clock, far, worker, asker }
}

t.test('are answered by a look at once: no timer has to fire', async (t) => {
  const { clock, worker, asker } = rig()
  worker.execute(({ payload }) => `${payload}`)
  await worker.start()
  const before = clock.monotonic()
  const answers = Promise.all([1, 2, 3].map((n) => asker.enqueueAndWait(`id-${n}`, n)))
  t.same(await answers, ['1', '2', '3'])
  t.equal(await asker.run('id-4', 4, () => 'inline'), 'inline')
  t.equal(clock.monotonic(), before)
  await Promise.all([worker.stop(), asker.stop()])
})

t.test('one that comes before the caller knows which record is its own is not lost', async (t) => {
  const { clock, far, worker, asker } = rig()
  const end = gate<string>()
  worker.execute(() => end.promise)
  await worker.start()
  await worker.enqueue('id', 1)
  await settle(5)
  const late = gate()
  far.on('enqueue', replyAfter(late.promise))
  const before = clock.monotonic()
  const answer = asker.enqueueAndWait('id', 1)
  await settle(5)
  end.open('done')
  await settle(5)
  late.open()
  t.equal(await answer, 'done')
  t.equal(clock.monotonic(), before)
  await Promise.all([worker.stop(), asker.stop()])
})

t.test('a look that fails is told of, and made up for', async (t) => {
  const { clock, far, worker, asker } = rig()
  worker.execute(() => 'done')
  await worker.start()
  far.on(
    'get',
    failBefore(() => new Error('away')),
  )
  const told: string[] = []
  asker.on('error', (error) => told.push(error.message))
  const answer = asker.enqueueAndWait('id', 1)
  await settle(10)
  t.same(told, ['away'])
  const before = clock.monotonic()
  await clock.advance(clock.nextInMs ?? 0)
  t.equal(await answer, 'done')
  t.ok(clock.monotonic() - before <= 5, 'in a moment, not at the next regular poll')
  await Promise.all([worker.stop(), asker.stop()])
})
