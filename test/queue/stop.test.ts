import t from 'tap'
import { Queue } from '../../src/index.ts'
import { settle, VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { FaultyStorage, failBefore } from './support/faulty-storage.ts'

// Found by the simulation, seed 64211 of commit bd1b83f: a claim that failed just before stop() left its pause behind, and the
// process could not exit until that was over.
t.test('stop() leaves no timer behind, though the last claim failed', async (t) => {
  const clock = new VirtualClock()
  const storage = new FaultyStorage(new MemoryStorage())
  storage.on('claim', failBefore(), 1_000)
  const queue = new Queue({ storage, clock })
  const failed = new Promise((resolve) => queue.once('error', resolve))
  queue.execute(() => 1)
  await queue.start()
  await failed
  await settle(3)
  const stopped = queue.stop()
  await settle(3)
  await stopped
  t.equal(clock.nextInMs, null)
})
