/**
 * What a scenario is: a few cases, each of which measures one system on one backend.
 *
 * @module
 */

import type { Backend, BackendName, Session, Site } from '../backends/backend.ts'
import type { Figures } from '../results/metrics.ts'

/** One measurement to make. */
export interface Trial {
  readonly backend: Backend
  readonly site: Site
  /** `askonce`, `bare`, or another that the scenario has. */
  readonly system: string
  /** How many jobs to measure, where the case's size is settled by trying. */
  readonly jobs: number
  /** Whether to be content with less. */
  readonly quick: boolean
  /** A session of the system on an empty place. The case closes it. */
  open(): Promise<Session>
  /** Runs what is measured, the part between the clock's two readings; records it, where that is asked for. */
  watch(work: () => Promise<unknown>): Promise<unknown>
}

export interface Case {
  readonly name: string
  /**
   * `tried`: the runner finds how many jobs last long enough, by trying (which warms up, too). `own`: the case has a size of its
   * own, warms up itself, and `jobs` counts for nothing.
   */
  readonly size: 'tried' | 'own'
  /** Rounds, if fewer than the run's. */
  readonly rounds?: number
  /** Whether backends may be measured at the same time, since nothing happens that could disturb others. */
  readonly together?: boolean
  measure(trial: Trial): Promise<Figures>
}

export interface Scenario {
  readonly name: string
  readonly title: string
  /** What is done and counted, in a sentence or two, for the page. */
  readonly about: string
  cases(quick: boolean): readonly Case[]
  /** What is measured on a backend. Default: askonce and the bare baseline. */
  systems?(backend: BackendName, quick: boolean): readonly string[]
  /** Why a case says nothing on a backend; null where it does. */
  leftOut?(backend: Backend, one: Case): string | null
}
