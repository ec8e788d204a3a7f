/** Workers and waiters in every order that fast-check thinks of: which call, which reply, which hint and which handler comes next. */

import fc from 'fast-check'
import t from 'tap'
import { Queue } from '../../src/queue.ts'
import type { Storage, StorageHandle } from '../../src/storage.ts'
import { settle, VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'

/** What callers do, in order; `stop` is a stop and a start. */
const action = fc.record({
  kind: fc.constantFrom('enqueue', 'enqueueAndWait', 'run', 'stop'),
  id: fc.constantFrom('a', 'b', 'c'),
  queue: fc.constantFrom(0, 1),
})

/** The storage, whose calls, replies and hints wait for their turn. */
function scheduled(inner: Storage, scheduler: fc.Scheduler): Storage {
  const turn = (label: string): Promise<void> => scheduler.schedule(Promise.resolve(), label)
  const around = (handle: StorageHandle): StorageHandle => {
    const running = new Set<Promise<unknown>>()
    return new Proxy(handle, {
      get(target, name: keyof StorageHandle) {
        // `then` is asked for, too, by whoever awaits a handle.
        const method = target[name]?.bind(target as never) as ((...args: unknown[]) => unknown) | undefined
        if (method === undefined) return undefined
        if (name === 'watch') {
          return (listener: (hint: unknown) => void) =>
            method((hint: { type: string }) => void turn(`hint ${hint.type}`).then(() => listener(hint)))
        }
        const call = async (args: unknown[]): Promise<unknown> => {
          await turn(name)
          // The contract: running operations end first.
          if (name === 'close') await Promise.allSettled(running)
          const answer = await method(...args)
          await turn(`reply to ${name}`)
          return answer
        }
        return (...args: unknown[]) => {
          const reply = call(args)
          if (name !== 'close') running.add(reply)
          return reply
        }
      },
    })
  }
  return { traits: inner.traits, open: async (name) => around(await inner.open(name)) }
}

/** Lets everything have its turn; time goes on only when nothing else can. */
async function drive(scheduler: fc.Scheduler, clock: VirtualClock, done: () => boolean): Promise<void> {
  for (let round = 0; !done(); round++) {
    if (round > 5_000) throw new Error('it never ends')
    await settle(1)
    if (scheduler.count() > 0) await scheduler.waitOne()
    else await clock.advance(clock.nextInMs ?? 1)
  }
}

t.test('whatever the order: one run an id, an answer for every caller, nothing left under lease', async (t) => {
  const property = fc.asyncProperty(
    fc.scheduler(),
    fc.array(action, { minLength: 1, maxLength: 8 }),
    async (scheduler, actions) => {
      const clock = new VirtualClock()
      const memory = new MemoryStorage({ clock })
      const runs = new Map<string, number>()
      const work = async (id: string): Promise<string> => {
        runs.set(id, (runs.get(id) ?? 0) + 1)
        await scheduler.schedule(Promise.resolve(), `handler of ${id}`)
        return `done ${id}`
      }
      const queues = [0, 1].map(() => {
        const queue = new Queue<string, string>({ storage: scheduled(memory, scheduler), clock, name: 'q' })
        queue.execute((job) => work(job.id))
        return queue
      })
      const problems: unknown[] = []
      for (const queue of queues) queue.on('error', (error) => problems.push(error))
      let open = 0
      const expect = (promise: Promise<unknown>, right: (value: unknown) => boolean): void => {
        open++
        promise
          .then(
            (value) => right(value) || problems.push(value),
            (error: { code?: string }) => error.code === 'ASKONCE_STOPPED' || problems.push(error),
          )
          .finally(() => open--)
      }
      for (const queue of queues) expect(queue.start(), () => true)
      const asked = new Set<string>()
      for (const { kind, id, queue: index } of actions) {
        const queue = queues[index]!
        if (kind === 'stop') {
          // The first one stays, so that somebody works.
          if (index === 0) continue
          expect(queue.stop(), () => true)
          expect(queue.start(), () => true)
          continue
        }
        asked.add(id)
        if (kind === 'enqueue') expect(queue.enqueue(id, id), () => true)
        else if (kind === 'run')
          expect(
            queue.run(id, id, () => work(id)),
            (value) => value === `done ${id}`,
          )
        else expect(queue.enqueueAndWait(id, id), (value) => value === `done ${id}`)
        // Some of them in one tick, some not.
        if (id === 'a') await settle(1)
      }
      await drive(scheduler, clock, () => open === 0)
      for (const queue of queues) expect(queue.stop(), () => true)
      await drive(scheduler, clock, () => open === 0)
      if (problems.length > 0) throw problems[0]
      for (const id of asked) if ((runs.get(id) ?? 0) > 1) throw new Error(`${id} ran ${runs.get(id)} times`)
      const { processing } = await (await memory.open('q')).stats()
      if (processing !== 0) throw new Error(`${processing} records are left under lease`)
    },
  )
  await fc.assert(property, { numRuns: 300 })
  t.pass('holds')
})
