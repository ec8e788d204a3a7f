/**
 * `npm run bench -- NAME`: runs one benchmark.
 *
 * @module
 */

const benchmarks: Record<string, () => Promise<{ run(argv: string[]): Promise<void> }>> = {
  memory: () => import('./memory/index.ts'),
  file: () => import('./file/index.ts'),
  redis: () => import('./redis/index.ts'),
  dynamodb: () => import('./dynamodb/index.ts'),
}

const [name = '', ...argv] = process.argv.slice(2)
const load = Object.hasOwn(benchmarks, name) ? benchmarks[name] : undefined
if (load === undefined) {
  console.error(`usage: npm run bench -- ${Object.keys(benchmarks).join(' | ')}`)
  process.exitCode = 2
} else {
  await (await load()).run(argv)
}
