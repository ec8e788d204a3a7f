/**
 * All scenarios, in the order in which they run and are told.
 *
 * @module
 */

import { depthScenario } from './depth.ts'
import { duplicateScenario } from './duplicate.ts'
import { enqueueScenario } from './enqueue.ts'
import { idleScenario } from './idle.ts'
import { payloadScenario } from './payload.ts'
import { processScenario } from './process.ts'
import type { Scenario } from './scenario.ts'
import { spaceScenario } from './space.ts'
import { vinScenario } from './vin.ts'
import { waitScenario } from './wait.ts'
import { wakeScenario } from './wake.ts'

export const scenarios: readonly Scenario[] = [
  vinScenario,
  enqueueScenario,
  duplicateScenario,
  processScenario,
  waitScenario,
  wakeScenario,
  payloadScenario,
  depthScenario,
  spaceScenario,
  idleScenario,
]
