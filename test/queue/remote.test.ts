/** The scenarios once more, on Memory as if it were far away: each call takes its time there and back, hints get lost. */

import t from 'tap'
import type { Storage } from '../../src/storage.ts'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { type RigOptions, runScenarios } from '../support/queue-rig.ts'
import { Seeded } from '../support/seeded.ts'
import { batching } from './scenarios/batching.ts'
import { calls } from './scenarios/calls.ts'
import { cancelling } from './scenarios/cancelling.ts'
import { dedup } from './scenarios/dedup.ts'
import { effects } from './scenarios/effects.ts'
import { fencing } from './scenarios/fencing.ts'
import { hooks } from './scenarios/hooks.ts'
import { inline } from './scenarios/inline.ts'
import { lifecycle } from './scenarios/lifecycle.ts'
import { outcomes } from './scenarios/outcomes.ts'
import { refreshing } from './scenarios/refreshing.ts'
import { retrying } from './scenarios/retrying.ts'
import { trouble } from './scenarios/trouble.ts'
import { waiting } from './scenarios/waiting.ts'
import { FaultyStorage } from './support/faulty-storage.ts'

const seeded = new Seeded()

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}

/** Calls that are not answered yet. */
let underWay = 0

/** Takes some turns of the event loop each way, so that calls overlap and overtake one another. */
function remote(inner: Storage): Storage {
  const storage = new FaultyStorage(inner, { gather: 'macrotask', push: false, pollMs: { min: 20, max: 200 } })
  const pass = storage.do.bind(storage)
  storage.do = async (operation, call) => {
    underWay++
    try {
      await turns(seeded.below(4))
      const reply = await pass(operation, call)
      await turns(seeded.below(4))
      return reply
    } finally {
      underWay--
    }
  }
  storage.onHint = (hint) => (seeded.chance(0.5) ? [hint] : [])
  return storage
}

function options(): RigOptions {
  const clock = new VirtualClock()
  const memory = new MemoryStorage({ clock })
  return {
    clock,
    turns: 10,
    busy: () => underWay > 0,
    prompt: false,
    makeStorage: async () => ({ storage: remote(memory), another: async () => remote(memory) }),
  }
}

t.comment(`ASKONCE_SEED=${seeded.seed} replays`)
const all = {
  dedup,
  waiting,
  cancelling,
  outcomes,
  hooks,
  retrying,
  fencing,
  inline,
  refreshing,
  effects,
  batching,
  lifecycle,
  trouble,
  calls,
}
for (const [name, scenarios] of Object.entries(all)) {
  t.test(name, async (t) => runScenarios(t, scenarios, options))
}
