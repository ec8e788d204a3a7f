/**
 * Runs scenarios on backends: rounds alternate between all systems, so that a machine that changes its pace does so for all.
 *
 * @module
 */

import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { loadavg } from 'node:os'
import type { Backend, BackendName } from '../backends/backend.ts'
import { backendOf } from '../backends/index.ts'
import { profileFile, recordings } from '../profile/files.ts'
import type { Figures, MetricName } from '../results/metrics.ts'
import type { Omission, Results, RunBackend, Series } from '../results/results.ts'
import type { Case, Scenario } from '../scenarios/scenario.ts'
import { machine } from '../support/report.ts'
import { Host, type Order } from './host.ts'

export interface Plan {
  readonly scenarios: readonly Scenario[]
  readonly backends: readonly BackendName[]
  readonly quick: boolean
  readonly arguments: readonly string[]
  /** Folder for profiles of askonce, which are made instead of measuring; null to measure. */
  readonly profile: string | null
  /** Told what is going on. */
  readonly progress: (line: string) => void
}

const settings = {
  full: { rounds: 4, lastsMs: 300, warmMs: 2_000, timeoutMs: 240_000 },
  quick: { rounds: 3, lastsMs: 40, warmMs: 0, timeoutMs: 30_000 },
}
/** So many jobs are warm-up enough: by then the compiler has seen all that it will see. */
const warmJobs = 20_000
const jobsMin = 8
const jobsMax = 100_000
const attemptsMax = 6

/** One system on one backend in a case, and its rounds. */
class Lane {
  readonly backend: BackendName
  readonly system: string
  readonly rounds: Figures[] = []
  jobs = jobsMin
  hasFailed = false

  constructor(backend: BackendName, system: string) {
    this.backend = backend
    this.system = system
  }
}

export async function run(plan: Plan): Promise<Results> {
  const begun = performance.now()
  const begunAt = new Date().toISOString()
  const loadBefore = loadavg()[0] ?? 0
  const series: Series[] = []
  const omissions: Omission[] = []
  const hosts = new Hosts()
  try {
    for (const scenario of plan.scenarios) {
      const runner = new ScenarioRun(plan, scenario, hosts)
      await runner.start()
      for (const one of scenario.cases(plan.quick)) await runner.run(one)
      series.push(...runner.series)
      omissions.push(...runner.omissions)
      // New processes for each scenario, where there is time for that: what one taught the compiler is no other's.
      if (!plan.quick) await hosts.end()
    }
  } finally {
    await hosts.end()
  }
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }
  return {
    format: 1,
    askonce: version,
    commit: commit(),
    begunAt,
    seconds: Math.round((performance.now() - begun) / 1_000),
    machine: machine(),
    load: [loadBefore, loadavg()[0] ?? 0],
    quick: plan.quick,
    arguments: plan.arguments.join(' '),
    rounds: settings[plan.quick ? 'quick' : 'full'].rounds,
    backends: await Promise.all(plan.backends.map((name) => described(name, hosts.software.get(name)))),
    series,
    omissions,
  }
}

async function described(name: BackendName, software = 'did not start'): Promise<RunBackend> {
  const { title, baseline } = await backendOf(name)
  return { name, title, baseline, software }
}

/** A process for each backend. */
class Hosts {
  readonly software = new Map<BackendName, string>()
  readonly #running = new Map<BackendName, Host>()

  get(backend: BackendName): Host | undefined {
    return this.#running.get(backend)
  }

  async start(backend: BackendName): Promise<void> {
    if (this.#running.has(backend)) return
    const { host, software } = await Host.start(backend)
    this.#running.set(backend, host)
    this.software.set(backend, software)
  }

  async end(...backends: readonly BackendName[]): Promise<void> {
    const names = backends.length === 0 ? [...this.#running.keys()] : backends
    await Promise.all(names.map((name) => this.#running.get(name)?.end()))
    for (const name of names) this.#running.delete(name)
  }
}

/** One scenario, all its cases. */
class ScenarioRun {
  readonly series: Series[] = []
  readonly omissions: Omission[] = []
  readonly #plan: Plan
  readonly #scenario: Scenario
  readonly #hosts: Hosts

  constructor(plan: Plan, scenario: Scenario, hosts: Hosts) {
    this.#plan = plan
    this.#scenario = scenario
    this.#hosts = hosts
  }

  async start(): Promise<void> {
    await Promise.all(this.#plan.backends.map((backend) => this.#startHost(backend)))
  }

  async #startHost(backend: BackendName): Promise<void> {
    try {
      await this.#hosts.start(backend)
    } catch (error) {
      this.#omit({ case: 'all', backend, system: 'all', reason: (error as Error).message, failed: true })
    }
  }

  #omit(omission: Omit<Omission, 'scenario'>): void {
    const { case: one, backend, system, reason } = omission
    this.omissions.push({ scenario: this.#scenario.name, ...omission })
    this.#plan.progress(`${this.#scenario.name}, ${one}, ${backend}, ${system}: ${reason}`)
  }

  async #lanes(one: Case): Promise<Lane[]> {
    const lanes: Lane[] = []
    for (const name of this.#plan.backends) {
      if (this.#hosts.get(name) === undefined) continue
      const backend: Backend = await backendOf(name)
      const reason = this.#scenario.leftOut?.(backend, one) ?? null
      const systems = this.#systems(name)
      if (reason !== null) this.#omit({ case: one.name, backend: name, system: 'all', reason })
      else lanes.push(...systems.map((system) => new Lane(name, system)))
    }
    return lanes
  }

  #systems(backend: BackendName): readonly string[] {
    const systems = this.#scenario.systems?.(backend, this.#plan.quick) ?? ['bare', 'askonce']
    return this.#plan.profile === null ? systems : systems.filter((system) => system === 'askonce')
  }

  async run(one: Case): Promise<void> {
    const { profile, quick } = this.#plan
    const { rounds: usual, lastsMs, warmMs } = settings[quick ? 'quick' : 'full']
    const rounds = profile === null ? Math.min(usual, one.rounds ?? usual) : recordings.length
    const lanes = await this.#lanes(one)
    const begun = performance.now()
    if (one.size === 'tried') for (const lane of lanes) await this.#tryOut(one, lane, lastsMs, warmMs)
    for (let round = 0; round < rounds; round++) {
      // Every other round the other way round: who comes after whom should not matter.
      const turns = round % 2 === 0 ? lanes : lanes.toReversed()
      for (const group of one.together === true ? oneOfEach(turns) : turns.map((lane) => [lane])) {
        await Promise.all(group.map((lane) => this.#round(one, lane, round)))
      }
    }
    for (const lane of lanes) this.#keep(one, lane)
    const seconds = ((performance.now() - begun) / 1_000).toFixed(1)
    this.#plan.progress(`${this.#scenario.name}, ${one.name}: ${seconds} s`)
  }

  async #round(one: Case, lane: Lane, round: number): Promise<void> {
    const { profile } = this.#plan
    const { name } = this.#scenario
    const kind = recordings[round]
    let asked: Partial<Order> = {}
    if (profile !== null && kind !== undefined) {
      const file = profileFile(profile, name, one.name, lane.backend, kind)
      // One of an earlier run would pass for this one's.
      rmSync(file, { force: true })
      asked = { recording: { kind, file } }
    }
    const figures = await this.#measure(one, lane, asked)
    if (figures !== null) lane.rounds.push(figures)
  }

  /** Finds how many jobs last long enough; then goes on until what is measured is warm, or `warmMs` are over. */
  async #tryOut(one: Case, lane: Lane, lastsMs: number, warmMs: number): Promise<void> {
    const begun = performance.now()
    let jobs = 0
    for (let attempt = 0, found = false; attempt < attemptsMax && !found; attempt++) {
      jobs += lane.jobs
      const { rate } = (await this.#measure(one, lane)) ?? {}
      if (rate === undefined) return
      const wanted = Math.min(jobsMax, Math.max(jobsMin, Math.round((rate * lastsMs) / 1_000)))
      found = lane.jobs >= wanted / 2
      // Few jobs say little of how many would be right.
      lane.jobs = found ? wanted : Math.min(wanted, lane.jobs * 16)
    }
    for (; jobs < warmJobs && performance.now() - begun < warmMs; jobs += lane.jobs) {
      if ((await this.#measure(one, lane)) === null) return
    }
  }

  /** Null once the lane has failed, which is told once: it is not tried again. */
  async #measure(one: Case, lane: Lane, more: Partial<Order> = {}): Promise<Figures | null> {
    const host = this.#hosts.get(lane.backend)
    // That its process could not be started again was told then, of all lanes.
    if (lane.hasFailed || host === undefined) return null
    const { quick } = this.#plan
    const { timeoutMs } = settings[quick ? 'quick' : 'full']
    const { system, jobs } = lane
    const order: Order = { scenario: this.#scenario.name, case: one.name, system, jobs, quick, ...more }
    try {
      return await host.measure(order, timeoutMs)
    } catch (error) {
      lane.hasFailed = true
      const reason = (error as Error).message
      this.#omit({ case: one.name, backend: lane.backend, system, reason, failed: true })
      // Whatever it left behind, others shall not meet.
      await this.#hosts.end(lane.backend)
      await this.#startHost(lane.backend)
      return null
    }
  }

  #keep(one: Case, lane: Lane): void {
    const [first] = lane.rounds
    if (first === undefined) return
    const { backend, system } = lane
    for (const metric of Object.keys(first) as MetricName[]) {
      // Seven digits are more than any of it is worth.
      const samples = lane.rounds.map((figures) => Number((figures[metric] ?? Number.NaN).toPrecision(7)))
      this.series.push({ scenario: this.#scenario.name, case: one.name, backend, system, metric, samples })
    }
  }
}

/** Groups of lanes of different backends. */
function oneOfEach(lanes: readonly Lane[]): Lane[][] {
  const systems = [...new Set(lanes.map(({ system }) => system))]
  return systems.map((system) => lanes.filter((lane) => lane.system === system))
}

function commit(): string | null {
  try {
    const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe' }).trim()
    const changed = git('status', '--porcelain', '--untracked-files=no', '--', 'src', 'storages') !== ''
    return `${git('rev-parse', '--short', 'HEAD')}${changed ? '+' : ''}`
  } catch {
    return null
  }
}
