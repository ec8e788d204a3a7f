/**
 * The pictures of a run, as Vega-Lite specs.
 *
 * @module
 */

import type { Results } from '../../results/results.ts'
import { advantage, latency, throughput } from './against-bare.ts'
import { depth, space } from './burden.ts'
import type { Chart } from './points.ts'
import { vin } from './vin.ts'

export type { Chart } from './points.ts'

/** All that the run has figures for. */
export function charts(results: Results): Chart[] {
  const all = [throughput, advantage, latency, depth, space, vin].map((make) => make(results))
  return all.filter((chart) => chart !== null)
}
