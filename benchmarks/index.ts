/**
 * `npm run bench`: measures the storages side by side, or one by one. See {@link usage}.
 *
 * @module
 */

import { commandOf, type ReportName, type RunCommand, usage } from './arguments.ts'
import { compared, gotWorse } from './results/compare.ts'
import { comparisonText, resultsText } from './results/print.ts'
import { type Results, readResults, writeResults } from './results/results.ts'
import { tryFile, tryFolder } from './results/targets.ts'
import { scenarios } from './scenarios/index.ts'

const reports: Record<ReportName, () => Promise<{ run(argv: string[]): Promise<void> }>> = {
  memory: () => import('./memory/index.ts'),
  file: () => import('./file/index.ts'),
  redis: () => import('./redis/index.ts'),
  dynamodb: () => import('./dynamodb/index.ts'),
}

async function report(name: ReportName, argv: readonly string[]): Promise<void> {
  await (await reports[name]()).run([...argv])
}

/** Whatever will be missing when it is to be written is missed now. */
async function pageInto(out: string): Promise<(results: Results) => Promise<void>> {
  const { pageWriter } = await import('./page/index.ts')
  const writePage = await pageWriter(out)
  return async (results) => {
    for (const file of await writePage(results)) console.log(`wrote ${file}`)
  }
}

async function renderAgain(file: string, out: string): Promise<void> {
  const results = readResults(file)
  const render = await pageInto(out)
  await render(results)
}

async function runAll(command: RunCommand, argv: readonly string[]): Promise<void> {
  // What can't be read or written should be told before the run, not after it.
  const before = command.compare === null ? null : readResults(command.compare)
  if (command.json !== null) tryFile(command.json)
  if (command.profile !== null) tryFolder(command.profile)
  const render = command.out === null ? null : await pageInto(command.out)
  const { run } = await import('./run/runner.ts')
  const chosen = scenarios.filter(({ name }) => command.scenarios.length === 0 || command.scenarios.includes(name))
  const results = await run({
    profile: command.profile,
    scenarios: chosen,
    backends: command.backends,
    quick: command.quick,
    arguments: argv,
    progress: (line) => console.error(`# ${line}`),
  })
  if (command.profile !== null) return showProfiles(results, command.profile)
  console.log(resultsText(results, chosen))
  const isEmpty = results.series.length === 0
  // Figures of nothing are not kept: a page, or a file, of better days might be in their place.
  if (isEmpty) process.exitCode = 1
  if (command.json !== null && !isEmpty) writeResults(command.json, results)
  if (!isEmpty) await render?.(results)
  if (before !== null) {
    const comparison = compared(before, results)
    console.log(comparisonText(comparison))
    if (gotWorse(comparison)) process.exitCode = 1
  }
  if (command.report !== null && !isEmpty) {
    console.log()
    await report(command.report, [])
  }
}

async function showProfiles(results: Results, folder: string): Promise<void> {
  const { summaries } = await import('./profile/summary.ts')
  const texts = [...summaries(results, folder)]
  for (const text of texts) console.log(`\n${text}`)
  if (texts.length > 0) return
  console.error('Nothing was recorded: none of these scenarios has a part that can be, or none ran.')
  process.exitCode = 1
}

const argv = process.argv.slice(2)
const names = scenarios.map(({ name }) => name)
// npm runs scripts in the package's folder, whatever folder the user is in.
const command = commandOf(argv, names, process.env['INIT_CWD'] ?? process.cwd())
const usageText = usage.replace('SCENARIOS', names.join(', '))
try {
  switch (command.kind) {
    case 'help':
      console.log(usageText)
      break
    case 'wrong':
      console.error(`${command.message}\n\n${usageText}`)
      process.exitCode = 2
      break
    case 'report':
      await report(command.name, command.arguments)
      break
    case 'render':
      await renderAgain(command.file, command.out)
      break
    case 'run':
      await runAll(command, argv)
  }
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 2
}
