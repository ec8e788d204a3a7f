/** 1,000 simulated worlds, a million steps: no promise is broken. A failure names the seed that replays it. */

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { typescript } from '../support/typescript.ts'

const sim = fileURLToPath(new URL('sim.ts', import.meta.url))

/** Runs `npm run sim` with these options. */
async function run(
  options: readonly string[],
  env: Record<string, string> = {},
): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, [...typescript, sim, ...options], { env: { ...process.env, ...env } })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk
    })
  }
  const code = await new Promise<number>((resolve) => child.once('close', resolve))
  return { code, output }
}

function find(output: string, pattern: RegExp): string {
  return pattern.exec(output)?.[1] ?? `no ${pattern} in ${output}`
}

t.test('1,000 seeds, a million steps', async (t) => {
  const { code, output } = await run(['--seeds', '1000', '--ops', '1000', '--jobs', '2', '--quiet'])
  for (const line of output.trim().split('\n')) t.comment(line)
  t.equal(code, 0, output)
  t.match(output, /^1000 seeds, /)
  t.ok(Number(find(output, /, (\d+) steps,/)) >= 1_000_000, 'a million steps')
  t.match(output, /^0 violations$/m)
})

t.test('a seed is the same history each time, in every process', async (t) => {
  const histories = await Promise.all([
    run(['--from', '77', '--seeds', '40', '--jobs', '1']),
    run(['--from', '77', '--seeds', '40', '--jobs', '3']),
  ])
  const [one, three] = histories.map(({ output }) => find(output, /history ([0-9a-f]{8})/))
  t.match(one, /^[0-9a-f]{8}$/)
  t.equal(one, three)
  const replays = await Promise.all([run([], { SEED: '77' }), run(['--trace', '0'], { SEED: '77' })])
  const [first, second] = replays.map(({ output }) => find(output, /^seed 77: \d+ steps, history ([0-9a-f]{8})$/m))
  t.match(first, /^[0-9a-f]{8}$/)
  t.equal(first, second, 'watched or not')
})

t.setTimeout(400_000)
