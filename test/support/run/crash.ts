/**
 * `npm run crash -- file|redis --kills N --seed S`: worker and producer processes killed at random instants.
 *
 * @module
 */

const scripts: Record<string, () => Promise<{ run(argv: readonly string[]): Promise<void> }>> = {
  file: () => import('../../file/crash.ts'),
  redis: () => import('../../redis/crash.ts'),
}

const [name = '', ...argv] = process.argv.slice(2)
const load = Object.hasOwn(scripts, name) ? scripts[name] : undefined
if (load === undefined) {
  console.error(`usage: npm run crash -- ${Object.keys(scripts).join(' | ')} [--kills N] [--seed S]`)
  process.exitCode = 2
} else {
  await (await load()).run(argv)
}
