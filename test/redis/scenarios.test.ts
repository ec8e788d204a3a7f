/** The queue's scenarios on Redis, in real time; each process has a storage and connections of its own. */

import t from 'tap'
import type { StorageHandle } from '../../src/storage.ts'
import { RedisStorage } from '../../storages/redis/index.ts'
import { batching } from '../queue/scenarios/batching.ts'
import { cancelling } from '../queue/scenarios/cancelling.ts'
import { dedup } from '../queue/scenarios/dedup.ts'
import { fencing } from '../queue/scenarios/fencing.ts'
import { hooks } from '../queue/scenarios/hooks.ts'
import { inline } from '../queue/scenarios/inline.ts'
import { lifecycle } from '../queue/scenarios/lifecycle.ts'
import { outcomes } from '../queue/scenarios/outcomes.ts'
import { retrying } from '../queue/scenarios/retrying.ts'
import { trouble } from '../queue/scenarios/trouble.ts'
import { waiting } from '../queue/scenarios/waiting.ts'
import { runScenarios } from '../support/queue-rig.ts'
import { RedisServer } from '../support/redis-server.ts'
import { skip } from './suite.ts'

const all = { dedup, waiting, cancelling, outcomes, hooks, retrying, fencing, inline, batching, lifecycle, trouble }

t.test('the queue on Redis', { skip, timeout: 300_000 }, async (t) => {
  const server = await RedisServer.start()
  t.teardown(() => server.dispose())
  // They wait more than they work.
  t.jobs = 4
  let count = 0
  for (const [name, scenarios] of Object.entries(all)) {
    t.test(name, { buffered: true, timeout: 300_000 }, async (t) =>
      runScenarios(t, scenarios, () => ({
        makeStorage: async () => {
          const options = { url: server.url, keyPrefix: `scenario ${count++}` }
          const handles: StorageHandle[] = []
          const make = () => {
            const storage = new RedisStorage(options)
            const open = storage.open.bind(storage)
            storage.open = async (name) => {
              const handle = await open(name)
              handles.push(handle)
              return handle
            }
            return storage
          }
          // A handle whose opening was made to fail on its way back has nobody else to close it.
          const cleanup = () => Promise.all(handles.map((handle) => handle.close()))
          return { storage: make(), another: async () => make(), cleanup }
        },
      })),
    )
  }
})
