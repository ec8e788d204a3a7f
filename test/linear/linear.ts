/**
 * `npm run linear`: several processes call one storage at random, some are killed, and the checker looks for an order that explains
 * all answers.
 *
 *     npm run linear -- file --ops 100000 --seed 1     in rounds of 10,000 calls
 *     npm run linear -- redis --ops 100000 --seed 1
 *
 * The exit code is 0 if there is one for each round.
 *
 * @module
 */

import { parseArgs } from 'node:util'
import type { Linearizability } from '../../storages/conformance/testing/index.ts'
import { checkLinearizability } from '../../storages/conformance/testing/index.ts'
import { whole } from '../support/arguments.ts'
import type { Bundled } from '../support/bundled.ts'
import { FileSite, RedisSite, type Site } from '../support/fleet/sites.ts'
import { exitOnSignals } from '../support/tidy.ts'
import type { Recording, RecordOptions } from './record.ts'
import { callerProgram, record } from './record.ts'

/** Calls of one round. */
const roundOps = 10_000

/** Processes at the same time, and those of a round that are killed. */
const processes = 4
const kills = 6

/** A site to record on. */
export async function siteOf(kind: 'file' | 'redis'): Promise<Site> {
  return kind === 'file' ? new FileSite('os', 'memory') : RedisSite.start('no', 'memory')
}

/** Records and checks one round. */
export async function round(
  program: Bundled,
  site: Site,
  options: Omit<RecordOptions, 'stage'>,
): Promise<{ readonly recording: Recording; readonly result: Linearizability }> {
  const recording = await record(program, { stage: site.stage, ...options })
  return { recording, result: checkLinearizability(recording.histories) }
}

async function command(argv: readonly string[]): Promise<void> {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: {
      ops: { type: 'string', default: '20000' },
      seed: { type: 'string', default: '1' },
    },
    allowPositionals: true,
  })
  const [kind] = positionals
  if (kind !== 'file' && kind !== 'redis') {
    console.error('usage: npm run linear -- file | redis [--ops N] [--seed S]')
    process.exitCode = 2
    return
  }
  const [ops, seed] = [whole(values, 'ops', 1), whole(values, 'seed')]
  const rounds = Math.max(1, Math.ceil(ops / roundOps))
  const totals = { ids: 0, calls: 0, answers: 0, open: 0, nodes: 0, kills: 0 }
  exitOnSignals()
  const startedAt = performance.now()
  const program = callerProgram()
  const site = await siteOf(kind)
  try {
    for (let index = 0; index < rounds; index++) {
      const namespace = `linear-${index}`
      const share = Math.min(roundOps, ops - index * roundOps)
      const own = { seed: seed + index, ops: share, namespace, processes, kills }
      const { recording, result } = await round(program, site, own)
      await site.clear(namespace)
      totals.ids += recording.histories.size
      totals.calls += recording.entries.filter((entry) => entry.kind === 'call').length
      totals.answers += recording.entries.filter((entry) => entry.kind === 'return').length
      totals.nodes += result.nodes
      totals.kills += recording.kills
      if (result.outcome !== 'linearizable') {
        console.log(`${result.outcome} in round ${index} (seed ${own.seed}): ${result.message}`)
        process.exitCode = 1
        break
      }
    }
  } finally {
    await site.end()
    program.end()
  }
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  const { calls, answers, ids, nodes } = totals
  console.log(
    `${kind}: ${calls} calls by ${processes} processes, ${calls - answers} of them never answered, ${totals.kills} kills, ` +
      `${ids} ids, ${nodes} states looked at; ${process.exitCode === 1 ? 'NOT linearizable' : 'linearizable'} ` +
      `(${rounds} rounds, ${seconds} s, seed ${seed})`,
  )
}

if (import.meta.filename === process.argv[1]) await command(process.argv.slice(2))
