/** What claims and collections over several partitions tell of the time until more is due. */

import t from 'tap'
import type { CompletedRecord, ProcessingRecord } from '../../src/record.ts'
import type { Operations } from '../../storages/redis/operations.ts'
import { RoundClaims } from '../../storages/redis/partitioned.ts'

/** Partitions that have so many jobs, and outboxes, each; those that give all that was asked for do not tell what else they have. */
function partitions(...parts: readonly (readonly [has: number, nextInMs: number])[]): RoundClaims {
  const operations = parts.map(([has, next]) => {
    const some = <T>(limit: number) => ({
      now: 1_000,
      records: new Array<T>(Math.min(has, limit)),
      nextInMs: has > limit ? 0 : has === limit ? null : next,
    })
    return {
      claim: async ({ limit }: { limit: number }) => {
        const { records: jobs, ...answer } = some<ProcessingRecord>(limit)
        return { ...answer, jobs, exhausted: [], heldForMs: 0 }
      },
      deliver: async (_: unknown, { limit }: { limit: number }) => {
        return { answers: [], collected: some<CompletedRecord>(limit) }
      },
    } as unknown as Operations
  })
  return new RoundClaims(operations)
}

const request = { generation: 'g', leaseMs: 1_000 }

t.test('the earliest of all counts, where all have been asked', async (t) => {
  for (let start = 0; start < 3; start++) {
    const claims = partitions([0, 500], [1, 300], [0, 400])
    for (let turn = 0; turn < start; turn++) await claims.claim({ ...request, limit: 9 })
    t.match(await claims.claim({ ...request, limit: 2 }), { jobs: { length: 1 }, nextInMs: 300 })
    t.match(await claims.collect({ ...request, limit: 2 }), { records: { length: 1 }, nextInMs: 300 })
  }
})

t.test('whoever fills the answer may have more, and sooner', async (t) => {
  for (let turn = 0; turn < 3; turn++) {
    const claims = partitions([0, 500], [1, 300], [0, 400])
    for (let before = 0; before < turn; before++) await claims.claim({ ...request, limit: 9 })
    t.match(await claims.claim({ ...request, limit: 1 }), { jobs: { length: 1 }, nextInMs: null })
  }
  for (let turn = 0; turn < 3; turn++) {
    const claims = partitions([0, 500], [1, 300], [0, 400])
    for (let before = 0; before < turn; before++) await claims.collect({ ...request, limit: 9 })
    t.match(await claims.collect({ ...request, limit: 1 }), { records: { length: 1 }, nextInMs: null })
  }
})

t.test('a claim that names no ids asks no one what is due', async (t) => {
  const claims = partitions([0, 500], [0, 300])
  t.match(await claims.claim({ ...request, limit: 1, ids: [] }), { jobs: { length: 0 }, nextInMs: null })
})
