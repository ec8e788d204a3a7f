import t from 'tap'
import { randomCommands } from './random.ts'

t.setTimeout(300_000)

t.test('1,200 random commands, of two processes on a hostile service, do what the machine does', async (t) => {
  const given = process.env['ASKONCE_SEED']
  t.equal(await randomCommands(1_200, given === undefined ? Date.now() % 2 ** 31 : Number(given)), 1_200)
})
