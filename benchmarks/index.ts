/**
 * `npm run bench`: measures the storages side by side, or one by one. See {@link usage}.
 *
 * @module
 */

import { commandOf, type ReportName, type RunCommand, usage } from './arguments.ts'
import { compared } from './results/compare.ts'
import { comparisonText, resultsText } from './results/print.ts'
import { type Results, readResults, writeResults } from './results/results.ts'
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

async function render(results: Results, out: string): Promise<void> {
  const { writePage } = await import('./page/index.ts')
  for (const file of await writePage(results, out)) console.log(`wrote ${file}`)
}

async function runAll(command: RunCommand, argv: readonly string[]): Promise<void> {
  // What can't be read should be told before the run, not after it.
  const before = command.compare === null ? null : readResults(command.compare)
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
  if (command.profile !== null) {
    const { summaries } = await import('./profile/summary.ts')
    for (const text of summaries(results, command.profile)) console.log(`\n${text}`)
    return
  }
  console.log(resultsText(results, chosen))
  if (command.json !== null) writeResults(command.json, results)
  if (command.out !== null) await render(results, command.out)
  if (before !== null) {
    const comparison = compared(before, results)
    console.log(comparisonText(comparison))
    if (comparison.moved.some(({ better }) => !better)) process.exitCode = 1
  }
  if (command.report !== null) {
    console.log()
    await report(command.report, [])
  }
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
      await render(readResults(command.file), command.out)
      break
    case 'run':
      await runAll(command, argv)
  }
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 2
}
