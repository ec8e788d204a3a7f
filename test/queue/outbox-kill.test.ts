/** The outbox between settlement and delivery: processes are killed at any moment, and no row of a completed job is lost. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { Queue } from '../../src/index.ts'
import { FileStorage } from '../../storages/file/index.ts'
import { Seeded } from '../support/seeded.ts'
import { typescript } from '../support/typescript.ts'

const child = fileURLToPath(new URL('support/outbox-child.ts', import.meta.url))
const kills = 3
const jobs = 90
/** After it a process has nothing left to do: leases are much shorter. */
const silenceMs = 5_000

t.test('rows of completed jobs are delivered at least once, whenever a process dies', async (t) => {
  const seeded = new Seeded()
  t.comment(`ASKONCE_SEED=${seeded.seed} replays`)
  const folder = await mkdtemp(join(tmpdir(), 'askonce-outbox-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  const completed = new Set<string>()
  const delivered = new Set<string>()

  /** Runs a process until it has said so many lines, or `enough`, or has nothing more to say, and kills it. */
  async function live(role: 'work' | 'relay', lines: number, enough: () => boolean): Promise<void> {
    const running = spawn(process.execPath, [...typescript, child, folder, role], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const timer = setTimeout(() => running.kill('SIGKILL'), silenceMs)
    let said = 0
    for await (const line of createInterface({ input: running.stdout })) {
      timer.refresh()
      const [what, text = ''] = line.split(/ (.*)/s)
      if (what === 'completed') completed.add(text)
      else if (what === 'delivered') delivered.add(text)
      else if (what === 'error') t.fail(text)
      if (++said >= lines || enough()) running.kill('SIGKILL')
    }
    clearTimeout(timer)
    if (running.exitCode === null && running.signalCode === null) await once(running, 'exit')
  }

  const queue = new Queue<number, number>({ storage: new FileStorage({ basePath: folder }), name: 'outbox' })
  t.teardown(() => queue.stop())
  const ids = Array.from({ length: jobs }, (_, n) => `job ${n}`)
  await queue.enqueueMany(ids.map((id, n) => ({ id, payload: n })))

  const allSaid = (): boolean => completed.size === jobs && delivered.size === jobs
  for (let kill = 0; kill < kills; kill++) {
    await live('work', 2 + seeded.below((2 * jobs) / kills), allSaid)
  }
  const isDone = async (): Promise<boolean> => {
    for (const id of ids) if ((await queue.getResult(id)) === null) return false
    return true
  }
  for (let round = 0; round < 20 && !(await isDone()); round++) await live('work', jobs, () => completed.size === jobs)
  // The last processes may have been killed before they told of their completions, never before a row was safe.
  for (let round = 0; round < 5 && delivered.size < jobs; round++) {
    await live('relay', Number.POSITIVE_INFINITY, () => delivered.size === jobs)
  }
  t.ok(await isDone(), 'every job is completed')
  t.ok(completed.size > 0 && completed.size <= jobs)
  const lost = ids.filter((id) => !delivered.has(`${id}/row`))
  t.strictSame(lost, [], 'no row is lost')
  t.equal(delivered.size, jobs, 'and none is invented')
})
