import t from 'tap'
import { randomCommands } from './random.ts'

t.setTimeout(300_000)

t.test('600 random commands, of two processes on a hostile service, do what the machine does', async (t) => {
  const given = process.env['ASKONCE_SEED']
  // The same in every run; others by the command, see random.ts. Seed 786121967 is known to fail in the suite's own expectation of a
  // result that was kept when its run had just ended.
  t.equal(await randomCommands(600, given === undefined ? 20_261_130 : Number(given)), 600)
})
