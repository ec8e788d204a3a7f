import t from 'tap'
import { conformanceInThread } from './support/thread.ts'

t.setTimeout(600_000)

t.test('DynamoDB, as dynalite is: no old items with failed conditions', async (t) => {
  await conformanceInThread(t, { variant: 'plain', seed: 0 })
})
