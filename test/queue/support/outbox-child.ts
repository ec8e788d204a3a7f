/**
 * One process of the outbox's kill test, to be killed at any time: works on jobs that post a row each, and relays. It says on stdout
 * what is certain: `completed ID` once a result is stored, `delivered KEY` when a row is handed over.
 *
 *     node --import tsx test/queue/support/outbox-child.ts FOLDER work|relay
 */

import { setTimeout as sleep } from 'node:timers/promises'
import { Queue } from '../../../src/index.ts'
import { FileStorage } from '../../../storages/file/index.ts'

const [folder = '', role] = process.argv.slice(2)
const queue = new Queue<number, number>({
  storage: new FileStorage({ basePath: folder }),
  name: 'outbox',
  leaseMs: 300,
  concurrency: 8,
  maxAttempts: 1_000,
})
const say = (line: string): boolean => process.stdout.write(`${line}\n`)
queue.on('error', (error) => say(`error ${error.message}`))
queue.relay(({ key }) => void say(`delivered ${key}`), { leaseMs: 300 })
if (role === 'work') {
  queue.on('completed', ({ id }) => void say(`completed ${id}`))
  queue.execute(async (job) => {
    // So that it is killed before it has done all.
    await sleep(10)
    job.outbox('row', job.payload)
    return job.payload
  })
  await queue.start()
}
say('ready')
