/**
 * `npm run bench -- redis [--rounds 3] [--scale 1] [--deep 500000] [--only NAME,NAME] [--svg FILE]`: askonce on Redis, its floor,
 * and the peers, in alternating rounds of one run. The peers are installed by `npm install --prefix benchmarks/redis`.
 *
 * @module
 */

import { writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { parseArgs } from 'node:util'
import { above, whole } from '../../test/support/arguments.ts'
import { RedisServer } from '../../test/support/redis-server.ts'
import { figure, machine, spread, table } from '../support/report.ts'
import { chart } from './chart.ts'
import type { Case, Costs, Figures } from './measure.ts'
import { cases, costs, depthCases } from './measure.ts'
import { Probe } from './probe.ts'
import type { System } from './systems.ts'
import { systems } from './systems.ts'

/** The medians of several rounds; null where the system did not get through. */
function median(rounds: readonly Figures[]): Figures | null {
  if (rounds.length === 0) return null
  const of = (field: keyof Figures) => spread(rounds.map((figures) => figures[field] ?? Number.NaN)).median
  const { p50 } = rounds[0] as Figures
  const base = { rate: of('rate'), nodeUs: of('nodeUs'), redisUs: of('redisUs') }
  return p50 === undefined ? base : { ...base, p50: of('p50'), p95: of('p95'), p99: of('p99') }
}

/** How long one round of one system may take, ms: not every queue answers everybody who waits. */
const patienceMs = 30_000
/** Systems that were given up: what they left behind would disturb their further rounds, and may keep this process. */
const stuck = new Set<System>()

/** @throws if the system hangs, or did so before */
function inTime<T>(system: System, work: () => Promise<T>): Promise<T> {
  if (stuck.has(system)) return Promise.reject(new Error('left out, as it has hung before'))
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      stuck.add(system)
      reject(new Error(`not done in ${patienceMs / 1_000} s`))
    }, patienceMs)
  })
  return Promise.race([work(), late]).finally(() => clearTimeout(timer))
}

/**
 * What is measured runs for a while before: a few thousand calls go through code that the compiler still works on, and the systems
 * differ in how much of it they have.
 */
async function warmUp(one: Case, system: System, server: RedisServer, probe: Probe, warmMs: number): Promise<void> {
  const end = performance.now() + warmMs
  try {
    while (performance.now() < end) await inTime(system, () => one.run(system, server.url, probe))
  } catch (error) {
    console.error(`${system.name}, ${one.name}, warm-up: ${(error as Error).message}`)
  }
}

async function measured(
  list: readonly Case[],
  all: readonly System[],
  server: RedisServer,
  probe: Probe,
  { rounds, warmMs }: { rounds: number; warmMs: number },
): Promise<Map<string, Map<string, Figures | null>>> {
  const results = new Map<string, Map<string, Figures | null>>()
  for (const one of list) {
    const found = new Map(all.map(({ name }) => [name, [] as Figures[]]))
    for (const system of all) await warmUp(one, system, server, probe, warmMs)
    for (let round = 0; round < rounds; round++) {
      for (const system of all) {
        try {
          found.get(system.name)?.push(await inTime(system, () => one.run(system, server.url, probe)))
        } catch (error) {
          console.error(`${system.name}, ${one.name}, round ${round + 1}: ${(error as Error).message}`)
        }
      }
    }
    results.set(one.name, new Map([...found].map(([name, figures]) => [name, median(figures)])))
    console.error(`# ${one.name}: done`)
  }
  return results
}

function cell(figures: Figures | null | undefined): string {
  if (figures === null || figures === undefined) return 'failed'
  const rate = Number.isNaN(figures.rate) ? '' : `${figure(figures.rate)} `
  const cpu = `(${figure(figures.nodeUs)}+${figure(figures.redisUs)})`
  const { p50, p95, p99 } = figures
  const latency = p50 === undefined ? '' : ` ${figure(p50)}/${figure(p95 ?? 0)}/${figure(p99 ?? 0)} ms`
  return `${rate}${cpu}${latency}`
}

function print(title: string, results: Map<string, Map<string, Figures | null>>, all: readonly System[]): void {
  const head = [title, ...all.map(({ name }) => name)]
  const rows = [...results].map(([name, bySystem]) => [name, ...all.map((system) => cell(bySystem.get(system.name)))])
  console.log(`\n${table(head, rows)}`)
}

function printRatios(results: Map<string, Map<string, Figures | null>>, all: readonly System[]): void {
  const others = all.filter(({ name }) => name !== 'askonce')
  const rows = [...results].map(([name, bySystem]) => {
    const own = bySystem.get('askonce')
    return [
      name,
      ...others.map((system) => {
        const other = bySystem.get(system.name)
        if (!own || !other) return '–'
        const cpu = (own.nodeUs + own.redisUs) / (other.nodeUs + other.redisUs)
        const p50 = own.p50 === undefined || other.p50 === undefined ? '' : `, p50 ${figure(own.p50 / other.p50)}x`
        const rate = Number.isNaN(own.rate) ? '' : `rate ${figure(own.rate / other.rate)}x, `
        return `${rate}CPU ${figure(cpu)}x${p50}`
      }),
    ]
  })
  console.log(`\n${table(['askonce against', ...others.map(({ name }) => name)], rows)}`)
}

function printCosts(all: readonly System[], found: ReadonlyMap<string, Costs>): void {
  const fields: [string, keyof Costs][] = [
    ['commands of clients per job', 'clientCommands'],
    ['commands inside Lua per job', 'innerCommands'],
    ['bytes to Redis per job', 'bytesIn'],
    ['bytes of memory per queued job', 'bytesQueued'],
    ['bytes of memory per completed job', 'bytesCompleted'],
    ['idle commands a second', 'idleCommandsPerSecond'],
  ]
  const rows = fields.map(([name, field]) => [
    name,
    ...all.map((system) => {
      const costs = found.get(system.name)
      return costs === undefined ? 'failed' : figure(costs[field])
    }),
  ])
  console.log(`\n${table(['costs (16 at once)', ...all.map(({ name }) => name)], rows)}`)
}

export async function run(argv: readonly string[] = []): Promise<void> {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      rounds: { type: 'string', default: '3' },
      scale: { type: 'string', default: '1' },
      deep: { type: 'string', default: '500000' },
      only: { type: 'string' },
      svg: { type: 'string' },
    },
  })
  const [rounds, deepest, scale] = [whole(values, 'rounds', 1), whole(values, 'deep', 1), above(values, 'scale')]
  const server = await RedisServer.start()
  const probe = new Probe(server.url)
  try {
    const { systems: found, skipped } = await systems()
    const only = values.only?.split(',')
    const all = found.filter(({ name }) => only === undefined || only.includes(name))
    if (all.length === 0) throw new Error(`--only names none of ${found.map(({ name }) => name).join(', ')}`)
    const warmMs = 2_000 * Math.min(1, scale)
    const version = await probe.version()
    const ioredis = createRequire(import.meta.url)('ioredis/package.json') as { version: string }
    console.log(`# Redis: jobs a second (Node + Redis CPU, µs a job), latencies p50/p95/p99\n`)
    console.log(
      `${machine()}; Redis ${version} without persistence, ioredis ${ioredis.version}; ${rounds} alternating rounds, medians`,
    )
    console.log(all.map((system) => `${system.name} ${system.version}`).join(', '))
    for (const reason of skipped) console.log(`Left out: ${reason}`)

    const results = await measured(cases(scale), all, server, probe, { rounds, warmMs })
    print('case', results, all)
    printRatios(results, all)

    const deepSystems = all.filter(({ name }) => name === 'floor' || name === 'askonce')
    const deep = await measured(depthCases(deepest), deepSystems, server, probe, { rounds, warmMs: 0 })
    print('depth', deep, deepSystems)

    const spent = new Map<string, Costs>()
    for (const system of all) {
      try {
        spent.set(system.name, await inTime(system, () => costs(system, server.url, probe)))
      } catch (error) {
        console.error(`${system.name}, costs: ${(error as Error).message}`)
      }
    }
    printCosts(all, spent)

    const groups = [...results].map(([name, bySystem]) => ({
      name,
      bars: all.flatMap((system) => {
        const figures = bySystem.get(system.name)
        return figures ? [{ system: system.name, nodeUs: figures.nodeUs, redisUs: figures.redisUs }] : []
      }),
    }))
    if (values.svg !== undefined) {
      writeFileSync(values.svg, chart('CPU per job, Node (dark) and Redis (light)', groups))
      console.log(`\nChart: ${values.svg}`)
    }
  } finally {
    probe.close()
    await server.dispose()
    if (stuck.size > 0) process.exit()
  }
}
