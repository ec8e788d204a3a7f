/**
 * Where askonce loses, and why: the figures choose what is said.
 *
 * @module
 */

import type { BackendName } from '../backends/backend.ts'
import type { MetricName } from '../results/metrics.ts'
import type { Results, Series } from '../results/results.ts'
import { advantages, baselineOf, indexed, ratioToBare } from '../results/statistics.ts'
import { figure, spread, table } from '../support/report.ts'

/** One case in which askonce is behind the bare baseline. */
export interface Loss {
  readonly series: Series
  /** Of the baseline's figure, as an advantage: 0.5 is half as good. */
  readonly advantage: number
  /** What a job takes, µs: the inverse of a rate, or the p50. */
  readonly own: number
  /** The same of the baseline. */
  readonly bare: number
}

/** Ratios nearer to 1 than this are a draw. */
const draw = 0.95

/** The figure that a scenario is judged by. */
const judged: Record<string, MetricName> = {
  enqueue: 'rate',
  duplicate: 'rate',
  process: 'rate',
  wait: 'p50',
  wake: 'p50',
  payload: 'rate',
  depth: 'rate',
}

/** Losses in time, the worst first. */
export function losses(results: Results): Loss[] {
  const all = indexed(results)
  const found: Loss[] = []
  for (const series of results.series) {
    const bare = baselineOf(series, all)
    if (bare === undefined || judged[series.scenario] !== series.metric) continue
    const advantage = spread(advantages(series, bare)).median
    if (advantage < draw) found.push({ series, advantage, own: microseconds(series), bare: microseconds(bare) })
  }
  return found.sort((a, b) => a.advantage - b.advantage)
}

function microseconds(series: Series): number {
  const value = median(series) ?? Number.NaN
  return series.metric === 'rate' ? 1e6 / value : value * 1_000
}

/** Why, of some losses. Said where there are such. */
interface Reason {
  readonly of: (loss: Loss) => boolean
  /** Null where the figures say something else. */
  readonly text: string | ((results: Results) => string | null)
}

const any = (): boolean => true
const isIn =
  (...scenarios: readonly string[]) =>
  ({ series }: Loss): boolean =>
    scenarios.includes(series.scenario)
const isAlone = ({ series }: Loss): boolean => /^(?:1 |one )/.test(series.case) && series.scenario !== 'payload'
const isCrowded = ({ series }: Loss): boolean => /^(?:16|50|64) (?:in flight|at once)/.test(series.case)
const isLarge = ({ series }: Loss): boolean => series.case === '64 KB'

/** What many jobs at once cost on Redis, where that is less than the baseline's. */
function crowdedOnRedis(results: Results): string | null {
  const all = indexed(results)
  const ratios = results.series
    .filter((series) => series.backend === 'redis' && series.metric === 'cpu' && isCrowded({ series } as Loss))
    .flatMap((series) => ratioToBare(series, all) ?? [])
  if (ratios.length === 0 || Math.max(...ratios) >= 1) return null
  return `Many calls at once travel as one, and a job takes ${figure(Math.min(...ratios))} to ${figure(Math.max(...ratios))} of the baseline’s processor time. Where the rate is behind all the same, Node and Redis take turns: a worker has one call under way at a time, while the bare loops have as many as there are jobs.`
}

const reasons: Record<BackendName, readonly Reason[]> = {
  memory: [
    {
      of: any,
      text: 'The bare loop keeps the caller’s own object in a Map and hands it on. askonce encodes each payload and result (so that nobody’s later change reaches a stored job), digests the payload to notice another one under the same id, gives each record its tokens, attempts and TTLs, keeps an index by time, leases every run and fences its end. With a millisecond of real work in the handler the difference is lost in it; where a Map would really do, use a Map.',
    },
  ],
  'file-fsync': [
    {
      of: ({ series }) => series.scenario !== 'duplicate',
      text: 'Checksummed lines with tokens and lease terms have to be on the disk. Producer and worker keep a replica each here, as two processes would, and read each other’s lines; the bare loop has one state, reads nothing back, compacts nothing, and no second process could use it.',
    },
    {
      of: isIn('duplicate'),
      text: 'A duplicate writes nothing. It takes a turn of the event loop, a look at the file in case that others have written, and a copy of the result, where the bare loop looks into its Map.',
    },
    {
      of: isLarge,
      text: 'A large payload is encoded, digested, checksummed, and parsed again by the other party; the bare loop writes it, and hands on the caller’s own object.',
    },
  ],
  'file-os': [
    {
      of: any,
      text: 'Without the sync what is left is processor time: encoding, checksums, a look at the file for each turn, and reading the other party’s lines, of which the bare loop does none.',
    },
  ],
  redis: [
    {
      of: isAlone,
      text: 'A lone caller has nobody to share a round trip with, so what the scripts do besides shows: an index by time, fingerprint, TTLs, tokens, hints to those who wait.',
    },
    { of: isCrowded, text: crowdedOnRedis },
    {
      of: isIn('payload'),
      text: 'A record is one text, put together for each payload, digested, and cut apart again by who reads it; the bare loop sends the payload as it is.',
    },
  ],
  dynamodb: [
    {
      of: any,
      text: 'The bare loop knows in the process what is due and who waits. askonce finds due jobs through an index, writes that index’s keys with each step, and polls for what other processes did: a conditional write more or less costs the same, but there are more requests, and waiting is as quick as the polling. The processor time of the SDK weighs as much as the service here: dynalite and Node share this machine.',
    },
  ],
}

function reasonsOf(name: BackendName, own: readonly Loss[], results: Results): string {
  return reasons[name]
    .filter(({ of }) => own.some(of))
    .flatMap(({ text }) => (typeof text === 'string' ? text : (text(results) ?? [])))
    .join(' ')
}

export function lossesText(results: Results): string {
  const found = losses(results)
  const title = (name: BackendName) => results.backends.find((backend) => backend.name === name)?.title ?? name
  if (!results.series.some(({ scenario, metric, system }) => system !== 'bare' && judged[scenario] === metric)) {
    return 'This run measured nothing that could be judged.'
  }
  if (found.length === 0) return 'In no case that this run measured was askonce behind its bare baseline.'
  const parts: string[] = [
    'In µs a job: of a rate, the time from one job’s end to the next’s; of a p50, from the call to its answer. askonce’s, then the baseline’s.',
  ]
  for (const { name } of results.backends) {
    const own = found.filter(({ series }) => series.backend === name)
    if (own.length === 0) continue
    const rows = own.map(({ series, advantage, own, bare }) => [
      `${series.scenario}, ${series.case}`,
      series.metric === 'rate' ? 'rate' : 'speed (p50)',
      `${figure(advantage)}x`,
      `${figure(own)} to ${figure(bare)}`,
    ])
    parts.push(
      `### ${title(name)}\n\n${reasonsOf(name, own, results)}\n\n${table(['behind the baseline in', 'of', '', 'µs a job'], rows)}`,
    )
  }
  parts.push(...[spaceText(results), idleText(results), vinText(results)].filter((text) => text !== null))
  return parts.join('\n\n')
}

function median(series: Series | undefined): number | undefined {
  return series === undefined ? undefined : spread(series.samples.filter(Number.isFinite)).median
}

function spaceText(results: Results): string | null {
  const rows: string[][] = []
  for (const { name, title } of results.backends) {
    const of = (system: string, metric: MetricName) =>
      median(
        results.series.find(
          (one) => one.scenario === 'space' && one.backend === name && one.system === system && one.metric === metric,
        ),
      ) ?? 0
    const sum = (system: string, state: 'Queued' | 'Completed') =>
      Math.max(0, of(system, `heap${state}`)) + Math.max(0, of(system, `outside${state}`))
    const cells = (['Queued', 'Completed'] as const).map((state) => {
      const [own, bare] = [sum('askonce', state), sum('bare', state)]
      return own > bare * 1.05 && bare > 0 ? `${figure(own)} to ${figure(bare)}` : ''
    })
    if (cells.some((cell) => cell !== '')) rows.push([title, ...cells])
  }
  if (rows.length === 0) return null
  return `### Space\n\nBytes of a small job, heap and outside together, where askonce takes more than the baseline. A record carries id, two tokens, a digest, attempts and TTLs; the value itself is the smaller part.\n\n${table(['', 'queued', 'completed'], rows)}`
}

function idleText(results: Results): string | null {
  const loud = results.series
    .filter(({ scenario, system, metric }) => scenario === 'idle' && system === 'askonce' && metric === 'idleCalls')
    .filter((series) => (median(series) ?? 0) > 0)
  if (loud.length === 0) return null
  const list = loud.map((series) => {
    const title = results.backends.find(({ name }) => name === series.backend)?.title ?? series.backend
    return `${title} ${figure(median(series) ?? 0)}`
  })
  return `### Idle\n\nHints can be lost, so askonce looks for itself now and then; the bare loops do not, and would sleep on. Calls a second of an idle producer and worker: ${list.join(', ')}.`
}

function vinText(results: Results): string | null {
  const rates = results.series.filter(({ scenario, metric }) => scenario === 'vin' && metric === 'rows')
  const peers = rates.filter(({ system }) => !system.startsWith('askonce'))
  const beaten = rates
    .filter(({ system }) => system.startsWith('askonce'))
    .flatMap((own) =>
      peers
        .filter((peer) => (median(peer) ?? 0) > (median(own) ?? 0))
        .map((peer) => {
          const title = results.backends.find(({ name }) => name === own.backend)?.title ?? own.backend
          return `- ${own.system} on ${title}: ${figure(median(own) ?? 0)} rows/s; ${peer.system}: ${figure(median(peer) ?? 0)}`
        }),
    )
  if (beaten.length === 0) return null
  return `### VINs\n\nSlower in rows a second than what does not share its answers between processes, or shares them for less long:\n\n${beaten.join('\n')}`
}
