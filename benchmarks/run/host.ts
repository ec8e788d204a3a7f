/**
 * The process that one backend is measured in: askonce and its baseline there, no other storage. What one storage leaves on the
 * heap, and what it teaches the compiler, is no other's.
 *
 * @module
 */

import type { BackendName, Site, SystemName } from '../backends/backend.ts'
import { backendOf } from '../backends/index.ts'
import { type Recording, recorded } from '../profile/recorder.ts'
import type { Figures } from '../results/metrics.ts'
import { scenarios } from '../scenarios/index.ts'
import type { Trial } from '../scenarios/scenario.ts'
import { type Child, isChild, serve, spawned } from './child.ts'

/** One measurement, as plain data. */
export interface Order {
  readonly scenario: string
  readonly case: string
  readonly system: string
  readonly jobs: number
  readonly quick: boolean
  /** Record what is measured: the figures are of no use then. */
  readonly recording?: Recording
}

/** Makes one measurement on a running site. */
export async function measure(backendName: BackendName, site: Site, order: Order): Promise<Figures> {
  const one = scenarios
    .find(({ name }) => name === order.scenario)
    ?.cases(order.quick)
    .find(({ name }) => name === order.case)
  if (one === undefined) throw new Error(`no case ${order.case} of ${order.scenario}`)
  const { system, jobs, quick, recording } = order
  const trial: Trial = {
    backend: await backendOf(backendName),
    site,
    system,
    jobs,
    quick,
    open: () => site.open(system as SystemName),
    watch: (work) => (recording === undefined ? work() : recorded(recording, work)),
  }
  return one.measure(trial)
}

interface Question {
  readonly start?: BackendName
  readonly order?: Order
}

/** A backend in a process of its own. */
export class Host {
  readonly #child: Child

  private constructor(child: Child) {
    this.#child = child
  }

  static async start(backend: BackendName): Promise<{ host: Host; software: string }> {
    const child = spawned(import.meta.url)
    try {
      const software = (await child.ask({ start: backend } satisfies Question, 30_000)) as string
      return { host: new Host(child), software }
    } catch (error) {
      await child.end()
      throw error
    }
  }

  /** Rejects when the measurement fails or takes too long; then the process has ended. */
  measure(order: Order, timeoutMs: number): Promise<Figures> {
    return this.#child.ask({ order } satisfies Question, timeoutMs) as Promise<Figures>
  }

  end(): Promise<void> {
    return this.#child.end()
  }
}

if (isChild(import.meta.url)) {
  let backend: BackendName = 'memory'
  let site: Site | undefined
  serve(
    async (question) => {
      const { start, order } = question as Question
      if (start !== undefined) {
        backend = start
        site = await (await backendOf(backend)).start()
        return site.software
      }
      return measure(backend, site as Site, order as Order)
    },
    async () => site?.stop(),
  )
}
