/**
 * `npm run bench -- dynamodb [--jobs 500]`: what a job costs on DynamoDB, in request units by AWS's documented rules, computed
 * from the operations really sent to dynalite in this process; failed claims, idle cost, and the toolbox's share of the CPU.
 *
 * @module
 */

import { parseArgs } from 'node:util'
import { whole } from '../../test/support/arguments.ts'
import { machine } from '../support/report.ts'
import { contention } from './contention.ts'
import { cpu } from './cpu.ts'
import { idle } from './idle.ts'
import { units } from './units.ts'

export async function run(argv: string[] = []): Promise<void> {
  const { values } = parseArgs({ args: argv, options: { jobs: { type: 'string', default: '500' } } })
  const jobs = whole(values, 'jobs', 1)
  console.log(`# DynamoDB, on dynalite in this process\n\n${machine()}\n`)
  await units()
  await contention(jobs)
  await idle()
  await cpu()
}
