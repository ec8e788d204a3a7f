import t from 'tap'
import { VirtualClock } from '../../storages/conformance/index.ts'
import { MemoryStorage } from '../../storages/memory/index.ts'
import { type RigOptions, runScenarios } from '../support/queue-rig.ts'
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

function memory(): RigOptions {
  const clock = new VirtualClock()
  return { clock, makeStorage: async () => ({ storage: new MemoryStorage({ clock }) }) }
}

t.test('dedup', async (t) => runScenarios(t, dedup, memory))
t.test('waiting', async (t) => runScenarios(t, waiting, memory))
t.test('cancelling', async (t) => runScenarios(t, cancelling, memory))
t.test('outcomes', async (t) => runScenarios(t, outcomes, memory))
t.test('hooks', async (t) => runScenarios(t, hooks, memory))
t.test('retrying', async (t) => runScenarios(t, retrying, memory))
t.test('fencing', async (t) => runScenarios(t, fencing, memory))
t.test('inline', async (t) => runScenarios(t, inline, memory))
t.test('refreshing', async (t) => runScenarios(t, refreshing, memory))
t.test('effects', async (t) => runScenarios(t, effects, memory))
t.test('batching', async (t) => runScenarios(t, batching, memory))
t.test('lifecycle', async (t) => runScenarios(t, lifecycle, memory))
t.test('trouble', async (t) => runScenarios(t, trouble, memory))
t.test('calls', async (t) => runScenarios(t, calls, memory))
