import t from 'tap'
import { longCases } from '../conformance/run.ts'
import { Seeded } from '../support/seeded.ts'
import { conformanceInThread } from './support/thread.ts'

t.setTimeout(600_000)

t.test('DynamoDB, a fifth of the answers to writes lost', async (t) => {
  const { seed } = new Seeded()
  t.comment(`ASKONCE_SEED=${seed} loses the same again`)
  const lost = await conformanceInThread(t, { variant: 'lost', seed }, longCases)
  t.ok(lost > 100, `${lost} answers were lost indeed`)
})
